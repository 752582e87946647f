"""Networks put together from registered layers, on the same seam as all others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
from jax import Array

from ntk_core.networks.architectures._activations import activation_function, output_function
from ntk_core.networks.architectures._convolution import Convolution
from ntk_core.networks.architectures._convolutional import average_pool, read_out
from ntk_core.networks.architectures._layers import Dense, Layer, Scaling, Shape
from ntk_core.networks.architectures._network import Call, Network
from ntk_core.networks.architectures._settings import (
    MAX_OUTPUTS,
    MAX_WIDTH,
    TRAINED,
    check_choice,
    check_count,
    check_switch,
    trains_hidden,
    trains_output,
)
from ntk_core.networks.architectures._stack import OUTPUT_LAYER, hidden_name
from ntk_core.networks.compositions import (
    ActivationBlock,
    AveragePoolBlock,
    Block,
    Composition,
    ConvolutionBlock,
    DenseBlock,
    FlattenBlock,
    GlobalAverageBlock,
    Nested,
    ResidualBlock,
    ScaleBlock,
    Trained,
    lay_out,
)


@dataclass(frozen=True)
class Composed(Network):
    """The layers of a composition, then a dense output layer without bias, f = W α / √fan_in.

    Layers with weights are called ``hidden1``, ``hidden2``, … in the order in which they are applied, so that dense
    layers with activations between them take the parameters of :class:`FullyConnected`.

    >>> import jax, jax.numpy as jnp
    >>> from ntk_core.networks.compositions import composition_examples
    >>> net = Composed(composition_examples()["residual"], width=8, num_outputs=2)
    >>> net.apply(net.init(jax.random.key(0), (3,)), jnp.ones((5, 3))).shape
    (5, 2)

    Attributes:
        composition: what ``parse_composition`` makes of JSON.
        width: m, in which widths such as ``"2m"`` are stated.
        num_outputs, output, parameterization, trained, output_signs: as for other networks; ``"first"`` trains the
            layers that see nothing but the input.

    Raises:
        InvalidInput: for a setting outside its range; by ``init`` where the layers do not fit the inputs.
    """

    composition: Composition
    width: int = 512
    num_outputs: int = 1
    output: str = "linear"
    parameterization: str = "ntk"
    trained: str = "all"
    output_signs: bool = False

    def __post_init__(self) -> None:
        check_count("width", self.width, MAX_WIDTH)
        check_count("num_outputs", self.num_outputs, MAX_OUTPUTS)
        check_choice("trained", self.trained, TRAINED)
        check_switch("output_signs", self.output_signs)
        output_function(self.output)
        Scaling(self.parameterization)

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        first, scaling = self.first_layers(), Scaling(self.parameterization, width=self.width)
        found: dict[str, Layer] = {}
        for index, block in enumerate(self.composition.trained()):
            name = hidden_name(index)
            found[name] = self._layer(block, scaling, trains_hidden(self.trained, name in first))
        found[OUTPUT_LAYER] = Dense(
            self.num_outputs, scaling=scaling, signs=self.output_signs, trainable=trains_output(self.trained)
        )
        return found

    def _layer(self, block: Trained, scaling: Scaling, trainable: bool) -> Layer:
        size = block.size(self.width)
        if isinstance(block, ConvolutionBlock):
            return Convolution(
                size,
                block.kernel_size,
                block.padding,
                stride=block.stride,
                use_bias=block.bias,
                scaling=scaling,
                trainable=trainable,
            )
        return Dense(size, block.bias, scaling, trainable=trainable)

    def body(self, call: Call, x: Array) -> Array:
        names = (hidden_name(index) for index in itertools.count())
        return call(OUTPUT_LAYER, _flat(self._through(self.composition.layers, call, names, x)))

    def _through(self, blocks: tuple[Block, ...], call: Call, names: Iterator[str], a: Array) -> Array:
        for block in blocks:
            a = self._step(block, call, names, a)
        return a

    def _step(self, block: Block, call: Call, names: Iterator[str], a: Array) -> Array:
        match block:
            case DenseBlock():
                return call(next(names), _flat(a))
            case ConvolutionBlock():
                return call(next(names), a)
            case ActivationBlock():
                return activation_function(block.function)(a)
            case AveragePoolBlock():
                return average_pool(a, block.size)
            case GlobalAverageBlock():
                return read_out(a, "global-average")
            case FlattenBlock():
                return _flat(a)
            case ScaleBlock():
                return block.factor * a
        assert isinstance(block, Nested)
        inner = self._through(block.layers, call, names, a)
        return a + inner if isinstance(block, ResidualBlock) else jnp.concatenate([a, inner], axis=-1)

    def layer_input_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        lay_out(self.composition, self.width, tuple(input_shape))  # says where it does not fit, by its place
        return super().layer_input_shapes(input_shape)

    def first_layers(self) -> tuple[str, ...]:
        return tuple(hidden_name(index) for index in self.composition.first())

    def min_width(self, input_shape: Shape) -> int:
        """Smallest number of neurons (channels, for convolutions) of a hidden layer."""
        self.layer_input_shapes(input_shape)
        return min(block.size(self.width) for block in self.composition.trained())


def _flat(a: Array) -> Array:
    """Channel by channel, as other networks read out their convolutions."""
    return a if a.ndim == 2 else read_out(a, "flatten")
