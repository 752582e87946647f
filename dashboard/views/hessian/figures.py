"""Hessian norms against width beside the kernel change of the same networks, and Table 1 with measured numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from dashboard.charts.style import FIGURE_HEIGHT, Style, hessian_style, signed, width_label
from dashboard.charts.sweep import Measure, add_guides, add_sweep, finish_sweep, fitted, mean_line
from ntk_core.experiments.hessian.result import HessianPoint, HessianRun
from ntk_core.experiments.hessian.spec import HESSIAN_NETWORK_PARTS, Series
from ntk_core.fits import LINEARITY_LIMIT, PowerLaw, becomes_linear
from ntk_core.runs import OUTCOME_WORDS, Mean, mean


@dataclass(frozen=True)
class Seen:
    """One number of one seed, as a figure shows it."""

    seed: int
    value: float
    converged: bool
    note: str


@dataclass(frozen=True)
class SeenPoint:
    """The numbers of one line at one width."""

    width: int
    line: str
    runs: tuple[Seen, ...]

    def of(self, line: str) -> tuple[Seen, ...]:
        """The numbers, if they are those of this line."""
        return self.runs if line == self.line else ()


@dataclass(frozen=True)
class View:
    """What is drawn against width.

    Attributes:
        title: of the vertical axis.
        of: the number of a run of a point; NaN where it has none.
        slope: of the dashed guide; None for none.
    """

    title: str
    symbol: str
    of: Callable[[HessianPoint, HessianRun], float]
    slope: float | None = -0.5


VIEWS = {
    "‖H‖": View("Hessian norm ‖H‖", "‖H‖", lambda _, run: run.norm),
    "√m ‖H‖": View("√m ‖H‖", "√m ‖H‖", lambda point, run: math.sqrt(point.wide_width) * run.norm, None),
    "‖H‖ / ‖∇f‖²": View("‖H‖ / ‖∇f‖²", "‖H‖ / ‖∇f‖²", lambda _, run: run.relative_norm),
}
LEGEND_ROW = 23
WIDTH_TITLE, CHANNELS_TITLE = "width m", "width m, or channels of a CNN"


def seen_measure(symbol: str) -> Measure:
    """How a figure reads what is seen."""
    return Measure(
        symbol,
        symbol,
        lambda seen: seen.value,
        note=lambda seen: seen.note,
        converged=lambda seen: seen.converged,
    )


def seen(points: Sequence[HessianPoint], line: str, of: Callable[[HessianPoint, HessianRun], float]) -> list[SeenPoint]:
    """A number of every run against width; runs whose norm did not converge are marked."""
    found = []
    for point in sorted(points, key=lambda point: point.width):
        runs = tuple(Seen(run.seed, of(point, run), run.converged, norm_note(run)) for run in point.runs)
        found.append(SeenPoint(point.wide_width, line, runs))
    return found


def norm_note(run: HessianRun) -> str:
    """What is known of how well a norm is known."""
    state = "converged" if run.converged else "unconverged: the norm may be larger"
    return f"residual {run.residual:.1g} after {run.num_matvecs} products, {state}"


def series_of(points: Sequence[HessianPoint]) -> tuple[Series, ...]:
    """Lines that occur, in the order of the points."""
    return tuple(dict.fromkeys(point.series for point in points))


def of_series(points: Sequence[HessianPoint], series: Series) -> list[HessianPoint]:
    """The points of one line, by width."""
    return sorted((point for point in points if point.series == series), key=lambda point: point.width)


def against_width(points: Sequence[HessianPoint], view: str = "‖H‖", output: str = "swish") -> go.Figure:
    """‖H‖, or what else the view says, of every network against width, log–log, with fitted exponents.

    ``output`` is φ of the networks with a nonlinear output, here and below.
    """
    shown = VIEWS[view]
    figure = go.Figure()
    lines = {series: seen(of_series(points, series), str(series), shown.of) for series in series_of(points)}
    slopes = () if shown.slope is None else (shown.slope,)
    return finished(figure, lines, shown.title, seen_measure(shown.symbol), slopes, styles_behind(output))


def change_against_width(points: Sequence[HessianPoint], output: str = "swish") -> go.Figure:
    """ΔK in training of the same networks, from the same weights."""
    lines = {series: _changes(of_series(points, series), str(series)) for series in trained_series(points)}
    return finished(go.Figure(), lines, "kernel change ΔK", seen_measure("ΔK"), (-0.5, -1.0), styles_behind(output))


def styles_behind(output: str) -> Callable[[Series], Style]:
    """The style of each line, where φ of the networks with a nonlinear output is this one."""
    return lambda series: hessian_style(*series, output)


def finished(
    figure: go.Figure,
    lines: dict[Series, list[SeenPoint]],
    title: str,
    measure: Measure,
    slopes: Sequence[float],
    styles: Callable[[Series], Style],
) -> go.Figure:
    """All lines, dashed guides from the first mean of the first one that falls, and the axes."""
    for series, found in lines.items():
        add_sweep(figure, found, str(series), styles(series), measure, group=str(series))
    widths = sorted({point.width for found in lines.values() for point in found})
    laws = {key: law for key, found in lines.items() if (law := fitted(found, str(key), measure)) is not None}
    if laws and slopes:
        falling = next((key for key, law in laws.items() if law.exponent < LINEARITY_LIMIT), next(iter(laws)))
        add_guides(figure, mean_line(lines[falling], str(falling), measure), widths[-1], slopes)
    values = [run.value for found in lines.values() for point in found for run in point.runs if run.value > 0]
    channels = any(_counts_channels(series.network) for series in lines)
    finish_sweep(figure, widths, CHANNELS_TITLE if channels else WIDTH_TITLE, title, values)
    # Each entry of the legend may need a row of its own, which is not to be taken from the plot.
    return figure.update_layout(height=FIGURE_HEIGHT + LEGEND_ROW * max(0, len(lines) - 2))


def _counts_channels(network: str) -> bool:
    return network in HESSIAN_NETWORK_PARTS and HESSIAN_NETWORK_PARTS[network].is_convolutional


def trained_series(points: Sequence[HessianPoint]) -> tuple[Series, ...]:
    """Lines of which some seed was trained."""
    return tuple(
        series
        for series in series_of(points)
        if any(run.trained is not None for point in of_series(points, series) for run in point.runs)
    )


def _changes(points: Sequence[HessianPoint], line: str) -> list[SeenPoint]:
    return [
        SeenPoint(
            point.wide_width,
            line,
            tuple(
                Seen(
                    run.seed,
                    run.trained.sup_change,
                    run.trained.outcome == "converged",
                    f"η = {run.trained.learning_rate:.3g}, {run.trained.num_steps:,} steps<br>"
                    + OUTCOME_WORDS[run.trained.outcome],
                )
                for run in point.runs
                if run.trained is not None
            ),
        )
        for point in points
    ]


def law_of(points: Sequence[HessianPoint], of: Callable[[HessianPoint, HessianRun], float]) -> PowerLaw | None:
    """The power law of a number of one line against width."""
    return fitted(seen(points, "line", of), "line", seen_measure("number"))


def table_rows(points: Sequence[HessianPoint], output: str = "swish") -> list[dict[str, str]]:
    """Table 1 of Liu, Zhu & Belkin 2020 with measured exponents, and a verdict from them."""
    rows = []
    for series in series_of(points):
        own = of_series(points, series)
        last = max(own, key=lambda point: point.wide_width)
        changes = [run.trained for run in last.runs if run.trained is not None]
        moved = mean([each.sup_change for each in changes if each.outcome == "converged"])
        rows.append(
            {
                "Network": hessian_style(*series, output).title,
                "‖H‖": _power(law_of(own, VIEWS["‖H‖"].of)),
                "Paper": _stated_norm(series),
                "Tangent kernel K": _power(law_of(own, lambda _, run: run.kernel)),
                "ΔK at the largest width": f"{amount(moved)} (m = {width_label(last.wide_width)})" if changes else "–",
                "Becomes linear?": becomes_linear(law_of(own, VIEWS["‖H‖ / ‖∇f‖²"].of)),
                "Paper says": "–" if _is_own(series) else "yes" if _is_linear(series) else "no",
            }
        )
    return rows


def _is_linear(series: Series) -> bool:
    """What Table 1 and App. G say of this network."""
    parts = HESSIAN_NETWORK_PARTS[series.network]
    return not (parts.nonlinear or parts.narrow)


def _is_own(series: Series) -> bool:
    """Whether somebody put the network together; no paper is about it."""
    return series.network.startswith("composed")


def _stated_norm(series: Series) -> str:
    """‖H‖ in Table 1, which is about the NTK parameterization."""
    if series.parameterization != "ntk" or _is_own(series):
        return "–"
    return "Õ(m^{−1/2})" if _is_linear(series) else "Õ(1)"


def _power(law: PowerLaw | None) -> str:
    return "–" if law is None else f"m^{{{signed(law.exponent)} ± {law.interval:.2f}}}"


def amount(average: Mean) -> str:
    """A mean with its standard error, to the first digit of the error."""
    if not average.count:
        return "not converged"
    error = average.standard_error
    if not (math.isfinite(error) and error > 0):
        return f"{average.value:.2g}"
    decimals = max(0, -math.floor(math.log10(float(f"{error:.1g}"))))
    return f"{average.value:.{decimals}f} ± {error:.{decimals}f}"


def takeaway(points: Sequence[HessianPoint], view: str, output: str = "swish") -> str:
    """What the figure says, in one sentence per network, for those who do not see it."""
    if not points:
        return "Hessian norm against width: no point yet."
    sentences = []
    for series in series_of(points):
        law = law_of(of_series(points, series), VIEWS[view].of)
        said = "too few widths for a trend" if law is None else f"fitted exponent {signed(law.exponent)}"
        sentences.append(f"{hessian_style(*series, output).title}: {said}.")
    return f"{view} of one output's Hessian against width. " + " ".join(sentences)


def change_takeaway(points: Sequence[HessianPoint], output: str = "swish") -> str:
    """What the figure of kernel change says."""
    sentences = []
    for series in trained_series(points):
        last = _changes(of_series(points, series)[-1:], "line")[0]
        moved = mean([run.value for run in last.runs if run.converged])
        sentences.append(f"{hessian_style(*series, output).title}: {amount(moved)} at width {last.width:,}.")
    return "Kernel change in training of the same networks and seeds. " + " ".join(sentences)


def norm_rows(points: Sequence[HessianPoint], output: str = "swish") -> list[dict[str, object]]:
    """One row per network and width: means with their errors."""
    rows: list[dict[str, object]] = []
    for point in points:
        converged = [run for run in point.runs if run.converged]
        norm, kernel = mean([run.norm for run in converged]), mean([run.kernel for run in point.runs])
        rows.append(
            {
                "network": hessian_style(*point.series, output).title,
                "width m": point.wide_width,
                "narrowest": point.min_width,
                "parameters": point.num_params,
                "mean ‖H‖": norm.value,
                "standard error": norm.standard_error,
                "mean K(x, x)": kernel.value,
                "converged seeds": len(converged),
                "all seeds": len(point.runs),
            }
        )
    return rows


def change_rows(points: Sequence[HessianPoint], output: str = "swish") -> list[dict[str, object]]:
    """One row per trained run."""
    return [
        {
            "network": hessian_style(*point.series, output).title,
            "width m": point.wide_width,
            "seed": run.seed,
            "ΔK": run.trained.sup_change,
            "steps": run.trained.num_steps,
            "learning rate η": run.trained.learning_rate,
            "outcome": OUTCOME_WORDS[run.trained.outcome],
        }
        for point in points
        for run in point.runs
        if run.trained is not None
    ]


def unconverged_sentences(points: Sequence[HessianPoint], output: str = "swish") -> list[str]:
    """Which norms are not known to their tolerance."""
    lost = {
        f"{hessian_style(*point.series, output).title} at m = {width_label(point.wide_width)}": seeds
        for point in points
        if (seeds := [run.seed for run in point.runs if not run.converged])
    }
    listed = ", ".join(f"{where} (seed {', '.join(map(str, seeds))})" for where, seeds in lost.items())
    return [f"Open markers: the norm is not known to its tolerance and may be larger: {listed}."] if listed else []


def untrained_sentences(points: Sequence[HessianPoint], output: str = "swish") -> list[str]:
    """Which trained runs did not reach the loss threshold."""
    lost = [
        f"{hessian_style(*point.series, output).title} at m = {width_label(point.wide_width)} (seed {run.seed})"
        for point in points
        for run in point.runs
        if run.trained is not None and run.trained.outcome != "converged"
    ]
    return [f"Open markers, in no mean: the loss threshold was not reached: {', '.join(lost)}."] if lost else []
