"""Networks defined as graphs of steps, which determine layers and forward pass."""

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.networks import graphs
from ntk_core.networks.architectures._activations import (
    CHECKS,
    MAX_WIDTH,
    Activation,
    activation_function,
    check_count,
)
from ntk_core.networks.architectures._convolution import (
    Convolution,
    Gain,
    Positions,
    attend,
    normalize,
    sines,
)
from ntk_core.networks.architectures._layers import Dense, Layer, MaskedDense, Parts, Scaling, Shape
from ntk_core.networks.architectures._network import Call, Network
from ntk_core.networks.graphs import (
    OUTPUT,
    Block,
    Composition,
    Step,
    Trained,
    trains_hidden,
    trains_output,
)
from ntk_core.networks.kinds import ARCHITECTURES, Hidden, Kind

Activate = Callable[[Activation, Array], Array]


class Layered(Network):
    """Abstract: the layers of a composition or of a graph.

    A composition has ``hidden1``, ``hidden2``, …; both have a dense output layer.

    >>> from ntk_core import Transformer
    >>> net = Transformer(num_heads=2, head_dim=4, num_outputs=2)
    >>> isinstance(net, Layered), list(net.layers)[-1]
    (True, 'output')
    """

    width: int | tuple[int, ...]
    num_outputs: int
    parameterization: str
    gain: float = 1.0
    trained: str
    output_signs: bool = False
    dimensions: int = 2  # of positions, for convolutions
    # Whether the last hidden layer is drawn twice, with opposite output weights.
    symmetric: bool = False

    def __post_init__(self) -> None:
        for name in (each.name for each in fields(self) if each.name in CHECKS):
            CHECKS[name](name, getattr(self, name))
        self.hidden_scaling.bias()  # rejects invalid parameterizations, gains and widths

    @property
    @abc.abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """The network as a graph of steps, the output layer last."""

    @property
    def unit(self) -> int:
        """The width m of ``lecun``, and of widths such as ``"2m"``."""
        return check_count("width", self.width, MAX_WIDTH)

    @property
    def hidden_scaling(self) -> Scaling:
        """Scaling of hidden weights; its width is m."""
        return Scaling(self.parameterization, self.gain, self.unit)

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        weights = [step for step in self.steps if step.name]
        return {
            step.name: self._layer(step, is_last_hidden=step is weights[-2]) for step in weights
        }

    def _layer(self, step: Step, is_last_hidden: bool) -> Layer:
        scaling = self.hidden_scaling
        block = step.block
        paired = self.symmetric and is_last_hidden
        if step.name == OUTPUT:
            trained = trains_output(self.trained)
            scaling = Scaling(self.parameterization, width=self.unit)
            if step.drops:
                return MaskedDense(
                    self.num_outputs, self._parts(step), scaling=scaling, trainable=trained
                )
            signs = self.output_signs
            return Dense(
                self.num_outputs, False, scaling, signs, opposed=self.symmetric, trainable=trained
            )
        trained = trains_hidden(self.trained, step.name in self.first_layers())
        if isinstance(block, graphs.AdapterUp):
            rank = graphs.DenseBlock.model_construct(width=block.rank).size(scaling.width)
            # A multiplier: 0 has no standard deviation.
            kind = "lecun" if self.parameterization == "lecun" else "ntk"
            update = Scaling(kind, rank ** (0.5 - block.exponent), scaling.width)
            return Dense(block.size(scaling.width), False, update, zeros=True, trainable=trained)
        if isinstance(block, graphs.GainBlock):
            return Gain(scaling, trainable=trained)
        if isinstance(block, graphs.PositionsBlock):
            return Positions(scaling, trainable=trained)
        assert isinstance(block, Trained)
        width = block.size(scaling.width)
        bias = block.bias
        trained = trained and not block.frozen
        if isinstance(block, graphs.TokenDenseBlock):  # a 1 × 1 filter
            return Convolution(
                width, 1, dimensions=1, use_bias=bias, scaling=scaling, trainable=trained
            )
        if isinstance(block, graphs.ConvolutionBlock):
            shape = (width, block.kernel_size, block.padding, self.dimensions, block.stride)
            return Convolution(*shape, bias, scaling, paired, trainable=trained)
        if step.drops:
            return MaskedDense(width, self._parts(step), bias, scaling, trainable=trained)
        return Dense(width, bias, scaling, paired=paired, trainable=trained)

    def _parts(self, step: Step) -> Parts:
        """Segments of a masked layer's inputs: (length if known, drop probability)."""
        return tuple((None, drop) for drop in step.drops)

    def body(self, call: Call, x: Array) -> Array:
        return self.forward(call, lambda function, z: activation_function(function)(z), x)

    def forward(self, call: Call, activate: Activate, x: Array) -> Array:
        """Return the pre-outputs by these actions at layers and activations."""
        values = [x]
        for step in self.steps:
            seen = [values[source] for source in step.sources]
            values.append(self._value(step, call, activate, seen))
        return values[-1]

    def _value(self, step: Step, call: Call, activate: Activate, seen: list[Array]) -> Array:
        a = seen[0]
        match block := step.block:
            case graphs.DenseBlock():
                return call(step.name, _beside([_flat(each) for each in seen]))
            case (
                graphs.ConvolutionBlock()
                | graphs.TokenDenseBlock()
                | graphs.GainBlock()
                | graphs.PositionsBlock()
            ):
                return call(step.name, _beside(seen))
            case graphs.AttentionBlock():
                queries, keys, values = seen
                heads = block.heads(self.hidden_scaling.width)
                return attend(queries, keys, values, heads, block.score_exponent, block.causal)
            case graphs.NormalizeBlock():
                return normalize(a)
            case graphs.FixedPositionsBlock():
                return a + sines(a.shape[1:])
            case graphs.FirstTokenBlock():
                return a[:, 0]
            case graphs.ActivationBlock():
                return activate(block.function, a)
            case graphs.AveragePoolBlock():
                return average_pool(a, block.size)
            case graphs.GlobalAverageBlock():
                return a.mean(axis=tuple(range(1, a.ndim - 1)))
            case graphs.FlattenInputBlock():
                return a.reshape(a.shape[0], -1)
            case graphs.FlattenBlock():
                return _flat(a)
            case graphs.ScaleBlock():
                return block.factor * a
            case graphs.ResidualBlock():
                joined: Array = block.join(*seen)
                return joined
            case graphs.ConcatBlock():
                return _beside(seen)


class Listed(Layered):
    """Abstract: networks defined by a composition."""

    kind: ClassVar[Kind]
    """Architecture, which maps settings to layers."""

    @property
    def hidden(self) -> Hidden:
        """Width and biases of each hidden layer, for architectures with numbered layers."""
        return ()

    @cached_property
    def written_out(self) -> Composition:
        """The network as a composition."""
        return self.kind.write_out(self, self.hidden)  # its fields have the names of the settings

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.written_out.steps

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Width of each hidden layer except gains and positions."""
        sizes = (block.size(self.hidden_scaling.width) for block in self.written_out.trained())
        return tuple(size for size in sizes if size is not None)

    def first_layers(self) -> tuple[str, ...]:
        return tuple(f"hidden{number}" for number in self.written_out.connections().first)

    def read_elementwise(self) -> Mapping[str, str]:
        """The last hidden layer, if the output layer reads it elementwise.

        The output then is linear in a function of each z_k, plus terms independent of z.
        """
        if self.written_out.drop_probability or not _ends_elementwise(self.written_out.layers):
            return {}
        return {f"hidden{len(self.written_out.trained())}": OUTPUT}

    def min_width(self, input_shape: Shape) -> int:
        """Smallest number of neurons (channels, for convolutions) of a hidden layer."""
        self.layer_input_shapes(input_shape)
        return min(self.widths)


@dataclass(frozen=True)
class Composed(Listed):
    """Network given by a composition of layers.

    The layers of a composition, then a dense output layer without bias, f = W α / √fan_in.

    Layers with weights are named ``hidden1``, ``hidden2``, … in order of evaluation, so dense
    layers with activations between them accept the parameters of :class:`FullyConnected`.

    >>> import jax, jax.numpy as jnp
    >>> from ntk_core.networks.graphs import composition_examples
    >>> net = Composed(composition_examples()["residual"], width=8, num_outputs=2)
    >>> net.apply(net.init(jax.random.key(0), (3,)), jnp.ones((5, 3))).shape
    (5, 2)

    Attributes:
        composition: see ``parse_composition``.
        width: m, the unit of widths such as ``"2m"``.
        num_outputs, output, parameterization, trained, output_signs: as for other networks;
            ``"first"`` trains the layers that read only the input.

    Raises:
        InvalidInput: for a setting outside its range; by ``init`` if the layers do not fit the
            inputs.

    Source: our choice, docs/own-data-and-models.md.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["composed"]

    composition: Composition
    width: int = 512
    num_outputs: int = 1
    output: str = "linear"
    parameterization: str = "ntk"
    trained: str = "all"
    output_signs: bool = False

    def layer_input_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        graphs.lay_out(self.steps, self.width, tuple(input_shape))  # its error names the place
        return super().layer_input_shapes(input_shape)


def average_pool(a: Array, size: int) -> Array:
    """Average disjoint windows of ``size`` positions along each spatial axis.

    The array has shape (n, *sizes, channels).
    """
    sizes = a.shape[1:-1]
    if any(length % size for length in sizes):
        raise InvalidInput(
            "pool_size", size, f"a divisor of every spatial size {sizes} that reaches a pooling"
        )
    windows = [part for length in sizes for part in (length // size, size)]
    axes = tuple(range(2, 2 * len(sizes) + 1, 2))
    return a.reshape(a.shape[0], *windows, a.shape[-1]).mean(axis=axes)


def _beside(values: list[Array]) -> Array:
    return values[0] if len(values) == 1 else jnp.concatenate(values, axis=-1)


def _flat(a: Array) -> Array:
    """(n, *sizes, channels) as (n, features), channel by channel."""
    return a if a.ndim == 2 else jnp.moveaxis(a, -1, 1).reshape(a.shape[0], -1)


def _ends_elementwise(blocks: tuple[Block, ...]) -> bool:
    """Whether a dense layer is last, apart from activations and an added skip connection."""
    rest = [
        block
        for block in blocks
        if not isinstance(block, graphs.ActivationBlock | graphs.ScaleBlock)
    ]
    if rest and isinstance(rest[-1], graphs.ResidualBlock):
        return _ends_elementwise(rest[-1].layers)
    return bool(rest) and isinstance(rest[-1], graphs.DenseBlock)
