"""The steps on the limits of linearity: outputs, bottlenecks, learning rates, depth, attention."""

import math
from collections.abc import Sequence
from typing import Literal

from linearity_lab.charts import departures as horizon
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.lines import Axis, Dot, Line, width_axis
from linearity_lab.charts.style import output_title
from linearity_lab.dashboard.pages.lecture import figures as lecture
from linearity_lab.dashboard.pages.lecture.steps._linear import LINEAR_OUTPUT, bounded, exponent
from linearity_lab.dashboard.pages.lecture.steps._step import Results, alone, step
from linearity_lab.experiments.depth_width import figures as depth_width
from linearity_lab.experiments.hessian import norm_figures as hessian
from linearity_lab.experiments.hessian.part_figures import layer_share, shares
from linearity_lab.experiments.hessian.point import HessianPoint
from linearity_lab.experiments.horizon.point import RegimeLine, rate_law
from linearity_lab.experiments.kernel_change import figures as kernel_change
from linearity_lab.experiments.lazy import dial
from linearity_lab.experiments.lazy import sweep_figures as lazy
from linearity_lab.experiments.learning_rate import figures as learning_rate
from linearity_lab.experiments.learning_rate.point import peak_law
from linearity_lab.experiments.optimization.figures import slow_runs
from linearity_lab.experiments.optimization.point import OptimizationPoint
from linearity_lab.runs import mean
from ntk_core.fits import PowerLaw
from ntk_core.numbers import number, percent, width_label

CATAPULTED = 3.0
RUNS = ("linear", "subtracted")  # output and start of the runs of the dial
# (depth, width) at one depth over width.
NARROW = (16, 64)
WIDE = (64, 256)
# The same, of networks that are trained.
SMALL = (2, 32)
LARGE = (8, 128)
# Scores divided by √d, and by d.
USUAL = "attention"
FADING = "attention-2"


def _peaks(results: Results, rate: float) -> Chart:
    result = results["catapult-map"]
    return learning_rate.peaks(result.points, result.spec.widths, result.spec.models, rate)


def _why_peaks(results: Results) -> dict[str, str]:
    points = sorted(results["catapult-map"].points, key=lambda point: point.width)
    peaks = [mean([run.peak for run in point.of("network", CATAPULTED)]).value for point in points]
    ends = [run.curvature for point in points for run in point.of("network", CATAPULTED)]
    return {
        "first": number(peaks[0]),
        "narrow": width_label(points[0].width),
        "last": number(peaks[-1]),
        "wide": width_label(points[-1].width),
        "law": exponent(peak_law(points, "network", CATAPULTED)),
        "low": number(min(ends)),
        "high": number(max(ends)),
        "lost": str(
            sum(
                run.outcome == "diverged"
                for point in points
                for run in point.of("linear", CATAPULTED)
            )
        ),
    }


def _dial(results: Results, view: str) -> Chart:
    if view == "layers":
        return dial.coordinates(results["richness-deep"].points, *RUNS, 0.5)
    measure = lazy.CHANGE if view == "change" else lazy.HIDDEN
    return dial.against_width(results["richness-dial"].points, *RUNS, measure)


def _why_dial(results: Results) -> dict[str, str]:
    points = results["richness-dial"].points
    deep = results["richness-deep"].points
    rich = lazy.line(points, "width", *RUNS, lazy.CHANGE, richness=0.5)
    depth = len(deep[0].runs[0].hidden_change)
    layers = (_plain(dial.law(deep, *RUNS, dial.of_layer(index), 0.5)) for index in range(depth))
    laws = {"lazy": 0.0, "middle": 0.25, "rich": 0.5}
    return {
        **{
            name: _plain(dial.law(points, *RUNS, lazy.CHANGE, richness))
            for name, richness in laws.items()
        },
        "change": number(rich.means[-1][1].value),
        "layers": ", ".join(layers),
    }


def _plain(law: PowerLaw | None) -> str:
    return exponent(law).partition(";")[0]


def _depth(results: Results, view: str) -> Chart:
    points = results["depth-width"].points
    if view == "change":
        return depth_width.trained(points, depth_width.CHANGE)
    return (
        depth_width.against_depth(points) if view == "depth" else depth_width.against_beta(points)
    )


def _why_depth(results: Results) -> dict[str, str]:
    points = {(point.depth, point.width): point for point in results["depth-width"].points}
    moved = {}
    for name, size in (("small", SMALL), ("large", LARGE)):
        converged = [run for run in points[size].runs if run.outcome == "converged"]
        moved[name] = mean([run.sup_change for run in converged]).value
    return {
        "narrow": number(points[NARROW].cv_squared),
        "wide": number(points[WIDE].cv_squared),
        **{name: number(value) for name, value in moved.items()},
    }


def _attention(results: Results, view: str) -> Chart:
    points = results["attention-heads" if view == "heads" else "attention-head-dim"].points
    found = shares(points, FADING) if view == "shares" else hessian.against_width(points)
    assert found is not None
    return found


def _why_attention(results: Results) -> dict[str, str]:
    heads = results["attention-heads"].points
    dims = results["attention-head-dim"].points
    ends = hessian.of_line(dims, FADING)[:: len(hessian.of_line(dims, FADING)) - 1]
    first, last = (
        layer_share(point, "queries").value + layer_share(point, "keys").value for point in ends
    )

    def law(points: Sequence[HessianPoint], line: str) -> str:
        found = hessian.law_of(hessian.of_line(points, line), hessian.VIEWS["‖H‖"].of)
        return _plain(found).replace("$m", f"${hessian.axis_of(points).letter}")

    return {
        "usual": law(dims, USUAL),
        "heads": law(heads, USUAL),
        "fading": law(dims, FADING),
        "first": percent(first),
        "last": percent(last),
        "smallest": str(ends[0].place),
        "largest": str(ends[1].place),
    }


def _peak_line(results: Results) -> tuple[Line, Axis]:
    points = results["catapult-map"].points
    dots = [
        Dot(point.width, run.peak, run.seed)
        for point in points
        for run in point.of("network", CATAPULTED)
    ]
    return Line(learning_rate.style("network"), dots), width_axis()


def _attention_line(results: Results) -> tuple[Line, Axis]:
    points = results["attention-head-dim"].points
    return hessian.norm_lines(points)[USUAL], hessian.axis_of(points)


def _horizons(results: Results, regime: str) -> Chart:
    result = results[f"horizon-{regime}"]
    if regime == "rate":
        return horizon.departure_steps(result.points, result.spec.widths)
    return horizon.against_width(result.points, result.spec, "kernel")


def _horizon_line(results: Results) -> tuple[Line, Axis]:
    points = results["horizon-cross-entropy"].points
    return horizon.horizons(points, "kernel")[RegimeLine("cross-entropy", 0.0)].line(
        relative=True
    ), width_axis()


def _why_horizons(results: Results) -> dict[str, str]:
    line = horizon.horizons(results["horizon-cross-entropy"].points, "kernel")[
        RegimeLine("cross-entropy", 0.0)
    ].line()
    (narrow, first), *_, (wide, last) = line.means
    slope = rate_law(results["horizon-rate"].points, 2.5, "outputs")
    decay = horizon.horizons(results["horizon-weight-decay"].points, "kernel")[
        RegimeLine("weight-decay", 0.5)
    ].line()
    return {
        "narrow": width_label(narrow),
        "wide": width_label(wide),
        "first": number(first.value),
        "last": number(last.value),
        "law": exponent(line.law),
        "slope": number(slope.exponent if slope else math.nan),
        "decay": number(decay.means[-1][1].value),
    }


EDGES = (
    step("learning-rate", _peaks, _why_peaks, measured=_peak_line),
    step("horizon", _horizons, _why_horizons, measured=_horizon_line),
    step("lazy-to-rich", _dial, _why_dial),
    step("depth-against-width", _depth, _why_depth),
    step("attention", _attention, _why_attention, measured=_attention_line),
)


NONLINEAR_OUTPUT = "fully-connected-swish"
BOTTLENECK = "bottleneck"
QUADRATIC = "quadratic-bottleneck"
PLAIN_START = "random"
SHOWN_OUTPUT = "leaky_softplus"


def _nonlinear(results: Results, view: str) -> Chart:
    if view == "change":
        return kernel_change.change_against_width(results["liu-fig1-left"].points, with_rates=False)
    points = results["liu-nonlinear-output"].points
    return hessian.against_width(points) if view == "norm" else bounded(points, NONLINEAR_OUTPUT)


def _why_nonlinear(results: Results) -> dict[str, str]:
    points = results["liu-fig1-left"].points
    text = []
    for output, line in kernel_change.change_lines(points).items():
        first, start = line.means[0]
        last, end = line.means[-1]
        text.append(
            f"{output_title(output)} {number(start.value)} at $m$ = {width_label(first)}, "
            f"{number(end.value)} at {width_label(last)} ({exponent(line.law)})"
        )
    return {"changes": "; ".join(text)}


def _bottleneck(results: Results, view: str) -> Chart:
    if view == "neighbors":
        return hessian.against_width(
            [p for p in results["liu-table1"].points if p.line in (LINEAR_OUTPUT, BOTTLENECK)]
        )
    if view == "itself":
        points = results["liu-fig2"].points
        return kernel_change.change_against_width(
            points, swept="bottleneck_width", with_rates=False
        )
    return bounded(results["liu-theorem41"].points, QUADRATIC)


def _why_bottleneck(results: Results) -> dict[str, str]:
    found = {}
    for name, line in (("without", LINEAR_OUTPUT), ("with", BOTTLENECK)):
        own = hessian.of_line(results["liu-table1"].points, line)
        found[name] = exponent(hessian.law_of(own, hessian.VIEWS["‖H‖"].of))
    law = kernel_change.change_lines(results["liu-fig2"].points)["linear"].law
    return {**found, "widened": exponent(law).replace("m^", "m_b^")}


def _widest(results: Results) -> OptimizationPoint:
    widest: OptimizationPoint = max(results["liu-section5"].points, key=lambda point: point.width)
    return widest


def _why_optimization(results: Results) -> dict[str, str]:
    points = sorted(results["liu-section5"].points, key=lambda point: point.width)
    text = []
    for point in points:
        runs = slow_runs(point, SHOWN_OUTPUT)
        text.append(
            f"{number(mean([run.sup_change for run in runs]).value)} at $m$ = "
            f"{width_label(point.width)}"
        )
    runs = slow_runs(points[-1], SHOWN_OUTPUT)
    loss = max(run.loss[-1] for run in runs)
    steps = max(run.num_steps for run in runs)
    return {"changes": ", ".join(text), "loss": number(loss, 1), "steps": str(steps)}


def _lazy(results: Results, view: Literal["outputs", "moves", "scale", "width"]) -> Chart:
    points = results["liu-lazy"].points
    if view == "outputs":
        return lazy.same_parameters(points, lazy.nonlinear(points), PLAIN_START)
    if view == "moves":
        return lazy.distances(points, "linear", PLAIN_START)
    return lazy.against(points, view, "linear", lazy.KAPPA)


def _why_lazy(results: Results) -> dict[str, str]:
    points = results["liu-lazy"].points
    output = lazy.nonlinear(points)
    wanted = {
        "kernel": (output, lazy.BEHIND_F),
        "behind": (output, lazy.CHANGE),
        "distance": ("linear", lazy.DISTANCE),
        "largest": ("linear", lazy.LARGEST),
    }
    return {
        name: exponent(lazy.line(points, "width", phi, PLAIN_START, measure).law)
        for name, (phi, measure) in wanted.items()
    }


LIMITS = (
    step("nonlinear-output", _nonlinear, _why_nonlinear),
    step("bottleneck", _bottleneck, _why_bottleneck),
    step(
        "optimization-without-linearity",
        lambda results, output: lecture.loss_and_change(_widest(results), output),
        _why_optimization,
        lambda results, _: lecture.loss_and_change(_widest(results), SHOWN_OUTPUT, with_loss=False),
    ),
    step("not-lazy-training", _lazy, _why_lazy, alone("kernel of α f")),
)
