"""Figures of swept and trained networks, from the gallery.

Means, bounds, departures, motion, maps.
"""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from linearity_lab.charts import departures as horizon
from linearity_lab.charts.figure import shown_result
from linearity_lab.charts.style import compared_styles
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.experiments.architectures import figures as architectures
from linearity_lab.experiments.depth_width import figures as depth_width
from linearity_lab.experiments.dynamics import path_figures as figures
from linearity_lab.experiments.dynamics.frames import ball, moving
from linearity_lab.experiments.early_time import figures as early_time
from linearity_lab.experiments.generalization import figures as generalization
from linearity_lab.experiments.generalization.point import GeneralizationSpec, wilson
from linearity_lab.experiments.lazy import dial
from linearity_lab.experiments.lazy import sweep_figures as lazy
from linearity_lab.experiments.learning_rate import figures as learning_rate
from linearity_lab.experiments.learning_rate.page import choose_clicked
from linearity_lab.experiments.optimization import figures as optimization
from linearity_lab.runs import run_summary, spec_digest
from linearity_lab.settings.grammar import with_settings
from tests.dashboard.open_pages import checked, open_page, press


def means(chart) -> dict[str, Any]:
    """Name in the legend → curve of means."""
    return {
        trace.legendgroup or trace.name: trace
        for trace in chart.figure.data
        if trace.mode == "lines+markers"
    }


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


PRICE = gallery_result("price-of-linearity")


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
    assert (
        generalization.against(points, PRICE.spec, "loss", 0.5).figure.data[0].error_y.array is None
    )


def test_level_of_the_noise_is_the_bayes_error():
    spec = with_settings(GeneralizationSpec(), {"dataset.noise": 0.5})
    (level,) = generalization.against(PRICE.points, spec, "error", 0.5).figure.layout.shapes
    assert level.y0 == pytest.approx(0.02275, abs=1e-4)  # Φ(−2)


POINTS = gallery_result("liu-section5").points
POINT, OUTPUT = POINTS[0], "leaky_softplus"
SLOW = optimization.slow_runs(POINT, OUTPUT)[0]


def with_runs(*runs):
    return POINT.model_copy(update={"runs": runs})


def named(chart, start: str) -> list:
    return [
        trace
        for trace in chart.figure.data
        if trace.name.startswith(start) and trace.x[0] is not None
    ]


def test_bound_uses_the_smallest_eigenvalue_and_slope():
    """(1 − ημρ²/n)^t L₀ with the least μ along the path,
    and with the least PL* ratio in place of μρ²/n.
    """
    steps = np.array(SLOW.steps)
    level = min(SLOW.pre_output_smallest) * 0.2**2 / POINT.num_samples
    (bound,) = named(optimization.loss_against_step(POINT, OUTPUT), "bound")
    np.testing.assert_allclose(bound.y, SLOW.loss[0] * (1 - SLOW.learning_rate * level) ** steps)
    np.testing.assert_allclose(
        SLOW.pl_bound(), SLOW.loss[0] * (1 - SLOW.learning_rate * min(SLOW.pl_ratio)) ** steps
    )
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
    ended = {
        "outcome": "diverged",
        "last_finite_step": SLOW.steps[2],
        "rate": 60.0,
        "learning_rate": 30.0,
    }
    lost = SLOW.model_copy(
        update={**ended, "loss": (*SLOW.loss[:2], 1e9, *[math.nan] * (len(SLOW.loss) - 3))}
    )
    rising = SLOW.model_copy(
        update={"rate": 20.0, "loss": (1.0, 2.0, *SLOW.loss[2:-1], 0.01 * SLOW.loss[0])}
    )
    chart = optimization.loss_against_step(with_runs(SLOW, rising, lost), OUTPUT)
    (sentence,) = [each for each in chart.caption if "diverged" in each]
    assert f"last finite step {SLOW.steps[2]:,} (seed {SLOW.seed})" in sentence
    assert "and the linear model at w₀ is stable below " in sentence
    assert (
        chart.figure.layout.yaxis.range[1]
        <= math.log10(optimization.LOSS_HEADROOM * max(SLOW.loss[0], 1.0)) + 1e-9
    )
    assert any(each.startswith("Catapult: at 20 η") for each in chart.caption)


RESULT = gallery_result("depth-width")
NARROW: list[Any] = [point for point in RESULT.points if point.width == RESULT.spec.widths[0]]


def test_intervals_are_bars_and_dominated_points_are_ringed():
    deepest = NARROW[-1].model_copy(update={"largest_share": 0.4})
    even = [point.model_copy(update={"largest_share": 0.01}) for point in NARROW[:-1]]
    drawn = depth_width.against_depth([*even, deepest])
    (bars,) = [
        trace.error_y
        for trace in drawn.figure.data
        if trace.name.endswith(", 95% bootstrap interval")
    ]
    assert list(bars.array) == pytest.approx([point.high - point.cv_squared for point in NARROW])
    assert list(bars.arrayminus) == pytest.approx(
        [point.cv_squared - point.low for point in NARROW]
    )
    (rings,) = [
        trace
        for trace in drawn.figure.data
        if trace.marker.symbol == "circle-open" and trace.x[0] is not None
    ]
    assert (list(rings.x), list(rings.y)) == ([deepest.depth], [deepest.cv_squared])
    assert f"L = {deepest.depth} at m = {deepest.width}" in drawn.caption[1]


LAZY = gallery_result("liu-lazy").points
DIALED = gallery_result("richness-deep")
DIAL = (0.0, *DIALED.spec.richness)


def test_unconverged_runs_count_before_training_alone():
    first = LAZY[0]
    lost = first.runs[0].model_copy(update={"outcome": "over-budget"})
    points = [first.model_copy(update={"runs": (lost, *first.runs[1:])}), *LAZY[1:]]
    after, before = (
        " ".join(lazy.against(points, "width", "linear", of).caption)
        for of in (lazy.CHANGE, lazy.KAPPA)
    )
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
        point.model_copy(
            update={
                "runs": tuple(run.model_copy(update={"least_distance": ()}) for run in point.runs)
            }
        )
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


RANDOM, ZERO = ({"output": "linear", "start": start} for start in ("random", "subtracted"))
SWISH, LEAST = {"output": "swish", "start": "random"}, {"output": "leaky_softplus", "rate": 2.0}
STYLES = compared_styles({"A": "fully-connected"}, "linear")


def compared(points, measure: str):
    """The chart of the first network of a comparison."""
    first = [point for point in points if point.network == "A"]
    return architectures.against_width({"A": first}, "linear", (), STYLES, measure)


# Preset, its chart, the line's group, the swept attribute, attributes of its points and of its
# runs, and their number.
LINES = [
    (
        "liu-lazy",
        lambda points: lazy.against(points, "scale", "linear", lazy.KAPPA),
        "random f(w₀)",
        "scale",
        {"width": 100},
        RANDOM,
        lambda run: run.kappa,
    ),
    (
        "liu-lazy",
        lambda points: lazy.same_parameters(points, "swish", "random"),
        "kernel of α f",
        "width",
        {"scale": 1.0},
        SWISH,
        lambda run: run.pre_output_change,
    ),
    (
        "liu-lazy",
        lambda points: lazy.same_parameters(points, "swish", "random"),
        "kernel of φ(α f), swish output",
        "width",
        {"scale": 1.0},
        SWISH,
        lambda run: run.sup_change,
    ),
    (
        "richness-deep",
        lambda points: dial.against_width(points, "linear", "subtracted", lazy.CHANGE),
        "ρ = 0.25",
        "width",
        {"richness": 0.25},
        ZERO,
        lambda run: run.sup_change,
    ),
    (
        "bottleneck",
        lambda points: compared(points, "distance"),
        "A: fully connected",
        "width",
        {"network": "A"},
        {},
        lambda run: run.infinite_distance,
    ),
    (
        "liu-section5",
        optimization.change_against_width,
        "0.2 f + 0.8 softplus(f)",
        "width",
        {},
        LEAST,
        lambda run: run.sup_change,
    ),
    (
        "hu-fig1",
        lambda points: early_time.against_swept(points, "discrepancy"),
        "erf",
        "input_dim",
        {},
        {},
        lambda run: run.discrepancy,
    ),
    (
        "hu-fig1",
        lambda points: early_time.against_swept(points[:2], "departure time"),
        "erf",
        "input_dim",
        {},
        {},
        lambda run: run.learning_rate * (run.departure_step or math.nan),
    ),
]


@pytest.mark.parametrize(
    ("preset", "draw", "name", "swept", "of_points", "of_runs", "number"), LINES
)
def test_line_runs_through_the_means_of_its_runs(
    preset, draw, name, swept, of_points, of_runs, number
):
    def has(each, attributes) -> bool:
        return all(getattr(each, key) == value for key, value in attributes.items())

    points = gallery_result(preset).points
    line, counted = means(draw(points))[name], ("converged", "completed")
    own = {
        getattr(point, swept): [
            number(run) for run in point.runs if has(run, of_runs) and run.outcome in counted
        ]
        for point in points
        if has(point, of_points)
    }
    assert list(line.x) == list(own)[: len(line.x)]
    np.testing.assert_allclose(line.y, [np.nanmean(own[at]) for at in line.x])


DESCENT = "gradient-descent"
LINEARIZED = gallery_result("liu-true-and-linearized")
METHODS = gallery_result("beyond-gradient-descent")
CURVES = gallery_result("curves-in-one-dimension")


def test_each_model_has_its_dash_in_trajectories():
    point = LINEARIZED.points[0]
    (run, *_), classes = point.of("linear", DESCENT), np.argmax(point.y, axis=1)
    figure = figures.trajectories(
        point, "linear", DESCENT, "time", figures.PointSet.TRAINING
    ).figure
    models = {"solid": run.network, "dash": run.linearized, "dot": run.infinite}
    for (dash, path), name in zip(
        models.items(),
        ("network: solid", "linear model: dashed", "infinite width: dotted"),
        strict=True,
    ):
        legend, *drawn = [
            trace for trace in figure.data if trace.line.dash == dash and "text" not in trace.mode
        ]
        assert legend.name == name
        for trace, row in zip(
            drawn, range(0, len(point.y), len(point.y) // len(drawn)), strict=True
        ):
            np.testing.assert_allclose(trace.x, run.learning_rate * np.array(run.steps[1:]))
            np.testing.assert_allclose(
                trace.y, [block[row][classes[row]] for block in path.outputs[1:]]
            )


def test_departure_is_marked_on_lines_that_leave_for_good():
    figure = figures.difference_against_time(LINEARIZED.points, DESCENT, "step").figure
    runs = [
        run
        for point in LINEARIZED.points
        for output in LINEARIZED.spec.outputs
        for run in point.of(output, DESCENT)
    ]
    drawn = [trace for trace in figure.data if trace.x[0] is not None and "text" not in trace.mode]
    for trace, run in zip(drawn, runs, strict=True):
        np.testing.assert_allclose(trace.y, run.difference[1:])
        marked = [
            step for step, size in zip(trace.x, trace.marker.size or (), strict=False) if size
        ]
        assert marked == ([] if run.departure_step is None else [run.departure_step])
    assert len({run.departure_step is None for run in runs}) == 2


@pytest.mark.parametrize("result", [CURVES, LINEARIZED], ids=["functions", "outputs"])
def test_motion_has_a_frame_for_each_record(result):
    point = result.points[0]
    figure, run = moving(point, "linear", DESCENT).figure, point.of("linear")[0]
    names = [f"{step:,}" for step in run.steps]
    assert [frame.name for frame in figure.frames] == names
    assert [step.args[0][0] for step in figure.layout.sliders[0].steps] == names
    for index, frame in enumerate(figure.frames):
        if result is CURVES:
            expected = [
                path.test_outputs[index] for path in (run.network, run.linearized, run.infinite)
            ]
            assert [list(data.y) for data in frame.data] == [
                [row[0] for row in block] for block in expected
            ]
        else:
            np.testing.assert_allclose(frame.data[0].x, np.ravel(run.linearized.outputs[index]))
            np.testing.assert_allclose(frame.data[1].y, np.ravel(run.network.test_outputs[index]))


def test_every_method_has_its_distance_and_its_kernel_change():
    point = METHODS.points[0]
    chart = ball(METHODS.points, point, "linear", "step", 4)
    drawn = [
        trace for trace in chart.figure.data if "text" not in trace.mode and trace.x[0] is not None
    ]
    assert len({trace.name for trace in drawn}) == len(METHODS.spec.methods)
    assert len(drawn) == 2 * len(point.of("linear"))
    run = point.of("linear", DESCENT)[0]
    np.testing.assert_allclose(drawn[0].y, run.network.distance[1:])
    assert chart.figure.layout.shapes[0].y0 == run.sup_distance, "the ball of gradient descent"


@pytest.mark.parametrize(("share", "is_bound"), [(0.2, False), (1e-9, True), (-1e-9, True)])
def test_kernels_singular_within_rounding_show_a_lower_bound(share, is_bound):
    point = METHODS.points[0]
    changed = [
        run.model_copy(update={"smallest": tuple(share * each for each in run.largest)})
        for run in point.runs
    ]
    chart = ball(METHODS.points, point.model_copy(update={"runs": changed}), "linear", "step", 20)
    for row in chart.rows:
        assert row["is a lower bound"] is is_bound
        expected = 1 / (20 * 2**-23) if is_bound else 5.0
        assert row["condition number"] == pytest.approx(expected)


def test_a_singular_spectrum_is_called_a_lower_bound():
    run = POINT.of(OUTPUT)[0]
    regular = run.model_copy(update={"smallest": (0.5,) * len(run.steps)})
    singular = run.model_copy(update={"smallest": (-1e-9,) * len(run.steps)})
    for each, is_singular in ((regular, False), (singular, True)):
        chart = optimization.spectrum_against_step(with_runs(each), OUTPUT, 36)
        assert ("condition number at least" in chart.takeaway) is is_singular
        assert ("at least" in " ".join(chart.caption)) is is_singular
        assert {row["is a lower bound"] for row in chart.rows} == {is_singular}


WIDTHS = gallery_result("hu-departure")
DEPARTED = WIDTHS.points[-1]
DEPARTING = DEPARTED.of("softplus")  # its kernel has a norm feature


def curves(chart) -> dict[str, list]:
    """Name → curves."""
    found: dict[str, list] = {}
    for trace in chart.figure.data:
        if "text" not in trace.mode and trace.x[0] is not None:
            found.setdefault(trace.name, []).append(trace)
    return found


@pytest.mark.parametrize("view", list(early_time.PathQuantity))
def test_every_view_draws_each_model_and_seed_from_step_one(view):
    traces, without_feature = (
        curves(early_time.along_steps(DEPARTED, runs, view))
        for runs in (DEPARTING, DEPARTED.of("erf"))
    )
    assert all(
        tuple(trace.x) == DEPARTING[0].steps[1:] for group in traces.values() for trace in group
    )
    assert all(
        len(group) == len(DEPARTING) * (2 if view == "residual" else 1) for group in traces.values()
    )
    if view == "test loss":
        assert set(traces) == {"network", "linear model ψ", "without the norm feature"}
        assert tuple(traces["network"][0].y) == DEPARTING[0].network.test_loss[1:]
        assert set(without_feature) == {"network", "linear model ψ"}
    if view == "residual":  # one row outside the span, one inside
        assert {trace.yaxis for trace in traces["network"]} == {"y", "y2"}


def test_departure_and_the_best_linear_model_are_marked():
    run = DEPARTED.of("tanh")[0]
    layout = early_time.along_steps(
        DEPARTED, [run], early_time.PathQuantity.TEST_LOSS
    ).figure.layout
    upright = [shape.x0 for shape in layout.shapes if shape.x0 == shape.x1]
    assert upright == [run.steps[run.linear_phase], run.departure_step]
    assert [shape.y0 for shape in layout.shapes if shape.y0 == shape.y1] == [run.optimal_test_loss]
    assert f" network departs: <br> step {run.departure_step:,} " in [
        note.text for note in layout.annotations
    ]
    # logarithms
    assert [note.x for note in layout.annotations][:2] == pytest.approx(np.log10(upright))


# The bounds need the path of the parameters, which these runs do not have.
VIEWS_OF_OUTPUTS = [
    view for view in early_time.PathQuantity if view is not early_time.PathQuantity.BOUND
]


def test_a_growing_run_with_one_record_is_drawn():
    run = DEPARTING[0]
    cut = {
        name: getattr(run, name)[:1]
        for name in ("steps", "distance", "naive_distance", "linear_power")
    }
    for name in ("network", "linear", "naive"):
        model = getattr(run, name)
        cut[name] = model.model_copy(
            update={each: getattr(model, each)[:1] for each in type(model).model_fields}
        )
    first = run.model_copy(update=cut)
    for chart in (
        early_time.single_outputs(first),
        *(early_time.along_steps(DEPARTED, [first], view) for view in VIEWS_OF_OUTPUTS),
    ):
        assert chart.figure.data


MAP = gallery_result("catapult-map")
RUN = gallery_result("catapult-run")


def test_every_cell_of_the_map_has_its_outcome():
    chart = learning_rate.outcome_map(MAP.points, MAP.spec.models, (800, 3.5))
    panels = [trace for trace in chart.figure.data if trace.type == "heatmap"]
    assert len(panels) == 3
    assert all(len(panel.z) == len(MAP.spec.rates) and None not in panel.z[0] for panel in panels)
    assert len(chart.rows) == 3 * 3 * len(MAP.spec.rates) * len(MAP.spec.widths)
    markers = [
        trace
        for trace in chart.figure.data
        if trace.type == "scatter" and trace.customdata is not None
    ]
    cells = [(width, rate) for rate in MAP.spec.rates for width in MAP.spec.widths]
    assert [[tuple(each[:2]) for each in trace.customdata] for trace in markers] == [cells] * 3, (
        "each can be clicked"
    )


def test_edge_of_stability_shows_every_run_beside_the_border():
    result = gallery_result("edge-of-stability")
    chart = learning_rate.edge(shown_result(result))
    runs = [run for point in result.points for run in point.runs if run.rate > 0.2]
    band, border, meets, stays = chart.figure.data
    assert len(meets.x) == sum(run.peak_curvature >= 2 for run in runs)
    assert len(meets.x) + len(stays.x) == len(runs) == len(chart.rows)
    for point, width, drawn in zip(result.points, border.x, border.y, strict=True):
        growths = [run.peak_curvature / 0.2 - 1 for run in point.runs if run.rate == 0.2]
        borders = [2 / (1 + growth) for growth in growths]
        assert width == point.width
        assert drawn == pytest.approx(sum(borders) / len(borders))
        assert {max(borders), min(borders)} <= set(band.y)
    judged = [run for run in runs if abs(run.predicted_peak / 2 - 1) > 0.1]
    right = [run for run in judged if (run.predicted_peak > 2) == (run.peak_curvature >= 2)]
    assert f"{len(right)} of {len(judged)} runs" in chart.finding


def test_the_page_follows_the_chosen_cell_beneath_its_map(jobs):
    app = open_page("learning_rate")
    app.selectbox(key="learning_rate.width").set_value(800)
    app.selectbox(key="learning_rate.rate").set_value(2.5)
    checked(app.run())
    press(app, "learning_rate.map.follow")
    (asked,) = jobs.submitted
    assert (asked.widths, asked.rates, asked.num_seeds, asked.keep_paths) == (
        (800,),
        (2.5,),
        1,
        True,
    )
    assert asked.dataset == MAP.spec.dataset
    assert len(app.get("plotly_chart")) == 4
    (point,) = RUN.points
    grown = point.model_copy(update={"runs": point.of("network", 3.0)})
    spec, job = with_settings(RUN.spec, {"rates": [3.0]}), spec_digest(asked)[:16]
    jobs.snapshots[job] = replace(jobs.snapshots[job], spec=spec, growing=(grown,), grown=2)
    assert len(checked(app.run()).get("plotly_chart")) == 5
    assert not app.query_params, "the page's own settings are as they were"
    app.query_params = {"preset": "catapult-run"}
    assert len(checked(app.run()).get("plotly_chart")) == 4, "runs that are kept are drawn at once"
    assert not [each for each in app.button if each.key == "learning_rate.map.follow"]


def test_second_click_on_a_cell_keeps_the_choice(monkeypatch):
    state: dict = {}
    monkeypatch.setattr(
        "linearity_lab.experiments.learning_rate.page.st", SimpleNamespace(session_state=state)
    )
    followed = []
    monkeypatch.setattr(
        "linearity_lab.experiments.learning_rate.page.submit",
        lambda page, spec: followed.append(spec),
    )
    for points in ([{"customdata": [800, 3.5, "3 of 3 catapult"]}], []):
        state["learning_rate.map"] = SimpleNamespace(selection=SimpleNamespace(points=points))
        choose_clicked("map", MAP.spec)
    assert (state["learning_rate.width"], state["learning_rate.rate"]) == (800, 3.5)
    assert [spec.point_keys() for spec in followed] == [("width=800",)]
    choose_clicked("map", RUN.spec)
    assert len(followed) == 1, "a sweep that keeps its paths has the run already"
