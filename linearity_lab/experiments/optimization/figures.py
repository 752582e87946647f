"""Convergence without linearity.

Loss and bounds, spectra and the PL* ratio along training, ΔK against width.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

from linearity_lab.charts.axes import rate_words, seed_words
from linearity_lab.charts.chart import Chart, led_by, occurring
from linearity_lab.charts.choices import Choice, output_choice, seed_choice, width_choice
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.lines import Line, RunNumber, trained_dot, width_axis
from linearity_lab.charts.style import GUIDE_COLOR, Style, network_style, nth_style, output_title
from linearity_lab.charts.sweep import sweep
from linearity_lab.charts.training import Curve, Records, Row, along_training, record_rows
from linearity_lab.experiments.kernel_change.linear_model import LINEAR_MODEL_TITLE
from linearity_lab.experiments.optimization.point import (
    COLUMNS,
    OptimizationPoint,
    OptimizationRun,
    OptimizationSpec,
)
from linearity_lab.runs import OUTCOME_WORDS
from linearity_lab.runs.columns import table_rows
from ntk_core.dynamics import SINGLE_PRECISION, condition_numbers
from ntk_core.networks.choices import OUTPUTS
from ntk_core.numbers import number

Runs = Shown[OptimizationSpec, OptimizationPoint]
StepAxis = Literal["linear", "log"]
STEP_AXES: tuple[StepAxis, ...] = ("linear", "log")
LOSS_HEADROOM = 30  # upper end of the loss axis, in units of L₀
BOUND_TITLE = "bound (1 − ημρ²/n)<sup>t</sup> L<sub>0</sub>"
CHANGE = RunNumber[OptimizationRun]("kernel change ΔK of φ(f)", "ΔK", lambda run: run.sup_change)
# Titles of a run's records in tables.
STEP_COLUMNS: dict[str, Records[OptimizationRun]] = {
    "step": "steps",
    "loss": "loss",
    "ΔK(t)": "change",
    "λ_min": "smallest",
    "λ_max": "largest",
    "λ_min of f": "pre_output_smallest",
    "‖∇L‖²/2L": "pl_ratio",
}
PL_BOUND_TITLE = "with the measured PL* constant"


def slow_runs(point: OptimizationPoint, output: str) -> Sequence[OptimizationRun]:
    """Return the runs at the smallest rate, which the theorem covers."""
    return point.of(output, min(occurring([point], "rate")))


def bound_curves(point: OptimizationPoint, output: str, row: int = 1) -> list[Curve]:
    """Return the bounds of the first seed at the smallest rate, if the output has any."""
    first = slow_runs(point, output)[0]
    if OUTPUTS[output].min_slope <= 0:
        return []
    bounds = (
        (first.bound(point.num_samples), BOUND_TITLE, "dash"),
        (first.pl_bound(), PL_BOUND_TITLE, "dot"),
    )
    return [
        Curve(Style(GUIDE_COLOR, dash, "", title), first.steps, bound, "loss", row=row)
        for bound, title, dash in bounds
        if bound is not None
    ]


def loss_against_step(point: OptimizationPoint, output: str, axis: StepAxis = "linear") -> Chart:
    """Draw the loss at every rate of one width and output; bounds are dashed.

    Steps are linear, so exponential decay is a straight line. The axis ends with the runs at the
    smallest rate. Diverged runs leave at the top from a cross.
    """
    runs = point.of(output)
    ceiling = LOSS_HEADROOM * max(run.loss[0] for run in runs)
    # The bound of the theorem comes before the one with the measured constant, which
    # waits for a click.
    curves = [
        *_curves(point, output, lambda run: run.loss, "loss", ceiling=ceiling),
        *bound_curves(point, output),
    ]
    last = (
        1.15 * max(run.num_steps for run in slow_runs(point, output))
        if axis == "linear"
        else math.inf
    )
    figure = along_training(
        curves, (Row("loss L", ceiling=ceiling),), log_x=axis == "log", last=last
    )
    parts = []
    for rate in occurring([point], "rate"):
        runs = point.of(output, rate)
        if runs:
            losses = ", ".join(number(run.loss[-1]) for run in runs)
            steps = ", ".join(f"{run.num_steps:,}" for run in runs)
            outcomes = ", ".join(dict.fromkeys(run.outcome for run in runs))
            parts.append(f"{rate:g} η ended at {losses} after {steps} steps ({outcomes})")
    words = f"Loss with {output_title(output)} at width {point.width:,}: {'; '.join(parts)}."
    rows = step_rows(point, output)
    caption = _caption(point, output)
    return Chart(
        figure,
        words,
        rows,
        caption,
        heading="The loss and its bound",
        finding=_finding(point, output),
    )


def _finding(point: OptimizationPoint, output: str) -> str:
    parts = []
    for rate in occurring([point], "rate"):
        runs = point.of(output, rate)
        steps = [run.num_steps for run in runs if run.outcome == "converged"]
        within = f" within {max(steps):,} steps" if steps else ""
        parts.append(f"{len(steps)} of {len(runs)}{within} at {rate:g} η")
    return f"Width {point.width:,}, converged runs: {'; '.join(parts)}."


def change_lines(points: Sequence[OptimizationPoint], kind: str = "fully-connected") -> list[Line]:
    """Return ΔK of the kernel of φ(f) for every output at the smallest rate."""
    least = min(occurring(points, "rate"), default=0.0)
    lines = []
    for output in occurring(points, "output"):
        runs = [(point.width, run) for point in points for run in point.of(output, least)]
        dots = CHANGE.dots(runs, lambda run: f"η = {rate_words([run.learning_rate])}")
        lines.append(Line(network_style(kind, output), dots))
    return lines


def linear_model_line(points: Sequence[OptimizationPoint], kind: str) -> list[Line]:
    """Return ΔK of softmax(f_lin), whose own kernel is constant, at the smallest rate."""
    least = min(occurring(points, "rate"), default=0.0)
    dots = [
        trained_dot(point.width, run.linear_model_sup, run, "")
        for point in points
        for run in point.of("softmax", least)
        if run.linear_model_change
    ]
    return [Line(network_style(kind, "softmax", LINEAR_MODEL_TITLE, 1), dots)] if dots else []


def change_against_width(
    points: Sequence[OptimizationPoint], widths: Sequence[int] = (), kind: str = "fully-connected"
) -> Chart:
    """Draw ΔK of the kernel of φ(f) against width at the smallest rate, log–log, with exponents."""
    return sweep(
        [*change_lines(points, kind), *linear_model_line(points, kind)],
        width_axis(widths),
        CHANGE.title,
        CHANGE.symbol,
        heading="The kernel keeps moving",
        caption=["Mean over converged runs at the smallest rate."],
        rows=table_rows(COLUMNS, points),
    )


def spectrum_against_step(point: OptimizationPoint, output: str, num_rows: int) -> Chart:
    """Draw λ_max and λ_min of the kernel of φ(f) along training, above the condition number.

    ``num_rows`` of the kernels, n·C, limits the condition numbers that single precision resolves.
    """

    def condition(run: OptimizationRun) -> list[float]:
        return condition_numbers(run.smallest, run.largest, num_rows).values.tolist()

    def is_bound(run: OptimizationRun) -> list[bool]:
        return condition_numbers(run.smallest, run.largest, num_rows).is_lower_bound.tolist()

    curves = [
        *_curves(point, output, lambda run: run.largest, "λ_max"),
        *_curves(point, output, lambda run: run.smallest, "λ_min"),
        *_curves(point, output, condition, "condition number", row=2),
    ]
    rows = (Row("λ<sub>max</sub> and λ<sub>min</sub>", share=0.6), Row("condition", share=0.4))
    run = slow_runs(point, output)[0]
    least = "at least " if any(is_bound(run)) else ""
    words = (
        f"Eigenvalues of the kernel {_along(point, run)}: the largest {_from_to(run.largest)}, the "
        f"smallest {_from_to(run.smallest)}, the condition number "
        f"{least}{_from_to(condition(run))}."
    )
    caption = []
    if any(any(is_bound(each)) for each in point.of(output)):
        caption.append(
            "Where λ_min is within rounding of zero (n·C·ε·λ_max), the kernel may be singular: "
            f"its condition number is at least {number(1 / (num_rows * SINGLE_PRECISION))}."
        )
    columns = {**STEP_COLUMNS, "condition number": condition, "is a lower bound": is_bound}
    table = record_rows(point.of(output), _line, columns)
    figure = along_training(curves, rows)
    return Chart(figure, words, table, caption, heading="Its spectrum along the path")


def pl_against_step(point: OptimizationPoint, output: str) -> Chart:
    """Draw ‖∇L‖²/2L along training at every rate; dashed is its lower bound μρ²/n."""
    curves = _curves(point, output, lambda run: run.pl_ratio, "‖∇L‖²/2L")
    run = slow_runs(point, output)[0]
    slope = OUTPUTS[output].min_slope
    if slope > 0 and run.min_eigenvalue > 0:
        style = Style(GUIDE_COLOR, "dash", "", "μρ²/n, the theorem's lower bound")
        level = run.min_eigenvalue * slope**2 / point.num_samples
        curves.append(Curve(style, (run.steps[1], run.steps[-1]), (level, level), "μρ²/n"))
    least = min(filter(math.isfinite, run.pl_ratio), default=math.nan)
    words = (
        f"PL* ratio of squared gradient and twice the loss {_along(point, run)}: "
        f"{_from_to(run.pl_ratio)}, at least {number(least)}."
    )
    figure = along_training(curves, (Row("PL* ratio ‖∇L‖² / 2L"),))
    rows = step_rows(point, output)
    return Chart(figure, words, rows, heading="PL* along the path")


def step_rows(point: OptimizationPoint, output: str) -> list[dict[str, object]]:
    """Return one row per run and recorded step of one width and output."""
    return record_rows(point.of(output), _line, STEP_COLUMNS)


def _line(run: OptimizationRun) -> dict[str, object]:
    return {"rate": f"{run.rate:g} η", "seed": run.seed}


def _caption(point: OptimizationPoint, output: str) -> list[str]:
    """Say whether the theorem holds, and name every run that did not converge as usual."""
    sentences = [f"{output_title(output)}: {_of_the_theorem(point, output)}"]
    fast = [run for run in point.of(output) if run.learning_rate > run.stable_rate]
    if fast:
        sentences.append(
            "Above the stable rate the loss may oscillate at every step; thin lines join its "
            f"{len(fast[0].steps)} records, shown as marks."
        )
    for rate in occurring([point], "rate"):
        runs = point.of(output, rate)
        title = _rate_title(rate, runs)
        diverged = [run for run in runs if run.outcome == "diverged"]
        if diverged:
            sentences.append(f"{title} diverged, {_divergence(diverged)}.")
        for outcome in ("over-budget", "stuck", "dead"):
            missed = [run for run in runs if run.outcome == outcome]
            if missed:
                left = _left_of_ratio(missed) if outcome == "stuck" else ""
                listed = seed_words([run.seed for run in missed])
                sentences.append(f"{title} {OUTCOME_WORDS[outcome]} ({listed}){left}.")
    rising = [run for run in point.of(output) if run.overshoot > 1.001]
    fallen = [run for run in rising if run.loss[-1] < 0.1 * run.loss[0]]
    if fallen:
        listed = " and ".join(dict.fromkeys(f"{run.rate:g} η" for run in fallen))
        sentences.append(f"Catapult: at {listed} the loss rose above its start and then fell.")
    return sentences


def _of_the_theorem(point: OptimizationPoint, output: str) -> str:
    """Say why the bound is drawn for this output, or why not."""
    slope = OUTPUTS[output].min_slope
    if slope <= 0:
        why = {
            "swish": ": its slope vanishes near f = −1.28",
            "softmax": ": its Jacobian maps (1, …, 1) to 0",
        }.get(output, "")
        return f"no ρ > 0{why}. The theorem does not apply, so no bound is drawn."
    if not slow_runs(point, output)[0].is_covered:
        return "the theorem is about gradient descent on the square loss, so no bound is drawn."
    return f"slope at least ρ = {slope:g} everywhere, so the bound holds at small rates."


def _divergence(runs: Sequence[OptimizationRun]) -> str:
    """Name the last finite steps of diverged runs, their rate, and the stable one."""
    steps = ", ".join(f"{run.last_finite_step:,} (seed {run.seed})" for run in runs)
    used = max(run.learning_rate for run in runs)
    stable = min(run.stable_rate for run in runs)
    words = f"last finite step {steps}: the rate was {number(used, 3)}"
    if math.isfinite(stable):
        words += f", and the linear model at w₀ is stable below {number(stable, 3)}"
    return words


def _left_of_ratio(runs: Sequence[OptimizationRun]) -> str:
    """Say how much of the PL* ratio is left at the end of stuck runs."""
    left = []
    for run in runs:
        first = run.pl_ratio[0]
        left.append(run.pl_ratio[-1] / first if first > 0 else math.nan)
    return f"; its PL* ratio is at most {number(max(left), 1)} of what it was"


def _along(point: OptimizationPoint, run: OptimizationRun) -> str:
    return (
        f"along training with {output_title(run.output)} at width {point.width:,}, at "
        f"{run.rate:g} η"
    )


def _from_to(values: Sequence[float]) -> str:
    """Return the first and last finite values: ``from 1.2 to 3.4``."""
    finite = [value for value in values if math.isfinite(value)]
    return f"from {number(finite[0])} to {number(finite[-1])}" if finite else "nowhere finite"


def _curves(
    point: OptimizationPoint,
    output: str,
    of: Callable[[OptimizationRun], Sequence[float]],
    what: str,
    *,
    row: int = 1,
    ceiling: float = math.inf,
) -> list[Curve]:
    """Return one curve per run, colored by rate; a cross marks the last finite value."""
    curves = []
    for index, rate in enumerate(occurring([point], "rate")):
        runs = point.of(output, rate)
        style = nth_style(index, _rate_title(rate, runs), "rate")
        for place, run in enumerate(runs):
            seen = [
                i
                for i, value in enumerate(of(run))
                if 0 < value <= ceiling and math.isfinite(value)
            ]
            oscillates = run.learning_rate > run.stable_rate  # its records are samples, not a curve
            curves.append(
                Curve(
                    style,
                    run.steps,
                    of(run),
                    what,
                    run.seed,
                    row,
                    width=1 if oscillates else 2.5,
                    marks=5 if oscillates else 0,
                    marked=max(seen, default=0),
                    symbol=style.mark(run.outcome),
                    is_first=place == 0,
                )
            )
    return curves


def _rate_title(rate: float, runs: Sequence[OptimizationRun]) -> str:
    """``2 η, 0.3 of the stable rate``."""
    shares = [run.learning_rate / run.stable_rate for run in runs if math.isfinite(run.stable_rate)]
    return f"{rate:g} η, {number(sum(shares) / len(shares))} × stable" if shares else f"{rate:g} η"


def _choices(shown: Runs) -> list[Choice]:
    return [
        output_choice(occurring(shown.points, "output"), 230),
        width_choice(shown.points),
        Choice("axis", "Steps", STEP_AXES, "{} axis".format, is_rare=True),
        *seed_choice(shown.points, is_rare=True),
    ]


def _led(shown: Runs, width: int, seed: int | None) -> OptimizationPoint:
    """Return the point of this width, with the chosen seed first, which is drawn strong."""
    (point,) = led_by([shown.point(width)], seed)
    return point


def _loss(shown: Runs, output: str, width: int, axis: StepAxis, seed: int | None = None) -> Chart:
    return loss_against_step(_led(shown, width, seed), output, axis)


def _change(shown: Runs) -> Chart:
    return change_against_width(shown.points, shown.spec.widths, shown.spec.architecture.kind)


def _spectrum(
    shown: Runs, output: str, width: int, axis: StepAxis, seed: int | None = None
) -> Chart:
    return spectrum_against_step(_led(shown, width, seed), output, shown.spec.num_kernel_rows)


def _pl(shown: Runs, output: str, width: int, axis: StepAxis, seed: int | None = None) -> Chart:
    return pl_against_step(_led(shown, width, seed), output)


FIGURES = (
    Figure("figure1", "The loss and its bound", choices=[_choices], draw=_loss),
    Figure("figure2", "The kernel keeps moving", draw=_change),
    Figure("figure3", "Its spectrum along the path", choices=[_choices], draw=_spectrum),
    Figure("figure4", "PL* along the path", choices=[_choices], draw=_pl),
)
