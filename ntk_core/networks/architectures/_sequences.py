"""What sequences (n, positions, features) go through: attention, normalization, positions; and two layers of their own.

Dense layers with the same weights at all positions are convolutions whose filter sees one position.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Shaped

from ntk_core.networks.architectures._contractions import Cotangents, gram, whole
from ntk_core.networks.architectures._layers import NTK_SCALING, Layer, Params, Scaling, Shape

NORMALIZED_FROM = 1e-5  # added to variances: what is constant stays finite
PERIODS = 10_000.0  # the slowest sine takes 2π times as many positions


def attend(
    queries: Float[Array, "n T F"],
    keys: Float[Array, "n T F"],
    values: Float[Array, "n T F"],
    num_heads: int,
    exponent: float,
    causal: bool,
) -> Float[Array, "n T F"]:
    """Σⱼ Aᵢⱼ vⱼ with Aᵢ = softmaxⱼ(qᵢ·kⱼ / d^τ), head by head: F = H d features, those of a head side by side.

    Args:
        exponent: τ.
        causal: softmax over j ≤ i alone.

    Source: Vaswani et al. 2017, §3.2; 1/d in place of 1/√d: Hron, Bahri, Sohl-Dickstein & Novak 2020.
    """
    scores = scores_of(queries, keys, num_heads, exponent, causal)
    heads = values.reshape(*values.shape[:-1], num_heads, -1)
    mixed = jnp.einsum("nhij,njhc->nihc", jax.nn.softmax(scores, axis=-1), heads)
    return mixed.reshape(values.shape)


def scores_of(
    queries: Float[Array, "n T F"], keys: Float[Array, "n T F"], num_heads: int, exponent: float, causal: bool
) -> Float[Array, "n H T T"]:
    """qᵢ·kⱼ / d^τ of every head; −∞ for j > i where it is causal."""
    q, k = (each.reshape(*each.shape[:-1], num_heads, -1) for each in (queries, keys))
    scores = jnp.einsum("nihc,njhc->nhij", q, k) / q.shape[-1] ** exponent
    return jnp.where(jnp.tri(scores.shape[-1], dtype=bool), scores, -jnp.inf) if causal else scores


def normalize(a: Float[Array, "..."]) -> Float[Array, "..."]:
    """(a − mean) / √(variance + 10⁻⁵) over the last axis (Ba, Kiros & Hinton 2016, without gains and biases)."""
    centered = a - a.mean(axis=-1, keepdims=True)
    return centered / jnp.sqrt((centered**2).mean(axis=-1, keepdims=True) + NORMALIZED_FROM)


def sines(shape: Shape) -> Float[Array, "T d"]:
    """√2 (sin ωᵢ t, cos ωᵢ t) side by side for positions t, ω falling from 1 to 10⁻⁴: mean square 1 (for even d)."""
    length, features = shape
    pairs = jnp.arange(features) // 2
    angles = jnp.arange(length)[:, None] * PERIODS ** (-2 * pairs / features)
    return jnp.sqrt(2) * jnp.where(jnp.arange(features) % 2, jnp.cos(angles), jnp.sin(angles))


@dataclass(frozen=True)
class Gain(Layer):
    """z = g ∘ a along the last axis: one factor g_k for each feature k, the same at all positions, 1 at initialization.

    In the NTK and the standard parameterization the factor is the parameter itself, without a multiplier; in
    ``lecun`` it is √m times the parameter, as for all others. Kernel: J^c_i = Σ_p a_ip ∘ δ^c_ip, then J·J.
    """

    is_matrix: ClassVar[bool] = False

    scaling: Scaling = NTK_SCALING

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def init(self, key: Array, input_shape: Shape) -> Params:
        return {"weight": jnp.full(input_shape[-1:], 1 / self.scaling.bias()[0], jnp.result_type(float))}

    def apply(self, params: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        return self.scaling.bias()[0] * params["weight"] * a

    def kernel(
        self,
        params: Params,
        a1: Shaped[Array, "n1 ..."],
        d1: Cotangents,
        a2: Shaped[Array, "n2 ..."],
        d2: Cotangents,
    ) -> Float[Array, "C n1 C n2"]:
        def jacobian(a: Array, d: Cotangents) -> Array:
            products = a * whole(d)
            return products.sum(axis=tuple(range(2, products.ndim - 1)))

        left = jacobian(a1, d1)
        return self.scaling.bias()[0] ** 2 * gram(left, left if d2 is d1 and a2 is a1 else jacobian(a2, d2))


@dataclass(frozen=True)
class Positions(Layer):
    """z_p = w_p whatever the input: one vector for each position, drawn and multiplied as biases are, N(0, I).

    Kernel: Σ_p δ^c_ip · δ^d_jp.
    """

    is_matrix: ClassVar[bool] = False

    scaling: Scaling = NTK_SCALING

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def init(self, key: Array, input_shape: Shape) -> Params:
        return {"weight": self.scaling.bias()[1] * jax.random.normal(key, input_shape)}

    def apply(self, params: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        return jnp.broadcast_to(self.scaling.bias()[0] * params["weight"], a.shape)

    def kernel(
        self,
        params: Params,
        a1: Shaped[Array, "n1 ..."],
        d1: Cotangents,
        a2: Shaped[Array, "n2 ..."],
        d2: Cotangents,
    ) -> Float[Array, "C n1 C n2"]:
        left, right = (whole(each).reshape(*whole(each).shape[:2], -1) for each in (d1, d2))
        return self.scaling.bias()[0] ** 2 * gram(left, left if d2 is d1 else right)
