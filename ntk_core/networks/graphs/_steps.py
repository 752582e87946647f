"""Networks as graphs of steps: shapes by counting, and skip connections; free of JAX."""

import math
from dataclasses import dataclass, replace

from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import _blocks as registered
from ntk_core.networks.graphs._blocks import Block, FunctionName, Nested, Trained
from ntk_core.networks.graphs._graph import INPUT, OUTPUT, Graph

Shape = tuple[int, ...]
SUM = registered.ResidualBlock.model_construct(layers=())


@dataclass(frozen=True)
class Step:
    """A block and its source steps; layers with weights concatenate several sources.

    Attributes:
        sources: numbers of earlier steps, counted from 1; 0 is the input.
        name: of the layer, if the block has weights.
        place: its place in JSON, for errors.
        around: number of residual and concat blocks around it.
        drops: drop probability of edges from each source; empty for plain layers.
    """

    block: Block
    sources: tuple[int, ...]
    name: str = ""
    place: str = ""
    around: int = 0
    drops: tuple[float, ...] = ()


def composition_steps(layers: tuple[Block, ...], drop_probability: float) -> tuple[Step, ...]:
    """Return the steps of layers, named ``hidden1``, ``hidden2``, … in order of evaluation."""
    steps: list[Step] = []
    drops = (drop_probability,) if drop_probability else ()

    def add(block: Block, sources: tuple[int, ...], place: str, around: int = 0) -> int:
        trained = isinstance(block, Trained)
        name = f"hidden{1 + sum(bool(step.name) for step in steps)}" if trained else ""
        dropped = drops if isinstance(block, registered.DenseBlock) else ()
        steps.append(Step(block, sources, name, place, around, dropped))
        return len(steps)

    def through(blocks: tuple[Block, ...], at: int, prefix: str, around: int) -> int:
        for index, block in enumerate(blocks, start=1):
            place = f"{prefix}.{index}"
            if isinstance(block, registered.PositionsBlock):
                at = add(SUM, (at, add(block, (at,), place, around)), place)
            elif isinstance(block, registered.AttentionBlock):
                at = add(
                    block, tuple(add(each, (at,), place, around) for each in block.layers), place
                )
            elif isinstance(block, registered.AdapterBlock):
                frozen, down, up = block.layers
                fixed = add(frozen, (at,), place, around)
                update = add(up, (add(down, (at,), place, around),), place, around)
                at = add(block, (fixed, update), place)
            elif isinstance(block, Nested):
                at = add(
                    block, (at, through(block.layers, at, f"{place}.layers", around + 1)), place
                )
            else:
                at = add(block, (at,), place, around)
        return at

    last = through(layers, 0, "layers", 0)
    steps.append(Step(registered.DenseBlock(), (last,), OUTPUT, "layers", drops=drops))
    return tuple(steps)


def graph_steps(
    graph: Graph, width: int, activation: FunctionName, use_bias: bool
) -> tuple[Step, ...]:
    """Return the steps of a graph at width m.

    ``activation`` is that of groups without their own.
    """
    steps: list[Step] = []
    at = {INPUT: 0}

    def add(
        block: Block, *sources: int, name: str = "", place: str = "", drops: tuple[float, ...] = ()
    ) -> int:
        steps.append(Step(block, sources, name, place, drops=drops))
        return len(steps)

    def value(source: str, target: str) -> int:
        """Return the source step as the target reads it: at positions, or flat."""
        is_flat = target in graph.positioned or (
            source in graph.group and source not in graph.positioned
        )
        return at[source] if is_flat else add(registered.FlattenInputBlock(), at[source])

    for name in graph.depths:
        edges = graph.parents[name]
        place = f"groups.{name}"
        sources = [value(edge.source, name) for edge in edges]
        if name == OUTPUT:
            block: Block = registered.DenseBlock()
        elif name in graph.positioned:
            kernel_size = edges[0].kernel_size
            channels = graph.group[name].size_at(width)
            block = registered.ConvolutionBlock.model_construct(
                width=channels, bias=use_bias, kernel_size=kernel_size
            )
        else:
            block = registered.DenseBlock.model_construct(
                width=graph.group[name].size_at(width), bias=use_bias
            )
        drops = tuple(edge.drop_probability for edge in edges)
        at[name] = add(block, *sources, name=name, place=place, drops=drops if any(drops) else ())
        if name != OUTPUT:
            function = graph.group[name].activation or activation
            at[name] = add(registered.ActivationBlock.model_construct(function=function), at[name])
        for edge in graph.incoming[name]:
            if not edge.trained:
                at[name] = add(
                    SUM,
                    value(edge.source, name),
                    at[name],
                    place=f"edges.{edge.source}-{name}.kind",
                )
    return tuple(steps)


@dataclass(frozen=True)
class LayerSize:
    """One layer: ``positions`` that share a fan_in × features weight (1 for a dense layer).

    Includes the attention scores of ``num_heads`` > 0 heads that mix its values.

    Attributes:
        fan_in: inputs per neuron or channel.
        masked: whether a mask removes edges, or each neuron is a model: their kernels
            are sums over neurons.
        num_heads: heads of the attention that mixes its values; else 0.
        name: name of its step.
        grows: whether it becomes wider with m; True for the output layer.
        num_skips_around: residual and concat blocks around it.
    """

    positions: int
    fan_in: int
    features: int
    num_biases: int = 0
    masked: bool = False
    num_heads: int = 0
    convolution: bool = False
    name: str = ""
    grows: bool = True
    num_skips_around: int = 0

    @property
    def num_params(self) -> int:
        """Weights and biases, including edges that a mask removes."""
        return self.fan_in * self.features + self.num_biases

    @property
    def multiplications(self) -> int:
        """Multiplications of a forward pass of one input."""
        scores = 2 * self.positions**2 * self.features if self.num_heads else 0
        return self.positions * self.fan_in * self.features + scores

    @property
    def num_features(self) -> int:
        """Neurons at all positions, and attention scores."""
        return self.positions * self.features + self.num_heads * self.positions**2

    def kernel_operations(self, num_samples: int, num_outputs: int) -> int:
        """Multiplications of this layer's part of the kernel, by the cheaper of its contractions.

        Dense: (a·a') ∘ (δ·δ'). Masked: a product over pairs of inputs includes the mask.
        Convolution: over pairs of positions, or by the layer's own Jacobian.
        """
        rows = num_samples * num_outputs
        if self.masked:
            return num_samples**2 * self.fan_in * self.features + rows**2 * self.features
        if self.positions == 1:
            return rows**2 * self.features + num_samples**2 * self.fan_in
        pairs = self.positions**2 * (rows**2 * self.features + num_samples**2 * self.fan_in)
        jacobian = (
            rows * self.positions * self.fan_in * self.features
            + rows**2 * self.fan_in * self.features
        )
        return min(pairs, jacobian)


def lay_out(
    steps: tuple[Step, ...],
    width: int,
    input_shape: Shape,
    dimensions: int = 2,
    num_outputs: int = 1,
) -> tuple[LayerSize, ...]:
    """Return the layers of steps at width m, the output layer last.

    Errors name places (``layers.3.layers``).
    """
    shapes = [tuple(input_shape)]
    layers = dict[int, LayerSize]()
    for number, step in enumerate(steps, start=1):
        seen = [shapes[source] for source in step.sources]
        block = step.block
        place = step.place
        if isinstance(block, Trained):
            below = seen[0] if len(seen) == 1 else (*seen[0][:-1], sum(shape[-1] for shape in seen))
            is_masked = any(step.drops) or isinstance(block, registered.CopiesBlock)
            if step.name == OUTPUT:
                return (
                    *layers.values(),
                    LayerSize(1, math.prod(below), num_outputs, masked=is_masked, name=OUTPUT),
                )
            shapes.append(_trained_shape(block, place, below, width, dimensions))
            *sides, features = shapes[-1]
            layers[number] = LayerSize(
                math.prod(sides),
                _fan_in(block, below),
                features,
                features * block.bias,
                is_masked,
                convolution=isinstance(block, registered.ConvolutionBlock),
                name=step.name,
                grows=block.grows,
                num_skips_around=step.around,
            )
        elif isinstance(block, registered.AttentionBlock):
            shapes.append(seen[2])
            layers[step.sources[2]] = replace(layers[step.sources[2]], num_heads=block.heads(width))
        elif isinstance(block, Nested):
            shapes.append(_joined(block, place, *seen))
        else:
            shapes.append(_plain_shape(block, place, seen[0], dimensions))
    raise ValueError("steps without an output layer")


def _fan_in(block: Trained, below: Shape) -> int:
    if isinstance(block, registered.ConvolutionBlock):
        return block.kernel_size ** (len(below) - 1) * below[-1]
    if isinstance(block, registered.TokenDenseBlock):
        return below[-1]
    if isinstance(block, registered.CopiesBlock):
        return block.num_params(math.prod(below))
    if isinstance(block, registered.GainBlock):  # one factor
        return 1
    # one vector among the positions
    return math.prod(below[:-1] if isinstance(block, registered.PositionsBlock) else below)


def _trained_shape(block: Trained, place: str, shape: Shape, width: int, dimensions: int) -> Shape:
    if isinstance(block, registered.DenseBlock):
        return (block.size(width),)
    if isinstance(block, registered.GainBlock):
        return shape
    if isinstance(block, registered.PositionsBlock | registered.TokenDenseBlock):
        kind = "attention" if block.role in ("queries", "keys", "values") else block.kind
        _check_sequence(place, kind, shape)
        return (
            shape if isinstance(block, registered.PositionsBlock) else (shape[0], block.size(width))
        )
    _check_positions(place, block.kind, shape, dimensions)
    if block.kernel_size > min(shape[:-1]):
        raise InvalidInput(
            f"{place}.kernel_size",
            block.kernel_size,
            f"at most {min(shape[:-1])}, as {_words(shape)}",
        )
    return (*(math.ceil(side / block.stride) for side in shape[:-1]), block.size(width))


def _plain_shape(block: Block, place: str, shape: Shape, dimensions: int) -> Shape:
    if isinstance(block, registered.FlattenBlock):
        return (math.prod(shape),)
    if isinstance(block, registered.AveragePoolBlock):
        _check_positions(place, block.kind, shape, dimensions)
        if any(side % block.size for side in shape[:-1]):
            raise InvalidInput(
                f"{place}.size", block.size, f"a divisor of both sides, as {_words(shape)}"
            )
        return (*(side // block.size for side in shape[:-1]), shape[-1])
    if isinstance(block, registered.GlobalAverageBlock):
        if len(shape) != 2:  # sequences, for any dimensions
            _check_positions(place, block.kind, shape, dimensions)
        return shape[-1:]
    if isinstance(block, registered.FixedPositionsBlock | registered.FirstTokenBlock):
        _check_sequence(place, block.kind, shape)
        return shape[-1:] if isinstance(block, registered.FirstTokenBlock) else shape
    return shape


def _joined(
    block: registered.ResidualBlock | registered.ConcatBlock, place: str, shape: Shape, inner: Shape
) -> Shape:
    if isinstance(block, registered.ResidualBlock):
        if inner != shape and place.startswith("edges."):
            raise InvalidInput(
                place, "skip", f"skips between equal sizes, here {shape} and {inner}"
            )
        if inner != shape:
            given = f"{_numbers(inner)} inside, {_numbers(shape)} around"
            raise InvalidInput(
                f"{place}.layers", given, "layers that keep the shape, so both can be added"
            )
        return shape
    if inner[:-1] != shape[:-1]:
        given = f"{_numbers(inner)} inside, {_numbers(shape)} around"
        raise InvalidInput(
            f"{place}.layers", given, "layers that keep the positions, so both can be concatenated"
        )
    return (*shape[:-1], shape[-1] + inner[-1])


def _check_positions(place: str, kind: str, shape: Shape, dimensions: int) -> None:
    if len(shape) != dimensions + 1:
        given = f"{kind}, where {_words(shape)}"
        taken = (
            "images (height, width, channels)"
            if dimensions == 2
            else "sequences (length, channels)"
        )
        raise InvalidInput(f"{place}.kind", given, f"this layer only on {taken}")


def _check_sequence(place: str, kind: str, shape: Shape) -> None:
    if len(shape) != 2:
        given = f"{kind}, where {_words(shape)}"
        raise InvalidInput(
            f"{place}.kind", given, "this layer only on sequences (positions, features)"
        )


def _words(shape: Shape) -> str:
    return (
        f"{_numbers(shape)} "
        f"{'numbers reach' if len(shape) > 1 or shape[0] > 1 else 'number reaches'} it"
    )


def _numbers(shape: Shape) -> str:
    return " × ".join(map(str, shape))


@dataclass(frozen=True)
class Skip:
    """Skip connection from layer ``start`` to layer ``end``; 0 is the input, the last the output.

    ``"residual"``: added to the output of layer ``end``. ``"concat"``: input of ``end``, with the
    layer below. ``"branch"``: input of ``end`` instead of the layer below. ``"attention"``: mixes
    the input of ``end``.
    """

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Connections:
    """Skips in order of their ends, and the layers, counted from 1, that read only the input."""

    skips: tuple[Skip, ...]
    first: tuple[int, ...]


def find_connections(steps: tuple[Step, ...]) -> Connections:
    """Find the skips of a composition by tracking the layers concatenated at each step."""
    seen: list[set[int]] = [{0}]
    skips = list[Skip]()
    first = list[int]()
    mixing = set[int]()
    number = 0
    for step in steps:
        below = [seen[source] for source in step.sources]
        if step.name:
            number += 1
            # A of an adapter, keys and values read the input of the layer below.
            is_branch = number - 1 not in below[0]
            for low in sorted(below[0] - {number - 1}):
                kind = "attention" if low in mixing else "concat"
                if is_branch:
                    kind = "branch"
                skips.append(Skip(low, number, kind))
            first += [number] if below[0] == {0} else []
            seen.append({number})
        elif isinstance(step.block, registered.ResidualBlock):
            around, inner = map(max, below)
            skips += [Skip(around, inner, "residual")] if inner > around else []
            seen.append(below[1])
        else:
            if isinstance(step.block, registered.AttentionBlock):
                mixing |= below[0] | below[1]  # queries and keys
            seen.append(set().union(*below))
    return Connections(tuple(skips), tuple(first))


def trains_hidden(trained: str, first: bool) -> bool:
    """Whether a hidden layer is trained under this choice; ``first``: it reads only the input."""
    return trained in ("all", "hidden") or (trained == "first" and first)


def trains_output(trained: str) -> bool:
    """Whether the output layer is trained under this choice."""
    return trained in ("all", "last")
