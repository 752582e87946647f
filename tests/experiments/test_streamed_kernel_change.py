"""Runs of kernel change without stored kernels.

Equal numbers, resuming within a point, estimates, limits.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from linearity_lab.experiments.kernel_change import spec as costs
from linearity_lab.experiments.kernel_change.figures import change_against_width
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import compiled_code, estimate, run, run_summary
from linearity_lab.runs.events import Ended, PointProgress
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from ntk_core.kernels import _between

TRAINING = {"training.max_steps": 30, "training.num_records": 4}
SMALL = with_settings(
    KernelChangeSpec(),
    {"widths": [6], "num_seeds": 1, "dataset.num_samples": 8, "dataset.input_dim": 3, **TRAINING},
)
ONE_GROUP = with_settings(SMALL, {"outputs": ["linear", "softmax"]})
LARGE = with_settings(
    KernelChangeSpec(),
    {
        "widths": [1000],
        "dataset.num_samples": 10_000,
        "dataset.num_classes": 10,
        "outputs": ["linear"],
        "num_seeds": 1,
    },
)


def finished(spec, should_stop=lambda: False) -> tuple[list[str], Ended]:
    """Return the messages of a run's points and its last event."""
    *events, last = run(spec, should_stop=should_stop)
    assert isinstance(last, Ended)
    return [event.message for event in events if isinstance(event, PointProgress)], last


def runs_of(spec):
    _, last = finished(spec)
    return last.result.points[0].runs


@pytest.fixture
def streaming(monkeypatch):
    """Stream every kernel, in blocks of a few points."""

    def begin(itemsize):
        monkeypatch.setattr(costs, "HELD_BYTES", 0)
        monkeypatch.setattr(costs, "STREAMED_BYTES", 2**11 * itemsize)

    return begin


@pytest.mark.long  # compiles a training in double precision; the estimated run below streams, too
def test_a_streamed_run_is_the_run_with_its_kernels_in_memory(x64, streaming):
    held = runs_of(ONE_GROUP)
    assert all(each.sup_change > 0.01 for each in held)
    streaming(8)
    messages, last = finished(ONE_GROUP)
    assert any("pair of blocks 2 of " in message for message in messages)
    for a, b in zip(last.result.points[0].runs, held, strict=True):
        assert (a.output, a.seed, a.outcome, a.steps, a.error) == (
            b.output,
            b.seed,
            b.outcome,
            b.steps,
            (),
        )
        for name in ("learning_rate", "change", "loss", "followed"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-10, atol=1e-14)


@pytest.mark.slow
def test_a_stopped_run_goes_on_inside_a_point(streaming, monkeypatch, tmp_path):
    streaming(4)
    whole = runs_of(ONE_GROUP)
    monkeypatch.setattr(compiled_code, "_keeps_unfinished", True)
    monkeypatch.setattr(compiled_code, "data_directory", lambda: tmp_path)
    left = tmp_path / "unfinished" / "of-an-abandoned-run.jsonl"
    left.parent.mkdir()
    left.touch()
    os.utime(left, (0, 0))
    pairs = []

    def counted(problem, pair, plain=_between.sums_of_pair):
        pairs.append(pair)
        return plain(problem, pair)

    monkeypatch.setattr(_between, "sums_of_pair", counted)
    heard, last = finished(ONE_GROUP, lambda: len(pairs) == 2)
    assert last.status == "cancelled"
    assert "pair of blocks 2 of 3" in heard[-1]
    (kept,) = left.parent.iterdir()
    assert len(kept.read_text().splitlines()) == 1 + 2
    assert runs_of(ONE_GROUP) == whole
    assert len(pairs) == 3  # each once
    assert not list(left.parent.iterdir())


@pytest.mark.slow
def test_estimated_run_is_within_its_error_of_the_exact_one():
    spec = with_settings(ONE_GROUP, {"dataset.num_samples": 40, "probes": 16})
    messages, last = finished(spec)
    assert any("product 2 of " in message for message in messages)
    exact = runs_of(with_settings(spec, {"probes": 0}))
    for a, b in zip(last.result.points[0].runs, exact, strict=True):
        assert len(a.error) == len(a.change)
        assert a.error[0] == 0 < a.sup_error < 0.5 * a.sup_change
        assert np.all(np.abs(np.subtract(a.change, b.change)) <= 5 * np.array(a.error))
        assert b.error == ()
    assert "estimated by 16 random vectors" in run_summary(spec, last.result.points)
    (row, *_) = last.result.rows()
    assert row["kernel_change_error"] == last.result.points[0].runs[0].sup_error
    chart = change_against_width(last.result.points)
    bars = [trace.error_y.array for trace in chart.figure.data if trace.error_y.array is not None]
    assert len(bars) == len(spec.outputs)
    assert any("estimated" in sentence for sentence in chart.caption)
    assert not any("estimated" in sentence for sentence in change_against_width(()).caption)


def test_large_kernels_are_counted_before_any_work():
    assert costs.streams(LARGE)
    assert not costs.streams(SMALL)
    assert estimate(LARGE).peak_bytes < 2 * 2**30
    few = with_settings(LARGE, {"probes": 32, "training.num_records": 4})
    assert estimate(few).seconds < estimate(LARGE).seconds / 10
    for whole in ("keep_kernels", "infinite_width"):  # these need the whole kernel
        assert estimate(with_settings(LARGE, {whole: True})).peak_bytes > 2e11
        with pytest.raises(InvalidSpec, match="whole kernel"):
            with_settings(few, {whole: True})
    with pytest.raises(InvalidSpec, match="from 16 on"):
        with_settings(few, {"probes": 15})
