"""Networks whose layers a composition writes out: layers and forward pass follow from its blocks."""

import abc
import itertools
from collections.abc import Iterator, Mapping
from functools import cached_property

import jax.numpy as jnp
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.networks import compositions
from ntk_core.networks.architectures._activations import activation_function, output_function
from ntk_core.networks.architectures._convolution import Convolution
from ntk_core.networks.architectures._layers import Dense, Layer, Scaling, Shape
from ntk_core.networks.architectures._masked import MaskedDense
from ntk_core.networks.architectures._network import Call, Network
from ntk_core.networks.architectures._sequences import Gain, Positions, attend, normalize, sines
from ntk_core.networks.architectures._settings import MAX_OUTPUTS, TRAINED, check_choice, check_count, check_switch
from ntk_core.networks.compositions import Block, Composition, Trained

OUTPUT_LAYER = "output"


def hidden_name(index: int) -> str:
    """Name of the hidden layer with this index, counted from 0: ``hidden1`` is the first."""
    return f"hidden{index + 1}"


class Layered(Network):
    """Abstract: the hidden layers of a composition, called ``hidden1``, ``hidden2``, …, and a dense output layer."""

    num_outputs: int
    parameterization: str
    trained: str
    output_signs: bool
    dimensions: int = 2  # of the positions that convolutions see
    symmetric: bool = False  # whether the last hidden layer is drawn twice, with opposite output weights

    def __post_init__(self) -> None:
        check_count("num_outputs", self.num_outputs, MAX_OUTPUTS)
        check_choice("trained", self.trained, TRAINED)
        check_switch("output_signs", self.output_signs)
        output_function(self.output)
        self.hidden_scaling.bias()  # refuses a parameterization or a gain that cannot be

    @property
    @abc.abstractmethod
    def written_out(self) -> Composition:
        """The network as a composition."""

    @property
    @abc.abstractmethod
    def hidden_scaling(self) -> Scaling:
        """How hidden weights are drawn; its width is m."""

    @property
    def output_scaling(self) -> Scaling:
        """How output weights are drawn: without the gain."""
        return Scaling(self.parameterization, width=self.hidden_scaling.width)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Width of each hidden layer; gains and positions have none of their own."""
        sizes = (block.size(self.hidden_scaling.width) for block in self.written_out.trained())
        return tuple(size for size in sizes if size is not None)

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        *trained, output = self.written_out.trains(self.trained)
        layers: dict[str, Layer] = {}
        for index, block in enumerate(self.written_out.trained()):
            paired = self.symmetric and index == len(trained) - 1
            layers[hidden_name(index)] = self._hidden(block, paired, trained[index])
        drop, scaling = self.written_out.drop_probability, self.output_scaling
        if drop:
            layers[OUTPUT_LAYER] = MaskedDense(self.num_outputs, drop, scaling=scaling, trainable=output)
        else:
            layers[OUTPUT_LAYER] = Dense(
                self.num_outputs, False, scaling, self.output_signs, opposed=self.symmetric, trainable=output
            )
        return layers

    def _hidden(self, block: Trained, paired: bool, trainable: bool) -> Layer:
        scaling, drop = self.hidden_scaling, self.written_out.drop_probability
        if isinstance(block, compositions.GainBlock):
            return Gain(scaling, trainable=trainable)
        if isinstance(block, compositions.PositionsBlock):
            return Positions(scaling, trainable=trainable)
        width = block.size(scaling.width)
        if isinstance(block, compositions.TokenDenseBlock):  # a filter that sees one position
            return Convolution(width, 1, dimensions=1, use_bias=block.bias, scaling=scaling, trainable=trainable)
        if isinstance(block, compositions.ConvolutionBlock):
            shape = (width, block.kernel_size, block.padding, self.dimensions, block.stride)
            return Convolution(*shape, block.bias, scaling, paired, trainable=trainable)
        if drop:
            return MaskedDense(width, drop, block.bias, scaling, trainable=trainable)
        return Dense(width, block.bias, scaling, paired=paired, trainable=trainable)

    def body(self, call: Call, x: Array) -> Array:
        names = (hidden_name(index) for index in itertools.count())
        return call(OUTPUT_LAYER, _flat(_through(self.written_out.layers, call, names, x, self.hidden_scaling.width)))

    def first_layers(self) -> tuple[str, ...]:
        return tuple(hidden_name(number - 1) for number in self.written_out.ways().first)

    def read_elementwise(self) -> Mapping[str, str]:
        """The last hidden layer, where the output layer sees a function of each z_k, plus what z does not move."""
        if self.written_out.drop_probability or not _ends_elementwise(self.written_out.layers):
            return {}
        return {hidden_name(len(self.written_out.trained()) - 1): OUTPUT_LAYER}

    def entries_between(self, input_shape: Shape) -> int:
        width = self.hidden_scaling.width
        placed = compositions.lay_out(self.written_out, width, tuple(input_shape), self.dimensions).layers
        return sum(layer.num_heads * layer.positions**2 for layer in placed)

    def min_width(self, input_shape: Shape) -> int:
        """Smallest number of neurons (channels, for convolutions) of a hidden layer."""
        self.layer_input_shapes(input_shape)
        return min(self.widths)


def _through(blocks: tuple[Block, ...], call: Call, names: Iterator[str], a: Array, width: int) -> Array:
    for block in blocks:
        a = _step(block, call, names, a, width)
    return a


def _step(block: Block, call: Call, names: Iterator[str], a: Array, width: int) -> Array:
    match block:
        case compositions.DenseBlock():
            return call(next(names), _flat(a))
        case compositions.ConvolutionBlock() | compositions.TokenDenseBlock() | compositions.GainBlock():
            return call(next(names), a)
        case compositions.PositionsBlock():
            return a + call(next(names), a)
        case compositions.AttentionBlock():
            queries, keys, values = (call(next(names), a) for _ in block.layers)
            heads = block.heads(width)
            return attend(queries, keys, values, heads, block.score_exponent, block.causal)
        case compositions.NormalizeBlock():
            return normalize(a)
        case compositions.FixedPositionsBlock():
            return a + sines(a.shape[1:])
        case compositions.FirstTokenBlock():
            return a[:, 0]
        case compositions.ActivationBlock():
            return activation_function(block.function)(a)
        case compositions.AveragePoolBlock():
            return average_pool(a, block.size)
        case compositions.GlobalAverageBlock():
            return a.mean(axis=tuple(range(1, a.ndim - 1)))
        case compositions.FlattenInputBlock():
            return a.reshape(a.shape[0], -1)
        case compositions.FlattenBlock():
            return _flat(a)
        case compositions.ScaleBlock():
            return block.factor * a
        case compositions.ResidualBlock():
            joined: Array = block.join(a, _through(block.layers, call, names, a, width))
            return joined
        case compositions.ConcatBlock():
            return jnp.concatenate([a, _through(block.layers, call, names, a, width)], axis=-1)


def average_pool(a: Array, size: int) -> Array:
    """Means over windows of ``size`` positions along each spatial axis of (n, *sizes, channels), without overlap."""
    sizes = a.shape[1:-1]
    if any(length % size for length in sizes):
        raise InvalidInput("pool_size", size, f"a divisor of every spatial size {sizes} that reaches a pooling")
    windows = [part for length in sizes for part in (length // size, size)]
    axes = tuple(range(2, 2 * len(sizes) + 1, 2))
    return a.reshape(a.shape[0], *windows, a.shape[-1]).mean(axis=axes)


def _flat(a: Array) -> Array:
    """(n, *sizes, channels) as (n, features), channel by channel."""
    return a if a.ndim == 2 else jnp.moveaxis(a, -1, 1).reshape(a.shape[0], -1)


def _ends_elementwise(blocks: tuple[Block, ...]) -> bool:
    """Whether a dense layer is last, but for functions of each of its neurons and a way around it that is added."""
    rest = [block for block in blocks if not isinstance(block, compositions.ActivationBlock | compositions.ScaleBlock)]
    if rest and isinstance(rest[-1], compositions.ResidualBlock):
        return _ends_elementwise(rest[-1].layers)
    return bool(rest) and isinstance(rest[-1], compositions.DenseBlock)
