"""Early time against width or dimension: discrepancy, departure, kernels (Hu et al. 2020, Fig. 1c and 5); constants."""

import math
from collections.abc import Callable, Sequence

from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.lines import Axis, Dot, Line
from linearity_lab.charts.style import activation_style
from linearity_lab.charts.sweep import sweep
from ntk_core.experiments.early_time.result import (
    EARLY_OUTCOME_WORDS,
    KERNELS,
    RUNS,
    EarlyPoint,
    EarlyRun,
    KernelComparison,
)
from ntk_core.networks.choices import ACTIVATIONS
from ntk_core.numbers import number
from ntk_core.runs import mean
from ntk_core.runs.columns import table_rows

# Quantity → (axis title, value of a run).
QUANTITIES: dict[str, tuple[str, Callable[[EarlyRun], float]]] = {
    "discrepancy": ("sup mean (f − f<sub>lin</sub>)² / mean y²", lambda run: run.discrepancy),
    "departure time": ("departure time η · step", lambda run: run.learning_rate * (run.departure_step or math.nan)),
}
AXES = {"width": Axis("width m", "m"), "input_dim": Axis("input dimension d", "d")}
FEWEST_VALUES = 4  # for an exponent: with three the interval is uninformative
_NORMS: dict[str, Callable[[KernelComparison], float]] = {
    "spectral norm": lambda each: each.difference,
    "Frobenius norm": lambda each: each.frobenius_difference,
}


def against_swept(points: Sequence[EarlyPoint], quantity: str) -> Chart:
    """Draw discrepancy over the linear phase, or departure time η·step, of every activation in a sweep.

    A network that never departs has no departure time.
    """
    (title, of), lines, without = QUANTITIES[quantity], [], []
    for activation in occurring(points, "activation"):
        runs = [(point.value, run) for point in points for run in point.of(activation)]
        dots = [_dot(at, of(run), run) for at, run in runs]
        kept = [dot for dot in dots if dot.why or (math.isfinite(dot.value) and dot.value > 0)]
        lines.append(Line(activation_style(activation), kept, _fits(kept)))
        if not any(dot.counts for dot in kept):
            without.append(f"{ACTIVATIONS[activation].title}: no {quantity} in {len(runs)} runs.")
    return sweep(
        lines,
        _axis(points),
        title,
        quantity,
        name="against",
        caption=without,
        rows=table_rows(RUNS, points),
    )


def kernel_distance(points: Sequence[EarlyPoint]) -> Chart:
    """Draw ‖K − ψψᵀ‖ in both norms against the swept setting, relative to the first point, with a 1/d guide."""
    points = sorted(points, key=lambda point: point.value)
    lines, ends = [], []
    for activation in dict.fromkeys(each.activation for point in points for each in point.kernels):
        for variant, (words, norm) in enumerate(_NORMS.items()):
            style = activation_style(activation, f"{ACTIVATIONS[activation].title}, {words}", variant)
            found = [(p.value, each) for p in points for each in p.kernels if each.activation == activation]
            start = mean([norm(each) for at, each in found if at == found[0][0]]).value
            dots = [Dot(at, norm(each) / start, each.seed) for at, each in found]
            lines.append(Line(style, dots, _fits(dots)))
            ends.append(f"{style.title} of K − ψψᵀ: {number(start, 3)} at {_axis(points).letter} = {found[0][0]:,}.")
    by_dimension = bool(points) and points[0].swept == "input_dim"
    return sweep(
        lines,
        _axis(points),
        "‖K − ψψᵀ‖, 1 at the first point",
        "‖K − ψψᵀ‖",
        slopes=(-1.0,) if by_dimension else (),
        name="kernels",
        heading="Kernel at initialization and linear kernel",
        caption=ends,
        rows=table_rows(KERNELS, [point.model_copy(update={"runs": point.kernels}) for point in points]),
    )


def constant_rows(point: EarlyPoint) -> list[dict[str, object]]:
    """Return one row per activation: moments, then weights of x/√d and of the constant feature at rate 1."""
    return [
        {
            "activation": ACTIVATIONS[name].title,
            "ζ": round(each.zeta, 4),
            "ν": round(each.nu, 4),
            "ϑ₀": round(each.theta[0], 4),
            "ϑ₁": round(each.theta[1], 4),
            "ϑ₂": round(each.theta[2], 4),
            "× x/√d": round(each.inputs, 4),
            "const.": round(each.constant, 4),
        }
        for name, each in point.constants.items()
    ]


def _axis(points: Sequence[EarlyPoint]) -> Axis:
    return AXES[points[0].swept if points else "width"]


def _dot(at: float, value: float, run: EarlyRun) -> Dot:
    words = EARLY_OUTCOME_WORDS[run.outcome]
    if run.outcome == "completed":
        return Dot(at, value, run.seed, note=words)
    return Dot(at, value, run.seed, words, outcome=run.outcome)


def _fits(dots: Sequence[Dot]) -> bool:
    return sum(dot.counts for dot in dots) >= FEWEST_VALUES
