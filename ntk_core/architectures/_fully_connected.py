"""Fully connected networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from jax import Array

from ntk_core.architectures._activations import activation_function, output_function
from ntk_core.architectures._layers import Dense, Layer, Scaling
from ntk_core.architectures._network import Call, Network
from ntk_core.architectures._settings import check_count, check_trained, hidden_widths

OUTPUT_LAYER = "output"


@dataclass(frozen=True)
class FullyConnected(Network):
    """f = W^(L+1) α^(L) / √m with α^(l) = σ(W^(l) α^(l-1) / √fan_in + b^(l)), α^(0) = the flattened input.

    Liu, Zhu & Belkin 2020, Eq. 7; with one hidden layer and biases, Eq. 43.

    >>> import jax, jax.numpy as jnp
    >>> net = FullyConnected(width=4, depth=1, num_outputs=1, activation="identity", use_bias=False)
    >>> params = net.init(jax.random.key(0), (2,))
    >>> net.apply(params, jnp.ones((3, 2))).shape
    (3, 1)

    Attributes:
        width: neurons of every hidden layer, or one number a layer.
        depth: number of hidden layers.
        num_outputs: C.
        activation: σ, one of ``ntk_core.vocabulary.ACTIVATIONS``.
        output: φ, one of ``ntk_core.vocabulary.OUTPUTS``; the network returns φ(f).
        parameterization: ``"ntk"``, ``"standard"`` or ``"lecun"``, see :class:`Scaling`.
        use_bias: biases of the hidden layers; the output layer never has one.
        gain: factor in front of hidden weights (√2 keeps the variance of ReLU layers).
        trained: ``"all"``, or ``"first"``, ``"hidden"``, ``"last"``: which layers have a part in training and kernel.
        output_signs: draw the output weights as ±1 (Liu et al. §3.1).

    Raises:
        InvalidInput: names the field for any setting outside its range.
    """

    width: int | tuple[int, ...] = 512
    depth: int = 1
    num_outputs: int = 1
    activation: str = "relu"
    output: str = "linear"
    parameterization: str = "ntk"
    use_bias: bool = False
    gain: float = 1.0
    trained: str = "all"
    output_signs: bool = False

    def __post_init__(self) -> None:
        check_count("depth", self.depth, 64)
        check_count("num_outputs", self.num_outputs, 10_000)
        hidden_widths(self.width, self.depth)
        check_trained(self.trained)
        activation_function(self.activation)
        output_function(self.output)
        Scaling(self.parameterization, self.gain)

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        widths = hidden_widths(self.width, self.depth)
        scaling = Scaling(self.parameterization, self.gain, min(widths))
        layers: dict[str, Layer] = {
            hidden_name(index): Dense(
                width, self.use_bias, scaling, trainable=self.trained in ("all", "hidden") or (self.trained == "first" and index == 0)
            )
            for index, width in enumerate(widths)
        }
        layers[OUTPUT_LAYER] = Dense(
            self.num_outputs,
            scaling=Scaling(self.parameterization, width=min(widths)),
            signs=self.output_signs,
            trainable=self.trained in ("all", "last"),
        )
        return layers

    def body(self, call: Call, x: Array) -> Array:
        sigma = activation_function(self.activation)
        a = x.reshape(x.shape[0], -1)
        for index in range(self.depth):
            a = sigma(call(hidden_name(index), a))
        return call(OUTPUT_LAYER, a)


def hidden_name(index: int) -> str:
    """Name of the hidden layer with this index, counted from 0: ``hidden1`` is the first."""
    return f"hidden{index + 1}"
