"""Figures of horizons, generalization, optimization and depth against width, from the gallery."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.components.shown import Shown
from linearity_lab.views.depth_width import figures as depth_width
from linearity_lab.views.depth_width.page import charts
from linearity_lab.views.generalization import figures as generalization
from linearity_lab.views.horizon import figures as horizon
from linearity_lab.views.optimization import figures as optimization
from ntk_core.experiments.generalization import GeneralizationSpec, wilson
from ntk_core.runs import run_summary
from ntk_core.settings.grammar import with_settings


def means(chart) -> dict[str, Any]:
    """Name in the legend → curve of means."""
    return {trace.legendgroup or trace.name: trace for trace in chart.figure.data if trace.mode == "lines+markers"}


@pytest.mark.parametrize(
    ("preset", "of", "has_exponent"),
    [("horizon-cross-entropy", "kernel", True), ("horizon-cross-entropy", "outputs", False)],
)
def test_exponents_need_departures_of_all_runs(preset, of, has_exponent):
    result = gallery_result(preset)
    departed = [getattr(run, of).is_seen for point in result.points for run in point.runs]
    assert all(departed) == has_exponent
    chart = horizon.against_width(result.points, result.spec, of)
    assert ("∝ m^" in chart.finding) == has_exponent
    assert any("∝" in (trace.name or "") for trace in chart.figure.data) == has_exponent
    assert has_exponent or f"{sum(departed)} of {len(departed)} runs depart" in chart.finding
    assert (f"horizon of the {of} ∝" in run_summary(result.spec, result.points)) == has_exponent


def test_square_loss_never_departs_and_has_arrows():
    result = gallery_result("horizon")
    chart = horizon.first_chart(result)
    assert "square loss: 12 of 12 runs never depart" in chart.finding
    (arrows,) = [trace for trace in chart.figure.data if trace.name == "square loss: never"]
    assert list(arrows.x) == list(result.spec.widths)
    assert all(text.endswith("%") for text in arrows.text)


def test_steps_have_the_predicted_slope():
    result = gallery_result("horizon-rate")
    chart = horizon.departure_steps(result.points, result.spec.widths)
    guides = [trace for trace in chart.figure.data if (trace.name or "").endswith("predicted")]
    assert [trace.name for trace in guides] == ["slope 1.23 predicted", "slope 0.72 predicted"]
    assert chart.finding.count("predicted") == 2


def test_charts_state_where_each_quantity_ends():
    result = gallery_result("horizon")
    for points, begin in ((result.points, "At the end: ΔK "), ([], "No run yet.")):
        assert horizon.along_clock(points, result.spec, "cross-entropy", 64).takeaway.startswith(begin)


PRICE = gallery_result("price-of-linearity")
LEARNED = gallery_result("learning-curves")


def width_of(point) -> float:
    return point.width


def test_all_richness_shows_extremes_and_one_shows_every_model():
    points = generalization.at(PRICE.points, samples=PRICE.spec.counts[-1])
    middle = [point.model_copy(update={"richness": 0.25}) for point in points if point.richness == 0]
    titles = [line.style.title for line in generalization.lines([*points, *middle], width_of, "error")]
    assert titles == ["network, ρ = 0", "network, ρ = 0.5", "kernel K₀", "infinite width", "network, ρ = 0.25"]
    drawn = generalization.lines(points, width_of, "error", 0.5)
    assert [line.style.title for line in drawn] == [
        "network", "after kernel", "kernel K₀", "infinite width", "linear model", "linear model at the end"
    ]  # fmt: skip
    chart = generalization.against(points, PRICE.spec, "error", 0.5)
    assert next(trace for trace in chart.figure.data if trace.legendgroup == "linear model").visible == "legendonly"


def test_bars_are_wilson_intervals_of_all_converged_runs():
    points = generalization.at(PRICE.points, richness=0.5)
    lost = points[0].runs[1].model_copy(update={"outcome": "over-budget"})
    points[0] = points[0].model_copy(update={"runs": (points[0].runs[0], lost)})
    chart = generalization.against(points, PRICE.spec, "error", 0.5)
    network = means(chart)["network"]
    for at, point in enumerate(points):
        kept = [run for run in point.runs if run.outcome == "converged"]
        error = np.mean([run.network[-1].error for run in kept])
        low, high = wilson(error, sum(run.num_test for run in kept))
        assert network.y[at] == pytest.approx(error)
        assert network.error_y.array[at] == pytest.approx(high - error)
        assert network.error_y.arrayminus[at] == pytest.approx(error - low)
    assert "over-budget" in " ".join(trace.name or "" for trace in chart.figure.data)
    assert {"Wilson 95% from", "Wilson 95% to"} < set(chart.rows[0])
    assert generalization.against(points, PRICE.spec, "loss", 0.5).figure.data[0].error_y.array is None


def test_level_of_the_noise_is_the_bayes_error():
    spec = with_settings(GeneralizationSpec(), {"dataset.noise": 0.5})
    (level,) = generalization.against(PRICE.points, spec, "error", 0.5).figure.layout.shapes
    assert level.y0 == pytest.approx(0.02275, abs=1e-4)  # Φ(−2)


def test_learning_curves_are_against_n_at_one_width():
    chart = generalization.against(LEARNED.points, LEARNED.spec, "error", None, 100)
    line = means(chart)["network, ρ = 0.5"]
    assert list(line.x) == list(LEARNED.spec.samples)
    assert chart.name == "learning_curves"


def test_figures_along_training_state_the_numbers_of_their_runs():
    chosen = {"width": 100, "richness": 0.5, "samples": PRICE.spec.counts[-1]}
    (point,) = generalization.at(PRICE.points, **chosen)
    chart = generalization.along(PRICE.points, "error", *chosen.values())
    first, last = (np.mean([run.alignment[end] for run in point.runs]) for end in (0, -1))
    assert chart.takeaway.startswith(f"Alignment from {first:.2g} to {last:.2g}; test error of regression with the ")
    assert chart.takeaway.endswith(f", means of {len(point.runs)} runs.")
    assert len(chart.rows) == sum(len(run.steps) for run in point.runs)
    shares = generalization.eigenspaces(PRICE.points, *chosen.values())
    assert f"{np.mean([run.last_share[-1] for run in point.runs]):.2g}" in shares.takeaway
    turned = generalization.angles(PRICE.points, 100, chosen["samples"])
    assert list(means(turned)) == ["ρ = 0", "ρ = 0.5"]
    assert generalization.along([], "error", *chosen.values()).takeaway == "No run yet."


POINTS = gallery_result("liu-section5").points
POINT, OUTPUT = POINTS[0], "leaky_softplus"
SLOW = optimization.slow_runs(POINT, OUTPUT)[0]


def with_runs(*runs):
    return POINT.model_copy(update={"runs": runs})


def named(chart, start: str) -> list:
    return [trace for trace in chart.figure.data if trace.name.startswith(start) and trace.x[0] is not None]


def test_bound_uses_the_smallest_eigenvalue_and_slope():
    """(1 − ημρ²/n)^t L₀ with the least μ along the path, and with the least PL* ratio in place of μρ²/n."""
    (bound,) = named(optimization.loss_against_step(POINT, OUTPUT), "bound")
    level = min(SLOW.pre_output_smallest) * 0.2**2 / POINT.num_samples
    expected = SLOW.loss[0] * (1 - SLOW.learning_rate * level) ** np.array(SLOW.steps)
    np.testing.assert_allclose(bound.y, expected)
    (later,) = named(optimization.loss_against_step(POINT, OUTPUT, "log"), "bound")
    assert list(later.x) == list(SLOW.steps[1:])  # a logarithmic axis has no step 0
    measured = SLOW.loss[0] * (1 - SLOW.learning_rate * min(SLOW.pl_ratio)) ** np.array(SLOW.steps)
    np.testing.assert_allclose(SLOW.pl_bound(), measured)
    (drawn,) = named(optimization.pl_against_step(POINT, OUTPUT), "μρ²/n")
    assert drawn.y[0] == pytest.approx(level)


@pytest.mark.parametrize("draw", [optimization.loss_against_step, optimization.pl_against_step])
def test_an_output_without_a_guarantee_has_no_bound(draw):
    drawn = [trace for trace in draw(POINT, "swish").figure.data if "text" not in trace.mode]
    assert [trace.name for trace in drawn if "η," not in trace.name] == []
    shown = optimization.loss_against_step(POINT, "swish").caption[0]
    assert "The theorem does not apply" in shown
    assert "f = −1.28" in shown


def test_divergent_run_is_named_and_excluded_from_the_axis():
    ended = {"outcome": "diverged", "last_finite_step": SLOW.steps[2], "rate": 60.0, "learning_rate": 30.0}
    lost = SLOW.model_copy(update={**ended, "loss": (*SLOW.loss[:2], 1e9, *[math.nan] * (len(SLOW.loss) - 3))})
    rising = SLOW.model_copy(update={"rate": 20.0, "loss": (1.0, 2.0, *SLOW.loss[2:-1], 0.01 * SLOW.loss[0])})
    chart = optimization.loss_against_step(with_runs(SLOW, rising, lost), OUTPUT)
    (sentence,) = [each for each in chart.caption if "diverged" in each]
    assert f"last finite step {SLOW.steps[2]:,} (seed {SLOW.seed})" in sentence
    assert "and the linear model at w₀ is stable below " in sentence
    assert chart.figure.layout.yaxis.range[1] <= math.log10(optimization.LOSS_HEADROOM * max(SLOW.loss[0], 1.0)) + 1e-9
    assert "x" in named(chart, "60 η")[0].marker.symbol
    assert any(each.startswith("Catapult: at 20 η") for each in chart.caption)


def test_plateau_is_stated_with_its_pl_ratio():
    still = SLOW.model_copy(update={"outcome": "stuck", "pl_ratio": (1.0, *SLOW.pl_ratio[1:-1], 1e-8)})
    sentence = optimization.loss_against_step(with_runs(still), OUTPUT).caption[-1]
    assert "got stuck on a plateau" in sentence
    assert "its PL* ratio is at most 10⁻⁸ of what it was" in sentence


def test_change_against_width_shows_the_least_rate_alone():
    least = min(run.rate for run in POINT.runs)
    drawn = optimization.change_against_width(POINTS)
    line = next(iter(means(drawn).values()))
    for value, point in zip(line.y, POINTS, strict=True):
        runs = [run for run in point.of(OUTPUT) if run.rate == least]
        assert value == pytest.approx(np.mean([run.sup_change for run in runs]))
    assert len(drawn.rows) == sum(len(point.runs) for point in POINTS)


def test_spectrum_and_ratio_are_followed_step_by_step():
    rows = optimization.step_rows(POINT, OUTPUT)
    assert len(rows) == sum(len(run.steps) for run in POINT.of(OUTPUT))
    assert rows[0]["condition number"] == pytest.approx(SLOW.largest[0] / SLOW.smallest[0])
    spectrum = optimization.spectrum_against_step(POINT, OUTPUT)
    curves = [trace for trace in spectrum.figure.data if trace.x[0] is not None and "text" not in trace.mode]
    assert len(curves) == 3 * len(POINT.of(OUTPUT))
    assert spectrum.rows == rows
    assert "the largest from " in spectrum.takeaway
    assert ", at least " in optimization.pl_against_step(POINT, OUTPUT).takeaway


RESULT = gallery_result("depth-width")
DEPTHS, WIDTHS = RESULT.spec.depths, RESULT.spec.widths
NARROW: list[Any] = [point for point in RESULT.points if point.width == WIDTHS[0]]


def test_every_width_is_a_line_along_the_depth_and_along_beta():
    along_depth, along_beta = (
        {name: list(curve.x) for name, curve in means(draw(RESULT.points)).items()}
        for draw in (depth_width.against_depth, depth_width.against_beta)
    )
    assert along_depth == {f"m = {width:,}": list(DEPTHS) for width in WIDTHS}
    assert along_beta == {f"m = {width:,}": [depth / width for depth in DEPTHS] for width in WIDTHS}


def test_intervals_are_bars_and_dominated_points_are_ringed():
    deepest = NARROW[-1].model_copy(update={"largest_share": 0.4})
    even = [point.model_copy(update={"largest_share": 0.01}) for point in NARROW[:-1]]
    drawn = depth_width.against_depth([*even, deepest])
    bars = next(trace for trace in drawn.figure.data if trace.name == f"m = {WIDTHS[0]}, 95% bootstrap interval")
    assert list(bars.error_y.array) == pytest.approx([point.high - point.cv_squared for point in NARROW])
    assert list(bars.error_y.arrayminus) == pytest.approx([point.cv_squared - point.low for point in NARROW])
    (rings,) = [trace for trace in drawn.figure.data if trace.marker.symbol == "circle-open" and trace.x[0] is not None]
    assert (list(rings.x), list(rings.y)) == ([deepest.depth], [deepest.cv_squared])
    assert f"L = {deepest.depth} at m = {deepest.width}" in drawn.caption[1]


def test_trained_networks_have_figures_where_there_are_some():
    shown = Shown(RESULT.spec, RESULT.points, None, "job")
    assert [each.name for each in charts(shown)] == ["figure1", "figure2", "figure3", "figure4"]
    trained = sorted(point.beta for point in NARROW if "converged" in {run.outcome for run in point.runs})
    assert list(next(iter(means(charts(shown)[2]).values())).x) == trained
    untrained = Shown(shown.spec, tuple(point for point in RESULT.points if not point.runs), None, "job")
    assert [each.name for each in charts(untrained)] == ["figure1", "figure2"]
