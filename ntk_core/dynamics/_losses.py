"""Training losses: means over samples, so rates do not depend on n."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped

from ntk_core.dynamics.choices import LOSSES, usual_loss
from ntk_core.errors import InvalidInput, check_choice
from ntk_core.kernels import (
    direction_of,
    has_lost_entries,
    moving_of,
    refuse_rows_without_outputs,
)
from ntk_core.networks.architectures import Network, largest_slope, output_function
from ntk_core.networks.choices import OUTPUTS
from ntk_core.traced import (
    Apply,
    Inputs,
    Rows,
    Trainable,
    accepted,
    accepted_targets,
    axes_of,
    like_params,
    refuse_asymmetric,
    refuse_loops,
    restricted,
    value_and_slope,
    with_usual_settings,
)


@dataclass(frozen=True)
class Loss:
    """Loss of a network as a function of its pre-outputs.

    L(w) = (1/n) Σ_i ℓ(F_i, y_i), where ``LOSSES[kind]`` of ``ntk_core.dynamics.choices`` states ℓ:
    ½‖F − y‖² for ``square``, −log softmax(F) · y for ``cross-entropy``, Σ_a log(1 + e^(−y_a F_a))
    with y = ±1 for ``logistic``.

    φ is the output, f the pre-outputs. The model F = φ(f) is linearized and recorded; F = f if the
    loss applies φ itself, as cross-entropy applies the softmax. The default is cross-entropy for
    ``softmax``, also for the linear output that shares its parameters (Liu, Zhu & Belkin 2020,
    Eq. 46), else square (Eq. 47).

    Raises:
        InvalidInput: for a kind that is not in ``ntk_core.dynamics.choices.LOSSES``.

    Source: Liu, Zhu & Belkin 2020, App. B, Eqs. 46 and 47; the logistic loss is our choice.

    >>> import jax.numpy as jnp
    >>> float(Loss("linear")(jnp.array([[1.0], [3.0]]), jnp.zeros((2, 1))))
    2.5
    """

    output: str
    kind: str = ""

    def __post_init__(self) -> None:
        output_function(self.output)
        if not self.kind:
            object.__setattr__(self, "kind", usual_loss(self.output))
        check_choice("loss", self.kind, LOSSES)

    def __call__(self, f: Float[Array, "n C"], y: Shaped[Array, "n C"]) -> Float[Array, ""]:
        """The mean loss, a scalar, for pre-outputs and targets of shape (n, C)."""
        return self.of_model(self.model(f), y)

    def check_axes(self, axes: tuple[int, ...]) -> None:
        """Refuse outputs (n, T, C) for losses that couple the C outputs of one t."""
        if axes and LOSSES[self.kind].couples_outputs:
            given = f"{self.kind} of outputs (n, {', '.join(map(str, axes))})"
            others = [loss.name for loss in LOSSES.values() if not loss.couples_outputs]
            raise InvalidInput("loss", given, " or ".join(others))

    @property
    def model_output(self) -> str:
        """The function from f to F: φ, or ``linear`` if the loss applies the softmax."""
        return "linear" if self.output == LOSSES[self.kind].applies else self.output

    def model(self, f: Float[Array, "n C"]) -> Float[Array, "n C"]:
        """F, (n, C), from pre-outputs f, (n, C)."""
        return output_function(self.model_output)(f)

    def of_model(self, outputs: Float[Array, "n C"], y: Shaped[Array, "n C"]) -> Float[Array, ""]:
        """The mean loss, a scalar, as a function of F, (n, C)."""
        loss: Array = LOSSES[self.kind].mean(outputs, y)
        return loss

    @property
    def model_curvature(self) -> float:
        """Bound of the second derivative of one sample's loss in F, as in the table of losses."""
        return LOSSES[self.kind].curvature

    @property
    def curvature(self) -> float:
        """β: bound of the Gauss–Newton curvature of one sample's loss in f.

        ``model_curvature`` · max |φ'|².

        For the unbounded slope of a quadratic output this is the curvature at
        |φ'| = 1, an assumption.
        """
        slope = largest_slope(OUTPUTS[self.model_output])
        return self.model_curvature * (slope**2 if math.isfinite(slope) else 1.0)


@with_usual_settings
def loss_hessian_product(
    net: Network | Apply,
    params: PyTree,
    x: Inputs,
    y: ArrayLike,
    vector: PyTree,
    loss: str = "",
    *,
    trainable: Trainable = None,
) -> PyTree:
    """Return the product of the loss Hessian with a vector.

    v ↦ ∂²L/∂w² v for the mean training loss L(w) = (1/n) Σ_i ℓ(f(x_i; w), y_i), a tree like
    ``params``.

    ∂²L/∂w² = Jᵀ ∂²L/∂F² J + Σ_ia ∂L/∂F_ia ∂²F_ia/∂w², where F is the model of :class:`Loss` and
    J = ∂F/∂w: the first part is :func:`gauss_newton_product`.

    >>> w, ones = jax.numpy.array([3.0]), jax.numpy.ones((1, 1))
    >>> square = lambda w, x: x @ w[:, None] ** 2
    >>> loss_hessian_product(square, w, ones, ones, w).tolist()  # L = (w² − 1)²/2
    [156.0]

    Args:
        net: a network, or any callable ``apply(params, x)`` with outputs (n, C), (n,) or (n, T, C).
        params: w.
        x: inputs (n, *input_shape).
        y: targets, of the shape of the outputs.
        vector: v, a tree like ``params``.
        loss: one of ``LOSSES``, such as ``square`` or ``cross-entropy``; by default that of the
            output.
        trainable: the parameters w, as for ``empirical_ntk``; the product is 0 for all others.

    Returns:
        A tree like ``params``; leaves that are not floating-point numbers are those of ``params``.

    Raises:
        InvalidInput: for incompatible model, data, vector or loss, and for second
            derivatives that are not symmetric, as with straight-through estimators, and for
            loops without a gradient.

    Source: Pearlmutter 1994 (forward over reverse).
    """
    apply, inputs, targets, rule = _asked(net, params, x, y, vector, loss, trainable)
    refuse_asymmetric(apply, params, inputs, targets, LossOfParameters(apply, rule))
    found = _hessian_product(apply, rule, params, inputs, targets, vector)
    return _with_outputs(found, apply, params, inputs)


@with_usual_settings
def gauss_newton_product(
    net: Network | Apply,
    params: PyTree,
    x: Inputs,
    y: ArrayLike,
    vector: PyTree,
    loss: str = "",
    *,
    trainable: Trainable = None,
) -> PyTree:
    """Return the product of the Gauss-Newton matrix with a vector.

    v ↦ Jᵀ ∂²L/∂F² J v: the part of the loss Hessian without second derivatives of the network.

    It is positive semidefinite, since losses are convex in F, and has the nonzero eigenvalues of
    K/n for the square loss. Arguments as for :func:`loss_hessian_product`.

    >>> w, ones = jax.numpy.array([3.0]), jax.numpy.ones((1, 1))
    >>> gauss_newton_product(lambda w, x: x @ w[:, None], w, ones, ones, w).tolist()
    [3.0]

    Args:
        net, params, x, y, vector, loss, trainable: as for :func:`loss_hessian_product`.

    Returns:
        A tree like ``params``, as for :func:`loss_hessian_product`.

    Raises:
        InvalidInput: as :func:`loss_hessian_product`.

    Source: Schraudolph 2002.
    """
    apply, inputs, targets, rule = _asked(net, params, x, y, vector, loss, trainable)
    found = _gauss_newton(apply, rule, params, inputs, targets, vector)
    return _with_outputs(found, apply, params, inputs)


def _with_outputs(found: PyTree, apply: Apply, params: PyTree, x: Rows) -> PyTree:
    """Return a product; refuse rows of trees without finite outputs."""
    if has_lost_entries(moving_of(apply, found)[0]):
        refuse_rows_without_outputs(apply, params, x)
    return found


def _asked(
    net: Network | Apply,
    params: PyTree,
    x: Inputs,
    y: ArrayLike,
    vector: PyTree,
    loss: str,
    trainable: Trainable,
) -> tuple[Apply, Rows, Rows, Loss]:
    found = accepted_loss(net, params, x, loss, trainable)
    targets = found.targets(y)
    like_params(vector, params, "vector")
    return found.apply, found.x, targets, found.loss


class AcceptedLoss(NamedTuple):
    """Validated model and loss.

    Attributes:
        model: the network or function.
        apply: (w, x) → what the loss takes: the pre-outputs of a network, or the
            outputs of a function.
        loss: as a function of these.
        x: inputs as an array, (n, *input_shape).
        num_outputs: C.
    """

    model: Network | Apply
    apply: Apply
    loss: Loss
    x: Rows
    num_outputs: int

    def targets(self, y: object) -> Rows:
        """Return targets (n, C)."""
        axes = axes_of(self.model)
        return accepted_targets(y, len(self.x), self.num_outputs, axes=axes)


def accepted_loss(
    net: Network | Apply,
    params: PyTree,
    x: Inputs,
    loss: str = "",
    trainable: Trainable = None,
) -> AcceptedLoss:
    """Validate a model and the name of a loss; the loss applies the output φ of a network.

    Raises:
        InvalidInput: as :func:`loss_hessian_product`.
    """
    output = net.output if isinstance(net, Network) else "linear"
    if trainable is not None:
        pre_outputs = net.with_output("linear") if isinstance(net, Network) else net
        net = restricted(pre_outputs, params, trainable)
    model, inputs, num_outputs = accepted(net, params, x)
    rule = Loss(output, loss)
    if isinstance(model, Network):
        apply = model.with_output("linear").apply
        return AcceptedLoss(model, apply, rule, inputs, num_outputs)
    rule.check_axes(axes_of(model))
    refuse_loops(model, params, inputs)
    return AcceptedLoss(model, model, rule, inputs, num_outputs)


@dataclass(frozen=True)
class LossOfParameters:
    """L(w) as a function of (w, x, y).

    Equal for equal models and losses, as compiled programs need.
    """

    function: Apply
    loss: Callable[[Array, Array], Array]

    def __call__(self, params: PyTree, x: Array, y: Array) -> Float[Array, ""]:
        return self.loss(self.function(params, x), y)


@partial(jax.jit, static_argnums=(0, 1))
def _hessian_product(
    apply: Apply, loss: Loss, params: PyTree, x: Array, y: Array, vector: PyTree
) -> PyTree:
    moving, restore = moving_of(apply, params)
    along, _ = moving_of(apply, vector)
    slopes = jax.grad(lambda w: loss(apply(restore(w), x), y))
    return direction_of(apply, params, value_and_slope(slopes, moving, along)[1])


@partial(jax.jit, static_argnums=(0, 1))
def _gauss_newton(
    apply: Apply, loss: Loss, params: PyTree, x: Array, y: Array, vector: PyTree
) -> PyTree:
    moving, restore = moving_of(apply, params)
    direction, _ = moving_of(apply, vector)

    # In F, in which the square loss of a nonlinear output is convex.
    def model(w: PyTree) -> Array:
        return loss.model(apply(restore(w), x))

    outputs, along = value_and_slope(model, moving, direction)
    curved = jax.jvp(jax.grad(lambda f: loss.of_model(f, y)), (outputs,), (along,))[1]
    return direction_of(apply, params, jax.vjp(model, moving)[1](curved)[0])
