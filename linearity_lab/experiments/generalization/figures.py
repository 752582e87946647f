"""Figures of *Generalization*.

Test error of network and kernels against width and n, training histories, leading eigenvectors.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from linearity_lab.charts.axes import MEANS, add_level, is_marked
from linearity_lab.charts.chart import WIDTH, Chart, ComparedAxis
from linearity_lab.charts.choices import Choice, width_choice
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.labels import MOST_CURVES, spread_out
from linearity_lab.charts.lines import Axis, Dot, Line, trained_dot, width_axis
from linearity_lab.charts.style import Style, model_style
from linearity_lab.charts.sweep import sweep
from linearity_lab.charts.training import Quantity, Row, along_runs
from linearity_lab.experiments.generalization.point import (
    GeneralizationPoint,
    GeneralizationRun,
    GeneralizationSpec,
    measured,
    pooled,
    predictors,
)
from linearity_lab.experiments.lazy.dial import richness_style
from ntk_core.numbers import number

TestedPoints = Sequence[GeneralizationPoint]
Runs = Shown[GeneralizationSpec, GeneralizationPoint]
ALL = -1.0  # not a ρ; None would be an empty selectbox
Where = Callable[[GeneralizationPoint], float]
MEASURES = {"error": "test error", "loss": "test loss"}
BARS = (
    "Bars are Wilson's 95% intervals of the test error, all test points of these networks "
    "together. Bands are standard errors over the seeds."
)
# For one ρ, in this order; the linear models at both ends are hidden initially.
MODELS = ("network", "after_kernel", "first_kernel", "infinite", "linear", "onward")
UNTRAINED = ("first_kernel", "infinite")  # valid regardless of the outcome of training


def richnesses(points: TestedPoints) -> list[float]:
    """Return all ρ, ascending."""
    return sorted({point.richness for point in points})


def at(
    points: TestedPoints,
    *,
    width: int | None = None,
    richness: float | None = None,
    samples: int | None = None,
) -> list[GeneralizationPoint]:
    """Return the points with these values."""
    found = list(points)
    if width is not None:
        found = [point for point in found if point.width == width]
    if richness is not None:
        found = [point for point in found if point.richness == richness]
    if samples is not None:
        found = [point for point in found if point.num_samples == samples]
    return found


def lines(
    points: TestedPoints, where: Where, what: str, richness: float | None = None
) -> list[Line]:
    """Return the lines of the choice of ρ.

    At one ρ these are all models; else the network at every ρ, extremes first, with K₀ and K_∞
    once.
    """
    found = richnesses(points)
    if richness is not None or len(found) == 1:
        chosen = at(points, richness=found[0] if richness is None else richness)
        made = [_line(chosen, where, what, name, _style(name)) for name in MODELS]
    else:
        order = [found[0], found[-1], *found[1:-1]]
        networks = [
            _line(
                at(points, richness=rho),
                where,
                what,
                "network",
                richness_style(rho, f"network, ρ = {rho:g}"),
            )
            for rho in order
        ]
        # Neither depends on ρ.
        kernels = [
            _line(at(points, richness=found[0]), where, what, name, _style(name))
            for name in UNTRAINED
        ]
        made = [*networks[:2], *kernels, *networks[2:]]
    return [line for line in made if line.dots]


def _style(name: str) -> Style:
    return model_style("linearized" if name == "linear" else name)


def _line(points: TestedPoints, where: Where, what: str, name: str, style: Style) -> Line:
    is_trained = name not in UNTRAINED
    dots = []
    more = {}
    for point in points:
        for run in point.runs:
            model = predictors(run)[name]
            if model is not None:
                value = getattr(model, what)
                dots.append(trained_dot(where(point), value, run, converged_only=is_trained))
        if what == "error":
            counted = [run for run in point.runs if run.outcome == "converged" or not is_trained]
            low, high = pooled(counted, name)
            more[where(point)] = {"Wilson 95% from": low, "Wilson 95% to": high}
    return Line(style, dots, fit=False, more=more)


def against(
    points: TestedPoints,
    spec: GeneralizationSpec,
    what: str,
    richness: float | None = None,
    width: int | None = None,
) -> Chart:
    """Draw test error or loss against width.

    At a given ``width`` it is against n (learning curves).
    """
    if width is None:
        drawn = lines(points, lambda point: point.width, what, richness)
        axis = width_axis(spec.widths)
        heading = "Against width"
        place = f"n = {points[0].num_samples:,}" if points else ""
    else:
        drawn = lines(at(points, width=width), lambda point: point.num_samples, what, richness)
        axis = Axis("training points n", "n", spec.counts)
        heading = "Learning curves"
        place = f"Width {width:,}"
    caption = [
        f"{place}{'' if richness is None else f', ρ = {richness:g}'}.",
        *([BARS] if what == "error" else ["Bands are standard errors over the seeds."]),
    ]
    chart = sweep(
        drawn,
        axis,
        MEASURES[what],
        is_log=False,
        of="model",
        heading=heading,
        caption=caption,
    )
    for trace in chart.figure.data:
        line = next((each for each in drawn if each.in_legend == trace.legendgroup), None)
        if line is not None and line.more and is_marked(trace, MEANS):
            trace.error_y = _bars(line)
    floor = spec.least_risk[what == "loss"]
    if floor > 0:
        add_level(chart.figure, floor, "Bayes error" if what == "error" else "noise", above=False)
    return chart


def _bars(line: Line) -> Mapping[str, object]:
    above = []
    below = []
    for place, mean in line.means:
        low, high = (float(str(end)) for end in line.more[place].values())
        above.append(high - mean.value)
        below.append(mean.value - low)
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "thickness": 1.3,
        "width": 4,
    }


def along(points: TestedPoints, what: str, width: int, richness: float, samples: int) -> Chart:
    """Draw the history of one run, step by step.

    It has the test error of network and after kernel, alignment, distance from K₀ and its rate.
    """
    runs = [
        run
        for point in at(points, width=width, richness=richness, samples=samples)
        for run in point.runs
    ]
    network = _style("network")
    kernel = _style("after_kernel")
    title = MEASURES[what]
    first_row = Row(title, "from 0")

    def records(of: str) -> Callable[[GeneralizationRun], list[float]]:
        return lambda run: [getattr(each, what) for each in getattr(run, of)]

    quantities: tuple[Quantity[GeneralizationRun], ...] = (
        Quantity(title, records("network"), first_row, f"{title} of the network", network),
        Quantity(title, records("after"), first_row, "of the after kernel", kernel),
        Quantity("alignment", "alignment", Row("alignment", "from 0")),
        Quantity("distance from K₀", "distance", Row("distance", "from 0")),
        Quantity("distance per step", "distance_per_step", Row("distance per step")),
        Quantity("ΔK", "change"),
    )
    text = "No run yet."
    if runs:
        first, last = (number(_mean([run.alignment[end] for run in runs])) for end in (0, -1))
        ends = [number(_mean([getattr(run.after[end], what) for run in runs])) for end in (0, -1)]
        text = (
            f"Alignment from {first} to {last}; {title} of regression with the kernel from "
            f"{ends[0]} to {ends[1]}, means of {len(runs)} runs."
        )
    caption = [f"Width {width:,}, ρ = {richness:g}, n = {samples:,}. {text}"]
    return along_runs(
        runs,
        "steps",
        quantities,
        lambda _: kernel,
        lambda run: {"seed": run.seed},
        takeaway=text,
        caption=caption,
    )


def eigenspaces(points: TestedPoints, width: int, richness: float, samples: int) -> Chart:
    """Draw the share of the targets in the leading eigenvectors of K₀ and of the final kernel."""
    runs = [
        run
        for point in at(points, width=width, richness=richness, samples=samples)
        for run in point.runs
    ]
    parts = (
        ("first_kernel", lambda run: run.first_share, "K₀"),
        ("after_kernel", lambda run: run.last_share, "at the end"),
    )
    drawn = []
    for name, of, title in parts:
        dots = []
        for run in runs:
            for rank, share in zip(run.ranks, of(run), strict=True):
                dots.append(Dot(rank, share, run.seed))
        drawn.append(Line(replace(_style(name), title=title), dots, fit=False))
    return sweep(
        drawn,
        Axis("leading eigenvectors k", "k"),
        "share of the targets",
        is_log=False,
        of="kernel",
        heading="Leading eigenvectors",
        caption=[f"Width {width:,}, ρ = {richness:g}, n = {samples:,}."],
    )


def angles(points: TestedPoints, width: int, samples: int) -> Chart:
    """Draw angles between leading eigenspaces of two kernels.

    They are the principal angles between K₀ and the final kernel, a line for each ρ.
    """
    shown = sorted(at(points, width=width, samples=samples), key=lambda point: point.richness)
    drawn = []
    for point in shown:
        dots = []
        for run in point.runs:
            dots += [Dot(i, angle, run.seed) for i, angle in enumerate(run.angles, start=1)]
        drawn.append(Line(richness_style(point.richness), dots, fit=False))
    count = max((len(run.angles) for point in shown for run in point.runs), default=0)
    return sweep(
        drawn,
        Axis("principal angle, number i", "i"),
        "angle in degrees",
        is_log=False,
        of="richness",
        heading="Rotation",
        caption=[
            f"Between the spans of the {count} leading eigenvectors; width {width:,}, n = "
            f"{samples:,}."
        ],
        first=spread_out(len(shown), MOST_CURVES),
    )


def _mean(found: Sequence[float]) -> float:
    finite = [each for each in found if math.isfinite(each)]
    return sum(finite) / len(finite) if finite else math.nan


COMPARED = (
    replace(WIDTH, keep=lambda row, result: row["num_samples"] == result.spec.counts[-1]),
    ComparedAxis(
        "num_samples",
        "training points n",
        "n",
        lambda row, result: row["width"] == result.spec.widths[-1],
    ),
)


def _choices(shown: Runs) -> list[Choice]:
    """Return the choices of ρ, width, the number of training points n, and error or loss."""
    dials = {ALL: "all ρ", **{rho: f"ρ = {rho:g}" for rho in richnesses(shown.points)}}
    counts = sorted({point.num_samples for point in shown.points})
    # A single n is neither shown nor followed by clicks.
    count_axis = "n" if len(counts) > 1 else ""
    measures = ["error", "loss"] if measured(shown.points) == "error" else ["loss"]
    return [
        Choice("dialed", "ρ", list(dials), dials.__getitem__),
        width_choice(sorted(shown.points, key=lambda point: point.width)),
        Choice(
            "count",
            "Points n",
            counts,
            "n = {:,}".format,
            begins=-1,
            axis=count_axis,
            is_rare=not count_axis,
        ),
        Choice("measure", "Measure", measures, MEASURES.__getitem__, is_rare=True),
    ]


def _richness(dialed: float) -> float | None:
    return None if dialed == ALL else dialed


def _one_richness(shown: Runs, dialed: float) -> float:
    """Return the chosen ρ, or the largest one if all are shown."""
    return richnesses(shown.points)[-1] if dialed == ALL else dialed


def _learning_curves(shown: Runs, dialed: float, width: int, samples: int, what: str) -> Chart:
    return against(shown.points, shown.spec, what, _richness(dialed), width)


def _against_width(shown: Runs, dialed: float, width: int, samples: int, what: str) -> Chart:
    return against(at(shown.points, samples=samples), shown.spec, what, _richness(dialed))


def _along(shown: Runs, dialed: float, width: int, samples: int, what: str) -> Chart:
    return along(shown.points, what, width, _one_richness(shown, dialed), samples)


def _eigenspaces(shown: Runs, dialed: float, width: int, samples: int, what: str) -> Chart:
    return eigenspaces(shown.points, width, _one_richness(shown, dialed), samples)


def _angles(shown: Runs, dialed: float, width: int, samples: int, what: str) -> Chart:
    return angles(shown.points, width, samples)


FIGURES = (
    Figure(
        "learning_curves",
        "Learning curves",
        choices=[_choices],
        draw=_learning_curves,
        has_data=lambda shown: len(shown.spec.counts) > 1,
    ),
    Figure("against_width", "Against width", choices=[_choices], draw=_against_width, is_main=True),
    Figure("along_training", "Along training", choices=[_choices], draw=_along),
    Figure("eigenspaces", "Leading eigenvectors", choices=[_choices], draw=_eigenspaces),
    Figure("angles", "Rotation", choices=[_choices], draw=_angles),
)
