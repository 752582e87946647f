"""Fully connected networks, with or without a narrow layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ntk_core.networks.architectures._activations import activation_function
from ntk_core.networks.architectures._settings import MAX_WIDTH, check_count
from ntk_core.networks.architectures._stack import Chain
from ntk_core.networks.kinds import ARCHITECTURES, Kind


@dataclass(frozen=True)
class FullyConnected(Chain):
    """f = W^(L+1) α^(L) / √m with α^(l) = σ(W^(l) α^(l-1) / √fan_in + b^(l)), α^(0) = the flattened input.

    Liu, Zhu & Belkin 2020, Eq. 7; with one hidden layer and biases, Eq. 43. Settings: :class:`Stack`, :class:`Chain`.

    >>> import jax, jax.numpy as jnp
    >>> net = FullyConnected(width=4, depth=1, num_outputs=1, activation="identity", use_bias=False)
    >>> params = net.init(jax.random.key(0), (2,))
    >>> net.apply(params, jnp.ones((3, 2))).shape
    (3, 1)
    """

    kind: ClassVar[Kind] = ARCHITECTURES["fully-connected"]


@dataclass(frozen=True)
class Bottleneck(Chain):
    """A fully connected network one of whose hidden layers is narrow: not linear, however wide the others are.

    Liu, Zhu & Belkin 2020, §4. Their Eq. 31, f = m^(-1/2) vᵀσ(w₃ · m^(-1/2) w₂ᵀσ(w₁x)) with σ(z) = z²/2, is

    >>> net = Bottleneck(width=100, activation="quadratic", bottleneck_width=1, bottleneck_activation="identity")
    >>> net.widths
    (100, 1, 100)

    Attributes:
        bottleneck_width: neurons of the narrow layer.
        bottleneck_layer: which hidden layer is narrow, counted from 1.
        bottleneck_activation: of the narrow layer; None takes ``activation``.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["bottleneck"]

    depth: int = 3
    bottleneck_width: int = 3
    bottleneck_layer: int = 2
    bottleneck_activation: str | None = None

    def __post_init__(self) -> None:
        check_count("bottleneck_width", self.bottleneck_width, MAX_WIDTH)
        check_count("depth", self.depth, 64)
        check_count("bottleneck_layer", self.bottleneck_layer, self.depth)
        if self.bottleneck_activation is not None:
            activation_function(self.bottleneck_activation, "bottleneck_activation")
        super().__post_init__()
