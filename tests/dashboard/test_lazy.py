"""Figures of the two routes to linearity, and of the dial from lazy to rich, from runs that follow the laws."""

from __future__ import annotations

import itertools

import pytest

from linearity_lab.components.shown import Shown
from linearity_lab.views.lazy import dial, figures
from linearity_lab.views.lazy.page import charts
from ntk_core.experiments.lazy import LazyPoint, LazyRun, swept_points
from ntk_core.runs import PRESETS
from tests.dashboard.made_results import filled


def made_run(width, scale, start, seed, outcome="converged", output="linear") -> LazyRun:
    """A run that follows the scaling laws exactly."""
    lazy = 1 / scale if start == "subtracted" else 1.0
    return filled(
        LazyRun,
        output=output,
        start=start,
        seed=seed,
        outcome=outcome,
        kappa=lazy * width**-0.5,
        hessian=scale * width**-0.5,
        squared_gradient=scale**2,
        pre_output_change=lazy / width,
        sup_change=lazy / width if output == "linear" else 1.5,
        distance=2 * lazy,
        largest_distance=2 * lazy * width**-0.5,
    )


def made_points() -> tuple[LazyPoint, ...]:
    pairs = [(100, 1.0), (100, 10.0), (100, 100.0), (1000, 1.0), (10_000, 1.0)]
    kinds = list(itertools.product(("random", "subtracted"), range(2), ("converged",), ("linear", "swish")))
    return tuple(
        filled(LazyPoint, width=width, scale=scale, runs=tuple(made_run(width, scale, *kind) for kind in kinds))
        for width, scale in pairs
    )


DIAL = (0.0, 0.125, 0.25, 0.5)


def dialed_run(width: int, rho: float, seed: int) -> LazyRun:
    """A run that follows the laws exactly, but for a factor of its seed; of two hidden layers."""
    factor = 1 + 0.1 * seed
    features = factor * width ** (rho - 0.5)
    return filled(
        LazyRun,
        output="linear",
        start="subtracted",
        seed=seed,
        outcome="converged",
        kappa=features,
        hessian=width ** (-rho - 0.5),
        squared_gradient=width ** (-2 * rho),
        sup_change=factor * width ** (2 * rho - 1),
        distance=width**rho,
        largest_distance=features,
        hidden_change=(features, 2 * features),
    )


@pytest.fixture(scope="module")
def points() -> tuple[LazyPoint, ...]:
    return tuple(
        filled(
            LazyPoint,
            width=width,
            scale=1.0,
            richness=rho,
            runs=tuple(dialed_run(width, rho, seed) for seed in range(3)),
        )
        for width in (100, 300, 1000, 3000)
        for rho in DIAL
    )


@pytest.mark.parametrize(
    ("swept", "start", "measure", "exponent"),
    [
        ("scale", "subtracted", figures.KAPPA, -1),
        ("scale", "random", figures.KAPPA, 0),
        ("scale", "random", figures.CURVATURE, -1),
        ("width", "subtracted", figures.KAPPA, -0.5),
        ("width", "random", figures.CHANGE, -1),
        ("width", "random", figures.DISTANCE, 0),
        ("width", "random", figures.LARGEST, -0.5),
    ],
)
def test_each_sweep_has_its_own_points_and_exponent(swept, start, measure, exponent):
    points = made_points()
    assert [getattr(point, swept) for point in swept_points(points, swept)] == (
        [1, 10, 100] if swept == "scale" else [100, 1000, 10_000]
    )
    law = figures.line(points, swept, "linear", start, measure).law
    assert law.exponent == pytest.approx(exponent, abs=1e-9)


def test_figure_has_seeds_mean_and_exponent_for_each_start():
    drawn = figures.against(made_points(), "scale", "linear", figures.KAPPA).figure
    lines = [trace for trace in drawn.data if trace.mode == "lines+markers"]
    assert [line.name for line in lines] == [
        "random f(w₀) ∝ α<sup>0.00</sup>; no interval",
        "f(w₀) = 0 ∝ α<sup>−1.00</sup>; no interval",
    ]
    assert list(lines[1].y) == pytest.approx([0.1, 0.01, 0.001])
    assert [len(trace.x) for trace in drawn.data if trace.mode == "markers"] == [6, 6]
    assert list(drawn.layout.xaxis.ticktext) == ["1", "10", "100"]


def test_unconverged_runs_are_open_and_in_no_training_mean():
    good = made_points()[0]
    runs = (*good.runs, made_run(100, 1.0, "random", 7, "over-budget"))
    points = (good.model_copy(update={"runs": runs}), *made_points()[1:])
    drawn = figures.against(points, "width", "linear", figures.CHANGE)
    seeds = next(trace for trace in drawn.figure.data if trace.mode == "markers")
    assert [symbol for symbol in seeds.marker.symbol if symbol.endswith("-open")] == ["circle-open"]
    place, sentence, exponent, *_ = drawn.caption
    assert "over 6 converged runs" in exponent
    assert place == "Linear output, at scale α = 1."
    assert sentence.startswith("Excluded from the means: random f(w₀) did not reach")
    assert "seed 7" in sentence
    assert figures.against(points, "width", "linear", figures.KAPPA).caption[:-1] == [place]


def test_same_weights_show_the_kernels_of_f_and_of_its_output():
    drawn = figures.same_parameters(made_points(), "swish", "random").figure
    lines = [trace for trace in drawn.data if trace.mode == "lines+markers"]
    assert [list(line.y) for line in lines] == [pytest.approx([1e-2, 1e-3, 1e-4]), pytest.approx([1.5, 1.5, 1.5])]
    assert lines[0].name.startswith("kernel of α f")


def test_every_figure_has_words_and_numbers():
    points = made_points()
    shown = Shown(PRESETS["liu-lazy"].spec, points, None, "job")
    found = charts(shown, figures.KAPPA.title, "linear", "random")
    assert [each.name for each in found] == ["figure1", "figure2", "figure3", "figure4"]
    assert all(len(each.rows) == 5 * 8 for each in found)
    assert "fitted exponent −0.50" in found[2].takeaway
    assert any(trace.line.dash == "dash" and trace.name == "slope −0.5" for trace in found[2].figure.data)


def test_the_least_distance_is_drawn_where_it_was_computed():
    def names(points):
        drawn = figures.distances(points, "linear", "subtracted")
        return [trace.name.partition(" ∝")[0] for trace in drawn.figure.data if trace.mode == "lines+markers"], drawn

    points = made_points()
    before, _ = names(points)
    bounded = tuple(
        point.model_copy(
            update={"runs": tuple(run.model_copy(update={"least_distance": (0.5, 0.9)}) for run in point.runs)}
        )
        for point in points
    )
    after, drawn = names(bounded)
    assert after == [*before, "least distance, all inputs", "least distance, one input"]
    assert drawn.rows[0]["least ‖w − w₀‖₂, one input"] == 0.5
    assert drawn.rows[0]["least ‖w − w₀‖₂, all inputs"] == 0.9


def test_each_richness_has_a_line_and_other_sweeps_omit_it(points):
    drawn = dial.against_width(points, "linear", "subtracted", figures.CHANGE)
    lines = [trace for trace in drawn.figure.data if trace.mode == "lines+markers"]
    assert [line.name.partition(" ∝")[0] for line in lines] == ["ρ = 0", "ρ = 0.125", "ρ = 0.25", "ρ = 0.5"]
    assert list(lines[0].y) == pytest.approx([1.1 / 100, 1.1 / 300, 1.1 / 1000, 1.1 / 3000])
    assert len(drawn.rows) == 4 * 4 * 3
    strong = dial.against_width(points, "linear", "subtracted", figures.CHANGE, 0.25).figure.data
    curves = {trace.legendgroup: (trace.line.width, trace.opacity) for trace in strong if trace.mode == "lines+markers"}
    assert curves == {f"ρ = {rho:g}": (4 if rho == 0.25 else 1.5, None) for rho in DIAL}, "no curve is pale"
    assert {trace.legendgroup: trace.opacity for trace in strong if trace.mode == "markers"} == {
        f"ρ = {rho:g}": None if rho == 0.25 else dial.FAINT for rho in DIAL
    }
    assert [point.width for point in swept_points(points, "width")] == [100, 300, 1000, 3000]
    assert [point.scale for point in swept_points(points, "scale")] == [1.0]


def test_exponents_follow_the_expected_lines(points):
    drawn = dial.exponents(points, "linear", "subtracted")
    assert len(drawn.rows) == 3 * len(DIAL)
    for row in drawn.rows:
        assert row["exponent in m"] == pytest.approx(row["expected"], abs=1e-9)
    change, curvature, features, *guides = drawn.figure.data
    assert list(change.y) == pytest.approx([2 * rho - 1 for rho in DIAL], abs=1e-9)
    assert list(curvature.y) == pytest.approx([rho - 0.5 for rho in DIAL], abs=1e-9)
    assert list(features.y) == pytest.approx([rho - 0.5 for rho in DIAL], abs=1e-9)
    assert [guide.name for guide in guides] == ["expected 2ρ − 1", "expected ρ − 1/2"]
    assert "expected ρ − 1/2" in drawn.takeaway


def test_coordinate_check_has_a_line_for_every_layer(points):
    drawn = dial.coordinates(points, "linear", "subtracted", 0.5)
    lines = [trace for trace in drawn.figure.data if trace.mode == "lines+markers"]
    assert [list(line.y) for line in lines] == [pytest.approx([1.1] * 4), pytest.approx([2.2] * 4)]
    assert "ρ = 0.5; expected exponent 0.00." in drawn.caption[0]


def test_dial_adds_three_figures_of_swept_settings_only(points):
    shown = Shown(PRESETS["richness-deep"].spec, points, None, "job")
    found = charts(shown, figures.CHANGE.title, "linear", "subtracted", 0.5)
    assert [each.name for each in found] == ["dial", "exponents", "coordinates", "figure3"]
