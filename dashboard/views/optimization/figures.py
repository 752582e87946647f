"""Convergence without linearity: loss and bounds, spectra and the PL* ratio along training, ΔK against width."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.charts.style import GUIDE_COLOR, SEED_OPACITY, network_style, nth_style, output_title
from dashboard.charts.sweep import add_sweep, finish, finish_sweep, fitted, mean_change
from ntk_core.experiments.optimization.result import OptimizationPoint, OptimizationRun
from ntk_core.networks.choices import OUTPUTS
from ntk_core.runs import OUTCOME_WORDS

StepAxis = Literal["linear", "log"]
STEP_AXES: tuple[StepAxis, ...] = ("linear", "log")
STUCK = 1e-3  # share of the first PL* ratio below which a run that has not converged is called stuck; our choice
LOSS_ROOM = 30  # how far above L₀ the axis of the loss goes
BOUND_TITLE = "bound (1 − ημρ²/n)<sup>t</sup> L<sub>0</sub>"
PL_BOUND_TITLE = "with the measured PL* constant"


def outputs_of(points: Iterable[OptimizationPoint]) -> tuple[str, ...]:
    """Outputs that occur, in the order of the runs."""
    return tuple(dict.fromkeys(run.output for point in points for run in point.runs))


def rates_of(points: Iterable[OptimizationPoint]) -> tuple[float, ...]:
    """Multiples of η that occur, in the order of the runs."""
    return tuple(dict.fromkeys(run.rate for point in points for run in point.runs))


def at_smallest_rate(points: Sequence[OptimizationPoint]) -> tuple[OptimizationPoint, ...]:
    """The same points with the runs of the smallest rate alone, the one that the theorem speaks of."""
    least = min(rates_of(points), default=0.0)
    return tuple(
        point.model_copy(update={"runs": tuple(run for run in point.runs if run.rate == least)}) for point in points
    )


def loss_against_step(point: OptimizationPoint, output: str, axis: StepAxis = "linear") -> go.Figure:
    """The loss at every rate of one width and output; dashed, the bounds of the first seed at the least rate.

    On the linear axis of steps exponential decay is a straight line; it ends with the runs at the least rate. Step 0
    has no place on the logarithmic one. A run that diverges leaves at the top, from a cross.
    """
    figure = go.Figure()
    runs = point.of(output)
    ceiling = LOSS_ROOM * max(run.loss[0] for run in runs)
    _add_runs(figure, point, output, lambda run: run.loss, "loss", ceiling=ceiling, start=int(axis == "log"))
    first = point.of(output, min(rates_of([point])))[0]
    for bound, title, dash in (
        (first.bound(point.num_samples), BOUND_TITLE, "dash"),
        (first.pl_bound(), PL_BOUND_TITLE, "dot"),
    ):
        if bound is not None and (title == BOUND_TITLE or OUTPUTS[output].min_slope > 0):
            figure.add_scatter(
                x=first.steps[int(axis == "log") :],
                y=bound[int(axis == "log") :],
                mode="lines",
                line={"color": GUIDE_COLOR, "dash": dash, "width": 2.5},
                name=title,
                hovertemplate=f"{title}<br>step %{{x:,}}<br>%{{y:.3g}}<extra></extra>",
            )
    if axis == "log":
        figure.update_xaxes(type="log", dtick=1, tickformat=",~g", title="step")
    else:
        figure.update_xaxes(title="step", range=[0, 1.15 * max(run.num_steps for run in point.of(output, first.rate))])
    floor = min(loss for run in runs for loss in run.loss if math.isfinite(loss)) / 2
    limits = [math.log10(floor), math.log10(ceiling)] if floor > 0 else None
    figure.update_yaxes(type="log", dtick=1, exponentformat="power", title="loss L", range=limits)
    return finish(figure)


def change_against_width(
    points: Sequence[OptimizationPoint], widths: Sequence[int] = (), kind: str = "fully-connected"
) -> go.Figure:
    """ΔK of the kernel of φ(f) against width at the smallest rate, log–log, with fitted exponents."""
    figure = go.Figure()
    slow = sorted(at_smallest_rate(points), key=lambda point: point.width)
    for output in outputs_of(slow):
        add_sweep(figure, slow, output, network_style(kind, output))
    values = [run.sup_change for point in slow for run in point.runs if run.sup_change > 0]
    shown = sorted({*widths, *(point.width for point in points)})
    finish_sweep(figure, shown, "width m", "kernel change ΔK of φ(f)", values)
    return figure.update_yaxes(range=[-2, math.log10(2 * max([1.0, *values]))])


def spectrum_against_step(point: OptimizationPoint, output: str) -> go.Figure:
    """λ_max and λ_min of the kernel of φ(f) along training, above the condition number."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.6, 0.4])
    _add_runs(figure, point, output, lambda run: run.largest, "λ_max", row=1)
    _add_runs(figure, point, output, lambda run: run.smallest, "λ_min", row=1, legend=False)
    _add_runs(figure, point, output, lambda run: run.condition, "condition number", row=2, legend=False)
    figure.update_xaxes(type="log", dtick=1, tickformat=",~g")
    figure.update_xaxes(title="step", row=2, col=1)
    figure.update_yaxes(type="log", exponentformat="power", nticks=5)
    figure.update_yaxes(title="λ<sub>max</sub> and λ<sub>min</sub>", row=1, col=1)
    figure.update_yaxes(title="condition", row=2, col=1)
    return finish(figure)


def pl_against_step(point: OptimizationPoint, output: str) -> go.Figure:
    """‖∇L‖²/2L along training at every rate; dashed, what the theorem puts below it, μρ²/n, at the smallest rate."""
    figure = go.Figure()
    _add_runs(figure, point, output, lambda run: run.pl_ratio, "‖∇L‖²/2L")
    first, slope = point.of(output, min(rates_of([point])))[0], OUTPUTS[output].min_slope
    if slope > 0 and first.min_eigenvalue > 0:
        level = first.min_eigenvalue * slope**2 / point.num_samples
        figure.add_scatter(
            x=[first.steps[1], first.steps[-1]],
            y=[level, level],
            mode="lines",
            line={"color": GUIDE_COLOR, "dash": "dash", "width": 2.5},
            name="μρ²/n, the theorem's lower bound",
            hovertemplate="μρ²/n = %{y:.3g}<extra></extra>",
        )
    figure.update_xaxes(type="log", dtick=1, tickformat=",~g", title="step")
    figure.update_yaxes(type="log", dtick=1, exponentformat="power", title="PL* ratio ‖∇L‖² / 2L")
    return finish(figure)


def caption(point: OptimizationPoint, output: str) -> list[str]:
    """What guarantee there is, then the runs that diverged or did not converge, with the rate that is stable."""
    slope, title = OUTPUTS[output].min_slope, output_title(output)
    why = {"swish": ": its slope vanishes near f = −1.28", "softmax": ": its Jacobian maps (1, …, 1) to 0"}
    sentences = [
        f"{title}: slope at least ρ = {slope:g} everywhere, so the bound holds at small rates."
        if slope > 0
        else f"{title}: no ρ > 0{why.get(output, '')}. The theorem says nothing here, and no bound is drawn."
    ]
    for rate in rates_of([point]):
        runs = point.of(output, rate)
        diverged = [run for run in runs if run.outcome == "diverged"]
        if diverged:
            steps = ", ".join(f"{run.last_finite_step:,} (seed {run.seed})" for run in diverged)
            stable, used = min(run.stable_rate for run in diverged), max(run.learning_rate for run in diverged)
            sentences.append(
                f"{_rate_title(rate, runs)} diverged, last finite step {steps}. Stable: a rate below {stable:.3g}, the "
                f"linear model's limit at w₀; {used:.3g} was used."
            )
        missed = [run for run in runs if run.outcome == "over-budget"]
        if missed:
            ratio = max(run.pl_ratio[-1] / run.pl_ratio[0] for run in missed)
            stuck = f"; stuck, its PL* ratio is {ratio:.0e} of what it was" if 0 < ratio < STUCK else ""
            listed = ", ".join(str(run.seed) for run in missed)
            sentences.append(f"{_rate_title(rate, runs)} {OUTCOME_WORDS['over-budget']} (seed {listed}){stuck}.")
    rising = [run for run in point.of(output) if run.overshoot > 1.001 and run.loss[-1] < 0.1 * run.loss[0]]
    if rising:
        listed = ", ".join(dict.fromkeys(f"{run.rate:g} η" for run in rising))
        sentences.append(f"Catapult: at {listed} the loss rose above its start and then fell.")
    return sentences


def takeaway(point: OptimizationPoint, output: str) -> str:
    """What the figure of losses says, for those who do not see it."""
    parts = [
        f"{rate:g} η ended at {', '.join(f'{run.loss[-1]:.2g}' for run in runs)} after "
        f"{', '.join(f'{run.num_steps:,}' for run in runs)} steps ({', '.join(dict.fromkeys(r.outcome for r in runs))})"
        for rate in rates_of([point])
        if (runs := point.of(output, rate))
    ]
    return f"Loss with {output_title(output)} at width {point.width:,}: " + "; ".join(parts) + "."


def takeaways(points: Sequence[OptimizationPoint], point: OptimizationPoint, output: str) -> tuple[str, ...]:
    """The four figures of one point and output in words."""
    run = point.of(output, min(rates_of([point])))[0]
    along = f"along training with {output_title(output)} at width {point.width:,}, at {run.rate:g} η"
    return (
        takeaway(point, output),
        change_takeaway(points),
        f"Eigenvalues of the kernel {along}: the largest {_from_to(run.largest)}, the smallest "
        f"{_from_to(run.smallest)}, the condition number {_from_to(run.condition)}.",
        f"PL* ratio of squared gradient and twice the loss {along}: {_from_to(run.pl_ratio)}, at least "
        f"{min(filter(math.isfinite, run.pl_ratio), default=math.nan):.2g}.",
    )


def _from_to(values: Sequence[float]) -> str:
    """``from 1.2 to 3.4``, the first and the last finite value."""
    finite = [value for value in values if math.isfinite(value)]
    return f"from {finite[0]:.2g} to {finite[-1]:.2g}" if finite else "nowhere finite"


def change_takeaway(points: Sequence[OptimizationPoint]) -> str:
    """What the figure of kernel change says, for those who do not see it."""
    slow = sorted(at_smallest_rate(points), key=lambda point: point.width)
    parts = [
        f"{output_title(output)} "
        + ", ".join(f"{mean_change(point, output).value:.2g} at width {point.width:,}" for point in slow)
        for output in outputs_of(slow)
    ]
    return "Kernel change of φ(f) at the smallest rate: " + "; ".join(parts) + "."


def change_caption(points: Sequence[OptimizationPoint]) -> list[str]:
    """The fitted exponents with their intervals."""
    slow = at_smallest_rate(points)
    laws = [(output, law) for output in outputs_of(slow) if (law := fitted(slow, output)) is not None]
    if not laws:
        return []
    excluded = sum(law.num_excluded for _, law in laws)
    open_markers = f" Open markers: {excluded} runs that did not converge." if excluded else ""
    return [f"Mean over converged runs at the smallest rate, with 95% intervals of the exponents.{open_markers}"]


def run_rows(points: Sequence[OptimizationPoint]) -> list[dict[str, object]]:
    """One row per run."""
    return [
        {
            "width m": point.width,
            "output": output_title(run.output),
            "rate": f"{run.rate:g} η",
            "seed": run.seed,
            "η used": run.learning_rate,
            "stable rate": run.stable_rate,
            "ΔK": run.sup_change,
            "μ": run.min_eigenvalue,
            "PL* constant": run.pl_constant,
            "max L / L₀": run.overshoot,
            "loss": run.loss[-1],
            "steps": run.num_steps,
            "last finite step": run.last_finite_step,
            "outcome": OUTCOME_WORDS[run.outcome],
        }
        for point in sorted(points, key=lambda point: point.width)
        for run in point.runs
    ]


def step_rows(point: OptimizationPoint, output: str) -> list[dict[str, object]]:
    """One row per run and recorded step of one width and output."""
    return [
        {
            "rate": f"{run.rate:g} η",
            "seed": run.seed,
            "step": step,
            "loss": run.loss[index],
            "ΔK(t)": run.change[index],
            "λ_min": run.smallest[index],
            "λ_max": run.largest[index],
            "λ_min of f": run.pre_output_smallest[index],
            "condition number": run.condition[index],
            "‖∇L‖²/2L": run.pl_ratio[index],
        }
        for run in point.of(output)
        for index, step in enumerate(run.steps)
    ]


def _add_runs(
    figure: go.Figure,
    point: OptimizationPoint,
    output: str,
    of: Callable[[OptimizationRun], Sequence[float]],
    words: str,
    *,
    row: int | None = None,
    legend: bool = True,
    ceiling: float = math.inf,
    start: int = 1,
) -> None:
    """One line per run, colored by its rate; the first seed is bold, a cross is the last sight of one that diverged."""
    place = {} if row is None else {"row": row, "col": 1}
    for index, rate in enumerate(rates_of([point])):
        runs = point.of(output, rate)
        style = nth_style(index, _rate_title(rate, runs))
        for number, run in enumerate(runs):
            records = [
                (step, value if value > 0 and math.isfinite(value) else None)
                for step, value in zip(run.steps, of(run), strict=True)
                if step >= start
            ]
            last = max((i for i, (_, value) in enumerate(records) if value is not None and value <= ceiling), default=0)
            marks = [style.symbol] * len(records)
            if records:
                marks[last] = "x" if run.outcome == "diverged" else style.symbol
            figure.add_scatter(
                x=[step for step, _ in records],
                y=[value for _, value in records],
                mode="lines+markers",
                line={"color": style.color, "dash": style.dash, "width": 2.5 if number == 0 else 1.2},
                marker={
                    "color": style.color,
                    "symbol": marks,
                    "size": [9 if i == last else 0 for i in range(len(records))],
                    "opacity": 1,
                },
                opacity=1 if number == 0 else SEED_OPACITY,
                name=style.title,
                legendgroup=str(rate),
                showlegend=legend and number == 0,
                hovertemplate=f"{style.title}, seed {run.seed}<br>step %{{x:,}}<br>{words} %{{y:.3g}}<extra></extra>",
                **place,
            )


def _rate_title(rate: float, runs: Sequence[OptimizationRun]) -> str:
    """``2 η, 0.3 of the stable rate``."""
    shares = [run.learning_rate / run.stable_rate for run in runs]
    return f"{rate:g} η, {sum(shares) / len(shares):.2g} × stable" if shares else f"{rate:g} η"
