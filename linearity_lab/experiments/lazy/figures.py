"""Figures of lazy and rich training.

A measure against ρ, the scale or the width, and the weights.
"""

from dataclasses import replace

from linearity_lab.charts.chart import WIDTH, Chart, ComparedAxis, occurring
from linearity_lab.charts.choices import Choice, output_choice
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.experiments.lazy import dial
from linearity_lab.experiments.lazy.point import START_TITLES, LazyPoint, LazySpec
from linearity_lab.experiments.lazy.sweep_figures import (
    MEASURES,
    against,
    distances,
    measured,
    nonlinear,
    same_parameters,
)

Runs = Shown[LazySpec, LazyPoint]


def _choices(shown: Runs) -> list[Choice]:
    """Return the choices of ρ (0 without a dial), measure, output and start."""
    dialed = [0.0, *shown.spec.richness]
    starts = occurring(shown.points, "start")
    return [
        Choice(
            "dialed",  # not "richness", which is a setting of the form
            "Richness ρ: lazy at 0, rich at 1/2",
            dialed,
            "{:g}".format,
            320,
            begins=-1,
            is_slider=True,
            is_rare=len(dialed) == 1,
        ),
        Choice("measure", "Measure", measured(shown.points), pixels=260),
        output_choice(occurring(shown.points, "output"), is_rare=True),
        Choice("start", "Start", starts, START_TITLES.__getitem__, 200, is_rare=True),
    ]


def _has_dial(shown: Runs) -> bool:
    return bool(shown.spec.richness)


def _dial(shown: Runs, richness: float, measure: str, output: str, start: str) -> Chart:
    return dial.against_width(shown.points, output, start, MEASURES[measure], richness)


def _exponents(shown: Runs, richness: float, measure: str, output: str, start: str) -> Chart:
    return dial.exponents(shown.points, output, start, richness)


def _coordinates(shown: Runs, richness: float, measure: str, output: str, start: str) -> Chart:
    return dial.coordinates(shown.points, output, start, richness)


def _against_scale(shown: Runs, richness: float, measure: str, output: str, start: str) -> Chart:
    return against(shown.points, "scale", output, MEASURES[measure])


def _against_width(shown: Runs, richness: float, measure: str, output: str, start: str) -> Chart:
    return against(shown.points, "width", output, MEASURES[measure])


def _distances(shown: Runs, richness: float, measure: str, output: str, start: str) -> Chart:
    return distances(shown.points, output, start)


def _same_parameters(shown: Runs, richness: float, measure: str, output: str, start: str) -> Chart:
    kind = shown.spec.architecture.kind
    return same_parameters(shown.points, nonlinear(shown.points), start, kind)


FIGURES = (
    Figure("dial", "Along the dial", choices=[_choices], draw=_dial, has_data=_has_dial),
    Figure(
        "exponents", "Exponents against ρ", choices=[_choices], draw=_exponents, has_data=_has_dial
    ),
    Figure(
        "coordinates", "Coordinate check", choices=[_choices], draw=_coordinates, has_data=_has_dial
    ),
    Figure(
        "figure1",
        "Against scale",
        choices=[_choices],
        draw=_against_scale,
        has_data=lambda shown: set(shown.spec.scales) != {1.0},
    ),
    # With a dial, its line at ρ = 0 is the same.
    Figure(
        "figure2",
        "Against width",
        choices=[_choices],
        draw=_against_width,
        has_data=lambda shown: not shown.spec.richness,
    ),
    Figure("figure3", "How far the weights move", choices=[_choices], draw=_distances),
    Figure(
        "figure4",
        "Same weights, two outputs",
        choices=[_choices],
        draw=_same_parameters,
        has_data=lambda shown: nonlinear(shown.points) != "linear",
    ),
)


COMPARED = (
    ComparedAxis(
        "scale",
        "scale α",
        "α",
        lambda row, result: not row["richness"] and row["width"] == result.spec.widths[0],
    ),
    replace(WIDTH, keep=lambda row, _: row["scale"] == 1),
)
