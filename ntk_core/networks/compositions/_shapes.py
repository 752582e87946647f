"""What reaches each layer of a composition: shapes by counting, free of JAX, and a sentence where they do not fit."""

import math
from dataclasses import dataclass

from ntk_core.errors import InvalidInput
from ntk_core.networks.compositions._blocks import (
    AttentionBlock,
    AveragePoolBlock,
    Block,
    ConcatBlock,
    ConvolutionBlock,
    DenseBlock,
    FirstTokenBlock,
    FixedPositionsBlock,
    FlattenBlock,
    GainBlock,
    GlobalAverageBlock,
    Nested,
    PositionsBlock,
    ResidualBlock,
    TokenDenseBlock,
    Trained,
    Values,
)
from ntk_core.networks.compositions._composition import Composition

Shape = tuple[int, ...]


@dataclass(frozen=True)
class PlacedLayer:
    """A layer with weights, where it stands.

    Attributes:
        name: ``hidden1``, ``hidden2``, … in the order in which they are applied.
        input_shape, output_shape: of one input.
        num_ways_around: residual and concat blocks that it stands in.
        num_heads: of the attention that mixes its values; 0 for any other layer.
    """

    name: str
    block: Trained
    input_shape: Shape
    output_shape: Shape
    num_ways_around: int
    num_heads: int = 0

    @property
    def positions(self) -> int:
        """Places that share its weights: pixels of a convolution, positions of a sequence, 1 for a dense layer."""
        return math.prod(self.output_shape[:-1])

    @property
    def fan_in(self) -> int:
        """Numbers that one of its neurons or channels sees."""
        if isinstance(self.block, ConvolutionBlock):
            return self.block.kernel_size ** (len(self.input_shape) - 1) * self.input_shape[-1]
        if isinstance(self.block, TokenDenseBlock):
            return self.input_shape[-1]
        if isinstance(self.block, GainBlock | PositionsBlock):  # one factor, or one vector chosen among the positions
            return self.positions if isinstance(self.block, PositionsBlock) else 1
        return math.prod(self.input_shape)


@dataclass(frozen=True)
class Layout:
    """All layers with weights, and the shape of what the output layer sees."""

    layers: tuple[PlacedLayer, ...]
    last_shape: Shape


def lay_out(composition: Composition, width: int, input_shape: Shape, dimensions: int = 2) -> Layout:
    """The composition at width m for inputs of this shape; convolutions see positions in so many ``dimensions``.

    Raises:
        InvalidInput: by the place of the layer (``layers.3.layers``), what reaches it and what it takes.
    """
    walk = _Walk(width, dimensions)
    shape = walk.through(composition.layers, "layers", tuple(input_shape), 0)
    return Layout(tuple(walk.layers), shape)


class _Walk:
    """From the input upwards, layer by layer."""

    def __init__(self, width: int, dimensions: int):
        self._width, self._dimensions = width, dimensions
        self.layers: list[PlacedLayer] = []

    def through(self, blocks: tuple[Block, ...], prefix: str, shape: Shape, around: int) -> Shape:
        """The shape after these blocks."""
        for index, block in enumerate(blocks, start=1):
            place = f"{prefix}.{index}"
            if isinstance(block, Trained):
                shape = self._place(block, place, shape, around)
            elif isinstance(block, AttentionBlock):
                heads = block.heads(self._width)
                _check_sequence(place, block.kind, shape)
                *_, shape = [self._place(each, place, shape, around, heads) for each in block.layers]
            elif isinstance(block, Nested):
                inner = self.through(block.layers, f"{place}.layers", shape, around + 1)
                shape = _joined(block, place, shape, inner)
            else:
                shape = _plain_shape(block, place, shape, self._dimensions)
        return shape

    def _place(self, block: Trained, place: str, shape: Shape, around: int, heads: int = 0) -> Shape:
        above = _trained_shape(block, place, shape, self._width, self._dimensions)
        mixed = heads if isinstance(block, Values) else 0
        self.layers.append(PlacedLayer(f"hidden{len(self.layers) + 1}", block, shape, above, around, mixed))
        return above


def _trained_shape(block: Trained, place: str, shape: Shape, width: int, dimensions: int) -> Shape:
    if isinstance(block, DenseBlock):
        return (block.size(width),)
    if isinstance(block, GainBlock):
        return shape
    if isinstance(block, PositionsBlock | TokenDenseBlock):
        _check_sequence(place, block.kind, shape)
        return shape if isinstance(block, PositionsBlock) else (shape[0], block.size(width))
    _check_positions(place, block.kind, shape, dimensions)
    if block.kernel_size > min(shape[:-1]):
        raise InvalidInput(f"{place}.kernel_size", block.kernel_size, f"at most {min(shape[:-1])}, as {_words(shape)}")
    return (*(math.ceil(side / block.stride) for side in shape[:-1]), block.size(width))


def _plain_shape(block: Block, place: str, shape: Shape, dimensions: int) -> Shape:
    if isinstance(block, FlattenBlock):
        return (math.prod(shape),)
    if isinstance(block, AveragePoolBlock):
        _check_positions(place, block.kind, shape, dimensions)
        if any(side % block.size for side in shape[:-1]):
            raise InvalidInput(f"{place}.size", block.size, f"a divisor of both sides, as {_words(shape)}")
        return (*(side // block.size for side in shape[:-1]), shape[-1])
    if isinstance(block, GlobalAverageBlock):
        if len(shape) != 2:  # of a sequence, whatever convolutions see
            _check_positions(place, block.kind, shape, dimensions)
        return shape[-1:]
    if isinstance(block, FixedPositionsBlock | FirstTokenBlock):
        _check_sequence(place, block.kind, shape)
        return shape[-1:] if isinstance(block, FirstTokenBlock) else shape
    return shape


def _joined(block: ResidualBlock | ConcatBlock, place: str, shape: Shape, inner: Shape) -> Shape:
    if isinstance(block, ResidualBlock):
        if inner != shape:
            given = f"{_numbers(inner)} inside, {_numbers(shape)} around"
            raise InvalidInput(f"{place}.layers", given, "layers that keep the shape, so that both can be added")
        return shape
    if inner[:-1] != shape[:-1]:
        given = f"{_numbers(inner)} inside, {_numbers(shape)} around"
        raise InvalidInput(f"{place}.layers", given, "layers that keep the positions, so that both go side by side")
    return (*shape[:-1], shape[-1] + inner[-1])


def _check_positions(place: str, kind: str, shape: Shape, dimensions: int) -> None:
    if len(shape) != dimensions + 1:
        given = f"{kind}, where {_words(shape)}"
        taken = "images (height, width, channels)" if dimensions == 2 else "sequences (length, channels)"
        raise InvalidInput(f"{place}.kind", given, f"this layer only on {taken}")


def _check_sequence(place: str, kind: str, shape: Shape) -> None:
    if len(shape) != 2:
        given = f"{kind}, where {_words(shape)}"
        raise InvalidInput(f"{place}.kind", given, "this layer only on sequences (positions, features)")


def _words(shape: Shape) -> str:
    return f"{_numbers(shape)} {'numbers reach' if len(shape) > 1 or shape[0] > 1 else 'number reaches'} it"


def _numbers(shape: Shape) -> str:
    return " × ".join(map(str, shape))
