"""What networks of numbered hidden layers have in common: their settings, and how layers follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._activations import Pointwise, activation_function, output_function
from ntk_core.networks.architectures._layers import Dense, Layer, Scaling, Shape
from ntk_core.networks.architectures._network import Call, Network
from ntk_core.networks.architectures._settings import (
    MAX_DEPTH,
    MAX_OUTPUTS,
    TRAINED,
    check_choice,
    check_count,
    check_switch,
    hidden_biases,
    hidden_widths,
    trains_hidden,
    trains_output,
)

OUTPUT_LAYER = "output"


def hidden_name(index: int) -> str:
    """Name of the hidden layer with this index, counted from 0: ``hidden1`` is the first."""
    return f"hidden{index + 1}"


@dataclass(frozen=True)
class Stack(Network):
    """Abstract: ``depth`` hidden layers and a linear output layer, with the settings that all such networks take.

    Attributes:
        width: neurons (or channels) of every hidden layer, or one number per layer.
        depth: number of hidden layers.
        num_outputs: C.
        activation: σ, one of ``ntk_core.networks.choices.ACTIVATIONS``.
        output: φ, one of ``ntk_core.networks.choices.OUTPUTS``; the network returns φ(f).
        parameterization: ``"ntk"``, ``"standard"`` or ``"lecun"``, see :class:`Scaling`.
        use_bias: biases of the hidden layers, one switch for all or one per layer; the output layer never has one.
        gain: factor in front of hidden weights (√2 keeps the variance of ReLU layers).
        trained: ``"all"``, or ``"first"``, ``"hidden"``, ``"last"``: which layers have a part in training and kernel.
        output_signs: draw the output weights as ±1 (Liu, Zhu & Belkin 2020, §3.1).

    Raises:
        InvalidInput: names the field for any setting outside its range.
    """

    width: int | tuple[int, ...] = 512
    depth: int = 1
    num_outputs: int = 1
    activation: str = "relu"
    output: str = "linear"
    parameterization: str = "ntk"
    use_bias: bool | tuple[bool, ...] = False
    gain: float = 1.0
    trained: str = "all"
    output_signs: bool = False

    def __post_init__(self) -> None:
        check_count("depth", self.depth, MAX_DEPTH)
        check_count("num_outputs", self.num_outputs, MAX_OUTPUTS)
        hidden_widths(self.width, self.depth)
        hidden_biases(self.use_bias, self.depth)
        check_choice("trained", self.trained, TRAINED)
        check_switch("output_signs", self.output_signs)
        activation_function(self.activation)
        output_function(self.output)
        Scaling(self.parameterization, self.gain)

    @property
    def widths(self) -> tuple[int, ...]:
        """Width of each hidden layer."""
        return hidden_widths(self.width, self.depth)

    @property
    def biases(self) -> tuple[bool, ...]:
        """Whether each hidden layer has biases."""
        return hidden_biases(self.use_bias, self.depth)

    @property
    def nonlinearity(self) -> Pointwise:
        """σ as a function."""
        return activation_function(self.activation)

    @property
    def hidden_scaling(self) -> Scaling:
        """How hidden weights are drawn; the m of ``lecun`` is the smallest of the ``width`` that was set."""
        return Scaling(self.parameterization, self.gain, self._nominal_width())

    @property
    def output_scaling(self) -> Scaling:
        """How output weights are drawn: without the gain."""
        return Scaling(self.parameterization, width=self._nominal_width())

    def min_width(self, input_shape: Shape) -> int:
        """Smallest number of neurons (channels, for convolutions) of a hidden layer."""
        self.layer_input_shapes(input_shape)
        return min(self.widths)

    def first_layers(self) -> tuple[str, ...]:
        return (hidden_name(0),)

    def _last_hidden_layer_read(self) -> Mapping[str, str]:
        """``read_elementwise`` where of the last hidden layer the output layer sees σ(z), plus what z does not move."""
        return {hidden_name(self.depth - 1): OUTPUT_LAYER}

    def _nominal_width(self) -> int:
        return min(hidden_widths(self.width, self.depth))

    def _trains(self, index: int) -> bool:
        return trains_hidden(self.trained, first=index == 0)

    def _dense(self, index: int, paired: bool = False) -> Layer:
        """The dense hidden layer with this index."""
        return Dense(
            self.widths[index], self.biases[index], self.hidden_scaling, paired=paired, trainable=self._trains(index)
        )

    def _output(self, opposed: bool = False) -> Layer:
        """The dense output layer."""
        return Dense(
            self.num_outputs,
            scaling=self.output_scaling,
            signs=self.output_signs,
            opposed=opposed,
            trainable=trains_output(self.trained),
        )


@dataclass(frozen=True)
class Chain(Stack):
    """Abstract: a stack whose layers each feed the next one only, so that it may start at f(w₀; x) = 0.

    Attributes:
        symmetric: with one hidden layer, draw half of it, repeat that, and give the halves opposite output weights; the
            pre-outputs are then 0 at initialization (Hu, Xiao, Adlam & Pennington 2020, §3). Deeper networks are
            refused: opposite halves of the last layer would cancel the gradients of all layers below; use
            :class:`Mirrored`.
    """

    symmetric: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_switch("symmetric", self.symmetric)
        if self.symmetric and self.depth > 1:
            raise InvalidInput(
                "symmetric", True, "False with more than one hidden layer; Mirrored(net) starts any net at 0"
            )
        if self.symmetric and self.widths[-1] % 2:
            raise InvalidInput(
                "symmetric", True, f"False, or an even width of the last hidden layer (now {self.widths[-1]})"
            )

    def _is_paired(self, index: int) -> bool:
        return self.symmetric and index == self.depth - 1


def dense_chain(net: Chain, call: Call, a: Array, activations: tuple[Pointwise, ...], start: int = 0) -> Array:
    """Hidden layers from ``start`` on, then the output layer, on flat inputs (n, features)."""
    for index in range(start, net.depth):
        a = activations[index](call(hidden_name(index), a))
    return call(OUTPUT_LAYER, a)
