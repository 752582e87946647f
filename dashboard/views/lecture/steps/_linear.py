"""Steps 1 to 5: what linearity is, and why wide networks with a linear output come to it."""

from __future__ import annotations

from typing import Any

from dashboard.charts.chart import Chart, veiled
from dashboard.charts.numbers import number, width_label
from dashboard.views.hessian import figures as hessian
from dashboard.views.hessian import part_figures as hessian_parts
from dashboard.views.lecture import exact_figures as lecture_exact
from dashboard.views.lecture import figures as lecture
from dashboard.views.lecture.steps._step import Control, Results, step
from ntk_core.experiments.hessian.result import HessianPoint
from ntk_core.fits import PowerLaw
from ntk_core.runs import mean

LINEAR_OUTPUT = "fully-connected"
DEEP = (LINEAR_OUTPUT, "resnet", "densenet", "convnet", "mixed")
DIAGONAL_WIDTHS = (30, 100, 300, 1000, 3000, 10_000)


def exponent(law: PowerLaw | None) -> str:
    """LaTeX of a fitted power of m with its interval; a dash where there is none."""
    return "–" if law is None else f"$m^{{{law.exponent:.2f} \\pm {law.interval:.2f}}}$"


def _curves(results: Results, width: Any, known: bool) -> Chart:
    return lecture.curve_and_change(results["curves-in-one-dimension"].points, width, with_change=known)


def _why_constant(results: Results) -> dict[str, str]:
    runs = {point.width: point.runs[0] for point in results["curves-in-one-dimension"].points}
    changes = (f"{number(run.sup_change)} at $m$ = {width_label(width)}" for width, run in runs.items())
    return {"changes": ", ".join(changes)}


def largest_in_ball(points: list[HessianPoint], radius: float) -> dict[int, float]:
    """Width → mean over the seeds of the largest relative kernel change met in the ball of this radius."""
    return {
        point.wide_width: mean(
            [ball.kernel_change for run in point.runs for ball in run.balls if ball.radius == radius]
        ).value
        for point in points
    }


def _ball(results: Results, radius: Any, known: bool) -> Chart:
    result = results["liu-ball"]
    drawn = hessian_parts.ball(result.points, radius, "kernel_change", result.spec.num_starts)
    if known:
        return drawn
    first = min(point.wide_width for point in result.points)
    return Chart(veiled(drawn.figure, first), " ".join(drawn.caption), [])


def _why_ball(results: Results) -> dict[str, str]:
    points = hessian.of_line(results["liu-ball"].points, LINEAR_OUTPUT)
    (first, before), *_, (last, after) = largest_in_ball(points, 1.0).items()
    return {"before": number(before), "first": str(first), "after": number(after), "last": width_label(last)}


def _diagonal(_: Results, width: Any, known: bool) -> Chart:
    return lecture_exact.diagonal(width if known else DIAGONAL_WIDTHS[0], DIAGONAL_WIDTHS[0])


def _why_diagonal(results: Results) -> dict[str, str]:
    points = hessian.of_line(results["liu-shallow"].points, "shallow")
    law = hessian.law_of(points, hessian.VIEWS["‖H‖"].of)
    kernel = hessian.law_of(points, lambda _, run: run.kernel)
    return {"norm": exponent(law), "kernel": exponent(kernel)}


def _norms(results: Results, kind: Any, known: bool) -> Chart:
    if kind in lecture_exact.LAW_TITLES:
        drawn = lecture_exact.two_norms(kind)
    else:
        points = hessian.of_line(results["liu-theorem31"].points, LINEAR_OUTPUT)
        found = {name: hessian.dots(points, hessian_parts.QUANTITIES[name].of) for name in ("b_max", "b_norm")}
        drawn = lecture_exact.drawn_norms(
            found, "Measured: the largest over the layers of a network with two hidden layers"
        )
    if known:
        return drawn
    kept = hessian_parts.QUANTITIES["b_max"].style.title
    return Chart(veiled(drawn.figure, keep=(kept,)), "The largest entry of ∂f/∂α against width.", [])


def _why_norms(results: Results) -> dict[str, str]:
    points = hessian.of_line(results["liu-theorem31"].points, LINEAR_OUTPUT)
    quantities = {"length": "b_norm", "largest": "b_max"}
    return {
        said: exponent(hessian.law_of(points, hessian_parts.QUANTITIES[name].of)) for said, name in quantities.items()
    }


def _deep(results: Results, view: Any, known: bool) -> Chart:
    if view == "architectures":
        points = [point for point in results["liu-table1"].points if point.line in DEEP]
        drawn = hessian.against_width(points)
    else:
        points = list(results["liu-theorem31"].points)
        parts = hessian_parts.bounded if view == "bound" else hessian_parts.quantities
        found = parts(points, LINEAR_OUTPUT)
        if found is None:
            raise LookupError("liu-theorem31 has no layer quantities")
        drawn = found
    if known:
        return drawn
    first = min(point.wide_width for point in points)
    return Chart(veiled(drawn.figure, first), "Hessian norm and its bound at the smallest width.", [])


def _why_deep(results: Results) -> dict[str, str]:
    points = hessian.of_line(results["liu-theorem31"].points, LINEAR_OUTPUT)
    norm, bound = (hessian.law_of(points, of) for of in (hessian.VIEWS["‖H‖"].of, hessian_parts.BOUNDS["bound"].of))
    gaps = [run.bound.bound / run.norm for point in points for run in point.runs if run.bound]
    return {"norm": exponent(norm), "bound": exponent(bound), "least": f"{min(gaps):.0f}", "most": f"{max(gaps):.0f}"}


LINEAR = (
    step(
        "constancy-and-linearity",
        Control("Width m", {30: "m = 30", 300: "m = 300", 3000: "m = 3,000"}, 3000),
        _curves,
        _why_constant,
    ),
    step(
        "hessian-and-ball",
        Control("Radius R", {0.5: "R = 0.5", 1.0: "R = 1", 2.0: "R = 2", 4.0: "R = 4"}, 1.0),
        _ball,
        _why_ball,
    ),
    step(
        "diagonal-hessian",
        Control("Width m", {m: width_label(m) for m in DIAGONAL_WIDTHS}, DIAGONAL_WIDTHS[0]),
        _diagonal,
        _why_diagonal,
    ),
    step(
        "two-norms",
        Control(
            "Output weights",
            {"signs": "v = ±1", "normal": "v normal", "deep": "two hidden layers, measured"},
            "normal",
        ),
        _norms,
        _why_norms,
    ),
    step(
        "deep-networks",
        Control(
            "Show",
            {"bound": "norm and bound", "quantities": "layer quantities", "architectures": "other architectures"},
            "bound",
        ),
        _deep,
        _why_deep,
    ),
)
