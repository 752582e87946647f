"""What a tangent kernel is, as a picture: a network, and how a step for one point moves its output at another."""

import math

from linearity_lab.charts.vector import INK

WIDTH, HEIGHT = 670, 300
NETWORK, STEP = "#1C86C7", "#D55E00"  # read on light and on dark
_INPUT, _OUTPUT, _HIDDEN = (34, 150), (214, 150), [(124, 40 + 36.7 * number) for number in range(7)]
_LEFT, _RIGHT, _AT, _OTHER = 290, 620, 395, 500
ALT = (
    "A network with 1 input, 7 hidden neurons and 1 output, beside its output as a curve before and after 1 step. The "
    "step for one point lifts the curve there, and by less at another point: how much is the tangent kernel of the two."
)


def tangent_kernel_picture() -> str:
    """The picture as SVG, for the page itself."""
    edges = "".join(
        f'<path d="M{a} {b} L{c} {d:.0f} L{e} {f}" stroke="{INK}" stroke-width="1.3" fill="none"/>'
        for (a, b), (c, d), (e, f) in ((_INPUT, hidden, _OUTPUT) for hidden in _HIDDEN)
    )
    neurons = "".join(
        f'<circle cx="{x}" cy="{y:.0f}" r="11" fill="{NETWORK}"/>' for x, y in (_INPUT, *_HIDDEN, _OUTPUT)
    )
    letters = _text(_INPUT[0] - 22, _INPUT[1] + 36, "input") + _text(_OUTPUT[0] + 28, _OUTPUT[1] + 36, "output")
    xs = range(_LEFT, _RIGHT + 1, 5)
    curves = _curve([(x, _before(x)) for x in xs], INK, "6 5") + _curve([(x, _after(x)) for x in xs], NETWORK, "")
    moves = _move(_AT, STEP, 4) + _move(_OTHER, STEP, 2.5)
    words = (
        _text(_AT + 40, _after(_AT) - 30, "a step for this point …")
        + _text(_RIGHT + 14, 256, "… moves this one too,", "end")
        + _text(_RIGHT + 14, 284, "by their tangent kernel", "end")
    )
    box = f"{_RIGHT + 16 - WIDTH} 0 {WIDTH} {HEIGHT}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" aria-label="{ALT}">'
        f"{edges}{neurons}{letters}{curves}{moves}{words}</svg>"
    )


def _before(x: float) -> float:
    return 172 + 30 * math.sin((x - _LEFT) / 62)


def _after(x: float) -> float:
    return _before(x) - 84 * math.exp(-(((x - _AT) / 100) ** 2))


def _curve(points: list[tuple[int, float]], color: str, dash: str) -> str:
    line = "M" + " L".join(f"{x} {y:.1f}" for x, y in points)
    return f'<path d="{line}" fill="none" stroke="{color}" stroke-width="3" stroke-dasharray="{dash}"/>'


def _move(x: float, color: str, width: float) -> str:
    """An arrow from the curve before to the curve after."""
    low, high = _before(x), _after(x)
    return (
        f'<path d="M{x} {low:.1f} V{high + 9:.1f}" stroke="{color}" stroke-width="{width}"/>'
        f'<path d="M{x - 6} {high + 11:.1f} L{x} {high + 1:.1f} L{x + 6} {high + 11:.1f} Z" fill="{color}"/>'
        f'<circle cx="{x}" cy="{low:.1f}" r="5" fill="{color}"/>'
    )


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    """Without a look of its own."""
    return f'<text x="{x}" y="{y:.0f}" text-anchor="{anchor}">{words}</text>'
