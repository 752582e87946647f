"""Hessian norms against width.

The kernel change of the same networks is beside them, and Table 1 with measured numbers.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linearity_lab.charts.axes import rate_words
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.lines import GROWN_AXES, Axis, Dot, Line, fitted, width_axis
from linearity_lab.charts.style import Style, distinct, network_style
from linearity_lab.charts.sweep import sweep
from linearity_lab.experiments.hessian.network import ComparedNetwork, titles
from linearity_lab.experiments.hessian.point import COLUMNS, HessianPoint, HessianRun, TrainedChange
from linearity_lab.networks.spec import COMPOSED, grown_size
from linearity_lab.runs import OUTCOME_WORDS, Mean, columns, mean
from ntk_core.fits import PowerLaw, becomes_linear, exponent_words, remarks
from ntk_core.networks.choices import PARAMETERIZATIONS
from ntk_core.numbers import number, width_label

Of = Callable[[HessianPoint, HessianRun], float]


@dataclass(frozen=True)
class NormQuantity:
    """A quantity against width."""

    title: str  # title of the vertical axis
    symbol: str
    of: Of  # value of a run of a point, or NaN
    slope: float | None = -0.5  # slope of the dashed guide, or None


VIEWS = {
    "‖H‖": NormQuantity("Hessian norm ‖H‖", "‖H‖", lambda _, run: run.norm),
    "√m ‖H‖": NormQuantity(
        "√m ‖H‖", "√m ‖H‖", lambda point, run: math.sqrt(point.place) * run.norm, None
    ),
    "‖H‖ / ‖∇f‖²": NormQuantity("‖H‖ / ‖∇f‖²", "‖H‖ / ‖∇f‖²", lambda _, run: run.relative_norm),
}
KERNEL = "K(x, x)"
QUANTITIES = {
    **VIEWS,
    KERNEL: NormQuantity("kernel K(x, x)", KERNEL, lambda _, run: run.kernel, None),
}
UNKNOWN = "has unconverged norms, which may be larger"
WIDTH_TITLE = "width m"
CHANNELS_TITLE = "width m, or channels of a CNN"
# Settings of architectures that the papers do not treat.
BEYOND_PAPER = (
    "width_is",
    "grows",
    "sub_model",
)


def dots(points: Sequence[HessianPoint], of: Of) -> list[Dot]:
    """Return a number of every run against width; unconverged norms are excluded from means."""
    found = []
    for point in points:
        for run in point.runs:
            mark = "" if run.converged else UNKNOWN
            found.append(Dot(point.place, of(point, run), run.seed, mark, norm_note(run)))
    return found


def norm_note(run: HessianRun) -> str:
    """Return the note on the accuracy of a norm."""
    state = "converged" if run.converged else "unconverged: the norm may be larger"
    return f"residual {number(run.residual, 1)} after {run.num_matvecs} products, {state}"


def networks_of(points: Sequence[HessianPoint]) -> dict[str, ComparedNetwork]:
    """Map lines to networks that occur, in the order of the points."""
    return {point.line: point.network for point in points}


def styles(points: Sequence[HessianPoint]) -> dict[str, Style]:
    """Map lines to styles: those of the networks.

    Repeated ones get another color, dash and symbol.
    """
    networks = networks_of(points)
    taken = set()
    found = {}
    for line, title in titles(networks).items():
        network = networks[line]
        variant = list(PARAMETERIZATIONS).index(network.parameterization)
        while (network.family, network.output, variant) in taken:
            variant = max(variant + 1, len(PARAMETERIZATIONS))
        taken.add((network.family, network.output, variant))
        found[line] = network_style(network.family, network.output, title, variant)
    return distinct(found)


def of_line(points: Sequence[HessianPoint], line: str) -> list[HessianPoint]:
    """Return the points of one line, by width."""
    return sorted((point for point in points if point.line == line), key=lambda point: point.width)


def norm_lines(points: Sequence[HessianPoint], view: str = "‖H‖") -> dict[str, Line]:
    """Map lines to ‖H‖ of their networks, or to the quantity of the view."""
    found = {}
    style = styles(points)
    for name in networks_of(points):
        own = of_line(points, name)
        more: dict[float, dict[str, object]] = {}
        for point in own:
            more[point.place] = {
                "narrowest": point.min_width,
                "parameters": point.num_params,
                "mean K(x, x)": mean([run.kernel for run in point.runs]).value,
            }
        found[name] = Line(style[name], dots(own, QUANTITIES[view].of), more=more, group=name)
    return found


def missed(points: Sequence[HessianPoint]) -> list[str]:
    """Return what Hessians miss at the kinks of a network; empty for smooth networks."""
    notes = [network.almost_everywhere for network in networks_of(points).values()]
    return list(dict.fromkeys(sentence for sentence in notes if sentence))


def against_width(points: Sequence[HessianPoint], view: str = "‖H‖") -> Chart:
    """Draw ‖H‖ of every network against width, log–log.

    Another quantity of the view may take its place. The names contain fitted exponents.
    """
    shown = QUANTITIES[view]
    slopes = () if shown.slope is None else (shown.slope,)
    axis = axis_of(points)
    lines = list(norm_lines(points, view).values())
    notes = missed(points)
    return sweep(
        lines,
        axis,
        shown.title,
        shown.symbol,
        slopes=slopes,
        of="network",
        caption=notes,
    )


def change_against_width(points: Sequence[HessianPoint]) -> Chart:
    """Draw ΔK in training of the same networks, from the same weights."""
    style = styles(points)
    lines = [
        Line(style[name], _changes(of_line(points, name)), group=name)
        for name in trained_lines(points)
    ]
    return sweep(
        lines,
        axis_of(points),
        "kernel change ΔK",
        "ΔK",
        slopes=(-0.5, -1.0),
        heading="Kernel change of the same weights",
        rows=[row for row in columns.table_rows(COLUMNS, points) if row["outcome"] is not None],
    )


def axis_of(points: Sequence[HessianPoint]) -> Axis:
    """Return the swept axis: the width, named if all networks agree, or the number of tokens."""
    networks = networks_of(points).values()
    if any(point.num_tokens for point in points):
        return Axis("tokens T", "T")
    if (grown := grown_size(networks)) in GROWN_AXES:
        return GROWN_AXES[grown]
    has_channels = any(network.uses("kernel_size") for network in networks)
    return width_axis(title=CHANNELS_TITLE if has_channels else WIDTH_TITLE)


def place_name(points: Sequence[HessianPoint]) -> str:
    """Return the table column of the swept setting."""
    axis = axis_of(points)
    return WIDTH_TITLE if axis.letter == "m" else axis.title


def trained_lines(points: Sequence[HessianPoint]) -> tuple[str, ...]:
    """Return lines with a trained seed."""
    return tuple(
        dict.fromkeys(
            point.line for point in points for run in point.runs if run.trained is not None
        )
    )


def _changes(points: Sequence[HessianPoint]) -> list[Dot]:
    dots = []
    for point in points:
        for run in point.runs:
            if run.trained is not None:
                dots.append(_change(point.place, run.seed, run.trained))
    return dots


def _change(place: float, seed: int, trained: TrainedChange) -> Dot:
    """Return ΔK of a trained network; open and excluded unless it converged."""
    words = OUTCOME_WORDS[trained.outcome]
    steps = f"{trained.num_steps:,} steps"
    note = f"η = {rate_words([trained.learning_rate])}, {steps}<br>{words}"
    if trained.outcome == "converged":
        return Dot(place, trained.sup_change, seed, note=note)
    return Dot(place, trained.sup_change, seed, words, note, outcome=trained.outcome)


def law_of(points: Sequence[HessianPoint], of: Of) -> PowerLaw | None:
    """Fit a power law to a number of one line against width."""
    return fitted(dots(points, of))


def table_rows(points: Sequence[HessianPoint]) -> list[dict[str, str]]:
    """Return Table 1 of Liu, Zhu & Belkin 2020 with measured exponents and their verdict."""
    rows = []
    networks = networks_of(points)
    axis = axis_of(points)
    for line, title in titles(networks).items():
        own = of_line(points, line)
        last = max(own, key=lambda point: point.place)
        changes = [run.trained for run in last.runs if run.trained is not None]
        moved = mean([each.sup_change for each in changes if each.outcome == "converged"])
        change = "–"
        if changes:
            change = f"{amount(moved)} ({axis.letter} = {width_label(last.place)})"
        limit: str = becomes_linear(law_of(own, VIEWS["‖H‖ / ‖∇f‖²"].of))
        if networks[line].almost_everywhere:
            limit += " (almost everywhere)"
        norm, verdict = _stated(networks[line])
        rows.append(
            {
                "Network": title,
                "‖H‖": _power(axis.letter, law_of(own, VIEWS["‖H‖"].of)),
                "Paper": norm,
                "Tangent kernel K": _power(axis.letter, law_of(own, lambda _, run: run.kernel)),
                "ΔK at the largest width": change,
                "Becomes linear?": limit,
                "In the paper": verdict,
            }
        )
    return rows


def _stated(network: ComparedNetwork) -> tuple[str, str]:
    """Return (‖H‖, whether it becomes linear) in Table 1 and App. G.

    None for kinks, attention, custom layers.
    """
    if (
        network.kind == COMPOSED
        or any(map(network.uses, BEYOND_PAPER))
        or network.almost_everywhere
    ):
        return "–", "–"
    linear = network.output == "linear" and network.bottleneck is None
    norm = "–"
    if network.parameterization == "ntk":
        norm = "Õ(m^{−1/2})" if linear else "Õ(1)"
    return norm, "yes" if linear else "no"


def _power(letter: str, law: PowerLaw | None) -> str:
    return "–" if law is None else "; ".join([f"{letter}^{{{exponent_words(law)}}}", *remarks(law)])


def amount(average: Mean) -> str:
    """Format a mean with its standard error, to the first digit of the error."""
    if not average.count:
        return "not converged"
    error = average.standard_error
    if not (math.isfinite(error) and error > 0):
        return number(average.value)
    decimals = max(0, -math.floor(math.log10(float(f"{error:.1g}"))))
    return f"{average.value:.{decimals}f} ± {error:.{decimals}f}"
