"""Generalization of network and kernel: the cost of linearity."""

from linearity_lab.charts.chart import Chart
from linearity_lab.components.chart import WIDTH, Choice, Panel
from linearity_lab.components.experiment_page import ExperimentPage
from linearity_lab.components.shown import Shown
from linearity_lab.views.generalization import figures
from ntk_core.experiments.generalization import GeneralizationPoint, GeneralizationSpec, measured
from ntk_core.numbers import width_label

Runs = Shown[GeneralizationSpec, GeneralizationPoint]

ALL = -1.0  # not a ρ; None would be an empty selectbox


def charts(shown: Runs, what: str, richness: float | None, width: int, samples: int) -> tuple[Chart, ...]:
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


def draw(shown: Runs) -> list[Panel]:
    """Return the charts at the chosen ρ, width and n."""
    widths = sorted({point.width for point in shown.points})
    counts = sorted({point.num_samples for point in shown.points})
    by_error = measured(shown.points) == "error"
    chosen = shown.choose(
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
    return shown.panels(charts, what, richness, width, samples)


def _richness_words(richness: float) -> str:
    return "all ρ" if richness == ALL else f"ρ = {richness:g}"


PAGE = ExperimentPage(
    "generalization",
    draw,
    controls=("dataset.name", "widths", "dataset.num_samples"),
    groups={
        "Width, richness and points": ("widths", "richness", "samples", "num_seeds", "seed", "draws"),
        "Kernels and test": ("num_test", "ridge", "infinite_width"),
    },
)
show = PAGE.show
