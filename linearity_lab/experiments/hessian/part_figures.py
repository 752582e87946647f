"""Components of a Hessian norm.

Bounds, layer quantities, balls around w₀, and layer × layer blocks.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go

from linearity_lab.charts.axes import plain_symbols
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.lines import Dot, Line
from linearity_lab.charts.style import FONT_SIZE, Style, network_style, nth_style
from linearity_lab.charts.sweep import sweep
from linearity_lab.experiments.hessian.network import titles
from linearity_lab.experiments.hessian.norm_figures import (
    UNKNOWN,
    Of,
    axis_of,
    dots,
    law_of,
    missed,
    networks_of,
    norm_note,
    of_line,
    place_name,
    styles,
)
from linearity_lab.experiments.hessian.point import (
    BallBound,
    HessianBlocks,
    HessianPoint,
    HessianRun,
)
from linearity_lab.runs import Mean, mean
from ntk_core.numbers import number, percent, signed, width_label

HEATMAP_HEIGHT = 380


@dataclass(frozen=True)
class NormPart:
    """A number beside the norm, with its style; NaN for runs without it."""

    of: Of
    style: Style


def _part(number: int, title: str, path: str) -> NormPart:
    """Return the part at this path of attributes of a run, the largest of several numbers."""

    def of(_: HessianPoint, run: HessianRun) -> float:
        found: object = run
        for name in path.split("."):
            found = None if found is None else getattr(found, name)
        if isinstance(found, tuple):
            return max(found)
        return found if isinstance(found, int | float) else math.nan

    return NormPart(of, nth_style(number, title, "part"))


MEASURED = NormPart(lambda _, run: run.norm, network_style("fully-connected", title="measured ‖H‖"))
BOUNDS = {
    "bound": _part(1, "sum of the bounds of its blocks", "bound.bound"),
    "exact": _part(2, "closed form", "exact"),
    "gradient": _part(3, "|φ''| ‖∇f‖²", "parts.gradient_part"),
    "lower": _part(4, "lower bound |φ''| ‖∇f‖² − |φ'| ‖H‖", "parts.lower"),
    "linear": _part(5, "|φ'| ‖H‖", "parts.linear_part"),
    "vector": _part(6, "all outputs together, at least", "vector.norm"),
    "vector_upper": _part(7, "all outputs together, at most", "vector.upper"),
}
QUANTITIES = {
    "b_max": _part(8, "‖∂f/∂α‖<sub>∞</sub>, scales the Hessian", "bound.b_max"),
    "b_norm": _part(9, "‖∂f/∂α‖<sub>2</sub>, scales the gradient", "bound.b_norm"),
    "q_l": _part(10, "Q<sub>L</sub>", "bound.q_l"),
    "q_221": _part(11, "Q<sub>2,2,1</sub>", "bound.q_221"),
}
CLOSED_FORM_TITLES = {
    "shallow": "closed form max |H_ii|",
    "quadratic-bottleneck": "exact block of w<sub>2</sub>",
}


def bounded(points: Sequence[HessianPoint], line: str) -> Chart | None:
    """Draw the measured norm of one network between its bounds, or None."""
    parts = {"norm": MEASURED, **BOUNDS}
    closed = CLOSED_FORM_TITLES.get(networks_of(points)[line].closed_form)
    if closed is not None:
        parts["exact"] = NormPart(BOUNDS["exact"].of, replace(BOUNDS["exact"].style, title=closed))
    drawn = _parts(points, line, parts, "Hessian norm ‖H‖", least=2)
    if drawn is None:
        return None
    words = bound_words(points, line)
    medians = []
    for point in of_line(points, line):
        exact = [run.exact for run in point.runs if run.exact is not None]
        if exact:
            median = float(np.median(exact))
            medians.append(f"{median:.3f} at m = {width_label(point.wide_width)}")
    more = [f"Median of the closed form: {', '.join(medians)}."] if medians else []
    return replace(drawn, takeaway=words, caption=[words, *more], name="shown_bounds")


def quantities(points: Sequence[HessianPoint], line: str) -> Chart | None:
    """Draw the layer quantities of Theorem 3.1 of one network; None if not measured."""
    drawn = _parts(points, line, QUANTITIES, "largest over the layers", least=1)
    return drawn and replace(drawn, caption=(), name="quantities")


def _parts(
    points: Sequence[HessianPoint], line: str, parts: dict[str, NormPart], title: str, least: int
) -> Chart | None:
    own = of_line(points, line)
    found = {name: Line(part.style, dots(own, part.of), group=name) for name, part in parts.items()}
    lines = [each for each in found.values() if any(dot.value > 0 for dot in each.dots)]
    if len(lines) < least:
        return None
    rows = []
    for point in own:
        row: dict[str, object] = {place_name(points): point.place}
        for part in (MEASURED, *BOUNDS.values(), *QUANTITIES.values()):
            values = [part.of(point, run) for run in point.runs]
            average = mean([value for value in values if math.isfinite(value)])
            if average.count:
                row[plain_symbols(part.style.title)] = average.value
        rows.append(row)
    return sweep(lines, axis_of(points), title, slopes=(-0.5,), rows=rows, names_quantities=True)


def bound_words(points: Sequence[HessianPoint], line: str) -> str:
    """Describe the figure of the bounds."""
    own = of_line(points, line)
    runs = [run for point in own for run in point.runs]

    def times(ratios: Sequence[float], digits: int = 3) -> str:
        return f"{number(min(ratios), digits)} to {number(max(ratios), digits)} times"

    def trend(part: str) -> str:
        law = law_of(own, BOUNDS[part].of)
        return "" if law is None else f" It decreases with exponent {signed(law.exponent)}."

    if together := [run.vector.norm / run.norm for run in runs if run.vector and run.norm > 0]:
        words = (
            f"the norm of all outputs together is {times(together)} that of one.{trend('vector')}"
        )
    elif any(run.bound for run in runs):
        gaps = [run.bound.bound / run.norm for run in runs if run.bound and run.norm > 0]
        words = (
            f"the sum of the bounds of its blocks is {times(gaps, 2)} the norm.{trend('bound')}"
            if gaps
            else "the measured norm is 0."
        )
    elif any(run.parts for run in runs):
        kept = sum(run.norm >= run.parts.lower * (1 - 1e-3) for run in runs if run.parts)
        words = f"the measured norm is above its lower bound in {kept} of {len(runs)} runs."
    elif exact := [run.norm / run.exact for run in runs if run.exact]:
        words = f"the measured norm is {times(exact)} its closed form."
    else:
        words = f"measured norm, without a bound, of {len(runs)} runs."
    return f"{titles(networks_of(points))[line]}: {words}"


def shares(points: Sequence[HessianPoint], line: str) -> Chart | None:
    """Draw the share of each trained layer in the kernel of one network; None if not measured."""
    found: dict[str, list[Dot]] = {}
    for point in of_line(points, line):
        for run in point.runs:
            for each in run.shares:
                found.setdefault(layer_title(each.layer), []).append(
                    Dot(point.place, each.share, run.seed)
                )
    if not found:
        return None
    lines = [
        Line(nth_style(index, layer, "layer"), dots)
        for index, (layer, dots) in enumerate(found.items())
    ]
    words = [
        f"{titles(networks_of(points))[line]}: tr K_l / tr K of each trained layer l; all shares "
        "add up to 1."
    ]
    return sweep(
        lines,
        axis_of(points),
        "share of K",
        slopes=(-1.0,),
        of="layer",
        name="shown_shares",
        caption=words,
    )


def layer_share(point: HessianPoint, layer: str) -> Mean:
    """Return the share of a layer in the kernel, over seeds."""
    return mean([each.share for run in point.runs for each in run.shares if each.layer == layer])


def radii_of(points: Sequence[HessianPoint]) -> tuple[float, ...]:
    """Return the radii of searched balls."""
    return tuple(
        sorted({ball.radius for point in points for run in point.runs for ball in run.balls})
    )


def ball(points: Sequence[HessianPoint], radius: float, quantity: str, num_starts: int) -> Chart:
    """Draw the largest ‖H‖ found in the ball, by width.

    It is for this radius, beside the largest in random directions alone. It can be the kernel
    change.

    ``quantity`` is ``"hessian"`` or ``"kernel_change"``. Where a zero of the Hessian is known, a
    third line is an upper bound of the infimum of ‖H‖.
    """
    seeds = max((sum(bool(run.balls) for run in point.runs) for point in points), default=0)
    words = (
        f"Ball of radius R = {radius:g} around w₀, {seeds} seeds. Marks: the largest values found "
        f"by projected ascent from {num_starts} starts, lower bounds on the supremum. Dotted: the "
        "largest in as many random directions."
    )
    if quantity == "hessian" and any(_has_least(points, line) for line in styles(points)):
        words += " Dashed: ‖H‖ towards its known zero, an upper bound on the infimum."
    gains = _last_gains(points, radius, f"{quantity}_last_gain")
    lines = []
    for line, base in styles(points).items():
        kinds = [
            ("", "at least", "solid", base.symbol),
            ("_random", "random directions", "dot", "x-thin-open"),
        ]
        if quantity == "hessian" and _has_least(points, line):
            kinds.append(("_least", "infimum, at most", "dash", "triangle-down-open"))
        for suffix, title, dash, symbol in kinds:
            found = _dots_of_balls(of_line(points, line), radius, quantity + suffix)
            if found:
                style = Style(base.color, dash, symbol, f"{base.title}, {title}")
                lines.append(Line(style, found, group=line + suffix))
    vertical = (
        "sup of ‖H‖ over the ball" if quantity == "hessian" else "sup of the relative kernel change"
    )
    return sweep(
        lines,
        axis_of(points),
        vertical,
        "sup",
        slopes=(-0.5,),
        name=f"ball_{quantity}",
        caption=[words, *gains, *missed(points)],
        rows=ball_rows(points),
    )


def _has_least(points: Sequence[HessianPoint], line: str) -> bool:
    """Whether the infimum of ‖H‖ over balls is bounded from above."""
    balls = [ball for point in of_line(points, line) for run in point.runs for ball in run.balls]
    return any(ball.hessian_least is not None for ball in balls)


def _dots_of_balls(points: Sequence[HessianPoint], radius: float, field: str) -> list[Dot]:
    """Return a number of every ball with this radius; unconverged ones are open."""
    dots = []
    for point in points:
        for run in point.runs:
            for ball in run.balls:
                if ball.radius == radius:
                    why = "" if ball.converged else UNKNOWN
                    value = getattr(ball, field)
                    dots.append(Dot(point.place, value, run.seed, why, norm_note(run)))
    return dots


def _last_gains(points: Sequence[HessianPoint], radius: float, name: str) -> list[str]:
    """Return how much the last ten steps of the search still raised the values of this radius."""
    balls = [ball for point in points for run in point.runs for ball in run.balls]
    gains = [getattr(ball, name) for ball in balls if ball.radius == radius]
    known = [gain for gain in gains if gain is not None]
    if known:
        return [f"The last ten steps raised them by at most {percent(max(known))}."]
    return []


def ball_rows(points: Sequence[HessianPoint]) -> list[dict[str, object]]:
    """Return one row per network, width and radius: means over searched seeds."""
    rows: list[dict[str, object]] = []
    known = titles(networks_of(points))
    for point in points:
        for radius in radii_of([point]):
            balls = [ball for run in point.runs for ball in run.balls if ball.radius == radius]
            rows.append(
                {
                    "network": known[point.line],
                    place_name(points): point.place,
                    "radius R": radius,
                    "‖H‖ at w₀": mean([run.norm for run in point.runs if run.balls]).value,
                    "sup ‖H‖, at least": mean([ball.hessian for ball in balls]).value,
                    "‖H‖ in random directions": mean([ball.hessian_random for ball in balls]).value,
                    "sup kernel change, at least": mean(
                        [ball.kernel_change for ball in balls]
                    ).value,
                    "kernel change in random directions": mean(
                        [ball.kernel_change_random for ball in balls]
                    ).value,
                    "last ten steps: ‖H‖": _largest_gain(balls, "hessian_last_gain"),
                    "last ten steps: kernel change": _largest_gain(
                        balls, "kernel_change_last_gain"
                    ),
                    "seeds": len(balls),
                    **_further_of(balls),
                }
            )
    return rows


def _further_of(balls: Sequence[BallBound]) -> dict[str, object]:
    """Return means of what only some networks have: the infimum, and layer quantities."""
    titles_of = {
        "hessian_least": "inf ‖H‖, at most",
        "q_inf": "Q_∞",
        "q_l": "Q_L",
        "q_221": "Q₂,₂,₁",
    }
    found: dict[str, object] = {}
    for name, title in titles_of.items():
        values = [getattr(ball, name) for ball in balls]
        known = [value for value in values if value is not None]
        if known:
            found[title] = mean(known).value
    return found


def _largest_gain(balls: Sequence[BallBound], name: str) -> float | None:
    """Return the largest share by which the last ten steps raised a value; None if not recorded."""
    gains = [getattr(ball, name) for ball in balls]
    return max((gain for gain in gains if gain is not None), default=None)


def blocks_of(points: Sequence[HessianPoint], line: str) -> tuple[int, HessianBlocks] | None:
    """Return (width or length, blocks) of the widest point of a line that has blocks."""
    kept = [
        (point.place, point.blocks) for point in of_line(points, line) if point.blocks is not None
    ]
    return kept[-1] if kept else None


def blocks(points: Sequence[HessianPoint], line: str) -> Chart | None:
    """Draw ‖H_{l,l'}‖ of every pair of layers.

    They are of the widest point of a line, with the number in each cell; without blocks it is None.
    """
    if (kept := blocks_of(points, line)) is None:
        return None
    place, found = kept
    names = [layer_title(name) for name in found.layers]
    norms = np.asarray(found.norms)
    figure = go.Figure()
    figure.add_heatmap(
        z=norms,
        x=names,
        y=names,
        text=[[number(value) for value in row] for row in norms],
        texttemplate="%{text}",
        textfont={"size": FONT_SIZE},
        colorscale="Cividis",
        colorbar={"thickness": 10, "tickfont": {"size": 11}, "nticks": 4, "tickformat": ".2~g"},
        hovertemplate="%{y} × %{x}<br>norm %{text}<extra></extra>",
    )
    figure.update_xaxes(tickfont={"size": FONT_SIZE}, constrain="domain")
    figure.update_yaxes(
        tickfont={"size": FONT_SIZE}, autorange="reversed", scaleanchor="x", constrain="domain"
    )
    figure.update_layout(height=HEATMAP_HEIGHT, margin={"l": 4, "r": 4, "t": 40, "b": 4})
    row, column = np.unravel_index(np.argmax(norms), norms.shape)
    known = (
        ""
        if found.converged
        else " Some block norms did not reach their tolerance and may be larger."
    )
    words = (
        f"Norms of the Hessian's layer × layer blocks, {titles(networks_of(points))[line]}, "
        f"{place_name(points)} = {place:,}, seed {found.seed}, first input. "
        f"The largest is {names[int(row)]} × {names[int(column)]} with "
        f"{number(norms.max())}.{known}"
    )
    rows = [
        {"layer": name, **dict(zip(names, row, strict=True))}
        for name, row in zip(names, found.norms, strict=True)
    ]
    return Chart(
        figure, words, rows, [words], "shown_blocks", label="Norms of the blocks of the Hessian"
    )


def layer_title(name: str) -> str:
    """Return ``layer 1`` for ``hidden1``."""
    return name.replace("hidden", "layer ")
