"""Report on two checkpoints: numbers and verdict."""

import math

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from ntk_core.markup import paragraph, table
from ntk_core.numbers import number, percent
from ntk_core.stored_numbers import NonNegative

LAYER_HEAD = ("Parameter", "Numbers", "‖δ‖ / ‖w₀‖", "Share of J₀δ", "Share of tr K₀")
# Largest output errors of these verdicts; our choice.
LINEAR = 0.1
PARTLY = 0.5


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class LayerReport(_Stored):
    """One parameter, with its change δ_l = w₁ − w₀.

    Attributes:
        name: its path among the parameters.
        num_params: its number of entries.
        distance: ‖δ_l‖ / ‖w₀_l‖; infinite if it starts at 0 and changes.
        output_share: ⟨J₀ δ_l, J₀ δ⟩ / ‖J₀ δ‖²: its part of the linear change of the
            outputs; shares sum to 1.
        kernel_share: tr K_l(w₀) / tr K(w₀), estimated from 16 random signs for more than 16
            outputs.
    """

    name: str
    num_params: NonNegativeInt
    distance: NonNegative
    output_share: float
    kernel_share: float


class LinearityReport(_Stored):
    """How linear a model is between w₀ and w₁ = w₀ + δ, on some inputs.

    All norms are over inputs and outputs.

    Attributes:
        num_inputs, num_outputs, num_params: n, C and the number of differentiated parameters.
        output_change: ‖f(w₁) − f(w₀)‖_F / ‖f(w₀)‖_F.
        output_error: ‖f(w₁) − f(w₀) − J₀δ‖_F / ‖f(w₁) − f(w₀)‖_F; 0 for a linear model.
        second_order_share: ‖½ δᵀH(w₀)δ‖_F / ‖J₀δ‖_F; NaN if custom derivative rules make H
            asymmetric.
        derivative_change: ‖J₁δ − J₀δ‖_F / ‖J₀δ‖_F.
        rounding: of ``output_error``, by the precision of the outputs.
        kernel_change: ΔK = ‖K(w₁) − K(w₀)‖_F / ‖K(w₀)‖_F.
        kernel_interval: half-width of its 95% interval; 0 if exact.
        kernel_distance: 1 − ⟨K₀, K₁⟩ / (‖K₀‖_F ‖K₁‖_F).
        layers: in the order of the parameters.
        loss, linear_loss: mean of ½‖f − y‖² of f(w₁) and of the linear model at w₁; None without y.
        regression_loss: that of kernel regression with K₀ on these inputs, the least of any linear
            model; None without y or with an estimated kernel.
        addition_error: E of all checkpoints from w₀ together, see
            ``ntk_core.dynamics.addition_error``; None for one.
        num_added: their number; None for one.
        start_correlation: correlation of the weight matrices of w₁ with those of w₀, given if
            those of an independent start would correlate as much; None otherwise.
    """

    num_inputs: NonNegativeInt
    num_outputs: NonNegativeInt
    num_params: NonNegativeInt
    output_change: NonNegative
    output_error: NonNegative
    second_order_share: NonNegative
    derivative_change: NonNegative
    rounding: NonNegative
    kernel_change: NonNegative
    kernel_interval: NonNegative
    kernel_distance: NonNegative
    layers: tuple[LayerReport, ...]
    loss: NonNegative | None = None
    linear_loss: NonNegative | None = None
    regression_loss: NonNegative | None = None
    addition_error: NonNegative | None = None
    num_added: NonNegativeInt | None = None
    start_correlation: float | None = None

    @property
    def verdict(self) -> str:
        """One sentence, another one on several checkpoints, and a warning about another start."""
        return " ".join(filter(None, [self._linearity, self._addition, self._start]))

    @property
    def _start(self) -> str:
        """Whether w₁ looks like another start; empty if its weights correlate with w₀."""
        if self.start_correlation is None:
            return ""
        return (
            f"The weights at w₁ have correlation {number(self.start_correlation)} with those at "
            "w₀, no more than an independent start would. Check that w₁ was trained from w₀; "
            "only very long training erases the start."
        )

    @property
    def _addition(self) -> str:
        """Whether all checkpoints add; empty for one."""
        error = self.addition_error
        if error is None:
            return ""
        if math.isnan(error):
            return f"The changes of the {self.num_added} checkpoints cancel: no verdict on adding."
        kind = "do not add"
        if error <= LINEAR:
            kind = "add"
        elif error <= PARTLY:
            kind = "partly add"
        missed = f"their sum misses {percent(error)} of the sum of their changes"
        return f"The {self.num_added} checkpoints {kind}: {missed}."

    @property
    def _linearity(self) -> str:
        """Whether the model is linear between w₀ and w₁."""
        error = self.output_error
        change = percent(self.kernel_change)
        if self.rounding > LINEAR or math.isnan(error):
            moved = percent(self.output_change)
            return (
                f"No verdict: the outputs changed by {moved} on these inputs, which rounding hides."
            )
        if error > LINEAR:
            kind = "Partly linear" if error <= PARTLY else "Not linear"
            return (
                f"{kind}: the linear model at w₀ misses {percent(error)} of the outputs' "
                f"change, and ΔK is {change}."
            )
        follows = "the outputs follow the linear model at w₀"
        if self.kernel_change > LINEAR:
            return (
                f"Linear so far: {follows} up to {percent(error)}, although the kernel changed "
                f"by {change}."
            )
        return f"Linear: {follows} up to {percent(error)}, and the kernel changed by {change}."

    def number_rows(self) -> list[tuple[str, str]]:
        """Name and value of all numbers except those of layers."""
        interval = f" ± {percent(self.kernel_interval)}" if self.kernel_interval else ""
        found = [
            ("Output error", percent(self.output_error)),
            ("Second-order share", percent(self.second_order_share)),
            ("Change of the directional derivative", percent(self.derivative_change)),
            ("Kernel change ΔK", percent(self.kernel_change) + interval),
            ("Kernel distance", number(self.kernel_distance, 3)),
        ]
        if self.addition_error is not None:
            name = f"Error of adding {self.num_added} checkpoints"
            found.append((name, percent(self.addition_error)))
        if self.start_correlation is not None:
            found.append(("Correlation of w₁ with w₀", number(self.start_correlation)))
        losses = (
            ("Loss", self.loss),
            ("Loss of the linear model", self.linear_loss),
            ("Loss of kernel regression", self.regression_loss),
        )
        return found + [(name, number(loss, 4)) for name, loss in losses if loss is not None]

    def layer_rows(self) -> list[tuple[str, ...]]:
        """Return rows of all layers under :data:`LAYER_HEAD`.

        They are ordered by decreasing share of the outputs' change.
        """
        rows = []
        for layer in sorted(self.layers, key=lambda layer: -abs(layer.output_share)):
            shares = (layer.distance, layer.output_share, layer.kernel_share)
            rows.append((layer.name, f"{layer.num_params:,}", *map(percent, shares)))
        return rows

    def __str__(self) -> str:
        return "\n".join(
            [self.verdict, *(f"{name}: {value}" for name, value in self.number_rows())]
        )

    def _repr_html_(self) -> str:
        return (
            paragraph(self.verdict)
            + table(("", ""), self.number_rows())
            + table(LAYER_HEAD, self.layer_rows())
        )


def ratio(above: float, below: float) -> float:
    """Return a quotient; 0/0 is NaN, other quotients by 0 are infinite."""
    if below:
        return above / below
    return math.inf if above else math.nan
