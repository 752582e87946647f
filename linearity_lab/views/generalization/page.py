"""What linearity costs: generalization of network and kernel."""

from functools import partial
from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.components.chart import WIDTH, Choice, Panel, choose, panels
from linearity_lab.components.drawn_once import drawn_once
from linearity_lab.components.experiment_page import experiment_page
from linearity_lab.components.forms import Group
from linearity_lab.components.run_panel import Shown
from linearity_lab.views.generalization import figures
from ntk_core.experiments.generalization import measured
from ntk_core.numbers import width_label

PAGE = "generalization"
TITLE = "What does linearity cost?"
ALL = -1.0  # not a ρ; None would be an empty selectbox
CONTROLS = ("dataset.name", "widths", "dataset.num_samples")
GROUPS = (
    Group("Width, richness and points", ("widths", "richness", "samples", "num_seeds", "seed", "draws")),
    Group("Kernels and test", ("num_test", "ridge", "infinite_width")),
    Group("Network", ("architecture.",)),
    Group("Training", ("training.",)),
    Group("Data", ("dataset.",)),
)


def charts(shown: Shown, what: str, richness: float | None, width: int, samples: int) -> tuple[Chart, ...]:
    """Return learning curves if n is swept, the sweep over widths, then details of one network and its kernel."""
    points, spec = shown.points, shown.spec
    rho = figures.richnesses(points)[-1] if richness is None else richness
    curves = [figures.against(points, spec, what, richness, width)] if len(spec.counts) > 1 else []
    at_n = figures.at(points, samples=samples)
    return (
        *curves,
        figures.against(at_n, spec, what, richness),
        figures.along(points, what, width, rho, samples),
        figures.eigenspaces(points, width, rho, samples),
        figures.angles(points, width, samples),
    )


def draw(shown: Shown) -> list[Panel]:
    """Return the charts at the chosen ρ, width and n."""
    widths, counts = (sorted(set(found)) for found in _sizes(shown.points))
    by_error = measured(shown.points) == "error"
    chosen: tuple[Any, ...] = choose(
        PAGE,
        Choice("dialed", "ρ", [ALL, *figures.richnesses(shown.points)], _richness_words),
        Choice("width", "Width m", widths, lambda m: f"m = {width_label(m)}", begins=-1, axis=WIDTH),
        *(
            [Choice("count", "Points n", counts, lambda n: f"n = {n:,}", begins=-1, axis="n")]
            if len(counts) > 1
            else []
        ),
        more=[Choice("measure", "Measure", ["error", "loss"] if by_error else ["loss"], figures.MEASURES.__getitem__)],
    )
    dialed, width, *between, what = chosen
    richness = None if dialed == ALL else dialed
    samples = between[0] if between else counts[-1]
    return panels(drawn_once(PAGE, shown.identity, partial(charts, shown), what, richness, width, samples))


def _sizes(points: figures.Points) -> tuple[list[int], list[int]]:
    return [point.width for point in points], [point.num_samples for point in points]


def _richness_words(richness: float) -> str:
    return "all ρ" if richness == ALL else f"ρ = {richness:g}"


def show() -> None:
    """Draw the page."""
    experiment_page(PAGE, TITLE, GROUPS, draw, controls=CONTROLS)
