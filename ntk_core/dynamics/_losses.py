"""Training losses: means over the n samples, so that rates do not depend on n."""

import math
from dataclasses import dataclass

from jax import Array
from jaxtyping import Float, Shaped

from ntk_core.dynamics.choices import LOSSES
from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures import largest_slope, output_function
from ntk_core.networks.choices import OUTPUTS


@dataclass(frozen=True)
class Loss:
    """Loss of a network as a function of its pre-outputs.

    The loss of a network with output φ, as a function of its pre-outputs f.

    =================  =============================================  ==================
    kind               loss                                           the model F
    =================  =============================================  ==================
    ``square``         (1/2n) Σ_i ‖F_i − y_i‖²                        φ(f)
    ``cross-entropy``  −(1/n) Σ_i log softmax(F_i) · y_i              f if φ is softmax, else φ(f)
    ``logistic``       (1/n) Σ_ia log(1 + e^(−y_ia F_ia)), y = ±1     φ(f)
    =================  =============================================  ==================

    F is what is linearized and followed in training. Without a kind it is cross-entropy for ``softmax``, also for the
    linear output that shares its parameters (Liu, Zhu & Belkin 2020, Eq. 46), and square for any other φ (Eq. 47).

    Raises:
        InvalidInput: for a kind that is not in ``ntk_core.dynamics.choices.LOSSES``.

    Source: Liu, Zhu & Belkin 2020, App. B, Eqs. 46 and 47; the logistic loss is our choice.
    """

    output: str
    kind: str = ""

    def __post_init__(self) -> None:
        output_function(self.output)
        if not self.kind:
            object.__setattr__(self, "kind", "cross-entropy" if self.output == "softmax" else "square")
        if self.kind not in LOSSES:
            raise InvalidInput("loss", self.kind, "one of " + ", ".join(LOSSES))

    def __call__(self, f: Float[Array, "n C"], y: Shaped[Array, "n C"]) -> Float[Array, ""]:
        """The mean loss, a scalar, for pre-outputs and targets of shape (n, C)."""
        return self.of_model(self.model(f), y)

    def check_axes(self, axes: tuple[int, ...]) -> None:
        """Refuse outputs (n, T, C) where a loss couples the C outputs of one t, which are one axis (T·C) here.

        Raises:
            InvalidInput: for ``cross-entropy``.
        """
        if axes and self.kind == "cross-entropy":
            raise InvalidInput(
                "loss", f"cross-entropy of outputs (n, {', '.join(map(str, axes))})", "square or logistic"
            )

    @property
    def model_output(self) -> str:
        """The function from f to F: φ, or ``linear`` where the loss itself takes the softmax."""
        return "linear" if self.output == "softmax" and self.kind == "cross-entropy" else self.output

    def model(self, f: Float[Array, "n C"]) -> Float[Array, "n C"]:
        """F, (n, C), from pre-outputs f, (n, C)."""
        return output_function(self.model_output)(f)

    def of_model(self, outputs: Float[Array, "n C"], y: Shaped[Array, "n C"]) -> Float[Array, ""]:
        """The mean loss, a scalar, as a function of F, (n, C)."""
        loss: Array = LOSSES[self.kind].mean(outputs, y)
        return loss

    @property
    def model_curvature(self) -> float:
        """Bound of the second derivative of one sample's loss in F: 1, ½ (cross-entropy) or ¼ (logistic)."""
        return LOSSES[self.kind].curvature

    @property
    def curvature(self) -> float:
        """β: bound of the Gauss–Newton curvature of one sample's loss in f: ``model_curvature`` · max |φ'|².

        For the unbounded slope of a quadratic output this is the curvature at |φ'| = 1, an assumption.
        """
        slope = largest_slope(OUTPUTS[self.model_output])
        return self.model_curvature * (slope**2 if math.isfinite(slope) else 1.0)
