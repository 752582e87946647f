"""Pre-activations of a network, themselves networks of the weights below them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._layers import Layer
from ntk_core.networks.architectures._network import Call, Network, accepted_network


@dataclass(frozen=True)
class PreActivations(Network):
    """Pre-activations of one layer as a function of the weights.

    (w, x) ↦ z_v(w; x) of some neurons v of one layer; w are the weights of that layer and of those below.

    Kernels and Hessian norms of pre-activations are those of this network. Every pre-activation becomes linear in w as
    the width grows; those of the first layer are linear at any width.

    Source: Zhu, Liu & Belkin 2022, Theorem 3.8 and Remark 3.9.

    >>> import jax, jax.numpy as jnp
    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(width=4, depth=2, activation="tanh")
    >>> params = net.init(jax.random.key(0), (3,))
    >>> PreActivations(net, "hidden2", (0, 3)).apply(params, jnp.ones((5, 3))).shape
    (5, 2)

    Attributes:
        net: the network; its parameters serve, and those above the layer are left alone.
        layer: name of one of its layers.
        units: which neurons, by their index; after a convolution in the order (position, channel).

    Raises:
        InvalidInput: for a layer that the network does not have, or no units.
    """

    net: Network
    layer: str
    units: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        accepted_network(self.net)
        if self.layer not in self.net.layers:
            raise InvalidInput("layer", self.layer, "one of " + ", ".join(self.net.layers))
        if not self.units or min(self.units) < 0:
            raise InvalidInput("units", self.units, "at least one index of a neuron, each at least 0")

    @property
    def output(self) -> str:
        return "linear"

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        return {name: self.net.layers[name] for name in self.net.layers_below(self.layer)}

    def body(self, call: Call, x: Array) -> Array:
        found: list[Array] = []

        def watched(name: str, a: Array) -> Array:
            if name not in self.layers:  # nothing above is computed: its value reaches no output
                return jnp.zeros((a.shape[0], *self.net.layers[name].output_shape(a.shape[1:])), a.dtype)
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
