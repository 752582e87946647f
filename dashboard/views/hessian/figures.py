"""Hessian norms against width beside the kernel change of the same networks, and Table 1 with measured numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from dashboard.charts.chart import Chart
from dashboard.charts.style import FIGURE_HEIGHT, Style, network_style, signed, width_label
from dashboard.charts.sweep import Measure, add_guides, add_sweep, finish_sweep, fitted, mean_line
from ntk_core.experiments.hessian.network import ComparedNetwork, titles
from ntk_core.experiments.hessian.result import HessianPoint, HessianRun
from ntk_core.fits import LINEARITY_LIMIT, PowerLaw, becomes_linear
from ntk_core.networks.choices import PARAMETERIZATIONS
from ntk_core.networks.spec import COMPOSED
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


def networks_of(points: Sequence[HessianPoint]) -> dict[str, ComparedNetwork]:
    """Line → network of what occurs, in the order of the points."""
    return {point.line: point.network for point in points}


def styles(points: Sequence[HessianPoint]) -> dict[str, Style]:
    """Line → how it is drawn: as its network is everywhere, with a dash and symbol of its own among those alike."""
    networks, taken, found = networks_of(points), set(), {}
    for line, title in titles(networks).items():
        network = networks[line]
        variant = list(PARAMETERIZATIONS).index(network.parameterization)
        while (network.family, network.output, variant) in taken:
            variant += 1
        taken.add((network.family, network.output, variant))
        found[line] = network_style(network.family, network.output, title, variant)
    return found


def of_line(points: Sequence[HessianPoint], line: str) -> list[HessianPoint]:
    """The points of one line, by width."""
    return sorted((point for point in points if point.line == line), key=lambda point: point.width)


def against_width(points: Sequence[HessianPoint], view: str = "‖H‖") -> Chart:
    """‖H‖, or what else the view says, of every network against width, log–log, with fitted exponents."""
    shown = VIEWS[view]
    lines = {line: seen(of_line(points, line), line, shown.of) for line in networks_of(points)}
    slopes = () if shown.slope is None else (shown.slope,)
    figure = finished(lines, shown.title, seen_measure(shown.symbol), slopes, styles(points), _axis_title(points))
    return Chart(figure, takeaway(points, view), norm_rows(points), unconverged_sentences(points), "norm")


def change_against_width(points: Sequence[HessianPoint]) -> Chart:
    """ΔK in training of the same networks, from the same weights."""
    lines = {line: _changes(of_line(points, line), line) for line in trained_lines(points)}
    title, axis = "kernel change ΔK", _axis_title(points)
    figure = finished(lines, title, seen_measure("ΔK"), (-0.5, -1.0), styles(points), axis)
    return Chart(figure, change_takeaway(points), change_rows(points), untrained_sentences(points), "change")


def finished(
    lines: Mapping[str, Sequence[SeenPoint]],
    title: str,
    measure: Measure,
    slopes: Sequence[float],
    styles: Mapping[str, Style],
    axis: str = WIDTH_TITLE,
) -> go.Figure:
    """All lines, dashed guides from the first mean of the first one that falls, and the axes."""
    figure = go.Figure()
    for line, found in lines.items():
        add_sweep(figure, found, line, styles[line], measure, group=line)
    widths = sorted({point.width for found in lines.values() for point in found})
    laws = {line: law for line, found in lines.items() if (law := fitted(found, line, measure)) is not None}
    if laws and slopes:
        falling = next((line for line, law in laws.items() if law.exponent < LINEARITY_LIMIT), next(iter(laws)))
        add_guides(figure, mean_line(lines[falling], falling, measure), widths[-1], slopes)
    values = [run.value for found in lines.values() for point in found for run in point.runs if run.value > 0]
    finish_sweep(figure, widths, axis, title, values)
    # Each entry of the legend may need a row of its own, which is not to be taken from the plot.
    return figure.update_layout(height=FIGURE_HEIGHT + LEGEND_ROW * max(0, len(lines) - 2))


def _axis_title(points: Sequence[HessianPoint]) -> str:
    channels = any(network.uses("kernel_size") for network in networks_of(points).values())
    return CHANNELS_TITLE if channels else WIDTH_TITLE


def trained_lines(points: Sequence[HessianPoint]) -> tuple[str, ...]:
    """Lines of which some seed was trained."""
    return tuple(dict.fromkeys(point.line for point in points for run in point.runs if run.trained is not None))


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


def table_rows(points: Sequence[HessianPoint]) -> list[dict[str, str]]:
    """Table 1 of Liu, Zhu & Belkin 2020 with measured exponents, and a verdict from them."""
    rows = []
    networks = networks_of(points)
    for line, title in titles(networks).items():
        own = of_line(points, line)
        last = max(own, key=lambda point: point.wide_width)
        changes = [run.trained for run in last.runs if run.trained is not None]
        moved = mean([each.sup_change for each in changes if each.outcome == "converged"])
        norm, verdict = _stated(networks[line])
        rows.append(
            {
                "Network": title,
                "‖H‖": _power(law_of(own, VIEWS["‖H‖"].of)),
                "Paper": norm,
                "Tangent kernel K": _power(law_of(own, lambda _, run: run.kernel)),
                "ΔK at the largest width": f"{amount(moved)} (m = {width_label(last.wide_width)})" if changes else "–",
                "Becomes linear?": becomes_linear(law_of(own, VIEWS["‖H‖ / ‖∇f‖²"].of)),
                "Paper says": verdict,
            }
        )
    return rows


def _stated(network: ComparedNetwork) -> tuple[str, str]:
    """(‖H‖, whether it becomes linear) in Table 1 and App. G; no paper is about what somebody put together."""
    if network.kind == COMPOSED:
        return "–", "–"
    linear = network.output == "linear" and network.bottleneck is None
    norm = "–" if network.parameterization != "ntk" else "Õ(m^{−1/2})" if linear else "Õ(1)"
    return norm, "yes" if linear else "no"


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


def takeaway(points: Sequence[HessianPoint], view: str) -> str:
    """What the figure says, in one sentence per network, for those who do not see it."""
    if not points:
        return "Hessian norm against width: no point yet."
    sentences = []
    for line, title in titles(networks_of(points)).items():
        law = law_of(of_line(points, line), VIEWS[view].of)
        said = "too few widths for a trend" if law is None else f"fitted exponent {signed(law.exponent)}"
        sentences.append(f"{title}: {said}.")
    return f"{view} of one output's Hessian against width. " + " ".join(sentences)


def change_takeaway(points: Sequence[HessianPoint]) -> str:
    """What the figure of kernel change says."""
    sentences, known = [], titles(networks_of(points))
    for line in trained_lines(points):
        last = _changes(of_line(points, line)[-1:], line)[0]
        moved = mean([run.value for run in last.runs if run.converged])
        sentences.append(f"{known[line]}: {amount(moved)} at width {last.width:,}.")
    return "Kernel change in training of the same networks and seeds. " + " ".join(sentences)


def norm_rows(points: Sequence[HessianPoint]) -> list[dict[str, object]]:
    """One row per network and width: means with their errors."""
    rows: list[dict[str, object]] = []
    known = titles(networks_of(points))
    for point in points:
        converged = [run for run in point.runs if run.converged]
        norm, kernel = mean([run.norm for run in converged]), mean([run.kernel for run in point.runs])
        rows.append(
            {
                "network": known[point.line],
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


def change_rows(points: Sequence[HessianPoint]) -> list[dict[str, object]]:
    """One row per trained run."""
    known = titles(networks_of(points))
    return [
        {
            "network": known[point.line],
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


def unconverged_sentences(points: Sequence[HessianPoint]) -> list[str]:
    """Which norms are not known to their tolerance."""
    known = titles(networks_of(points))
    lost = {
        f"{known[point.line]} at m = {width_label(point.wide_width)}": seeds
        for point in points
        if (seeds := [run.seed for run in point.runs if not run.converged])
    }
    listed = ", ".join(f"{where} (seed {', '.join(map(str, seeds))})" for where, seeds in lost.items())
    return [f"Open markers: the norm is not known to its tolerance and may be larger: {listed}."] if listed else []


def untrained_sentences(points: Sequence[HessianPoint]) -> list[str]:
    """Which trained runs did not reach the loss threshold."""
    known = titles(networks_of(points))
    lost = [
        f"{known[point.line]} at m = {width_label(point.wide_width)} (seed {run.seed})"
        for point in points
        for run in point.runs
        if run.trained is not None and run.trained.outcome != "converged"
    ]
    return [f"Open markers, in no mean: the loss threshold was not reached: {', '.join(lost)}."] if lost else []
