"""Parallel trainings of one point: compiled programs, unchanged numbers, stopping."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

from linearity_lab.experiments.architectures import compute as architectures
from linearity_lab.experiments.architectures.point import ArchitecturesSpec
from linearity_lab.experiments.kernel_change import compute as kernel_change
from linearity_lab.experiments.kernel_change.compute import side_by_side
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs._experiment import load_data
from linearity_lab.settings.training import TrainingSpec
from ntk_core.networks.architectures import FullyConnected
from ntk_core.networks.architectures._layers import DRAWN_AT_ONCE, normal
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress, Stopped

SPEC = KernelChangeSpec(
    widths=(37, 38),
    num_seeds=2,
    seed=5,
    training=TrainingSpec(learning_rate=0.1, max_steps=20, num_records=4),
)


class Heard:
    """Records of a progress, and the thread of each report."""

    def __init__(self, most: float = float("inf")):
        self.shares: list[float] = []
        self.messages: list[str] = []
        self.points: list[object] = []
        self.threads: set[threading.Thread] = set()
        self.progress = Progress(self.report, self.points.append, lambda: len(self.shares) >= most)

    def report(self, share: float, message: str) -> None:
        self.shares.append(share)
        self.messages.append(message)
        self.threads.add(threading.current_thread())


@pytest.mark.slow
def test_further_width_compiles_one_kernel_and_one_training_each(monkeypatch):
    compiled: list[str] = []

    def listen(name: str, _: float, **reported: object) -> None:
        if name.endswith("backend_compile_duration"):
            compiled.append(str(reported.get("fun_name")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    data = load_data(SPEC)
    monkeypatch.setattr(kernel_change, "trainings_at_once", lambda *_: 2)
    kernel_change.compute(SPEC, data, "width=37", Progress())
    compiled.clear()
    together = kernel_change.compute(SPEC, data, "width=38", Progress())
    names = sorted(name.removeprefix("jit(").removesuffix(")") for name in compiled)
    assert names == ["_pre_outputs_and_kernel", *3 * ["_scaled"], *2 * ["advance"]]

    monkeypatch.setattr(kernel_change, "trainings_at_once", lambda *_: 1)
    compiled.clear()
    assert kernel_change.compute(SPEC, data, "width=38", Progress()) == together
    assert compiled == []


@pytest.mark.parametrize("threads", [1, 2])
def test_point_is_reported_with_its_finished_trainings(monkeypatch, threads):
    monkeypatch.setattr(kernel_change, "trainings_at_once", lambda *_: threads)
    monkeypatch.setattr(kernel_change, "GROWN_S", 0.0)
    both = (SPEC.architecture, SPEC.architecture)
    pairs = ArchitecturesSpec(architectures=both, widths=(37,), num_seeds=2, training=SPEC.training)
    for compute, spec in ((kernel_change.compute, SPEC), (architectures.compute, pairs)):
        heard = Heard()
        whole = compute(spec, load_data(spec), spec.point_keys()[0], heard.progress)
        grown: list[Any] = heard.points
        # Those of the pair have one output.
        trainings = len(getattr(spec, "groups", [0])) * spec.num_seeds
        assert len(grown) == trainings - 1 if threads == 1 else len(grown) < trainings
        assert [len(point.runs) for point in grown] == sorted(len(point.runs) for point in grown)
        for point in grown:
            assert (point.key, point.kind) == (whole.key, whole.kind)
            assert all(run in whole.runs for run in point.runs)
            assert 0 < len(point.runs) < len(whole.runs)


@pytest.mark.parametrize(
    "shape",
    [(1,), (10, 30), (DRAWN_AT_ONCE[0],), *((size + 1,) for size in DRAWN_AT_ONCE), (3, 3, 5, 7)],
)
def test_draws_are_those_of_their_own_shape_to_the_bit(shape):
    key = jax.random.key(3)
    expected = np.float32(0.3) * np.asarray(jax.random.normal(key, shape))
    np.testing.assert_array_equal(normal(key, shape, 0.3), expected)
    np.testing.assert_array_equal(
        jax.jit(lambda key: normal(key, shape, 1.0))(key), jax.random.normal(key, shape)
    )


def test_draws_at_neighboring_widths_are_independent():
    """With the seed's key alone, the wide draw would begin with the narrow one,
    with a correlation above 0.5.
    """

    def largest(width):
        net = FullyConnected(width=width, use_bias=False)
        return jax.vmap(
            lambda seed: abs(net.init(initial_key(seed, width), (3,))["output"]["weight"]).max()
        )

    narrow, wide = (np.asarray(largest(width)(np.arange(400))) for width in (100, 130))
    assert abs(np.corrcoef(narrow, wide)[0, 1]) < 0.2  # standard error 1/√400 = 0.05


def counted(number, progress, begun=None, alone=None):
    """A work with a start and three messages; ``alone`` lists the works that are starting."""
    if alone is not None:
        alone.append(number)
        time.sleep(0.01)
        assert alone == [number]
        alone.remove(number)
    progress.report(0.0, f"{number} begins")
    if begun is not None:
        begun.wait(60)
    for step in range(1, 4):
        progress.report(step / 3, f"{number}: {step}")
    return number


def endless(progress):
    while True:
        progress.report(0.5, "on")


def failing(progress):
    progress.report(0.0, "begins")
    raise ValueError("a reason")


def ended(number):
    return f"{number} ended"


def threads_left():
    return [each for each in threading.enumerate() if each.name.startswith("side-by-side")]


def test_works_report_progress_and_return_results_in_order():
    # Each waits for the other's start, so they run in parallel.
    begun = threading.Barrier(2, timeout=60)
    alone: list[int] = []
    works = [partial(counted, number, begun=begun, alone=alone) for number in range(4)]
    heard = Heard()
    assert side_by_side(works, heard.progress, 2, ended, alone=1) == [0, 1, 2, 3]
    assert heard.shares == sorted(heard.shares)
    assert heard.shares[-1] == 1.0
    for number in range(4):
        assert {f"{number}: 1", f"{number} ended"} <= set(heard.messages)
    assert heard.threads == {threading.current_thread()}


def test_one_thread_reports_the_same():
    heard = Heard()
    works = [partial(counted, number) for number in range(3)]
    assert side_by_side(works, heard.progress, 1, ended) == [0, 1, 2]
    assert heard.shares == sorted(heard.shares)
    assert heard.messages[-1] == "2 ended"
    assert heard.shares[-1] == 1.0


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_stop_ends_all_works(threads):
    heard = Heard(most=4)
    with pytest.raises(Stopped):
        side_by_side([endless, endless, endless], heard.progress, threads, ended)
    assert len(heard.shares) == 4
    assert threads_left() == []


def test_one_error_ends_the_others():
    heard = Heard()
    with pytest.raises(ValueError, match="a reason"):
        side_by_side([endless, failing], heard.progress, 2, ended)
    assert threads_left() == []


def test_a_work_is_at_most_one_report_ahead():
    made: list[int] = []
    ahead: list[int] = []

    def work(progress):
        for number in range(20):
            made.append(number)
            progress.report(number / 20)

    def report(share, message):
        time.sleep(0.002)  # the works would continue here
        ahead.append(len(made) - len(ahead))

    side_by_side([work, work], Progress(report), 2, ended)
    # Each of two works: one report in the queue, one that waits; and the report at hand.
    assert max(ahead) <= 5


def test_works_compute_in_the_precision_of_the_caller():
    def work(progress):
        progress.report(0.0)
        return jax.numpy.ones(1).dtype.name

    with jax.enable_x64(True):
        assert side_by_side([work, work], Progress(), 2, ended) == ["float64"] * 2
    assert side_by_side([work, work], Progress(), 2, ended) == ["float32"] * 2
