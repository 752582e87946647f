"""Linearity, and why wide networks with a linear output become linear."""

import math
from collections.abc import Sequence

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.lines import Axis, Line
from linearity_lab.dashboard.pages.lecture import figures as lecture
from linearity_lab.dashboard.pages.lecture.steps._step import Results, alone, step
from linearity_lab.experiments.hessian import norm_figures as hessian
from linearity_lab.experiments.hessian import part_figures as hessian_parts
from linearity_lab.experiments.hessian.point import HessianPoint
from linearity_lab.runs import mean
from ntk_core.fits import PowerLaw, remarks
from ntk_core.numbers import number, width_label

LINEAR_OUTPUT = "fully-connected"
DEEP = (LINEAR_OUTPUT, "resnet", "densenet", "convnet", "mixed")


def exponent(law: PowerLaw | None) -> str:
    """LaTeX of a fitted power of m with its interval; a dash without a fit."""
    if law is None:
        return "–"
    interval = f" \\pm {law.interval:.2f}" if math.isfinite(law.interval) else ""
    # Adding 0 turns −0 into 0.
    return f"$m^{{{round(law.exponent, 2) + 0.0:.2f}{interval}}}$" + "".join(
        f"; {each}" for each in remarks(law)
    )


def bounded(points: Sequence[HessianPoint], line: str) -> Chart:
    """Return the bounds of ‖H‖ on one line of the gallery."""
    found = hessian_parts.bounded(points, line)
    if found is None:
        raise LookupError(f"{line} has no bounds")
    return found


CURVES = "curves-in-one-dimension"


def _curves_alone(results: Results, _: Chart) -> Chart:
    points = results[CURVES].points
    return lecture.curve_and_change(points, max(point.width for point in points), with_change=False)


def _why_constant(results: Results) -> dict[str, str]:
    runs = {point.width: point.runs[0] for point in results[CURVES].points}
    changes = (
        f"{number(run.sup_change)} at $m$ = {width_label(width)}" for width, run in runs.items()
    )
    return {"changes": ", ".join(changes)}


def _ball(results: Results, radius: float) -> Chart:
    result = results["liu-ball"]
    return hessian_parts.ball(result.points, radius, "kernel_change", result.spec.num_starts)


def _change_in_unit_ball(point: HessianPoint) -> float:
    """Return the mean over seeds of the largest kernel change in the ball of radius 1."""
    changes = []
    for run in point.runs:
        changes += [ball.kernel_change for ball in run.balls if ball.radius == 1.0]
    return mean(changes).value


def _why_ball(results: Results) -> dict[str, str]:
    first, *_, last = hessian.of_line(results["liu-ball"].points, LINEAR_OUTPUT)
    return {
        "before": number(_change_in_unit_ball(first)),
        "first": str(first.wide_width),
        "after": number(_change_in_unit_ball(last)),
        "last": width_label(last.wide_width),
    }


def _why_diagonal(results: Results) -> dict[str, str]:
    points = hessian.of_line(results["liu-shallow"].points, "shallow")
    law = hessian.law_of(points, hessian.VIEWS["‖H‖"].of)
    kernel = hessian.law_of(points, lambda _, run: run.kernel)
    return {"norm": exponent(law), "kernel": exponent(kernel)}


def _norms(results: Results, kind: str) -> Chart:
    if kind in lecture.LAW_TITLES:
        origin = f"Drawn on this page: {lecture.LAW_TITLES[kind]}, {lecture.NORM_SEEDS} seeds"
        return lecture.drawn_norms(lecture.norm_dots(kind), origin)
    points = hessian.of_line(results["liu-theorem31"].points, LINEAR_OUTPUT)
    found = {
        name: hessian.dots(points, hessian_parts.QUANTITIES[name].of)
        for name in ("b_max", "b_norm")
    }
    return lecture.drawn_norms(
        found, "Measured: the largest over the layers of a network with two hidden layers"
    )


def _why_norms(results: Results) -> dict[str, str]:
    points = hessian.of_line(results["liu-theorem31"].points, LINEAR_OUTPUT)
    quantities = {"length": "b_norm", "largest": "b_max"}
    return {
        key: exponent(hessian.law_of(points, hessian_parts.QUANTITIES[name].of))
        for key, name in quantities.items()
    }


def _deep(results: Results, view: str) -> Chart:
    if view == "architectures":
        return hessian.against_width(
            [point for point in results["liu-table1"].points if point.line in DEEP]
        )
    points = results["liu-theorem31"].points
    if view == "bound":
        return bounded(points, LINEAR_OUTPUT)
    found = hessian_parts.quantities(points, LINEAR_OUTPUT)
    if found is None:
        raise LookupError("liu-theorem31 has no layer quantities")
    return found


def _why_deep(results: Results) -> dict[str, str]:
    points = hessian.of_line(results["liu-theorem31"].points, LINEAR_OUTPUT)
    norm, bound = (
        hessian.law_of(points, of)
        for of in (hessian.VIEWS["‖H‖"].of, hessian_parts.BOUNDS["bound"].of)
    )
    gaps = [run.bound.bound / run.norm for point in points for run in point.runs if run.bound]
    return {
        "norm": exponent(norm),
        "bound": exponent(bound),
        "least": f"{min(gaps):.0f}",
        "most": f"{max(gaps):.0f}",
    }


def _deep_line(results: Results) -> tuple[Line, Axis]:
    points = results["liu-theorem31"].points
    return hessian.norm_lines(points)[LINEAR_OUTPUT], hessian.axis_of(points)


LINEAR = (
    step(
        "constancy-and-linearity",
        lambda results, width: lecture.curve_and_change(results[CURVES].points, width),
        _why_constant,
        _curves_alone,
    ),
    step("hessian-and-ball", _ball, _why_ball),
    step(
        "diagonal-hessian",
        lambda _, width: lecture.diagonal(width),
        _why_diagonal,
        lambda _, chart: chart,
    ),
    step("two-norms", _norms, _why_norms, alone(hessian_parts.QUANTITIES["b_max"].style.title)),
    step("deep-networks", _deep, _why_deep, measured=_deep_line),
)
