"""Figures of swept and trained networks, from the gallery, and the means that their lines run through."""

import math
from typing import Any

import numpy as np
import pytest

from linearity_lab.charts.style import compared_styles
from linearity_lab.components.gallery import gallery_result
from linearity_lab.components.shown import Shown
from linearity_lab.views.architectures import figures as architectures
from linearity_lab.views.depth_width import figures as depth_width
from linearity_lab.views.early_time import figures as early_time
from linearity_lab.views.generalization import figures as generalization
from linearity_lab.views.horizon import figures as horizon
from linearity_lab.views.lazy import dial
from linearity_lab.views.lazy import figures as lazy
from linearity_lab.views.lazy.page import charts as lazy_charts
from linearity_lab.views.optimization import figures as optimization
from ntk_core.experiments.generalization import GeneralizationSpec, wilson
from ntk_core.runs import run_summary
from ntk_core.settings.grammar import with_settings


def means(chart) -> dict[str, Any]:
    """Name in the legend → curve of means."""
    return {trace.legendgroup or trace.name: trace for trace in chart.figure.data if trace.mode == "lines+markers"}


@pytest.mark.parametrize(("of", "has_exponent"), [("kernel", True), ("outputs", False)])
def test_exponents_need_departures_of_all_runs(of, has_exponent):
    result = gallery_result("horizon-cross-entropy")
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
    assert horizon.along_clock(result.points, result.spec, "cross-entropy", 64).takeaway.startswith("At the end: ΔK ")
    assert horizon.along_clock([], result.spec, "cross-entropy", 64).takeaway == "No run yet."


def test_steps_have_the_predicted_slope():
    result = gallery_result("horizon-rate")
    chart = horizon.departure_steps(result.points, result.spec.widths)
    names = [trace.name for trace in chart.figure.data if (trace.name or "").endswith("predicted")]
    assert names == ["slope 1.23 predicted", "slope 0.72 predicted"]
    assert chart.finding.count("predicted") == 2


PRICE = gallery_result("price-of-linearity")
LEARNED = gallery_result("learning-curves")


def test_all_richness_shows_extremes_and_one_shows_every_model():
    points = generalization.at(PRICE.points, samples=PRICE.spec.counts[-1])
    drawn = means(generalization.against(points, PRICE.spec, "error"))
    assert list(drawn) == ["network, ρ = 0", "network, ρ = 0.5", "kernel K₀", "infinite width"]
    drawn = means(generalization.against(points, PRICE.spec, "error", 0.5))
    assert list(drawn) == [
        "network", "after kernel", "kernel K₀", "infinite width", "linear model", "linear model at the end"
    ]  # fmt: skip
    assert drawn["linear model"].visible == "legendonly"


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
        drawn = (network.y[at], network.error_y.array[at], network.error_y.arrayminus[at])
        assert drawn == pytest.approx((error, high - error, error - low))
    assert {"Wilson 95% from", "Wilson 95% to"} < set(chart.rows[0])
    assert generalization.against(points, PRICE.spec, "loss", 0.5).figure.data[0].error_y.array is None


def test_level_of_the_noise_is_the_bayes_error():
    spec = with_settings(GeneralizationSpec(), {"dataset.noise": 0.5})
    (level,) = generalization.against(PRICE.points, spec, "error", 0.5).figure.layout.shapes
    assert level.y0 == pytest.approx(0.02275, abs=1e-4)  # Φ(−2)


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
    assert list(means(generalization.angles(PRICE.points, 100, chosen["samples"]))) == ["ρ = 0", "ρ = 0.5"]
    learning = generalization.against(LEARNED.points, LEARNED.spec, "error", None, 100)
    assert list(means(learning)["network, ρ = 0.5"].x) == list(LEARNED.spec.samples)


POINTS = gallery_result("liu-section5").points
POINT, OUTPUT = POINTS[0], "leaky_softplus"
SLOW = optimization.slow_runs(POINT, OUTPUT)[0]


def with_runs(*runs):
    return POINT.model_copy(update={"runs": runs})


def named(chart, start: str) -> list:
    return [trace for trace in chart.figure.data if trace.name.startswith(start) and trace.x[0] is not None]


def test_bound_uses_the_smallest_eigenvalue_and_slope():
    """(1 − ημρ²/n)^t L₀ with the least μ along the path, and with the least PL* ratio in place of μρ²/n."""
    steps = np.array(SLOW.steps)
    level = min(SLOW.pre_output_smallest) * 0.2**2 / POINT.num_samples
    (bound,) = named(optimization.loss_against_step(POINT, OUTPUT), "bound")
    np.testing.assert_allclose(bound.y, SLOW.loss[0] * (1 - SLOW.learning_rate * level) ** steps)
    np.testing.assert_allclose(SLOW.pl_bound(), SLOW.loss[0] * (1 - SLOW.learning_rate * min(SLOW.pl_ratio)) ** steps)
    (later,) = named(optimization.loss_against_step(POINT, OUTPUT, "log"), "bound")
    assert list(later.x) == list(SLOW.steps[1:])  # a logarithmic axis has no step 0
    (drawn,) = named(optimization.pl_against_step(POINT, OUTPUT), "μρ²/n")
    assert drawn.y[0] == pytest.approx(level)


def test_an_output_without_a_guarantee_has_no_bound():
    for draw in (optimization.loss_against_step, optimization.pl_against_step):
        drawn = [trace for trace in draw(POINT, "swish").figure.data if "text" not in trace.mode]
        assert [trace.name for trace in drawn if "η," not in trace.name] == []
    sentence = optimization.loss_against_step(POINT, "swish").caption[0]
    assert "The theorem does not apply" in sentence
    assert "f = −1.28" in sentence


def test_divergent_run_is_named_and_excluded_from_the_axis():
    ended = {"outcome": "diverged", "last_finite_step": SLOW.steps[2], "rate": 60.0, "learning_rate": 30.0}
    lost = SLOW.model_copy(update={**ended, "loss": (*SLOW.loss[:2], 1e9, *[math.nan] * (len(SLOW.loss) - 3))})
    rising = SLOW.model_copy(update={"rate": 20.0, "loss": (1.0, 2.0, *SLOW.loss[2:-1], 0.01 * SLOW.loss[0])})
    chart = optimization.loss_against_step(with_runs(SLOW, rising, lost), OUTPUT)
    (sentence,) = [each for each in chart.caption if "diverged" in each]
    assert f"last finite step {SLOW.steps[2]:,} (seed {SLOW.seed})" in sentence
    assert "and the linear model at w₀ is stable below " in sentence
    assert chart.figure.layout.yaxis.range[1] <= math.log10(optimization.LOSS_HEADROOM * max(SLOW.loss[0], 1.0)) + 1e-9
    assert any(each.startswith("Catapult: at 20 η") for each in chart.caption)


def test_plateau_is_stated_with_its_pl_ratio():
    still = SLOW.model_copy(update={"outcome": "stuck", "pl_ratio": (1.0, *SLOW.pl_ratio[1:-1], 1e-8)})
    sentence = optimization.loss_against_step(with_runs(still), OUTPUT).caption[-1]
    assert "got stuck on a plateau" in sentence
    assert "its PL* ratio is at most 10⁻⁸ of what it was" in sentence


RESULT = gallery_result("depth-width")
NARROW: list[Any] = [point for point in RESULT.points if point.width == RESULT.spec.widths[0]]


def test_intervals_are_bars_and_dominated_points_are_ringed():
    deepest = NARROW[-1].model_copy(update={"largest_share": 0.4})
    even = [point.model_copy(update={"largest_share": 0.01}) for point in NARROW[:-1]]
    drawn = depth_width.against_depth([*even, deepest])
    (bars,) = [trace.error_y for trace in drawn.figure.data if trace.name.endswith(", 95% bootstrap interval")]
    assert list(bars.array) == pytest.approx([point.high - point.cv_squared for point in NARROW])
    assert list(bars.arrayminus) == pytest.approx([point.cv_squared - point.low for point in NARROW])
    (rings,) = [trace for trace in drawn.figure.data if trace.marker.symbol == "circle-open" and trace.x[0] is not None]
    assert (list(rings.x), list(rings.y)) == ([deepest.depth], [deepest.cv_squared])
    assert f"L = {deepest.depth} at m = {deepest.width}" in drawn.caption[1]


LAZY = gallery_result("liu-lazy").points
DIALED = gallery_result("richness-deep")
DIAL = (0.0, *DIALED.spec.richness)


def test_unconverged_runs_count_before_training_alone():
    first = LAZY[0]
    lost = first.runs[0].model_copy(update={"outcome": "over-budget"})
    points = [first.model_copy(update={"runs": (lost, *first.runs[1:])}), *LAZY[1:]]
    after, before = (" ".join(lazy.against(points, "width", "linear", of).caption) for of in (lazy.CHANGE, lazy.KAPPA))
    assert "Excluded from the means: random f(w₀) did not reach" in after
    assert "Excluded" not in before


def test_the_least_distance_is_drawn_where_it_was_computed():
    points = gallery_result("liu-distance").points
    chart = lazy.distances(points, "linear", "subtracted")
    drawn = list(means(chart))
    assert drawn[-2:] == ["least distance, all inputs", "least distance, one input"]
    one, every = points[0].runs[0].least_distance
    assert chart.rows[0]["least ‖w − w₀‖₂, one input"] == one
    assert chart.rows[0]["least ‖w − w₀‖₂, all inputs"] == every
    assert any(trace.name == "slope −0.5" for trace in chart.figure.data)
    bare = [
        point.model_copy(update={"runs": tuple(run.model_copy(update={"least_distance": ()}) for run in point.runs)})
        for point in points
    ]
    assert list(means(lazy.distances(bare, "linear", "subtracted"))) == drawn[:-2]


def test_exponents_have_their_expected_lines():
    chart = dial.exponents(DIALED.points, "linear", "subtracted")
    assert len(chart.rows) == 3 * len(DIAL)
    for row in chart.rows:
        rho: Any = row["richness ρ"]
        assert row["expected"] == (2 * rho - 1 if row["of"] == "kernel change ΔK" else rho - 0.5)
        assert row["exponent in m"] == pytest.approx(row["expected"], abs=0.15)
    *drawn, first, second = chart.figure.data
    assert [y for trace in drawn for y in trace.y] == [row["exponent in m"] for row in chart.rows]
    assert (first.name, *first.y) == ("expected 2ρ − 1", -1.0, 0.0)
    assert (second.name, *second.y) == ("expected ρ − 1/2", -0.5, 0.0)


def test_dial_replaces_figures_of_what_is_not_swept():
    found = lazy_charts(Shown(DIALED.spec, DIALED.points, None, "job"), lazy.CHANGE.title, "linear", "subtracted", 0.5)
    assert [each.name for each in found] == ["dial", "exponents", "coordinates", "figure3"]


RANDOM, ZERO = ({"output": "linear", "start": start} for start in ("random", "subtracted"))
SWISH, LEAST = {"output": "swish", "start": "random"}, {"output": "leaky_softplus", "rate": 2.0}
STYLES = compared_styles({"A": "fully-connected"}, "linear")


def compared(points, measure: str):
    """The chart of the first network of a comparison."""
    first = [point for point in points if point.network == "A"]
    return architectures.against_width({"A": first}, "linear", (), STYLES, measure)


# Preset, its chart, the line's group, the swept attribute, attributes of its points and of its runs, and their number.
LINES = [
    ("liu-lazy", lambda points: lazy.against(points, "scale", "linear", lazy.KAPPA), "random f(w₀)", "scale",
     {"width": 100}, RANDOM, lambda run: run.kappa),
    ("liu-lazy", lambda points: lazy.against(points, "width", "linear", lazy.CHANGE), "f(w₀) = 0", "width",
     {"scale": 1.0}, ZERO, lambda run: run.sup_change),
    ("liu-lazy", lambda points: lazy.same_parameters(points, "swish", "random"), "kernel of α f", "width",
     {"scale": 1.0}, SWISH, lambda run: run.pre_output_change),
    ("liu-lazy", lambda points: lazy.same_parameters(points, "swish", "random"), "kernel of φ(α f), swish output",
     "width", {"scale": 1.0}, SWISH, lambda run: run.sup_change),
    ("richness-deep", lambda points: dial.against_width(points, "linear", "subtracted", lazy.CHANGE), "ρ = 0.25",
     "width", {"richness": 0.25}, ZERO, lambda run: run.sup_change),
    ("bottleneck", lambda points: compared(points, "change"), "A: fully connected", "width",
     {"network": "A"}, {}, lambda run: run.sup_change),
    ("bottleneck", lambda points: compared(points, "distance"), "A: fully connected", "width",
     {"network": "A"}, {}, lambda run: run.infinite_distance),
    ("liu-section5", optimization.change_against_width, "0.2 f + 0.8 softplus(f)", "width",
     {}, LEAST, lambda run: run.sup_change),
    ("hu-fig1", lambda points: early_time.against_swept(points, "discrepancy"), "erf", "input_dim",
     {}, {}, lambda run: run.discrepancy),
    ("hu-fig1", lambda points: early_time.against_swept(points[:2], "departure time"), "erf", "input_dim",
     {}, {}, lambda run: run.learning_rate * (run.departure_step or math.nan)),
]  # fmt: skip


@pytest.mark.parametrize(("preset", "draw", "name", "swept", "of_points", "of_runs", "number"), LINES)
def test_line_runs_through_the_means_of_its_runs(preset, draw, name, swept, of_points, of_runs, number):
    def has(each, attributes) -> bool:
        return all(getattr(each, key) == value for key, value in attributes.items())

    points = gallery_result(preset).points
    line, counted = means(draw(points))[name], ("converged", "completed")
    own = {
        getattr(point, swept): [number(run) for run in point.runs if has(run, of_runs) and run.outcome in counted]
        for point in points
        if has(point, of_points)
    }
    assert list(line.x) == list(own)[: len(line.x)]
    np.testing.assert_allclose(line.y, [np.nanmean(own[at]) for at in line.x])


def test_depth_and_width_have_a_line_for_every_width():
    result = gallery_result("depth-width")
    for draw, of in (
        (depth_width.against_depth, lambda depth, width: depth),
        (depth_width.against_beta, lambda depth, width: depth / width),
    ):
        lines = [trace for trace in draw(result.points).figure.data if trace.mode == "lines+markers"]
        drawn = {trace.legendgroup: list(trace.x) for trace in lines}
        assert drawn == {f"m = {m:,}": [of(depth, m) for depth in result.spec.depths] for m in result.spec.widths}
