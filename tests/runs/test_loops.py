"""``for event in run(spec)``.

The loop and the computation in turn, and everything that ends either.
"""

from __future__ import annotations

import contextvars
import gc
import itertools
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import Computation, load_data, run, run_to_end
from linearity_lab.runs._events_in_turn import in_turn
from linearity_lab.runs.events import Ended, Event, PointProgress
from linearity_lab.settings.grammar import with_settings
from ntk_core.errors import InvalidInput
from ntk_core.progress import Stopped
from tests.running import Kept

SPEC = with_settings(
    KernelChangeSpec(),
    {
        "widths": (4, 8),
        "num_seeds": 1,
        "outputs": ("linear",),
        "dataset.num_samples": 6,
        "training.max_steps": 2,
        "training.num_records": 2,
    },
)


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "linearity-lab-run"]


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    assert threads() == []


def counting(hear):
    for number in itertools.count():
        hear(number)


def bare(event):
    """An event without times, which differ between runs."""
    found = event.model_dump(exclude={"remaining_s", "result", "point"})
    return found | {"seconds": None}


def test_a_loop_and_a_callback_get_the_same_events():
    heard: list[Event] = []
    last = run_to_end(SPEC, on_event=heard.append)
    looped = list(run(SPEC))
    assert heard[-1] is last
    assert [bare(each) for each in looped] == [bare(each) for each in heard]
    assert looped[-1].result.csv() == last.result.csv()


def test_the_work_waits_while_the_loop_has_an_item():
    order = []

    def work(hear):
        for number in range(3):
            order.append(f"make {number}")
            hear(number)

    for number in in_turn(work):
        time.sleep(0.01)  # the work would continue here
        order.append(f"use {number}")
    assert order == ["make 0", "use 0", "make 1", "use 1", "make 2", "use 2"]


def test_nothing_runs_before_the_first_item_is_asked_for():
    begun: list[int] = []

    def work(hear: Callable[[int], None]) -> None:
        begun.append(1)

    items = in_turn(work)
    assert begun == []
    assert threads() == []
    assert list(items) == []
    assert begun == [1]


def leave_early(items):
    for _ in items:
        break
    items.close()


def forget(items):
    next(items)


def forget_in_a_circle(items):
    next(items)
    circle = [items]
    circle.append(circle)
    del circle, items
    gc.collect()


def fail(items):
    for _ in items:
        raise KeyError("of the loop")


def raise_inside(items):
    with pytest.raises(KeyError):
        fail(items)
    items.close()


@pytest.mark.parametrize("leave", [leave_early, forget, forget_in_a_circle, raise_inside])
def test_leaving_the_loop_stops_the_work_and_waits_for_it(leave):
    ended = []

    def work(hear):
        try:
            counting(hear)
        finally:
            time.sleep(0.05)
            ended.append(1)

    leave(in_turn(work))
    assert ended == [1]


def test_work_that_ignores_a_stop_is_stopped_again():
    stops = []

    def work(hear):
        for number in range(3):
            try:
                hear(number)
            except Stopped:
                stops.append(number)

    leave_early(in_turn(work))
    assert stops == [0, 1, 2]


@pytest.mark.parametrize("error", [ValueError("a reason"), KeyboardInterrupt(), SystemExit(3)])
def test_errors_of_the_work_are_raised_in_the_loop(error):
    def work(hear):
        hear(1)
        raise error

    items = in_turn(work)
    assert next(items) == 1
    with pytest.raises(type(error)) as caught:
        next(items)
    assert caught.value is error
    assert next(items, None) is None


@pytest.mark.parametrize("error", [RuntimeError("mine"), MemoryError(), SystemExit(3), Stopped()])
def test_errors_of_a_listener_end_the_run(error):
    def hear(event):
        if isinstance(event, PointProgress):
            raise error

    kept = Kept()
    with pytest.raises(type(error)) as caught:
        run_to_end(SPEC, on_event=hear, points=kept)
    assert caught.value is error
    assert kept == {}


def test_errors_of_the_storage_end_the_run():
    class Full(Kept):
        def save(self, key, point):
            raise InvalidInput("store", "a full disk", "some space")

    for follow in (run_to_end, lambda spec, points: list(run(spec, points=points))):
        with pytest.raises(InvalidInput, match="full disk"):
            follow(SPEC, points=Full())


def test_closing_a_run_keeps_its_finished_points():
    kept = Kept()
    loop: Any = run(SPEC, points=kept)
    with closing(loop) as events:
        for event in events:
            if event.kind == "point_finished":
                break
    assert list(kept) == ["width=4"]
    assert [each.resumed for each in run(SPEC, points=kept) if each.kind == "point_finished"] == [
        True,
        False,
    ]


def test_runs_inside_loops_of_runs():
    found: list[str] = []
    for event in run(SPEC):
        if isinstance(event, PointProgress) and len(found) < 2:
            *_, inner = run(SPEC)
            found.append(inner.status)
    assert isinstance(event, Ended)
    assert found == ["completed"] * 2


def test_contexts_of_the_loop_hold_in_the_work():
    place = contextvars.ContextVar("place", default="nowhere")

    def work(hear):
        hear(jnp.ones(1).dtype.name)
        for name in ("jax_default_matmul_precision", "jax_numpy_rank_promotion", "jax_debug_nans"):
            hear(getattr(jax.config, name))
        hear(jax.sharding.get_mesh().shape)
        hear(np.geterr()["over"])
        hear(place.get())

    mesh = jax.make_mesh((1,), ("width",))
    token = place.set("here")
    try:
        with (
            jax.enable_x64(True),
            jax.default_matmul_precision("highest"),
            jax.numpy_rank_promotion("raise"),
            jax.debug_nans(True),
            jax.set_mesh(mesh),
            np.errstate(over="raise"),
        ):
            found = list(in_turn(work))
    finally:
        place.reset(token)
    assert found == ["float64", "highest", "raise", True, {"width": 1}, "raise", "here"]
    plain = list(in_turn(work))
    assert plain == ["float32", None, "allow", False, {}, np.geterr()["over"], "nowhere"]


@pytest.mark.slow
def test_a_run_in_double_precision_is_one():
    with jax.enable_x64(True):
        *_, looped = run(SPEC)
        called = run_to_end(SPEC)
    assert looped.result.provenance.dtype == "float64"
    assert looped.result.csv() == called.result.csv()


def test_filters_of_warnings_hold_in_the_work():
    def work(hear):
        warnings.warn("a warning", UserWarning, stacklevel=1)
        hear(1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert list(in_turn(work)) == [1]
    assert [str(each.message) for each in caught] == ["a warning"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="a warning"):
            list(in_turn(work))


def test_a_partial_point_has_the_last_share_and_message():
    kept = Kept()
    *_, first = run(SPEC, points=kept)

    def compute(spec, data, key, progress):
        progress.report(0.5, "half")
        progress.show(kept[key])
        return kept[key]

    given = Computation(compute, load_data)
    shown = [each for each in run(SPEC, computation=given) if isinstance(each, PointProgress)]
    assert [(each.message, each.point is None) for each in shown] == [
        ("half", True),
        ("half", False),
    ] * 2
    assert [each.fraction for each in shown] == [0.25, 0.25, 0.75, 0.75]
    assert shown[1].point.runs == kept["width=4"].runs
    assert first.status == "completed"


SCRIPT = """
import signal, sys, threading, time
import _thread
from linearity_lab.runs._events_in_turn import in_turn

def work(hear):
    for number in range(10**9):
        time.sleep(0.01)
        hear(number)

def interrupt():
    time.sleep(0.3)
    _thread.interrupt_main()

if sys.argv[1] == "forgotten":
    items = in_turn(work)  # a global name, so the loop is never closed
    print(next(items), flush=True)
else:
    # Begun within the loop: an interrupt during an import of JAX can be lost there.
    try:
        for number in in_turn(work):
            if number == 0:
                threading.Thread(target=interrupt).start()
    except KeyboardInterrupt:
        print("interrupted", [t.name for t in threading.enumerate()], flush=True)
"""


@pytest.mark.first_cases(1)  # starts a process that imports JAX
@pytest.mark.parametrize(
    ("how", "printed"), [("forgotten", "0\n"), ("interrupted", "interrupted ['MainThread']\n")]
)
def test_python_ends_with_a_loop_that_was_left(how, printed):
    called = [sys.executable, "-c", SCRIPT, how]
    done = subprocess.run(called, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (printed, "", 0)
