"""Products with the Hessian of the training loss, and with its generalized Gauss–Newton part."""

from functools import partial
from typing import Any

import jax
from jax import Array
from jax.typing import ArrayLike

from ntk_core.dynamics._losses import Loss
from ntk_core.networks.architectures import Network
from ntk_core.traced import accepted, accepted_targets, axes_of, like_params


def loss_hessian_product(net: Any, params: Any, x: ArrayLike, y: ArrayLike, vector: Any, loss: str = "") -> Any:
    """Return the product of the loss Hessian with a vector.

    v ↦ ∂²L/∂w² v for the mean training loss L(w) = (1/n) Σ_i ℓ(f(x_i; w), y_i), a tree like ``params``.

    ∂²L/∂w² = Jᵀ ∂²L/∂F² J + Σ_ia ∂L/∂F_ia ∂²F_ia/∂w², where F is the model of :class:`Loss` and J = ∂F/∂w: the first
    part is :func:`gauss_newton_product`.

    >>> w, ones = jnp.array([3.0]), jnp.ones((1, 1))
    >>> loss_hessian_product(lambda w, x: x @ w[:, None] ** 2, w, ones, ones, w).tolist()  # L = (w² − 1)²/2
    [156.0]

    Args:
        net: a network, or any callable ``apply(params, x)``; the loss takes its outputs: (n, C), (n,) or (n, T, C).
        params: w.
        x: inputs (n, *input_shape).
        y: targets, of the shape of the outputs.
        vector: v, a tree like ``params``.
        loss: ``square``, ``cross-entropy`` or ``logistic``; by default that of the output.

    Returns:
        A tree like ``params``.

    Raises:
        InvalidInput: for a model, data, vector or loss that do not fit each other.

    Source: Pearlmutter 1994 (forward over reverse).
    """
    apply, inputs, targets, rule = _asked(net, params, x, y, vector, loss)
    return _hessian_product(apply, rule, params, inputs, targets, vector)


def gauss_newton_product(net: Any, params: Any, x: ArrayLike, y: ArrayLike, vector: Any, loss: str = "") -> Any:
    """Return the product of the Gauss-Newton matrix with a vector.

    v ↦ Jᵀ ∂²L/∂F² J v: the part of the loss Hessian without second derivatives of the network.

    It is positive semidefinite, since losses are convex in F, and has the nonzero eigenvalues of K/n for the
    square loss. Arguments as for :func:`loss_hessian_product`.

    >>> w, ones = jnp.array([3.0]), jnp.ones((1, 1))
    >>> gauss_newton_product(lambda w, x: x @ w[:, None], w, ones, ones, w).tolist()
    [3.0]

    Args:
        net, params, x, y, vector, loss: as for :func:`loss_hessian_product`.

    Returns:
        A tree like ``params``.

    Raises:
        InvalidInput: as :func:`loss_hessian_product`.

    Source: Schraudolph 2002.
    """
    apply, inputs, targets, rule = _asked(net, params, x, y, vector, loss)
    return _gauss_newton(apply, rule, params, inputs, targets, vector)


def _asked(net: Any, params: Any, x: ArrayLike, y: ArrayLike, vector: Any, loss: str) -> tuple[Any, Any, Any, Loss]:
    model, inputs, num_outputs = accepted(net, params, x)
    targets = accepted_targets(y, len(inputs), num_outputs, axes=axes_of(model))
    like_params(vector, params, "vector")
    if isinstance(model, Network):
        # Pre-outputs: the loss applies φ itself.
        return model.with_output("linear").apply, inputs, targets, Loss(model.output, loss)
    rule = Loss("linear", loss)
    rule.check_axes(axes_of(model))
    return model, inputs, targets, rule


@partial(jax.jit, static_argnums=(0, 1))
def _hessian_product(apply: Any, loss: Loss, params: Any, x: Array, y: Array, vector: Any) -> Any:
    return jax.jvp(jax.grad(lambda w: loss(apply(w, x), y)), (params,), (vector,))[1]


@partial(jax.jit, static_argnums=(0, 1))
def _gauss_newton(apply: Any, loss: Loss, params: Any, x: Array, y: Array, vector: Any) -> Any:
    # In the model F, as which a square loss of a nonlinear output is convex.
    outputs, along = jax.jvp(lambda w: loss.model(apply(w, x)), (params,), (vector,))
    curved = jax.jvp(jax.grad(lambda f: loss.of_model(f, y)), (outputs,), (along,))[1]
    return jax.vjp(lambda w: loss.model(apply(w, x)), params)[1](curved)[0]
