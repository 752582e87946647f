"""Linear and quadratic models of functions."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, PyTree

from ntk_core.kernels import has_lost_entries, moving_of, refuse_rows_without_outputs
from ntk_core.networks.architectures import Network
from ntk_core.traced import (
    Apply,
    Inputs,
    Trainable,
    accepted,
    axes_of,
    check_model,
    derivative_along,
    is_reverse_only,
    like_params,
    random_weights,
    refuse_asymmetric,
    restricted,
    value_and_derivative,
    value_and_slope,
    with_usual_settings,
)


def linearize(net: Network | Apply, params: PyTree, *, trainable: Trainable = None) -> Apply:
    """Return the linear model of a function at its parameters.

    f_lin(params, x) = f(w₀; x) + ⟨∇_w f(w₀; x), w − w₀⟩ with w₀ = ``params``, shape (n, C).

    Args:
        net: a network of this package, or any callable ``apply(params, x)`` with outputs (n, C),
            (n, T, C), or (n,), which become (n, 1).
        params: w₀. Leaves that are not floating-point numbers (masks) keep these values.
        trainable: the parameters w, as for ``empirical_ntk``; all others keep their values at w₀.

    Returns:
        A function of (params, x) with the outputs of the linear model.

    >>> w0, w = jax.numpy.array(3.0), jax.numpy.array(4.0)
    >>> linearize(lambda w, x: w**2 * x, w0)(w, jax.numpy.ones((1, 1))).item()  # 9 + 2·3·(4 − 3)
    15.0

    Raises:
        InvalidInput: for incompatible model, parameters or inputs.

    Source: Liu, Zhu & Belkin 2020, §2; Lee et al. 2019.
    """
    return _expanded(restricted(net, params, trainable), params, first_order)


def quadratic_model(net: Network | Apply, params: PyTree, *, trainable: Trainable = None) -> Apply:
    """Return the quadratic model of a function at its parameters.

    f_quad(params, x) = f(w₀; x) + ⟨∇f(w₀; x), δ⟩ + ½ δᵀ∇²f(w₀; x) δ with δ = w − w₀, shape (n, C).

    Nested directional derivatives along δ replace the Hessian, so memory is a few times the
    weights. Piecewise linear activations have second derivatives almost everywhere.

    Args:
        net: a network or callable, as for :func:`linearize`.
        params: w₀. Leaves that are not floating-point numbers (masks) keep these values.
        trainable: the parameters w, as for ``empirical_ntk``; all others keep their values at w₀.

    Returns:
        A function of (params, x) with the outputs of the quadratic model.

    >>> w0, w = jax.numpy.array(3.0), jax.numpy.array(4.0)
    >>> model = quadratic_model(lambda w, x: w**2 * x, w0)
    >>> model(w, jax.numpy.ones((1, 1))).item()  # w² is its own quadratic model
    16.0

    Raises:
        InvalidInput: for incompatible model, parameters or inputs; from the returned function also
            if second derivatives are not symmetric, as with straight-through estimators.

    Source: Zhu, Liu, Radhakrishnan & Belkin 2022, "Quadratic models for understanding
    neural network dynamics".
    """
    return _expanded(restricted(net, params, trainable), params, second_order)


def _expanded(
    net: Network | Apply,
    params: PyTree,
    order: Callable[[Callable[[PyTree], Array], PyTree, PyTree], Array],
) -> Apply:
    """Return an expansion of the function around w₀ = ``params``."""
    check_model(net, params)
    function = net.apply if isinstance(net, Network) else net  # moves frozen layers, too
    origin, rebuild = moving_of(function, params)

    @with_usual_settings
    def model(moved: PyTree, x: Inputs) -> Float[Array, "n ..."]:
        found, given, num_outputs = accepted(net, params, x)
        like_params(moved, params, "params")
        direction = jax.tree.map(lambda w, w0: w - w0, moving_of(function, moved)[0], origin)
        apply = found.apply if isinstance(found, Network) else found
        rows = jnp.asarray(given)
        if order is second_order:
            refuse_asymmetric(found, params, rows, random_weights(len(rows), num_outputs))
        outputs = order(lambda w: apply(rebuild(w), rows), origin, direction)
        if has_lost_entries(outputs):
            refuse_rows_without_outputs(apply, params, rows)
        axes = axes_of(apply)
        return outputs.reshape(len(outputs), *axes) if axes else outputs  # (n, T·C) to (n, T, C)

    return model


def first_order(function: Callable[[PyTree], Array], origin: PyTree, direction: PyTree) -> Array:
    """Return function(w₀) plus its first derivative along ``direction``."""
    value, change = value_and_slope(function, origin, direction)
    return value + change


def second_order(function: Callable[[PyTree], Array], origin: PyTree, direction: PyTree) -> Array:
    """Return function(w₀) plus its first and half its second derivative along ``direction``."""
    value, slope, curvature = derivatives_along(function, origin, direction)
    return value + slope + curvature / 2


def derivatives_along(
    function: Callable[[PyTree], Array], origin: PyTree, direction: PyTree
) -> tuple[Array, Array, Array]:
    """Return (f, J δ, δᵀ H δ) of a function at w₀, δ = ``direction``."""
    if is_reverse_only(function, origin):
        value = function(origin)
        # Reverse mode only: each directional derivative is the transpose of a backward pass.
        slope, bend = value_and_derivative(
            lambda w: derivative_along(function, w)(direction), origin
        )
        return value, slope, bend(direction)

    def along(w: PyTree) -> tuple[Array, Array]:
        return jax.jvp(function, (w,), (direction,))

    # Rules inside of custom_jvp rules may have no forward mode.
    (value, slope), (_, curvature) = value_and_slope(along, origin, direction)
    return value, slope, curvature
