"""The page of convergence without linearity: its figures, its gallery, its way through app.py."""

from __future__ import annotations

import math

import pytest

from linearity_lab.views.optimization import figures
from ntk_core.experiments.optimization import OptimizationPoint, OptimizationRun

NAN = math.nan


def made_run(output="leaky_softplus", rate=2.0, seed=0, outcome="converged", **changes) -> OptimizationRun:
    """A run whose loss falls by half at each of three steps, or overflows."""
    values = {
        "learning_rate": 0.1 * rate,
        "stable_rate": 1.0,
        "last_finite_step": 3,
        "steps": (0, 1, 2, 3),
        "loss": (1.0, 0.5, 0.25, 0.125),
        "change": (0.0, 0.1, 0.2, 0.4),
        "smallest": (0.5, 0.4, 0.4, 0.3),
        "largest": (5.0, 5.0, 4.0, 3.0),
        "pre_output_smallest": (2.0, 1.9, 1.8, 1.8),
        "pl_ratio": (1.0, 0.9, 0.9, 0.8),
        **changes,
    }
    return OptimizationRun(output=output, rate=rate, seed=seed, outcome=outcome, **values)


def made_point(width=100) -> OptimizationPoint:
    diverged = made_run(
        rate=60.0,
        outcome="diverged",
        last_finite_step=2,
        loss=(1.0, 1e3, 1e9, NAN),
        pre_output_smallest=(2.0, 1, 1, NAN),
    )
    rising = made_run(rate=20.0, loss=(1.0, 2.0, 0.5, 0.01))
    runs = (made_run(), made_run(seed=1), rising, diverged, made_run("swish", outcome="over-budget"))
    return OptimizationPoint(width=width, num_params=9, num_samples=4, runs=runs)


def caption(point, output) -> list[str]:
    return list(figures.loss_against_step(point, output).caption)


def named(figure, start: str) -> list:
    return [trace for trace in figure.data if trace.name.startswith(start) and trace.x[0] is not None]


def test_bound_uses_the_smallest_eigenvalue_and_slope():
    point = made_point()
    first = point.of("leaky_softplus")[0]
    (bound,) = named(figures.loss_against_step(point, "leaky_softplus").figure, "bound")
    assert list(bound.x) == [0, 1, 2, 3]
    assert list(bound.y) == pytest.approx([(1 - 0.2 * 1.8 * 0.2**2 / 4) ** step for step in range(4)])
    (later,) = named(figures.loss_against_step(point, "leaky_softplus", "log").figure, "bound")
    assert list(later.x) == [1, 2, 3]  # step 0 has no place there
    assert list(first.pl_bound()) == pytest.approx([(1 - 0.2 * 0.8) ** step for step in range(4)])
    (level,) = named(figures.pl_against_step(point, "leaky_softplus").figure, "μρ²/n")
    assert level.y[0] == pytest.approx(1.8 * 0.2**2 / 4)


@pytest.mark.parametrize("draw", [figures.loss_against_step, figures.pl_against_step])
def test_an_output_without_a_guarantee_has_no_bound(draw):
    drawn = draw(made_point(), "swish").figure
    assert [trace.name for trace in drawn.data if "η," not in trace.name] == []
    shown = caption(made_point(), "swish")[0]
    assert "The theorem does not apply" in shown
    assert "f = −1.28" in shown


def test_divergent_run_is_named_and_excluded_from_the_axis():
    point = made_point()
    (sentence,) = [each for each in caption(point, "leaky_softplus") if "diverged" in each]
    assert "last finite step 2 (seed 0)" in sentence
    assert sentence.endswith("is stable below 1.")
    drawn = figures.loss_against_step(point, "leaky_softplus").figure
    assert drawn.layout.yaxis.range[1] == pytest.approx(math.log10(30))
    (lost,) = named(drawn, "60 η")
    assert "x" in lost.marker.symbol
    still = made_run("swish", 60.0, outcome="stuck", loss=(1.0, 2.0, 0.5, 0.5), pl_ratio=(1.0, 0.1, 1e-4, 1e-8))
    stuck = caption(point.model_copy(update={"runs": (still,)}), "swish")
    assert "got stuck on a plateau" in stuck[-1]
    assert "its PL* ratio is at most 10⁻⁸ of what it was" in stuck[-1]
    assert any(each.startswith("Catapult: at 20 η") for each in caption(point, "leaky_softplus"))


def test_change_against_width_shows_the_least_rate_alone():
    points = [made_point(100), made_point(1000)]
    assert {run.rate for run in figures.slow_runs(points[0], "leaky_softplus")} == {2.0}
    drawn = figures.change_against_width(points)
    markers = [trace for trace in drawn.figure.data if trace.mode == "markers" and trace.x != (None,)]
    assert sum(len(trace.x) for trace in markers) == 2 * 3
    assert "from 0.4 at m = 100" in drawn.takeaway


def test_tables_hold_every_run_and_step():
    point = made_point()
    assert len(figures.change_against_width([point]).rows) == len(point.runs)
    assert len(figures.step_rows(point, "leaky_softplus")) == 4 * 4
    assert figures.step_rows(point, "leaky_softplus")[0]["condition number"] == 10
    spectrum = figures.spectrum_against_step(point, "leaky_softplus")
    assert len([trace for trace in spectrum.figure.data if trace.x[0] is not None]) == 3 * 4
    assert spectrum.rows == figures.step_rows(point, "leaky_softplus")
    assert "the largest from 5 to 3" in spectrum.takeaway
    assert "from 1 to 0.8, at least 0.8" in figures.pl_against_step(point, "leaky_softplus").takeaway
