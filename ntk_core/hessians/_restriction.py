"""The small space that holds the whole range of a Hessian (docs/math/hessian_in_a_small_space.md).

For a layer with inputs a_p and cotangents δ_p = ∂g/∂z_p at positions p, the Hessian of a scalar g maps any direction to
Σ_p (δ̇_p a_pᵀ + δ_p ȧ_pᵀ): with orthonormal bases A of the a_p and D of the δ_p its range lies in

    S = {A U + V Dᵀ : U (r_a, num_features), V (fan_in, r_δ), Aᵀ V = 0},

and (U, V) ↦ A U + V Dᵀ is an isometry. The Hessian restricted to S has exactly the non-zero spectrum of the full one.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Shaped

from ntk_core.networks.architectures import Layer, LayerViews, Network, NetworkParams, layer_views, whole
from ntk_core.networks.architectures._layers import Params
from ntk_core.networks.sizes import small_space_pays

Coordinates = dict[str, dict[str, Array]]
Scalar = Callable[[Array], Array]


class Bases(NamedTuple):
    """Orthonormal columns spanning a layer's inputs, (fan_in, r_a), and its cotangents, (num_features, r_δ)."""

    inputs: Array
    cotangents: Array


class Restriction(NamedTuple):
    """Coordinates around parameters w0 in which the Hessian of one scalar of one input is small.

    Attributes:
        bases: for each layer that is restricted; trained layers that are missing here move all their weights, because
            they are masked or no matrix (the subspace would not stay orthonormal), or do not gain from it.
        zero: the coordinates of w0, all zero, in the shapes that every direction has.
    """

    bases: dict[str, Bases]
    zero: Coordinates


def restriction(net: Network, params: NetworkParams, x: Array, scalar: Scalar) -> Restriction:
    """The space S around ``params`` for g = scalar(f(w; x)), with pre-outputs f, (C,), and ``x`` of shape (1, ...)."""
    views = layer_views(net, params, x)
    toward = jax.grad(scalar)(views.outputs[0])
    bases: dict[str, Bases] = {}
    zero: Coordinates = {}
    for name, layer in net.layers.items():
        if not layer.trainable:
            continue
        found = _layer_bases(layer, params[name], views, name, toward)
        if found is not None:
            bases[name] = found
        zero[name] = _zero_coordinates(layer, params[name], found)
    return Restriction(bases, zero)


def _layer_bases(layer: Layer, params: Params, views: LayerViews, name: str, toward: Array) -> Bases | None:
    if "mask" in params or not layer.is_matrix:
        return None
    inputs = layer.features(params, views.inputs[name])
    positions, fan_in = inputs.shape[1:]
    cotangents = layer.positions_of(jnp.tensordot(toward, whole(views.cotangents[name]), 1))
    if not small_space_pays(positions, fan_in, cotangents.shape[-1]):
        return None
    weighted = layer.multiplier(params, fan_in) * cotangents[0]
    return Bases(jnp.linalg.qr(inputs[0].T)[0], jnp.linalg.qr(weighted.T)[0])


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
    """The layer applied to the direction alone, which is exact since it is linear in its weights."""
    if bases is None:
        return layer.apply({**params, **coordinates}, a)
    inputs = layer.features(params, a)
    through_inputs = (inputs @ bases.inputs) @ coordinates["along_inputs"]
    through_cotangents = (inputs @ coordinates["along_cotangents"]) @ bases.cotangents.T
    z = layer.multiplier(params, inputs.shape[-1]) * (through_inputs + through_cotangents)
    return z + layer.bias_multiplier() * coordinates["bias"] if "bias" in coordinates else z


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
