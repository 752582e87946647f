"""The page of convergence without linearity: what its figures show of the result in the gallery."""

from __future__ import annotations

import math

import numpy as np
import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.optimization import figures

POINTS = gallery_result("liu-section5").points
POINT, OUTPUT = POINTS[0], "leaky_softplus"
SLOW = figures.slow_runs(POINT, OUTPUT)[0]


def with_runs(*runs):
    return POINT.model_copy(update={"runs": runs})


def named(chart, start: str) -> list:
    return [trace for trace in chart.figure.data if trace.name.startswith(start) and trace.x[0] is not None]


def test_bound_uses_the_smallest_eigenvalue_and_slope():
    """(1 − ημρ²/n)^t L₀ with the least μ along the path, and with the least PL* ratio in place of μρ²/n."""
    (bound,) = named(figures.loss_against_step(POINT, OUTPUT), "bound")
    level = min(SLOW.pre_output_smallest) * 0.2**2 / POINT.num_samples
    expected = SLOW.loss[0] * (1 - SLOW.learning_rate * level) ** np.array(SLOW.steps)
    np.testing.assert_allclose(bound.y, expected)
    (later,) = named(figures.loss_against_step(POINT, OUTPUT, "log"), "bound")
    assert list(later.x) == list(SLOW.steps[1:])  # step 0 has no place there
    measured = SLOW.loss[0] * (1 - SLOW.learning_rate * min(SLOW.pl_ratio)) ** np.array(SLOW.steps)
    np.testing.assert_allclose(SLOW.pl_bound(), measured)
    (drawn,) = named(figures.pl_against_step(POINT, OUTPUT), "μρ²/n")
    assert drawn.y[0] == pytest.approx(level)


@pytest.mark.parametrize("draw", [figures.loss_against_step, figures.pl_against_step])
def test_an_output_without_a_guarantee_has_no_bound(draw):
    drawn = [trace for trace in draw(POINT, "swish").figure.data if "text" not in trace.mode]
    assert [trace.name for trace in drawn if "η," not in trace.name] == []
    shown = figures.loss_against_step(POINT, "swish").caption[0]
    assert "The theorem does not apply" in shown
    assert "f = −1.28" in shown


def test_divergent_run_is_named_and_excluded_from_the_axis():
    ended = {"outcome": "diverged", "last_finite_step": SLOW.steps[2], "rate": 60.0, "learning_rate": 30.0}
    lost = SLOW.model_copy(update={**ended, "loss": (*SLOW.loss[:2], 1e9, *[math.nan] * (len(SLOW.loss) - 3))})
    rising = SLOW.model_copy(update={"rate": 20.0, "loss": (1.0, 2.0, *SLOW.loss[2:-1], 0.01 * SLOW.loss[0])})
    chart = figures.loss_against_step(with_runs(SLOW, rising, lost), OUTPUT)
    (sentence,) = [each for each in chart.caption if "diverged" in each]
    assert f"last finite step {SLOW.steps[2]:,} (seed {SLOW.seed})" in sentence
    assert "and the linear model at w₀ is stable below " in sentence
    assert chart.figure.layout.yaxis.range[1] <= math.log10(figures.LOSS_HEADROOM * max(SLOW.loss[0], 1.0)) + 1e-9
    assert "x" in named(chart, "60 η")[0].marker.symbol
    assert any(each.startswith("Catapult: at 20 η") for each in chart.caption)


def test_plateau_is_stated_with_its_pl_ratio():
    still = SLOW.model_copy(update={"outcome": "stuck", "pl_ratio": (1.0, *SLOW.pl_ratio[1:-1], 1e-8)})
    sentence = figures.loss_against_step(with_runs(still), OUTPUT).caption[-1]
    assert "got stuck on a plateau" in sentence
    assert "its PL* ratio is at most 10⁻⁸ of what it was" in sentence


def test_change_against_width_shows_the_least_rate_alone():
    least = min(run.rate for run in POINT.runs)
    drawn = figures.change_against_width(POINTS)
    line = next(trace for trace in drawn.figure.data if trace.mode == "lines+markers")
    for value, point in zip(line.y, POINTS, strict=True):
        runs = [run for run in point.of(OUTPUT) if run.rate == least]
        assert value == pytest.approx(np.mean([run.sup_change for run in runs]))
    assert len(drawn.rows) == sum(len(point.runs) for point in POINTS)


def test_spectrum_and_ratio_are_followed_step_by_step():
    rows = figures.step_rows(POINT, OUTPUT)
    assert len(rows) == sum(len(run.steps) for run in POINT.of(OUTPUT))
    assert rows[0]["condition number"] == pytest.approx(SLOW.largest[0] / SLOW.smallest[0])
    spectrum = figures.spectrum_against_step(POINT, OUTPUT)
    curves = [trace for trace in spectrum.figure.data if trace.x[0] is not None and "text" not in trace.mode]
    assert len(curves) == 3 * len(POINT.of(OUTPUT))
    assert spectrum.rows == rows
    assert "the largest from " in spectrum.takeaway
    assert ", at least " in figures.pl_against_step(POINT, OUTPUT).takeaway
