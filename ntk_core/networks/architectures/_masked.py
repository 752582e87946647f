"""Dense layers with edges removed permanently at random."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._activations import check_drop_probability
from ntk_core.networks.architectures._layers import NTK_SCALING, Layer, Params, Scaling, Shape, add_bias, check_inputs

Parts = tuple[tuple[int | None, float], ...]


@dataclass(frozen=True)
class MaskedDense(Layer):
    """z_v = in(v)^(-1/2) Σ_{u→v} W_uv a_u + b_v, over the kept edges; in(v) is their number.

    Each edge is removed with its drop probability at initialization, permanently. The mask and the in-degrees are
    stored as ``params["mask"]`` (uint8) and ``params["in_degree"]`` (int32) and never trained. Weights of removed
    edges are 0 with zero gradient; the layer costs as much as a dense one. A neuron that would lose all edges keeps
    one, drawn uniformly, since an in-degree of zero has no scaling.

    Source: Zhu, Liu & Belkin 2022, Eq. 2 and App. A.

    Attributes:
        drop_probability: of every edge; or a tuple of (number of inputs, drop probability) for consecutive segments of
            the inputs, with None for one segment that takes the rest.

    >>> import jax
    >>> params = MaskedDense(8, drop_probability=0.5).init(jax.random.key(0), (5,))
    >>> params["mask"].shape, bool((params["in_degree"] >= 1).all())
    ((5, 8), True)
    """

    num_features: int
    drop_probability: float | Parts = 0.0
    use_bias: bool = False
    scaling: Scaling = NTK_SCALING

    def __post_init__(self) -> None:
        for _, probability in self._parts():
            check_drop_probability(probability)

    def _parts(self) -> Parts:
        return self.drop_probability if isinstance(self.drop_probability, tuple) else ((None, self.drop_probability),)

    def output_shape(self, input_shape: Shape) -> Shape:
        if len(input_shape) != 1:
            raise InvalidInput("input_shape", input_shape, "one axis of features")
        return (self.num_features,)

    def init(self, key: Array, input_shape: Shape) -> Params:
        (fan_in,) = input_shape
        mask_key, spare_key, weight_key, bias_key = jax.random.split(key, 4)
        rest = fan_in - sum(size or 0 for size, _ in self._parts())
        drop = jnp.concatenate([jnp.full(rest if size is None else size, p) for size, p in self._parts()])
        kept = jax.random.uniform(mask_key, (fan_in, self.num_features)) >= drop[:, None]
        spare = jnp.arange(fan_in)[:, None] == jax.random.randint(spare_key, (self.num_features,), 0, fan_in)
        mask = jnp.where(kept.any(axis=0), kept, spare).astype(jnp.uint8)
        degrees = in_degrees(mask)
        _, std = self.scaling.weight(degrees.astype(jnp.result_type(float)))
        weight = mask * std * jax.random.normal(weight_key, mask.shape)
        params = {"weight": weight, "mask": mask, "in_degree": degrees}
        if self.use_bias:
            params["bias"] = self.scaling.bias()[1] * jax.random.normal(bias_key, (self.num_features,))
        return params

    def multiplier(self, params: Params, fan_in: int) -> Array | float:
        return self.scaling.weight(params["in_degree"].astype(jnp.result_type(float)))[0]

    def apply(self, params: Params, a: Array) -> Array:
        check_inputs(a.shape[-1], params["mask"].shape[0])
        z = self.multiplier(params, a.shape[-1]) * (a @ _on_kept_edges(params["weight"], params["mask"]))
        return add_bias(self.scaling, params, z)

    def in_degree_range(self, params: Params) -> tuple[int, int]:
        degrees = params["in_degree"]
        return int(degrees.min()), int(degrees.max())


def in_degrees(mask: Array) -> Array:
    """Number of edges into each neuron, (num_features,), as integers, which have no derivative."""
    return jnp.sum(mask, axis=0, dtype=jnp.int32)


@jax.custom_jvp
def _on_kept_edges(weight: Array, mask: Array) -> Array:
    """Return the weights, already 0 on removed edges; masks their derivatives only."""
    return weight


@_on_kept_edges.defjvp
def _change_on_kept_edges(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    return _on_kept_edges(*primals), primals[1] * tangents[0]  # so that second derivatives are masked as well
