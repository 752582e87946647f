"""What is reported of two checkpoints: numbers, their words and their verdict."""

import math
from dataclasses import dataclass
from typing import Any

from ntk_core.markup import paragraph, table
from ntk_core.numbers import number, percent

LAYER_HEAD = ("Parameter", "Numbers", "‖δ‖ / ‖w₀‖", "Share of J₀δ", "Share of tr K₀")
LINEAR, PARTLY = 0.1, 0.5  # largest output errors of these verdicts; our choice


@dataclass(frozen=True)
class LayerReport:
    """One parameter, δ_l = w₁ − w₀ of it.

    Attributes:
        name: its path among the parameters.
        num_params: its numbers.
        distance: ‖δ_l‖ / ‖w₀_l‖; infinite where it starts at 0 and moves.
        output_share: ⟨J₀ δ_l, J₀ δ⟩ / ‖J₀ δ‖²: its part of the linear change of the outputs; shares sum to 1.
        kernel_share: tr K_l(w₀) / tr K(w₀), estimated from 16 random signs for more than 16 outputs.
    """

    name: str
    num_params: int
    distance: float
    output_share: float
    kernel_share: float


@dataclass(frozen=True)
class LinearityReport:
    """How linear a model is between w₀ and w₁ = w₀ + δ, on some inputs; all norms are over inputs and outputs.

    Attributes:
        num_inputs, num_outputs, num_params: n, C and the numbers that are differentiated.
        output_change: ‖f(w₁) − f(w₀)‖_F / ‖f(w₀)‖_F.
        output_error: ‖f(w₁) − f(w₀) − J₀δ‖_F / ‖f(w₁) − f(w₀)‖_F; 0 for a linear model.
        second_order_share: ‖½ δᵀH(w₀)δ‖_F / ‖J₀δ‖_F.
        derivative_change: ‖J₁δ − J₀δ‖_F / ‖J₀δ‖_F.
        rounding: of ``output_error``, by the precision of the outputs.
        kernel_change: ΔK = ‖K(w₁) − K(w₀)‖_F / ‖K(w₀)‖_F.
        kernel_interval: half-width of its 95% interval; 0 where it is exact.
        kernel_distance: 1 − ⟨K₀, K₁⟩ / (‖K₀‖_F ‖K₁‖_F).
        layers: in the order of the parameters.
        loss, linear_loss: mean of ½‖f − y‖² of f(w₁) and of the linear model at w₁; None without y.
        regression_loss: that of kernel regression with K₀ on these inputs, the least of any linear model; None without
            y, and where the kernel is estimated.
    """

    num_inputs: int
    num_outputs: int
    num_params: int
    output_change: float
    output_error: float
    second_order_share: float
    derivative_change: float
    rounding: float
    kernel_change: float
    kernel_interval: float
    kernel_distance: float
    layers: tuple[LayerReport, ...]
    loss: float | None = None
    linear_loss: float | None = None
    regression_loss: float | None = None

    @property
    def verdict(self) -> str:
        """One sentence."""
        return verdict_of(self)

    def __str__(self) -> str:
        return "\n".join([self.verdict, *(f"{name}: {value}" for name, value in rows_of(self))])

    def _repr_html_(self) -> str:
        return paragraph(self.verdict) + table(("", ""), rows_of(self)) + table(LAYER_HEAD, layer_rows(self))


def verdict_of(report: Any) -> str:
    """One sentence about the values of a :class:`LinearityReport`."""
    error, change = report.output_error, percent(report.kernel_change)
    if report.rounding > LINEAR or math.isnan(error):
        moved = percent(report.output_change)
        return f"No verdict: the outputs changed by {moved} on these inputs, which rounding hides."
    if error > LINEAR:
        kind = "Partly linear" if error <= PARTLY else "Not linear"
        return f"{kind}: the linear model at w₀ misses {percent(error)} of the outputs' change, and ΔK is {change}."
    follows = "the outputs follow the linear model at w₀"
    if report.kernel_change > LINEAR:
        return f"Linear so far: {follows} up to {percent(error)}, although the kernel changed by {change}."
    return f"Linear: {follows} up to {percent(error)}, and the kernel changed by {change}."


def rows_of(report: Any) -> list[tuple[str, str]]:
    """Name and value of all numbers but those of layers."""
    interval = f" ± {percent(report.kernel_interval)}" if report.kernel_interval else ""
    found = [
        ("Output error", percent(report.output_error)),
        ("Second-order share", percent(report.second_order_share)),
        ("Change of the directional derivative", percent(report.derivative_change)),
        ("Kernel change ΔK", percent(report.kernel_change) + interval),
        ("Kernel distance", number(report.kernel_distance, 3)),
    ]
    losses = (
        ("Loss", report.loss),
        ("Loss of the linear model", report.linear_loss),
        ("Loss of kernel regression", report.regression_loss),
    )
    return found + [(name, number(loss, 4)) for name, loss in losses if loss is not None]


def layer_rows(report: Any) -> list[tuple[str, ...]]:
    """Cells of all layers under :data:`LAYER_HEAD`, the largest share of the outputs' change first."""
    ranked = sorted(report.layers, key=lambda layer: -abs(layer.output_share))
    shares = [(each.distance, each.output_share, each.kernel_share) for each in ranked]
    return [
        (each.name, f"{each.num_params:,}", *map(percent, shown)) for each, shown in zip(ranked, shares, strict=True)
    ]


def ratio(above: float, below: float) -> float:
    """A quotient; 0/0 has no value, and anything else over 0 is infinite."""
    if below:
        return above / below
    return math.inf if above else math.nan
