"""Seeds that also draw the data: runs use their data, and earlier results stay valid."""

import pytest

from linearity_lab.components.explain import provenance_sentence
from ntk_core.experiments.early_time.spec import EarlyTimeSpec
from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import estimate, parse_spec, run_summary, spec_digest
from ntk_core.runs._costs import Work, machine
from ntk_core.runs._estimate import work_of_points
from ntk_core.runs._parse import canonical_json
from ntk_core.settings.grammar import with_settings
from tests.dashboard.made_results import make_points, make_result
from tests.running import result_of

DATA = {"dataset.num_samples": 6, "dataset.seed": 10}
TINY = {"widths": [3], "num_seeds": 2, "seed": 4, "outputs": ["linear"], "training.max_steps": 4, **DATA}


def tiny(**settings):
    return with_settings(KernelChangeSpec(), {**TINY, **settings})


def test_each_run_equals_its_seed_alone_on_its_data():
    spec = tiny(draws="network and data")
    found, one_draw = result_of(spec), result_of(tiny())
    assert spec_digest(spec) != spec_digest(tiny())
    assert parse_spec(canonical_json(spec)) == spec
    (point,) = found.points
    assert [run.seed for run in point.runs] == [4, 5]
    for run in point.runs:
        alone = result_of(tiny(num_seeds=1, seed=run.seed, **{"dataset.seed": 10 + run.seed})).points[0].runs[0]
        assert alone.loss == pytest.approx(run.loss, rel=1e-5)
        assert alone.change == pytest.approx(run.change, rel=1e-4)
    assert one_draw.provenance.data_sha256 != found.provenance.data_sha256
    assert one_draw.points[0].runs[0].loss != pytest.approx(point.runs[0].loss, rel=1e-3)


def test_early_time_draws_data_by_seed_too():
    small = {"values": [8], "num_seeds": 2, "seed": 4, "kernel_samples": 20, "training.max_steps": 3}
    data = {"dataset.num_samples": 30, "dataset.num_test": 12, "dataset.input_dim": 6, "dataset.seed": 10}
    one_draw = with_settings(EarlyTimeSpec(), {**small, **data, "training.learning_rate": 0.5})
    (point,) = result_of(with_settings(one_draw, {"draws": "network and data"})).points
    for run, kernel in zip(point.runs, point.kernels, strict=True):
        alone = result_of(with_settings(one_draw, {"num_seeds": 1, "seed": run.seed, "dataset.seed": 10 + run.seed}))
        (known,), (beside,) = alone.points[0].runs, alone.points[0].kernels
        assert (run.seed, run.targets) == (kernel.seed, known.targets)
        assert run.network.test_loss == pytest.approx(known.network.test_loss, rel=1e-5)
        assert kernel.difference == pytest.approx(beside.difference, rel=1e-5)
    assert point.runs[0].target_power != pytest.approx(point.runs[1].target_power, rel=1e-3)


def test_intervals_say_what_they_are_about():
    points = make_points((30, 100, 300, 1000))
    for draws, words in (
        ("network", "over random initializations (one data set)"),
        ("network and data", "over random initializations and data sets"),
    ):
        spec = KernelChangeSpec(outputs=("linear", "softmax"), draws=draws)
        assert run_summary(spec, points).endswith(f"Intervals are {words}.")
        result = make_result(points).model_copy(update={"spec": spec})
        assert f"intervals {words}" in provenance_sentence(result)


def test_time_is_that_of_all_seeds_compiled_once():
    both = tiny(draws="network and data", num_seeds=3)
    alone = estimate(tiny(num_seeds=1))
    # The data of all seeds have one shape and share compiled code.
    compiled = machine().seconds(
        Work(programs=sum(each.programs for each in work_of_points(tiny(num_seeds=1)).values()))
    )
    assert 0 < compiled < alone.seconds
    assert estimate(both).seconds == pytest.approx(3 * alone.seconds - 2 * compiled, rel=1e-9)
    assert estimate(both).peak_bytes == alone.peak_bytes


def test_what_only_the_first_seeds_have_stays_with_them():
    spec = HessianSpec(num_seeds=4, num_trained=2, num_ball_seeds=1, draws="network and data")
    each = spec.each_seed()
    assert [one.num_trained for one in each] == [1, 1, 0, 0]
    assert [one.num_ball_seeds for one in each] == [1, 0, 0, 0]
    assert [one.blocks for one in each] == [True, False, False, False]
