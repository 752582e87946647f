"""Steps 6 to 9: what breaks linearity, what does not need it, and what does not explain it."""

from __future__ import annotations

from typing import Any

from dashboard.charts.chart import Chart, veiled
from dashboard.charts.numbers import number, width_label
from dashboard.charts.style import output_title
from dashboard.views.hessian import figures as hessian
from dashboard.views.hessian import part_figures as hessian_parts
from dashboard.views.kernel_change import figures as kernel_change
from dashboard.views.lazy import figures as lazy
from dashboard.views.lecture import figures as lecture
from dashboard.views.lecture.steps._linear import LINEAR_OUTPUT, exponent
from dashboard.views.lecture.steps._step import Control, Results, step
from dashboard.views.optimization.figures import slow_runs
from ntk_core.runs import mean

NONLINEAR_OUTPUT = "fully-connected-swish"
NARROW = "bottleneck"
QUADRATIC = "quadratic-bottleneck"
PLAIN_START = "random"


def _nonlinear(results: Results, view: Any, known: bool) -> Chart:
    if view == "change":
        points = results["liu-fig1-left"].points
        drawn = kernel_change.change_against_width(points, with_rates=False)
        first = min(point.width for point in points)
    else:
        points = results["liu-nonlinear-output"].points
        first = min(point.wide_width for point in points)
        if view == "norm":
            drawn = hessian.against_width(points)
        else:
            found = hessian_parts.bounded(points, NONLINEAR_OUTPUT)
            if found is None:
                raise LookupError("liu-nonlinear-output has no lower bound")
            drawn = found
    if known:
        return drawn
    return Chart(veiled(drawn.figure, first), "Kernel change of three outputs at the smallest width.", [])


def _why_nonlinear(results: Results) -> dict[str, str]:
    points = results["liu-fig1-left"].points
    said = []
    for output, line in kernel_change.change_lines(points).items():
        (first, start), (last, end) = line.means[0], line.means[-1]
        said.append(
            f"{output_title(output)} {number(start.value)} at $m$ = {width_label(first)}, "
            f"{number(end.value)} at {width_label(last)} ({exponent(line.law)})"
        )
    return {"changes": "; ".join(said)}


def _bottleneck(results: Results, view: Any, known: bool) -> Chart:
    if view == "neighbors":
        points = [p for p in results["liu-table1"].points if p.line in (LINEAR_OUTPUT, NARROW)]
        drawn = hessian.against_width(points)
        first = min(point.wide_width for point in points)
    elif view == "itself":
        points = results["liu-fig2"].points
        drawn = kernel_change.change_against_width(points, swept="bottleneck_width", with_rates=False)
        first = min(point.width for point in points)
    else:
        points = results["liu-theorem41"].points
        found = hessian_parts.bounded(points, QUADRATIC)
        if found is None:
            raise LookupError("liu-theorem41 has no closed form")
        drawn = found
        first = min(point.wide_width for point in points)
    return (
        drawn
        if known
        else Chart(veiled(drawn.figure, first), "‖H‖ with and without a bottleneck at the smallest width.", [])
    )


def _why_bottleneck(results: Results) -> dict[str, str]:
    found = {}
    for name, line in (("without", LINEAR_OUTPUT), ("with", NARROW)):
        own = hessian.of_line(results["liu-table1"].points, line)
        found[name] = exponent(hessian.law_of(own, hessian.VIEWS["‖H‖"].of))
    law = kernel_change.change_lines(results["liu-fig2"].points)["linear"].law
    return {**found, "widened": exponent(law).replace("m^", "m_b^")}


def _optimization(results: Results, output: Any, known: bool) -> Chart:
    widest = max(results["liu-section5"].points, key=lambda point: point.width)
    return lecture.loss_and_change(widest, output, with_loss=known)


def _why_optimization(results: Results) -> dict[str, str]:
    points = sorted(results["liu-section5"].points, key=lambda point: point.width)
    said = []
    for point in points:
        runs = slow_runs(point, "leaky_softplus")
        said.append(f"{number(mean([run.sup_change for run in runs]).value)} at $m$ = {width_label(point.width)}")
    runs = slow_runs(points[-1], "leaky_softplus")
    loss, steps = max(run.loss[-1] for run in runs), max(run.num_steps for run in runs)
    return {"changes": ", ".join(said), "loss": number(loss, 1), "steps": str(steps)}


def _lazy(results: Results, view: Any, known: bool) -> Chart:
    points = results["liu-lazy"].points
    if view == "outputs":
        drawn = lazy.same_parameters(points, lazy.nonlinear(points), PLAIN_START)
    elif view == "moves":
        drawn = lazy.distances(points, "linear", PLAIN_START)
    else:
        drawn = lazy.against(points, "scale" if view == "scale" else "width", "linear", lazy.KAPPA)
    if known:
        return drawn
    return Chart(veiled(drawn.figure, keep=("kernel of α f",)), "Kernel change of f against width.", [])


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
    step(
        "nonlinear-output",
        Control("Show", {"change": "kernel change", "norm": "Hessian norm", "bound": "lower bound"}, "change"),
        _nonlinear,
        _why_nonlinear,
    ),
    step(
        "bottleneck",
        Control(
            "Show",
            {"neighbors": "widen the others", "itself": "widen the bottleneck", "exact": "one block, exactly"},
            "neighbors",
        ),
        _bottleneck,
        _why_bottleneck,
    ),
    step(
        "optimization-without-linearity",
        Control(
            "Output φ",
            {"leaky_softplus": "0.2 f + 0.8 softplus(f)", "swish": "swish", "softmax": "softmax"},
            "leaky_softplus",
        ),
        _optimization,
        _why_optimization,
    ),
    step(
        "not-lazy-training",
        Control(
            "Show",
            {"outputs": "one path, two outputs", "moves": "the weights", "scale": "κ by scale", "width": "κ by width"},
            "outputs",
        ),
        _lazy,
        _why_lazy,
    ),
)
