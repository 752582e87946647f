"""The phenomenon in motion: kernel change against width while all networks train, drawn by the browser alone."""

import html
import math
from collections.abc import Sequence

from dashboard.charts.chart import occurring
from dashboard.charts.numbers import width_label
from dashboard.charts.style import network_style, output_title
from dashboard.charts.vector import DASHES, INK, SCHEME_INK, Scale, path
from ntk_core.experiments.kernel_change.result import KernelChangePoint, KernelChangeRun
from ntk_core.runs import mean

WIDTH, HEIGHT = 760, 470
LEFT, RIGHT, TOP, BOTTOM = 108, 186, 14, 66
LETTERS = 21  # in a picture that a phone shows at half its size
FLOOR, CEILING = 1e-3, 4.0
LEVELS = (0.001, 0.01, 0.1, 1.0)
FRAMES = 14
SECONDS = 7
MOVING_SHARE = 0.7  # of the time; then the end of training stands still


def change_so_far(run: KernelChangeRun, share: float) -> float:
    """The largest ΔK(t) over the first ``share`` of the recorded steps after step 0."""
    last = 1 + round(share * (len(run.change) - 2))
    return max((value for value in run.change[: last + 1] if math.isfinite(value)), default=math.nan)


def moments(points: Sequence[KernelChangePoint], output: str, share: float) -> list[tuple[float, float]]:
    """(width, mean over the converged runs of the largest kernel change so far), ascending."""
    found = []
    for point in sorted(points, key=lambda point: point.width):
        values = [change_so_far(run, share) for run in point.of(output) if run.outcome == "converged"]
        if values:
            found.append((float(point.width), mean(values).value))
    return found


def living_picture(points: Sequence[KernelChangePoint]) -> str:
    """An SVG of every output's line against width, which its style moves through the training.

    Where motion is not wanted, or not known, it is the picture at the end of training. Words are as dark as the
    color scheme of the page allows; without one they can be read on both.
    """
    widths = sorted(point.width for point in points)
    x = Scale(widths[0], widths[-1], LEFT, WIDTH - RIGHT, log=True)
    y = Scale(FLOOR, CEILING, HEIGHT - BOTTOM, TOP, log=True)
    lines, rules = [], []
    ends = {output: moments(points, output, 1.0)[-1][1] for output in occurring(points, "output")}
    for output in occurring(points, "output"):
        style = network_style("fully-connected", output)
        frames = [path(moments(points, output, index / (FRAMES - 1)), x, y) for index in range(FRAMES)]
        dash = f' stroke-dasharray="{DASHES[style.dash]}"' if DASHES[style.dash] else ""
        lines.append(
            f'<path class="living-{output}" d="{frames[-1]}" fill="none" stroke="{style.color}" stroke-width="4" '
            f'stroke-linejoin="round"{dash}/>'
            + _words(WIDTH - RIGHT + 12, y(_apart(output, ends)) + 7, output_title(output))
        )
        stops = "".join(
            f'{100 * MOVING_SHARE * index / (FRAMES - 1):.1f}% {{ d: path("{frame}") }} '
            for index, frame in enumerate(frames)
        )
        rules.append(
            f'@keyframes living-{output} {{ {stops} 100% {{ d: path("{frames[-1]}") }} }} '
            f".living-{output} {{ animation: living-{output} {SECONDS}s linear infinite }}"
        )
    rules.append(
        f"@keyframes living-time "
        f"{{ 0% {{ transform: scaleX(0) }} {100 * MOVING_SHARE:g}%, 100% {{ transform: none }} }} "
        f".living-time {{ animation: living-time {SECONDS}s linear infinite; transform-origin: {LEFT}px 0 }}"
    )
    still = ", ".join(f".living-{output}" for output in occurring(points, "output")) + ", .living-time"
    rules += [f"@media (prefers-color-scheme: {name}) {{ svg {{ color: {ink} }} }}" for name, ink in SCHEME_INK.items()]
    css = " ".join(rules) + f" @media (prefers-reduced-motion: reduce) {{ {still} {{ animation: none }} }}"
    return _picture("".join(lines), x, y, widths, css)


def _apart(output: str, ends: dict[str, float]) -> float:
    """Where the name of an output stands: at its end, a little away from those of others."""
    order = sorted(ends, key=ends.__getitem__)
    place = FLOOR
    for each in order:
        place = max(ends[each], place * 1.45)
        if each == output:
            return place
    raise KeyError(output)


def _picture(lines: str, x: Scale, y: Scale, widths: Sequence[int], css: str) -> str:
    right = WIDTH - RIGHT
    parts = [_words(LEFT - 12, y(value) + 7, f"{value:g}", "end") for value in LEVELS]
    parts += [
        f'<path d="M{LEFT} {y(value):.1f} H{right}" stroke="currentColor" stroke-opacity="0.4"/>' for value in LEVELS
    ]
    parts += [_words(x(width), HEIGHT - BOTTOM + 28, width_label(width), "middle") for width in widths]
    parts.append(_words(right + 34, HEIGHT - BOTTOM + 28, "width m"))
    side = f'transform="rotate(-90 20 {HEIGHT / 2 - 20})"'
    parts.append(_words(20, HEIGHT / 2 - 20, "kernel change ΔK", "middle", side))
    bar = y.start + 48
    parts.append(
        f'<rect class="living-time" x="{LEFT}" y="{bar}" width="{right - LEFT}" height="4" fill="currentColor"/>'
    )
    parts.append(_words(right + 34, bar + 8, "training"))
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" color="{INK}"'
    return f"<svg {size}><style>{css}</style>{''.join(parts)}{lines}</svg>"


def _words(x: float, y: float, text: str, anchor: str = "start", more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-family="sans-serif" font-size="{LETTERS}" fill="currentColor" '
        f'text-anchor="{anchor}" {more}>{html.escape(text)}</text>'
    )
