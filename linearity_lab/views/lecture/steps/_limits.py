"""What breaks linearity, what does not need it, and what does not explain it."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.style import output_title
from linearity_lab.views.hessian import figures as hessian
from linearity_lab.views.kernel_change import figures as kernel_change
from linearity_lab.views.lazy import figures as lazy
from linearity_lab.views.lecture import figures as lecture
from linearity_lab.views.lecture.steps._linear import LINEAR_OUTPUT, bounded, exponent
from linearity_lab.views.lecture.steps._step import Results, alone, step
from linearity_lab.views.optimization.figures import slow_runs
from ntk_core.experiments.optimization.result import OptimizationPoint
from ntk_core.numbers import number, width_label
from ntk_core.runs import mean

NONLINEAR_OUTPUT = "fully-connected-swish"
NARROW = "bottleneck"
QUADRATIC = "quadratic-bottleneck"
PLAIN_START = "random"
SHOWN_OUTPUT = "leaky_softplus"


def _nonlinear(results: Results, view: Any) -> Chart:
    if view == "change":
        return kernel_change.change_against_width(results["liu-fig1-left"].points, with_rates=False)
    points = results["liu-nonlinear-output"].points
    return hessian.against_width(points) if view == "norm" else bounded(points, NONLINEAR_OUTPUT)


def _why_nonlinear(results: Results) -> dict[str, str]:
    points = results["liu-fig1-left"].points
    text = []
    for output, line in kernel_change.change_lines(points).items():
        (first, start), (last, end) = line.means[0], line.means[-1]
        text.append(
            f"{output_title(output)} {number(start.value)} at $m$ = {width_label(first)}, "
            f"{number(end.value)} at {width_label(last)} ({exponent(line.law)})"
        )
    return {"changes": "; ".join(text)}


def _bottleneck(results: Results, view: Any) -> Chart:
    if view == "neighbors":
        return hessian.against_width([p for p in results["liu-table1"].points if p.line in (LINEAR_OUTPUT, NARROW)])
    if view == "itself":
        points = results["liu-fig2"].points
        return kernel_change.change_against_width(points, swept="bottleneck_width", with_rates=False)
    return bounded(results["liu-theorem41"].points, QUADRATIC)


def _why_bottleneck(results: Results) -> dict[str, str]:
    found = {}
    for name, line in (("without", LINEAR_OUTPUT), ("with", NARROW)):
        own = hessian.of_line(results["liu-table1"].points, line)
        found[name] = exponent(hessian.law_of(own, hessian.VIEWS["‖H‖"].of))
    law = kernel_change.change_lines(results["liu-fig2"].points)["linear"].law
    return {**found, "widened": exponent(law).replace("m^", "m_b^")}


def _optimization(results: Results, output: Any) -> Chart:
    return lecture.loss_and_change(_widest(results), output)


def _kernel_alone(results: Results, _: Chart) -> Chart:
    return lecture.loss_and_change(_widest(results), SHOWN_OUTPUT, with_loss=False)


def _widest(results: Results) -> OptimizationPoint:
    widest: OptimizationPoint = max(results["liu-section5"].points, key=lambda point: point.width)
    return widest


def _why_optimization(results: Results) -> dict[str, str]:
    points = sorted(results["liu-section5"].points, key=lambda point: point.width)
    text = []
    for point in points:
        runs = slow_runs(point, SHOWN_OUTPUT)
        text.append(f"{number(mean([run.sup_change for run in runs]).value)} at $m$ = {width_label(point.width)}")
    runs = slow_runs(points[-1], SHOWN_OUTPUT)
    loss, steps = max(run.loss[-1] for run in runs), max(run.num_steps for run in runs)
    return {"changes": ", ".join(text), "loss": number(loss, 1), "steps": str(steps)}


def _lazy(results: Results, view: Any) -> Chart:
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
    step("optimization-without-linearity", _optimization, _why_optimization, _kernel_alone),
    step("not-lazy-training", _lazy, _why_lazy, alone("kernel of α f")),
)
