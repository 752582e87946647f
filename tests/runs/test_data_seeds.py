"""Seeds that also draw the data: runs use their data, and earlier results stay valid."""

import pytest

from linearity_lab.experiments.adding.point import AddingPoint, AddingSpec
from linearity_lab.experiments.early_time.spec import EarlyTimeSpec
from linearity_lab.experiments.hessian.spec import HessianSpec
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import estimate, parse_spec, run_to_end, spec_digest
from linearity_lab.runs._estimate import work_of_points
from linearity_lab.runs._parse import canonical_json
from linearity_lab.runs.costs import Work, machine
from linearity_lab.runs.events import Event, PointProgress
from linearity_lab.settings.grammar import with_settings
from tests.running import result_of


@pytest.mark.slow
def test_each_run_equals_its_seed_alone_on_its_data():
    """In an experiment with a second record per seed."""
    small = {
        "values": [8],
        "num_seeds": 2,
        "seed": 4,
        "kernel_samples": 20,
        "training.max_steps": 3,
    }
    data = {
        "dataset.num_samples": 30,
        "dataset.num_test": 12,
        "dataset.input_dim": 6,
        "dataset.seed": 10,
    }
    one_draw = with_settings(EarlyTimeSpec(), {**small, **data, "training.learning_rate": 0.5})
    spec = with_settings(one_draw, {"draws": "network and data"})
    assert spec_digest(spec) != spec_digest(one_draw)
    assert parse_spec(canonical_json(spec)) == spec
    (point,) = result_of(spec).points
    assert [run.seed for run in point.runs] == [4, 5]
    for run, kernel in zip(point.runs, point.kernels, strict=True):
        alone = result_of(
            with_settings(
                one_draw, {"num_seeds": 1, "seed": run.seed, "dataset.seed": 10 + run.seed}
            )
        )
        (known,), (beside,) = alone.points[0].runs, alone.points[0].kernels
        assert (run.seed, run.targets) == (kernel.seed, known.targets)
        assert run.network.test_loss == pytest.approx(known.network.test_loss, rel=1e-5)
        assert kernel.difference == pytest.approx(beside.difference, rel=1e-5)
    assert point.runs[0].target_power != pytest.approx(point.runs[1].target_power, rel=1e-3)


def test_partial_points_have_the_seeds_so_far():
    """The figure begins with the first seed, not with the last one."""
    small = {"widths": [4], "num_test": 2, "dataset.num_samples": 2, "training.max_steps": 1}
    small |= {"num_seeds": 2, "draws": "network and data", "outputs": ["linear"]}
    shown: list[list[int]] = []

    def keep(event: Event) -> None:
        if isinstance(event, PointProgress) and event.point is not None:
            assert isinstance(event.point, AddingPoint)
            shown.append([run.seed for run in event.point.runs])

    ended = run_to_end(with_settings(AddingSpec(), {**small, "architectures": 1}), on_event=keep)
    assert shown == [[0], [0, 1]]
    assert ended.result is not None
    (point,) = ended.result.points
    assert isinstance(point, AddingPoint)
    assert [run.seed for run in point.runs] == [0, 1]


def test_time_is_that_of_all_seeds_compiled_once():
    one = with_settings(KernelChangeSpec(), {"widths": [3], "num_seeds": 1, "outputs": ["linear"]})
    both, alone = with_settings(one, {"draws": "network and data", "num_seeds": 3}), estimate(one)
    # The data of all seeds have one shape and share compiled code.
    programs = sum(each.programs for each in work_of_points(one).values())
    compiled = machine().seconds(Work(programs=programs))
    assert 0 < compiled < alone.seconds
    assert estimate(both).seconds == pytest.approx(3 * alone.seconds - 2 * compiled, rel=1e-9)
    assert estimate(both).peak_bytes == alone.peak_bytes


def test_what_only_the_first_seeds_have_stays_with_them():
    spec = HessianSpec(num_seeds=4, num_trained=2, num_ball_seeds=1, draws="network and data")
    each = spec.each_seed()
    assert [one.num_trained for one in each] == [1, 1, 0, 0]
    assert [one.num_ball_seeds for one in each] == [1, 0, 0, 0]
    assert [one.blocks for one in each] == [True, False, False, False]
