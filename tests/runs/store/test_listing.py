"""Lists of runs: filters, pages, private runs of owners, speed with thousands."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa

from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import PRESETS, ExperimentSpec, spec_digest
from ntk_core.runs.store import Mark
from ntk_core.runs.store._store import begin_run
from tests.runs.store.made_runs import SPEC, result, spec


def seeds(runs) -> list[int]:
    return [run.spec.seed for run in runs.runs]


def test_runs_are_listed_by_last_use(store):
    store.save_spec(spec(5))
    store.save_result(result())
    first, second = store.runs().runs
    assert (first.spec, first.status, first.num_points, first.swept) == (SPEC, "completed", 2, "2 widths, 10 to 20")
    assert (second.status, second.num_points, second.private, second.imported) == ("started", 0, False, False)
    assert first.digest == spec_digest(SPEC)
    assert first.num_bytes + second.num_bytes == store.num_bytes()
    assert abs(first.created - time.time()) < 60


def test_runs_are_filtered_by_experiment_status_and_words(store):
    store.save_result(result())
    store.save_result(result("cancelled", spec=spec(77)))
    store.save_spec(PRESETS["zhu-fig2"].spec)
    assert {run.experiment for run in store.runs(experiment="dag").runs} == {"dag"}
    assert seeds(store.runs(status="cancelled")) == [77]
    assert seeds(store.runs(text='"seed":77')) == [77]
    assert seeds(store.runs(text=spec_digest(SPEC)[:12].upper())) == [0]
    assert store.runs(text="GAUSSIAN seed").total == 2
    assert store.runs(text="gaussian nowhere").total == 0


@pytest.mark.parametrize("text", ["%", "_", "'", '"; DROP TABLE lab_results', "\0", "\\", "é" * 90_000, "é " * 9000])
def test_words_are_words_and_not_patterns(store, text):
    store.save_result(result())
    found = store.runs(text=text)
    assert found.total == len(found.runs) == int(text in ("_", "\0"))  # kernel_change has an underscore


def test_a_private_run_is_listed_for_those_who_know_its_digest(store, monkeypatch):
    monkeypatch.setattr(ExperimentSpec, "is_private", property(lambda self: self.seed == 77))
    store.save_result(result())
    store.save_result(result(spec=spec(77)))
    known, other = {spec_digest(spec(77))}, {spec_digest(SPEC)}
    for visible, shown in ((None, {0, 77}), ((), {0}), (known, {0, 77}), (other, {0})):
        found = store.runs(visible=visible)
        assert (set(seeds(found)), found.total) == (shown, len(shown))


def test_a_list_of_two_thousand_runs_comes_page_by_page_at_once(store):
    def fill(connection: sa.Connection) -> None:
        for number in range(2000):
            begin_run(connection, KernelChangeSpec(seed=number))

    store.do(fill)
    began = time.perf_counter()
    page = store.runs(limit=25, offset=1975)
    assert (len(page.runs), page.total) == (25, 2000)
    assert store.runs(text='"seed":1999,', limit=25).total == 1
    # 0.02 s on a quiet machine; a busy one stays far below this limit, parsing every spec far above.
    assert time.perf_counter() - began < 2
    assert (
        len({run.digest for start in range(0, 2000, 500) for run in store.runs(limit=500, offset=start).runs}) == 2000
    )


def test_what_is_written_on_a_run_is_found_and_goes_with_it(store):
    for each in (SPEC, spec(77)):
        store.save_result(result(spec=each))
    run, mark = spec_digest(spec(77)), Mark("odd one", "for Monday", favorite=True)
    store.write_mark(spec_digest(SPEC), Mark(note="x"))
    store.write_mark(run, Mark("first"))
    store.write_mark(run, mark)
    assert store.marks() == {run: mark, spec_digest(SPEC): Mark(note="x")}
    assert seeds(store.runs(text="MONDAY odd", marked=store.marks())) == [77]
    assert seeds(store.runs(marked=store.marks(), only_favorites=True)) == [77]
    assert store.runs(only_favorites=True).total == 0
    store.write_mark(spec_digest(SPEC), Mark())
    store.delete(run)
    assert store.marks() == {}
    store.write_mark("gone", mark)
    assert store.marks() == {}
