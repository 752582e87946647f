"""From lazy to rich (Yang & Hu 2021; Chizat, Oyallon & Bach 2019; Liu, Zhu & Belkin 2020, §1.1)."""

import streamlit as st

from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.dashboard.chart import Choice, Panel, output_choice, slide
from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.shown import Shown
from linearity_lab.experiments.lazy import dial, figures
from linearity_lab.experiments.lazy.point import LazyPoint, LazySpec

Runs = Shown[LazySpec, LazyPoint]


def charts(
    shown: Runs, measure: str, output: str, start: str, richness: float = 0.0
) -> tuple[Chart, ...]:
    """Draw one measure against ρ, scale and width, as swept; then the weights."""
    points, spec, wanted = shown.points, shown.spec, figures.MEASURES[measure]
    found = []
    if spec.richness:
        found += [dial.against_width(points, output, start, wanted, richness)]
        found += [dial.exponents(points, output, start, richness)]
        found += [dial.coordinates(points, output, start, richness)]
    if set(spec.scales) != {1.0}:
        found += [figures.against(points, "scale", output, wanted)]
    if not spec.richness:  # otherwise the dial has that line, at ρ = 0
        found += [figures.against(points, "width", output, wanted)]
    found += [figures.distances(points, output, start)]
    if (behind := figures.nonlinear(points)) != "linear":
        found += [figures.same_parameters(points, behind, start, spec.architecture.kind)]
    return tuple(found)


def draw(shown: Runs) -> list[Panel]:
    """Draw the charts against all swept settings."""
    richness = []
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"{PAGE.name}.dial_row"):
        if shown.spec.richness:
            dialed, title = [0.0, *shown.spec.richness], "Richness ρ: lazy at 0, rich at 1/2"
            # Not "richness": that key is the form's.
            richness = [slide(PAGE.name, "dialed", title, dialed, "{:g}", -1, 320)]
        chosen = shown.choose(
            Choice("measure", "Measure", figures.measured(shown.points), pixels=260),
            more=[
                output_choice(occurring(shown.points, "output")),
                Choice(
                    "start",
                    "Start",
                    occurring(shown.points, "start"),
                    figures.START_TITLES.__getitem__,
                    200,
                ),
            ],
        )
    if shown.spec.almost_everywhere:
        st.caption(shown.spec.almost_everywhere)
    return shown.panels(charts, *chosen, *richness)


PAGE = ExperimentPage(
    "lazy",
    draw,
    controls=("widths", "architecture.depth", "num_seeds"),
    groups={
        "Width, scale and richness": ("widths", "scales", "richness", "num_seeds", "seed", "draws"),
        "Network": ("outputs", "starts"),
    },
    elsewhere=("architecture.initial_output",),
)
show = PAGE.show
