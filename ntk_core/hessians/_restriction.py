"""The small space that holds the whole range of a Hessian (docs/math/hessian_in_a_small_space.md).

For a layer with inputs a_p and cotangents δ_p = ∂g/∂z_p at positions p, the Hessian of a scalar g maps any direction to
Σ_p (δ̇_p a_pᵀ + δ_p ȧ_pᵀ): with orthonormal bases A of the a_p and D of the δ_p its range is in

    S = {A U + V Dᵀ : U (r_a, num_features), V (fan_in, r_δ), Aᵀ V = 0},

and (U, V) ↦ A U + V Dᵀ is an isometry. The Hessian restricted to S has exactly the non-zero spectrum of the full one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Shaped

from ntk_core.networks.architectures import Layer, Network, NetworkParams
from ntk_core.networks.architectures._layers import Params, Shape
from ntk_core.networks.sizes import small_space_pays

Coordinates = dict[str, dict[str, Array]]
Scalar = Callable[[Array], Array]


class Bases(NamedTuple):
    """Orthonormal columns spanning a layer's inputs, (fan_in, r_a), and its cotangents, (num_features, r_δ)."""

    inputs: Array
    cotangents: Array


class Taps(NamedTuple):
    """Of a layer: what is added to its pre-activations z, (1, *output_shape); weights of its inputs, (P, fan_in)."""

    outputs: Array
    inputs: Array


Moved = Taps | dict[str, Array]


class Restriction(NamedTuple):
    """Coordinates around parameters w0 in which the Hessian of one scalar of one input is small.

    Attributes:
        bases: for each layer that is restricted; trained layers that are missing here move all their weights, because
            they are masked or no matrix (the subspace would not stay orthonormal), or do not gain from it.
        zero: the coordinates of w0, all zero, in the shapes that every direction has.
    """

    bases: dict[str, Bases]
    zero: Coordinates


def restricted_hessian(
    net: Network, params: NetworkParams, x: Array, scalar: Scalar
) -> tuple[Restriction, Callable[[Coordinates], Coordinates]]:
    """The space S around ``params`` for g = scalar(f(w; x)), f (C,), x (1, ...); and the Hessian of g as a map on it.

    Add a tap τ_p to each pre-activation z_p, and Σ_p σ_p·a_p to g. The gradient with respect to (τ, σ) at 0 is (δ, a),
    which gives the bases; along a direction Δ, where τ̇ = c Δᵀ a and σ̇ = c Δ δ, its derivative is (δ̇, ȧ). So one pass
    forward and one backward at ``params`` serve both.
    """
    shapes = net.layer_input_shapes(x.shape[1:])
    moving = {name: layer for name, layer in net.layers.items() if layer.trainable}
    start = {name: _unmoved(layer, params[name], shapes[name], x.dtype) for name, layer in moving.items()}

    def value(moved: dict[str, Moved]) -> Array:
        pulled = []

        def call(name: str, a: Array) -> Array:
            layer, z = net.layers[name], net.layers[name].apply(params[name], a)
            if name not in moved:
                return z
            moves = moved[name]
            if not isinstance(moves, Taps):
                return z + _gain(layer, params[name], None, moves, a)
            pulled.append(jnp.vdot(moves.inputs, layer.features(params[name], a)[0]))
            return z + moves.outputs

        g = scalar(net.body(call, x)[0])
        return g + sum(pulled)

    with jax.default_matmul_precision("highest"):
        gradient, tangent = jax.linearize(jax.grad(value), start)
        seen = {name: _seen(moving[name], params[name], at) for name, at in gradient.items() if isinstance(at, Taps)}
        bases = {name: Bases(*(jnp.linalg.qr(side.T)[0] for side in sides[:2])) for name, sides in seen.items()}
    zero = {name: _zero_coordinates(moving[name], params[name], bases.get(name)) for name in moving}

    def taps(coordinates: Coordinates) -> dict[str, Moved]:
        return {
            name: _taps(moving[name], params[name], bases[name], seen[name], along) if name in bases else along
            for name, along in coordinates.items()
        }

    def product(coordinates: Coordinates) -> Coordinates:
        with jax.default_matmul_precision("highest"):
            result: Coordinates = jax.linear_transpose(taps, zero)(tangent(taps(coordinates)))[0]
        return result

    return Restriction(bases, zero), product


def _unmoved(layer: Layer, params: Params, shape: Shape, dtype: Any) -> Moved:
    """Zero taps of a layer that gains from the small space, otherwise zero weights."""
    if "mask" not in params and layer.is_matrix:
        inputs = jax.eval_shape(layer.features, params, jax.ShapeDtypeStruct((1, *shape), dtype))
        outputs = jnp.zeros((1, *layer.output_shape(shape)), params["weight"].dtype)
        positions, fan_in = inputs.shape[1:]
        if small_space_pays(positions, fan_in, outputs.shape[-1]):
            return Taps(outputs, jnp.zeros(inputs.shape[1:], outputs.dtype))
    return _zero_coordinates(layer, params, None)


def _seen(layer: Layer, params: Params, gradient: Taps) -> tuple[Array, Array, Shape]:
    """(inputs a of all positions, (P, fan_in); c δ there, (P, num_features); the shape of z)."""
    outputs, a = gradient
    return a, layer.multiplier(params, a.shape[-1]) * layer.positions_of(outputs)[0], outputs.shape


def _taps(
    layer: Layer, params: Params, bases: Bases, seen: tuple[Array, Array, Shape], along: dict[str, Array]
) -> Taps:
    """What a direction Δ = A U + V Dᵀ adds at fixed a and δ: c a Δ to the outputs, c δ Δᵀ as weights of the inputs."""
    (a, weighted, shape), u, v = seen, along["along_inputs"], along["along_cotangents"]
    z = _of_features(layer, params, bases, along, a)
    return Taps(z.reshape(shape), (weighted @ u.T) @ bases.inputs.T + (weighted @ bases.cotangents) @ v.T)


def _zero_coordinates(layer: Layer, params: Params, bases: Bases | None) -> dict[str, Array]:
    zero = {name: jnp.zeros_like(value) for name, value in params.items() if name in layer.trainable_names()}
    if bases is None:
        return zero
    weight = zero.pop("weight")
    along_inputs = jnp.zeros((bases.inputs.shape[1], weight.shape[-1]), weight.dtype)
    along_cotangents = jnp.zeros((bases.inputs.shape[0], bases.cotangents.shape[1]), weight.dtype)
    return {"along_inputs": along_inputs, "along_cotangents": along_cotangents, **zero}


def displaced_pre_outputs(
    net: Network, params: NetworkParams, small: Restriction, coordinates: Coordinates, x: Shaped[Array, "n ..."]
) -> Float[Array, "n C"]:
    """f(w0 + direction; x), (n, C), without forming a weight: each layer adds to its pre-activation its gain."""
    layers = net.layers

    def call(name: str, a: Array) -> Array:
        z = layers[name].apply(params[name], a)
        if name not in coordinates:
            return z
        return z + _gain(layers[name], params[name], small.bases.get(name), coordinates[name], a).reshape(z.shape)

    return net.body(call, x)


def _gain(layer: Layer, params: Params, bases: Bases | None, coordinates: dict[str, Array], a: Array) -> Array:
    """What a direction adds to z: the layer applied to it alone where z is linear in the weights."""
    if not layer.is_linear:
        moved = {name: params[name] + along for name, along in coordinates.items()}
        return layer.apply({**params, **moved}, a) - layer.apply(params, a)
    if bases is None:
        return layer.apply({**params, **coordinates}, a)
    return _of_features(layer, params, bases, coordinates, layer.features(params, a))


def _of_features(layer: Layer, params: Params, bases: Bases, along: dict[str, Array], a: Array) -> Array:
    """c a (A U + V Dᵀ) and the bias, for features a, (..., fan_in)."""
    through_inputs = (a @ bases.inputs) @ along["along_inputs"]
    through_cotangents = (a @ along["along_cotangents"]) @ bases.cotangents.T
    z = layer.multiplier(params, a.shape[-1]) * (through_inputs + through_cotangents)
    return z + layer.bias_multiplier() * along["bias"] if "bias" in along else z


def projected(small: Restriction, params: NetworkParams, coordinates: Coordinates) -> Coordinates:
    """The nearest coordinates that obey Aᵀ V = 0, and move no masked edge."""
    result: Coordinates = {}
    for name, moved in coordinates.items():
        result[name] = dict(moved)
        if name in small.bases:
            basis, v = small.bases[name].inputs, moved["along_cotangents"]
            result[name]["along_cotangents"] = v - basis @ (basis.T @ v)
        elif "mask" in params[name]:
            result[name]["weight"] = moved["weight"] * params[name]["mask"]
    return result


def lifted(small: Restriction, params: NetworkParams, coordinates: Coordinates) -> NetworkParams:
    """The direction itself, with weights of full size: for callers that need one eigenvector, never inside a loop."""
    result: NetworkParams = {}
    for name, moved in coordinates.items():
        full = {key: value for key, value in moved.items() if key in ("weight", "bias")}
        if name in small.bases:
            bases = small.bases[name]
            weight = bases.inputs @ moved["along_inputs"] + moved["along_cotangents"] @ bases.cotangents.T
            full["weight"] = weight.reshape(params[name]["weight"].shape)
        result[name] = full
    return result


def dimension(small: Restriction) -> int:
    """An upper bound of the dimension of S, from shapes alone (masked edges are counted)."""
    total = 0
    for name, zero in small.zero.items():
        total += sum(value.size for value in zero.values())
        if name in small.bases:
            total -= small.bases[name].inputs.shape[1] * zero["along_cotangents"].shape[1]
    return total
