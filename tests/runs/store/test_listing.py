"""Lists of runs: filters, pages, private runs, marks; unfinished jobs pass to the next server."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import sqlalchemy as sa

from linearity_lab.cli._kept import _as_json
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import PRESETS, ExperimentSpec, spec_digest
from linearity_lab.runs.store import Mark, Store, StoredRun, UnfinishedJob
from linearity_lab.runs.store._store import begin_run
from tests.runs.store.made_runs import BOTH, SPEC, result, spec


def seeds(runs) -> list[int]:
    return [run.spec.dataset.seed for run in runs.runs]


def test_runs_are_listed_by_last_use(store):
    store.save_spec(spec(5))
    store.save_result(result())
    first, second = store.runs().runs
    assert (first.spec, first.status, first.num_points, first.swept) == (
        SPEC,
        "completed",
        2,
        "2 widths, 10 to 20",
    )
    assert (second.status, second.num_points, second.private, second.imported) == (
        "started",
        0,
        False,
        False,
    )
    assert first.digest == spec_digest(SPEC)
    assert first.num_bytes + second.num_bytes == store.num_bytes()
    assert abs(first.created - time.time()) < 60


@BOTH
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


@BOTH
def test_words_are_words_and_not_patterns(store):
    store.save_result(result())
    for text in ("%", "_", "'", '"; DROP TABLE lab_results', "\0", "\\", "é" * 90_000, "é " * 9000):
        found = store.runs(text=text)
        # kernel_change has an underscore.
        assert found.total == len(found.runs) == int(text in ("_", "\0"))


def test_a_private_run_is_listed_for_those_who_know_its_digest(store, monkeypatch):
    monkeypatch.setattr(
        ExperimentSpec, "is_private", property(lambda self: self.dataset.seed == 77)
    )
    store.save_result(result())
    store.save_result(result(spec=spec(77)))
    known, other = {spec_digest(spec(77))}, {spec_digest(SPEC)}
    for visible, shown in ((None, {0, 77}), ((), {0}), (known, {0, 77}), (other, {0})):
        found = store.runs(visible=visible)
        assert (set(seeds(found)), found.total) == (shown, len(shown))


def test_a_page_of_a_long_list_parses_its_own_runs_alone(store, monkeypatch):
    def fill(connection: sa.Connection) -> None:
        for number in range(300):
            begin_run(connection, KernelChangeSpec(seed=number))

    def counted(row: sa.Row[tuple[object, ...]]) -> StoredRun:
        parsed.append(row)
        return of(row)

    store.do(fill)
    of = StoredRun.of
    parsed: list[object] = []
    monkeypatch.setattr(StoredRun, "of", counted)
    page = store.runs(limit=25, offset=275)
    assert (len(page.runs), page.total, len(parsed)) == (25, 300, 25)
    assert store.runs(text='"seed":299,', limit=25).total == 1
    assert len(parsed) == 26


@BOTH
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


def job(seed: int, submitted_s: float = 1.0, **changes) -> UnfinishedJob:
    return UnfinishedJob(spec(seed), "ann", submitted_s, **changes)


@BOTH
def test_jobs_are_claimed_in_order_until_they_end(store, location):
    store.write_jobs([job(1, 2.0), job(2, 3.0), job(3, 1.0)])
    store.write_jobs([job(1, 2.0, running=True, spent_s=5.0), job(3, 1.0)])
    store.release_jobs()
    store.close()
    later = Store(location)
    assert later.claim_jobs() == (job(3, 1.0), job(1, 2.0, running=True, spent_s=5.0))
    assert later.claim_jobs() == ()
    assert len(later.unfinished_jobs()) == 2
    later.close()


@BOTH
def test_asked_end_is_seen_by_the_server(store):
    store.write_jobs([job(1), job(2)])
    store.end_job(spec_digest(spec(2)))
    store.write_jobs([job(1), job(2, running=True)])
    assert store.jobs_to_end() == {spec_digest(spec(2))}
    assert {each.spec.dataset.seed: each.ending for each in store.unfinished_jobs()} == {
        1: False,
        2: True,
    }
    store.write_jobs([job(1)])
    assert store.jobs_to_end() == frozenset()


def test_job_with_a_damaged_spec_is_skipped(store, change):
    store.write_jobs([job(1), job(2)])
    change("UPDATE lab_results SET spec = '{}' WHERE digest = :run", run=spec_digest(spec(1)))
    store.release_jobs()
    assert store.claim_jobs() == (job(2),)
    store.delete(spec_digest(spec(2)))
    assert store.unfinished_jobs() == ()


def test_list_of_jobs_names_no_owner(monkeypatch):
    shown = _as_json(job(1))
    assert "ann" not in shown
    assert spec_digest(spec(1)) in shown
    assert '"seed": 1' in shown
    assert (
        job(1).visitor
        == replace(job(2), submitted_s=2.0).visitor
        != replace(job(1), owner="bob").visitor
    )
    monkeypatch.setattr(type(SPEC), "is_private", property(lambda self: True))
    assert json.loads(_as_json(job(1)))["spec"] is None
