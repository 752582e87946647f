"""The linear model that a network becomes, and the quadratic one that is the next best."""

from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from jaxtyping import Float, Shaped

from ntk_core.kernels import split_inexact
from ntk_core.networks.architectures import Network

Apply = Callable[[Any, Array], Array]
Linearized = Callable[[Any, Array], Array]


def linearize(net: Network | Apply, params: Any) -> Linearized:
    """f_lin(params, x) = f(w₀; x) + ⟨∇_w f(w₀; x), w − w₀⟩ with w₀ = ``params``, shape (n, C).

    ``net`` is a network of this package or any callable ``apply(params, x) -> (n, C)``. Parameters that are no
    floating-point numbers (masks) stay at their values at w₀.

    >>> w0, w = jax.numpy.array(3.0), jax.numpy.array(4.0)
    >>> linearize(lambda w, x: w**2 * x, w0)(w, jax.numpy.ones((1, 1))).item()  # 9 + 2·3·(4 − 3)
    15.0

    Source: Liu, Zhu & Belkin 2020, §2; Lee et al. 2019.
    """
    apply = net.apply if isinstance(net, Network) else net
    origin, rebuild = split_inexact(params)

    def f_lin(moved: Any, x: Shaped[Array, "n ..."]) -> Float[Array, "n C"]:
        direction = jax.tree.map(lambda w, w0: w - w0, split_inexact(moved)[0], origin)
        value, change = jax.jvp(lambda w: apply(rebuild(w), x), (origin,), (direction,))
        return value + change

    return f_lin


def quadratic_model(net: Network | Apply, params: Any) -> Linearized:
    """f_quad(params, x) = f(w₀; x) + ⟨∇f(w₀; x), δ⟩ + ½ δᵀ∇²f(w₀; x) δ with δ = w − w₀, shape (n, C).

    ``net`` is a network of this package or any callable ``apply(params, x) -> (n, C)``, w₀ = ``params``; δ is nested
    twice in directional derivatives, so no Hessian is formed, and its memory is a few times the weights. Parameters
    that are no floating-point numbers (masks) stay at their values at w₀. With piecewise linear activations the
    second derivative is that almost everywhere.

    >>> w0, w = jax.numpy.array(3.0), jax.numpy.array(4.0)
    >>> quadratic_model(lambda w, x: w**2 * x, w0)(w, jax.numpy.ones((1, 1))).item()  # w² is its own quadratic model
    16.0

    Source: Zhu, Liu, Radhakrishnan & Belkin 2022, "Quadratic models for understanding neural network dynamics".
    """
    apply = net.apply if isinstance(net, Network) else net
    origin, rebuild = split_inexact(params)

    def f_quad(moved: Any, x: Shaped[Array, "n ..."]) -> Float[Array, "n C"]:
        direction = jax.tree.map(lambda w, w0: w - w0, split_inexact(moved)[0], origin)
        return second_order(lambda w: apply(rebuild(w), x), origin, direction)

    return f_quad


def second_order(function: Callable[[Any], Array], origin: Any, direction: Any) -> Array:
    """function(w₀) + its first and half its second derivative along ``direction``."""

    def along(w: Any) -> tuple[Array, Array]:
        return jax.jvp(function, (w,), (direction,))

    (value, slope), (_, curvature) = jax.jvp(along, (origin,), (direction,))
    return value + slope + curvature / 2
