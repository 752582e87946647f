"""Two small exact computations of the lecture: the diagonal Hessian, and the two norms of ∂f/∂α."""

import functools
import math
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from linearity_lab.charts.axes import finish
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.lines import Dot, Line, width_axis
from linearity_lab.charts.style import FONT_SIZE, GUIDE_COLOR, network_style
from linearity_lab.charts.sweep import sweep
from linearity_lab.views.hessian.part_figures import QUANTITIES
from ntk_core.numbers import number

Law = Literal["signs", "normal"]
LAW_TITLES: dict[Law, str] = {"signs": "v = ±1", "normal": "v normal"}
INPUT = 1.0  # the scalar x
# max |σ''| of tanh: σ'' = −2 tanh(z) (1 − tanh² z) is largest where tanh² z = 1/3.
TANH_SMOOTHNESS = 4 / (3 * math.sqrt(3))
MOST_DRAWN = 2000
NARROWEST = 30
NORM_WIDTHS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
NORM_SEEDS = 5


def diagonal_entries(width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return (w, H_ii) of f = Σ v_i tanh(w_i x)/√m with v = ±1 and x = 1: H_ii = v_i σ''(w_i x) x²/√m.

    Source: Liu, Zhu & Belkin 2020, §3.1.
    """
    draw = np.random.default_rng(seed)
    weights, signs = draw.standard_normal(width), draw.choice((-1.0, 1.0), width)
    slope = np.tanh(weights * INPUT)
    return weights, signs * (-2 * slope * (1 - slope**2)) * INPUT**2 / math.sqrt(width)


def kernel_entry(width: int, seed: int = 0) -> float:
    """Return K(x, x) = (x²/m) Σ σ'(w_i x)² of the same network."""
    weights, _ = diagonal_entries(width, seed)
    return float(np.mean((1 - np.tanh(weights * INPUT) ** 2) ** 2) * INPUT**2)


def diagonal(width: int) -> Chart:
    """Every diagonal entry of the Hessian over its weight, between the bounds ±β x²/√m.

    The vertical axis is that of the smallest width to be shown, so that entries are seen to shrink.
    """
    weights, entries = diagonal_entries(width)
    bound, kernel, norm = (
        TANH_SMOOTHNESS * INPUT**2 / math.sqrt(width),
        kernel_entry(width),
        float(abs(entries).max()),
    )
    style = network_style("fully-connected")
    figure = go.Figure()
    figure.add_scatter(
        x=weights[:MOST_DRAWN],
        y=entries[:MOST_DRAWN],
        mode="markers",
        marker={"color": style.color, "size": 7 if width <= 300 else 4, "opacity": 0.7},
        text=[number(value, 3) for value in entries[:MOST_DRAWN]],
        name=f"H<sub>ii</sub> of {min(width, MOST_DRAWN):,} neurons",
        hovertemplate="w = %{x:.2f}<br>H_ii = %{text}<extra></extra>",
    )
    figure.add_scatter(
        x=[-4, 4, None, -4, 4],
        y=[bound, bound, None, -bound, -bound],
        mode="lines",
        line={"color": GUIDE_COLOR, "dash": "dash", "width": 2},
        name="± β x²/√m",
        hoverinfo="skip",
    )
    top = TANH_SMOOTHNESS * INPUT**2 / math.sqrt(NARROWEST) * 1.4  # the words are above the dots
    figure.update_xaxes(title="weight w<sub>i</sub> of a neuron", range=[-4, 4])
    figure.update_yaxes(title="its entry H<sub>ii</sub>", range=[-top, top])
    words = f"‖H‖ = {number(norm, 3)},  K(x, x) = {kernel:.2f}"
    font = {"size": FONT_SIZE + 4}
    figure.add_annotation(text=words, xref="paper", yref="paper", x=0.5, y=0.99, showarrow=False, font=font)
    rows: list[dict[str, object]] = [{"width m": width, "‖H‖ = max |H_ii|": norm, "β x²/√m": bound, "K(x, x)": kernel}]
    alt = (
        f"Diagonal entries of the Hessian of {width:,} neurons: the largest is {number(norm, 3)}, below "
        f"{number(bound, 3)}; the kernel K(x, x) is {kernel:.2f}."
    )
    drawn = [f"The first {MOST_DRAWN:,} of {width:,} neurons are drawn."] if width > MOST_DRAWN else []
    return Chart(finish(figure), alt, rows, ["Computed on this page: σ = tanh, x = 1, one seed.", *drawn])


@functools.lru_cache(maxsize=4)
def norm_dots(law: Law) -> dict[str, list[Dot]]:
    """Return ‖b‖_∞ and ‖b‖₂ of b = ∂f/∂α = v/√m, with output weights v of this distribution, by width and seed."""
    found: dict[str, list[Dot]] = {"b_max": [], "b_norm": []}
    for width in NORM_WIDTHS:
        for seed in range(NORM_SEEDS):
            draw = np.random.default_rng(seed)
            v = draw.choice((-1.0, 1.0), width) if law == "signs" else draw.standard_normal(width)
            b = v / math.sqrt(width)
            found["b_max"].append(Dot(width, float(abs(b).max()), seed, note="drawn on this page"))
            found["b_norm"].append(Dot(width, float(np.linalg.norm(b)), seed, note="drawn on this page"))
    return found


def two_norms(law: Law) -> Chart:
    """Fit both norms: ‖b‖_∞ scales as m^(-1/2), up to a logarithm for normal v; ‖b‖₂ stays at 1."""
    return drawn_norms(norm_dots(law), f"Drawn on this page: {LAW_TITLES[law]}, {NORM_SEEDS} seeds")


def drawn_norms(dots: dict[str, list[Dot]], origin: str) -> Chart:
    """Draw both norms against width, with their fitted exponents."""
    lines = [Line(QUANTITIES[name].style, found) for name, found in dots.items()]
    return sweep(lines, width_axis(), "‖∂f/∂α‖", slopes=(-0.5,), of="norm", caption=[f"{origin}."])
