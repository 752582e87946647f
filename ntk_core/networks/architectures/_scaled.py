"""A network times a number: the scale of lazy training."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._layers import Layer, Shape
from ntk_core.networks.architectures._network import Call, Network, NetworkParams, accepted_network


@dataclass(frozen=True)
class ScaledNetwork(Network):
    """F = φ(α f) with the parameters of ``net``: of α f the kernel is α² K and the Hessian α H.

    Source: Chizat, Oyallon & Bach 2019, §1.

    >>> import jax, jax.numpy as jnp
    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(width=4)
    >>> params = net.init(jax.random.key(0), (2,))
    >>> x = jnp.ones((1, 2))
    >>> bool(jnp.allclose(ScaledNetwork(net, 3.0).apply(params, x), 3 * net.apply(params, x)))
    True

    Raises:
        InvalidInput: for a scale that is not finite and above 0.
    """

    net: Network
    scale: float

    def __post_init__(self) -> None:
        accepted_network(self.net)
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InvalidInput("scale", self.scale, "a finite number above 0")

    @property
    def output(self) -> str:
        return self.net.output

    @property
    def layers(self) -> Mapping[str, Layer]:
        return self.net.layers

    def with_output(self, output: str) -> Network:
        return ScaledNetwork(self.net.with_output(output), self.scale)

    def init(self, key: Array, input_shape: Shape | int) -> NetworkParams:
        return self.net.init(key, input_shape)

    def body(self, call: Call, x: Array) -> Array:
        return self.scale * self.net.body(call, x)

    def read_elementwise(self) -> Mapping[str, str]:
        return self.net.read_elementwise()

    def first_layers(self) -> tuple[str, ...]:
        return self.net.first_layers()

    def entries_between(self, input_shape: Shape) -> int:
        return self.net.entries_between(input_shape)

    def min_width(self, input_shape: Shape) -> int:
        return self.net.min_width(input_shape)
