"""Parallel trainings of one point: compiled programs, unchanged numbers, stopping."""

from __future__ import annotations

import threading
import time
from concurrent.futures import wait
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from linearity_lab.experiments.architectures import compute as architectures
from linearity_lab.experiments.architectures.point import ArchitecturesSpec
from linearity_lab.experiments.kernel_change import compute as kernel_change
from linearity_lab.experiments.kernel_change.compute import side_by_side
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import Growth
from linearity_lab.runs._table import load_data
from linearity_lab.settings.training import TrainingSpec
from ntk_core.networks.architectures import FullyConnected
from ntk_core.networks.architectures._layers import DRAWN_AT_ONCE, normal
from ntk_core.networks.keys import initial_key
from tests.running import exhausted

SPEC = KernelChangeSpec(
    widths=(37, 38),
    num_seeds=2,
    seed=5,
    training=TrainingSpec(learning_rate=0.1, max_steps=20, num_records=4),
)


def heard(work):
    """Messages of a generator, and its value."""
    messages = []
    while True:
        try:
            messages.append(next(work))
        except StopIteration as stop:
            return messages, stop.value


def test_further_width_compiles_one_kernel_and_one_training_each(monkeypatch):
    compiled: list[str] = []

    def listen(name: str, _: float, **reported: object) -> None:
        if name.endswith("backend_compile_duration"):
            compiled.append(str(reported.get("fun_name")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    data = load_data(SPEC)
    monkeypatch.setattr(kernel_change, "trainings_at_once", lambda *_: 2)
    exhausted(kernel_change.compute(SPEC, data, "width=37"))
    compiled.clear()
    together = exhausted(kernel_change.compute(SPEC, data, "width=38"))
    names = sorted(name.removeprefix("jit(").removesuffix(")") for name in compiled)
    assert names == ["_pre_outputs_and_kernel", *3 * ["_shaped"], *2 * ["advance"]]

    monkeypatch.setattr(kernel_change, "trainings_at_once", lambda *_: 1)
    compiled.clear()
    assert exhausted(kernel_change.compute(SPEC, data, "width=38")) == together
    assert compiled == []


def latest_first(steps, **_):
    """Wait for all reports, and hand over that of the last training first."""
    return SimpleNamespace(done=sorted(wait(steps).done, key=steps.__getitem__, reverse=True))


@pytest.mark.parametrize("threads", [1, 2])
def test_point_is_reported_with_its_finished_trainings(monkeypatch, threads):
    monkeypatch.setattr(kernel_change, "trainings_at_once", lambda *_: threads)
    monkeypatch.setattr(kernel_change, "GROWN_S", 0.0)
    monkeypatch.setattr(kernel_change, "wait", latest_first)
    both = (SPEC.architecture, SPEC.architecture)
    pairs = ArchitecturesSpec(architectures=both, widths=(37,), num_seeds=2, training=SPEC.training)
    for compute, spec in ((kernel_change.compute, SPEC), (architectures.compute, pairs)):
        reported, whole = heard(compute(spec, load_data(spec), spec.point_keys()[0]))
        grown: list[Any] = [each.point for each in reported if isinstance(each, Growth)]
        trainings = (
            len(getattr(spec, "groups", [0])) * spec.num_seeds
        )  # those of the pair have one output
        assert len(grown) == trainings - 1 if threads == 1 else len(grown) < trainings
        assert [len(point.runs) for point in grown] == sorted(len(point.runs) for point in grown)
        for point in grown:
            assert (point.key, point.kind) == (whole.key, whole.kind)
            assert all(run in whole.runs for run in point.runs)
            assert 0 < len(point.runs) < len(whole.runs)


@pytest.mark.parametrize(
    "shape", [(1,), (10, 30), (DRAWN_AT_ONCE[0],), (DRAWN_AT_ONCE[0] + 1,), (3, 3, 5, 7)]
)
def test_draws_are_those_of_their_own_shape_to_the_bit(shape):
    key = jax.random.key(3)
    expected = np.float32(0.3) * np.asarray(jax.random.normal(key, shape))
    np.testing.assert_array_equal(normal(key, shape, 0.3), expected)
    np.testing.assert_array_equal(
        jax.jit(lambda key: normal(key, shape, 1.0))(key), jax.random.normal(key, shape)
    )


def test_draws_at_neighboring_widths_are_independent():
    """With the seed's key alone, the wide draw would begin with the narrow one, with a correlation above 0.5."""

    def largest(width):
        net = FullyConnected(width=width, use_bias=False)
        return jax.vmap(
            lambda seed: abs(net.init(initial_key(seed, width), (3,))["output"]["weight"]).max()
        )

    narrow, wide = (np.asarray(largest(width)(np.arange(400))) for width in (100, 130))
    assert abs(np.corrcoef(narrow, wide)[0, 1]) < 0.2  # standard error 1/√400 = 0.05


def counted(number, begun=None, alone=None):
    """A task with a start and three messages; ``alone`` lists the tasks that are starting."""
    if alone is not None:
        alone.append(number)
        time.sleep(0.01)
        assert alone == [number]
        alone.remove(number)
    yield 0.0, f"{number} begins"
    if begun is not None:
        begun.wait(60)
    for step in range(1, 4):
        yield step / 3, f"{number}: {step}"
    return number


def test_works_report_progress_and_return_results_in_order():
    # Each waits for the other's start, so they run in parallel.
    begun = threading.Barrier(2, timeout=60)
    alone: list[int] = []
    reported, found = heard(
        side_by_side([counted(number, begun, alone) for number in range(4)], 2, alone=1)
    )
    assert found == [0, 1, 2, 3]
    assert [share for share, _ in reported] == sorted(share for share, _ in reported)
    assert {message for _, message in reported} > {f"{number}: 1" for number in range(4)}


def test_leaving_stops_all_works_and_one_error_ends_the_others():
    def endless():
        while True:
            yield 0.5, "on"

    def failing():
        yield 0.0, "begins"
        raise ValueError("a reason")

    works = side_by_side([endless(), endless(), endless()], 2)
    assert next(works) == (pytest.approx(1 / 6), "on")
    works.close()
    assert not [
        thread for thread in threading.enumerate() if thread.name.startswith("side-by-side")
    ]
    with pytest.raises(ValueError, match="a reason"):
        exhausted(side_by_side([endless(), failing()], 2))
