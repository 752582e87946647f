"""Networks on any directed acyclic graph of groups of neurons."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ntk_core.networks.architectures._activations import (
    MAX_WIDTH,
    Activation,
    check_count,
    check_switch,
)
from ntk_core.networks.architectures._layered import Layered
from ntk_core.networks.architectures._layers import Parts, Shape
from ntk_core.networks.architectures._network import as_shape
from ntk_core.networks.graphs import (
    INPUT,
    OUTPUT,
    Edge,
    Graph,
    Group,
    Step,
    graph_steps,
    in_degrees,
    lay_out,
)

_DEFAULT_GROUPS = (Group("a"), Group("b"))
_DEFAULT_EDGES = (
    Edge(INPUT, "a"),
    Edge(INPUT, "b"),
    Edge("a", "b"),
    Edge("a", OUTPUT),
    Edge("b", OUTPUT),
)


@dataclass(frozen=True)
class DAGNetwork(Layered):
    """Network on a directed acyclic graph of neuron groups.

    α_v = σ_v(in(v)^(-1/2) Σ_{u→v} w_uv α_u + b_v) + Σ_{u⇢v} α_u along the edges of a
    directed acyclic graph.

    Groups are evaluated layer by layer, where the layer of a group is the length of the longest
    path to it from the input. in(v) is the actual in-degree, without edges removed at
    initialization. u⇢v are fixed skips of weight 1. After shared edges a group has channels at
    every position of the input, with the same weights at each (a convolution with circular
    padding).

    Source: Zhu, Liu & Belkin 2022, Eq. 2 and §2.2, App. A, D and E.

    >>> net = DAGNetwork(width=10, num_outputs=2)
    >>> net.depths
    {'a': 1, 'b': 2, 'output': 3}
    >>> net.min_width((4,))
    14

    Attributes:
        width: m, the size of groups without their own.
        groups: hidden groups of neurons.
        edges: between ``"input"``, the groups and ``"output"``.
        num_outputs, activation, output, parameterization, use_bias, gain, trained: as for other
            networks; ``"first"`` trains the groups that see the input only.
        dimensions: of positions, for shared edges: 2 for images
            (height, width, channels), 1 for sequences.

    Raises:
        InvalidInput: as :class:`ntk_core.networks.graphs.Graph`, and for every other
            setting by its field.
    """

    width: int = 512
    groups: tuple[Group, ...] = _DEFAULT_GROUPS
    edges: tuple[Edge, ...] = _DEFAULT_EDGES
    num_outputs: int = 1
    activation: Activation = "relu"
    output: str = "linear"
    parameterization: str = "ntk"
    use_bias: bool = True
    gain: float = 1.0
    trained: str = "all"
    dimensions: int = 2

    def __post_init__(self) -> None:
        check_switch("use_bias", self.use_bias)
        super().__post_init__()
        for name, size in self.graph.sizes(self.width).items():
            check_count(f"groups.{name}.size", size, MAX_WIDTH)

    @cached_property
    def graph(self) -> Graph:
        """Validated groups and edges."""
        return Graph(self.groups, self.edges)

    @property
    def depths(self) -> dict[str, int]:
        """Layer of each group and of the output.

        The longest path from the input, in the order of evaluation.
        """
        return self.graph.depths

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of neurons (channels, after shared edges) of each hidden group."""
        return self.graph.sizes(self.width)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return graph_steps(self.graph, self.width, self.activation, self.use_bias)

    def _parts(self, step: Step) -> Parts:
        known = {
            group: count
            for group, count in self.sizes.items()
            if group not in self.graph.positioned
        }
        return tuple(
            (known.get(edge.source), edge.drop_probability)
            for edge in self.graph.parents[step.name]
        )

    def layer_input_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        # Its error names the place.
        lay_out(self.steps, self.width, as_shape(input_shape), self.dimensions)
        return super().layer_input_shapes(input_shape)

    def read_elementwise(self) -> Mapping[str, str]:
        return {}

    def first_layers(self) -> tuple[str, ...]:
        return self.graph.first_layers

    def layers_below(self, name: str) -> tuple[str, ...]:
        """The group and its ancestors."""
        below = {name}
        for each in reversed(self.depths):
            if each in below:
                below.update(edge.source for edge in self.graph.incoming[each])
        return tuple(each for each in self.depths if each in below)

    def min_width(self, input_shape: Shape) -> int:
        """Smallest expected in-degree outside the first layer (Zhu et al., Eq. 8).

        ``in_degree_range`` counts it.
        """
        self.layer_input_shapes(input_shape)
        found = in_degrees(self.graph, self.width, input_shape, self.num_outputs)
        return max(1, round(min(found[name].value for name in self.graph.beyond_first_layer)))
