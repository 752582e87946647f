"""Networks derived from another one: scaled, zero at w₀, or its pre-activations."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from ntk_core.errors import InvalidInput, check_choice
from ntk_core.networks.architectures._layers import Layer, Shape
from ntk_core.networks.architectures._network import (
    Call,
    Network,
    NetworkParams,
    accepted_network,
    check_params,
)
from ntk_core.real_numbers import is_finite_number
from ntk_core.usual_settings import with_usual_settings

COPY = "copy."


@dataclass(frozen=True)
class Derived(Network):
    """Abstract: a network derived from another one, by default with its layers and parameters.

    Attributes:
        net: the other network; the output function is its own.
    """

    net: Network

    def __post_init__(self) -> None:
        accepted_network(self.net)

    @property
    def output(self) -> str:
        return self.net.output

    @property
    def layers(self) -> Mapping[str, Layer]:
        return self.net.layers

    def with_output(self, output: str) -> Network:
        return replace(self, net=self.net.with_output(output))

    def init(self, key: Array, input_shape: Shape | int) -> NetworkParams:
        return self.net.init(key, input_shape)

    def read_elementwise(self) -> Mapping[str, str]:
        return self.net.read_elementwise()

    def first_layers(self) -> tuple[str, ...]:
        return self.net.first_layers()

    def min_width(self, input_shape: Shape) -> int:
        return self.net.min_width(input_shape)


@dataclass(frozen=True)
class ScaledNetwork(Derived):
    """Network with a scaled output, F = φ(α f).

    Parameters are those of ``net``; the kernel of α f is α² K and its Hessian α H.

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

    scale: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_finite_number(self.scale) and self.scale > 0):
            raise InvalidInput("scale", self.scale, "a finite number above 0")

    def body(self, call: Call, x: Array) -> Array:
        return self.scale * self.net.body(call, x)


@dataclass(frozen=True)
class Paired(Derived):
    """Abstract: f = scale · (f_A − f_B) of two networks.

    One is a copy of the other that starts with equal parameters.

    Attributes:
        scale: factor of the difference.

    >>> from ntk_core.networks import FullyConnected, Mirrored
    >>> net = Mirrored(FullyConnected(width=8))
    >>> params = net.init(jax.random.key(0), (5,))
    >>> isinstance(net, Paired), float(net.apply(params, jnp.ones((1, 5)))[0, 0])
    (True, 0.0)
    """

    scale: ClassVar[float]

    @property
    def copy_layers(self) -> Mapping[str, Layer]:
        """Layers of the copy, by their original names."""
        return self.net.layers

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        return {
            **self.net.layers,
            **{COPY + name: layer for name, layer in self.copy_layers.items()},
        }

    def init(self, key: Array, input_shape: Shape | int) -> NetworkParams:
        drawn = self.net.init(key, input_shape)
        # Copied, since training may overwrite the original arrays in place.
        return {
            **drawn,
            **{COPY + name: jax.tree.map(jnp.copy, params) for name, params in drawn.items()},
        }

    def body(self, call: Call, x: Array) -> Array:
        copied = self.net.body(lambda name, a: call(COPY + name, a), x)
        return self.scale * (self.net.body(call, x) - copied)

    def read_elementwise(self) -> Mapping[str, str]:
        read = self.net.read_elementwise()
        return {**read, **{COPY + name: COPY + reader for name, reader in read.items()}}

    def first_layers(self) -> tuple[str, ...]:
        first = self.net.first_layers()
        return (*first, *(COPY + name for name in first))


@dataclass(frozen=True)
class Mirrored(Paired):
    """Difference of two copies of a network, zero initially.

    f = (f_A − f_B) / √2 of two copies of a network that start with equal parameters: 0 at
    initialization.

    Exactly 0 without compilation; fused programs may leave rounding errors (10⁻⁸ in float32). The
    kernel is the mean of both kernels: at initialization that of ``net``, for any architecture.
    Training separates the copies. With one hidden layer this is the symmetric initialization of the
    paper, with 2 · width neurons.

    Source: Hu, Xiao, Adlam & Pennington 2020, §3, Eq. 3; any depth: docs/math/early-time.md.

    >>> import jax, jax.numpy as jnp
    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = Mirrored(FullyConnected(width=4, depth=2))
    >>> net.apply(net.init(jax.random.key(0), (2,)), jnp.ones((1, 2))).item()
    0.0
    """

    scale: ClassVar[float] = math.sqrt(0.5)


@dataclass(frozen=True)
class Subtracted(Paired):
    """Network minus its frozen copy at initialization.

    f(w; x) − f(w₀; x), with a frozen copy at w₀: 0 at initialization up to rounding, same
    kernel, same Hessian.

    An output function acts on the difference: φ(f − f₀) with f₀ = f(w₀; x). Costs a second
    forward pass and keeps w₀.

    Source: Hu, Xiao, Adlam & Pennington 2020, §3; Chizat, Oyallon & Bach 2019.

    >>> import jax, jax.numpy as jnp
    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = Subtracted(FullyConnected(width=4, depth=2))
    >>> net.apply(net.init(jax.random.key(0), (2,)), jnp.ones((1, 2))).item()
    0.0
    """

    scale: ClassVar[float] = 1.0

    @cached_property
    def copy_layers(self) -> Mapping[str, Layer]:
        return {name: replace(layer, trainable=False) for name, layer in self.net.layers.items()}


def subtract_initial_output(
    net: Network, params: NetworkParams
) -> Callable[[NetworkParams, Array], Array]:
    """Subtract the initial output from a network.

    ``apply(w, x)`` = net(w; x) − net(w₀; x), (n, C), with w₀ = ``params``: 0 at the start, same
    kernel.

    Stores w₀ and costs a second forward pass; the network itself is unchanged.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(width=8)
    >>> params = net.init(jax.random.key(0), (3,))
    >>> subtract_initial_output(net, params)(params, jnp.ones((1, 3))).item()
    0.0

    Args:
        net: a network.
        params: w₀.

    Returns:
        A function ``apply(w, x)``.

    Source: Hu, Xiao, Adlam & Pennington 2020, §3; Chizat, Oyallon & Bach 2019.
    """

    accepted_network(net)
    check_params(params, net.layers)

    @with_usual_settings
    def apply(current: NetworkParams, x: Array) -> Array:
        return net.apply(current, x) - jax.lax.stop_gradient(net.apply(params, x))

    return apply


@dataclass(frozen=True)
class PreActivations(Network):
    """Pre-activations of one layer as a function of the weights.

    (w, x) ↦ z_v(w; x) of some neurons v of one layer; w are the weights of that layer and of those
    below.

    Kernels and Hessian norms of pre-activations are those of this network. Every pre-activation
    becomes linear in w as the width grows; those of the first layer are linear at any width.

    Source: Zhu, Liu & Belkin 2022, Theorem 3.8 and Remark 3.9.

    >>> import jax, jax.numpy as jnp
    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(width=4, depth=2, activation="tanh")
    >>> params = net.init(jax.random.key(0), (3,))
    >>> PreActivations(net, "hidden2", (0, 3)).apply(params, jnp.ones((5, 3))).shape
    (5, 2)

    Attributes:
        net: the network; its parameters are used, those above the layer are ignored.
        layer: name of one of its layers.
        units: indices of neurons; after a convolution in the order (position, channel).

    Raises:
        InvalidInput: for a layer that the network does not have, or no units.
    """

    net: Network
    layer: str
    units: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        accepted_network(self.net)
        check_choice("layer", self.layer, self.net.layers)
        if not self.units or min(self.units) < 0:
            raise InvalidInput(
                "units", self.units, "at least one index of a neuron, each at least 0"
            )

    @property
    def output(self) -> str:
        return "linear"

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        return {name: self.net.layers[name] for name in self.net.layers_below(self.layer)}

    def body(self, call: Call, x: Array) -> Array:
        found: list[Array] = []

        def watched(name: str, a: Array) -> Array:
            if name not in self.layers:  # layers above do not affect the result
                return jnp.zeros(
                    (a.shape[0], *self.net.layers[name].output_shape(a.shape[1:])), a.dtype
                )
            z = call(name, a)
            if name == self.layer:
                found.append(z)
            return z

        self.net.body(watched, x)
        flat = found[0].reshape(x.shape[0], -1)
        if max(self.units) >= flat.shape[-1]:
            raise InvalidInput("units", max(self.units), f"an index from 0 to {flat.shape[-1] - 1}")
        return flat[:, jnp.asarray(self.units)]

    def first_layers(self) -> tuple[str, ...]:
        return tuple(name for name in self.net.first_layers() if name in self.layers)
