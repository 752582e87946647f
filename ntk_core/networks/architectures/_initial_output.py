"""Models that start at f(w₀; x) = 0, with the tangent kernel of the network that they are made from."""

import abc
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import jax.numpy as jnp
from jax import Array

from ntk_core.networks.architectures._layers import Layer, Shape
from ntk_core.networks.architectures._network import Call, Network, NetworkParams, accepted_network

COPY = "copy."


@dataclass(frozen=True)
class Paired(Network):
    """Abstract: a network and a copy of it that starts with equal parameters, f = scale · (f_A − f_B).

    Attributes:
        net: the network; the output function is its own, applied to the difference.
    """

    net: Network

    def __post_init__(self) -> None:
        accepted_network(self.net)

    @property
    @abc.abstractmethod
    def scale(self) -> float:
        """In front of the difference."""

    @property
    @abc.abstractmethod
    def copy_layers(self) -> Mapping[str, Layer]:
        """The layers of the copy, by the names of the original."""

    @property
    def output(self) -> str:
        return self.net.output

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        return {**self.net.layers, **{COPY + name: layer for name, layer in self.copy_layers.items()}}

    def with_output(self, output: str) -> Network:
        return replace(self, net=self.net.with_output(output))

    def init(self, key: Array, input_shape: Shape | int) -> NetworkParams:
        drawn = self.net.init(key, input_shape)
        # Arrays of its own: training may overwrite those of the original in place.
        return {**drawn, **{COPY + name: jax.tree.map(jnp.copy, params) for name, params in drawn.items()}}

    def body(self, call: Call, x: Array) -> Array:
        copied = self.net.body(lambda name, a: call(COPY + name, a), x)
        return self.scale * (self.net.body(call, x) - copied)

    def read_elementwise(self) -> Mapping[str, str]:
        read = self.net.read_elementwise()
        return {**read, **{COPY + name: COPY + reader for name, reader in read.items()}}

    def first_layers(self) -> tuple[str, ...]:
        first = self.net.first_layers()
        return (*first, *(COPY + name for name in first))

    def entries_between(self, input_shape: Shape) -> int:
        return 2 * self.net.entries_between(input_shape)

    def min_width(self, input_shape: Shape) -> int:
        return self.net.min_width(input_shape)


@dataclass(frozen=True)
class Mirrored(Paired):
    """Difference of two copies of a network, zero initially.

    f = (f_A − f_B) / √2 of two copies of a network that start with equal parameters: 0 at initialization.

    Exactly 0 operation by operation; a compiler that fuses the copies differently leaves rounding (10⁻⁸ in float32).
    The kernel is the mean of the two kernels, so at initialization it is that of ``net``, for any depth and
    architecture; the copies drift apart as soon as they are trained. With one hidden layer this is the symmetric
    initialization of the paper, with 2 · width neurons.

    Source: Hu, Xiao, Adlam & Pennington 2020, §3, Eq. 3; any depth: docs/math/early-time.md.

    >>> import jax, jax.numpy as jnp
    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = Mirrored(FullyConnected(width=4, depth=2))
    >>> net.apply(net.init(jax.random.key(0), (2,)), jnp.ones((1, 2))).item()
    0.0
    """

    @property
    def scale(self) -> float:
        return math.sqrt(0.5)

    @property
    def copy_layers(self) -> Mapping[str, Layer]:
        return self.net.layers


@dataclass(frozen=True)
class Subtracted(Paired):
    """Network minus its frozen copy at initialization.

    f(w; x) − f(w₀; x), with a frozen copy at w₀: 0 at initialization up to rounding, same kernel, same Hessian.

    An output function acts on the difference: φ(f − f₀) with f₀ = f(w₀; x). Costs a second forward pass and keeps w₀.

    Source: Hu, Xiao, Adlam & Pennington 2020, §3; Chizat, Oyallon & Bach 2019.

    >>> import jax, jax.numpy as jnp
    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = Subtracted(FullyConnected(width=4, depth=2))
    >>> net.apply(net.init(jax.random.key(0), (2,)), jnp.ones((1, 2))).item()
    0.0
    """

    @property
    def scale(self) -> float:
        return 1.0

    @cached_property
    def copy_layers(self) -> Mapping[str, Layer]:
        return {name: replace(layer, trainable=False) for name, layer in self.net.layers.items()}


def subtract_initial_output(net: Network, params: NetworkParams) -> Callable[[NetworkParams, Array], Array]:
    """Subtract the initial output from a network.

    ``apply(w, x)`` = net(w; x) − net(w₀; x), (n, C), with w₀ = ``params``: 0 at the start, same kernel.

    Keeps w₀ and costs a second forward pass, but changes nothing in the network.

    Source: Hu, Xiao, Adlam & Pennington 2020, §3; Chizat, Oyallon & Bach 2019.
    """

    accepted_network(net)

    def apply(current: NetworkParams, x: Array) -> Array:
        return net.apply(current, x) - jax.lax.stop_gradient(net.apply(params, x))

    return apply
