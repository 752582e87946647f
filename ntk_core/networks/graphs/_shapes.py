"""Graphs that are known by name: standard architectures written out, and the examples of Zhu, Liu & Belkin 2022."""

from ntk_core.networks.graphs._graph import Graph
from ntk_core.networks.graphs._parts import INPUT, OUTPUT, Edge, Group

HIDDEN = "abcdefghijklmnop"


def _names(depth: int) -> tuple[str, ...]:
    return tuple(HIDDEN[:depth])


def _groups(names: tuple[str, ...]) -> tuple[Group, ...]:
    return tuple(Group(name) for name in names)


def _chain(names: tuple[str, ...]) -> tuple[Edge, ...]:
    return tuple(Edge(source, target) for source, target in zip((INPUT, *names), (*names, OUTPUT), strict=True))


def _edges(*pairs: str) -> tuple[Edge, ...]:
    return tuple(Edge(source, target) for source, target in map(str.split, pairs))


def fully_connected_graph(depth: int) -> Graph:
    """Each layer sees the one below it (Zhu et al., App. A)."""
    names = _names(depth)
    return Graph(_groups(names), _chain(names))


def dense_graph(depth: int, drop_probability: float = 0.0) -> Graph:
    """A DenseNet: each layer, the output included, sees all layers below it and the input (Zhu et al., App. A)."""
    names = _names(depth)
    edges = [
        Edge(source, target, drop_probability)
        for index, target in enumerate((*names, OUTPUT))
        for source in (INPUT, *names[:index])
    ]
    return Graph(_groups(names), tuple(edges))


def residual_graph(depth: int, skip_every: int = 1) -> Graph:
    """A ResNet: after the first layer, every ``skip_every`` layers what lies as many layers below is added."""
    names = _names(depth)
    skips = [Edge(names[low], names[low + skip_every], kind="skip") for low in range(0, depth - skip_every, skip_every)]
    return Graph(_groups(names), (*_chain(names), *skips))


def shared_graph(depth: int, kernel_size: int = 3) -> Graph:
    """A convolutional network with circular padding, all positions read out (Zhu et al., App. E)."""
    names = _names(depth)
    pairs = zip((INPUT, *names[:-1]), names, strict=True)
    shared = tuple(Edge(source, target, kind="shared", kernel_size=kernel_size) for source, target in pairs)
    return Graph(_groups(names), (*shared, Edge(names[-1], OUTPUT)))


def few_bottleneck_neurons_graph() -> Graph:
    """Two neurons of in-degree 1 beside a wide group (Zhu et al., Fig. 3): harmless."""
    groups = (Group("a"), Group("one", 1), Group("few", 2), Group("b"), Group("c"))
    edges = ("input a", "input one", "one few", "a b", "b c", "few c", "c output")
    return Graph(groups, _edges(*edges))


def bottleneck_layer_graph() -> Graph:
    """All neurons of c have in-degree 2, since they see the group b of two neurons only (App. F): harmful."""
    return Graph((Group("a"), Group("b", 2), Group("c")), _edges("input a", "a b", "b c", "c output"))


def repaired_bottleneck_graph() -> Graph:
    """The bottleneck layer with added connections from a to c, which is wide again (App. F)."""
    layer = bottleneck_layer_graph()
    return Graph(layer.groups, (*layer.edges, Edge("a", "c")))


def unequal_graph() -> Graph:
    """In-degrees m, and m^1.5 beside it: a polynomial ratio, which Assumption 3.5 allows."""
    groups = (Group("a"), Group("large", power=1.5), Group("b"), Group("c"))
    edges = ("input a", "input large", "a b", "large c", "a c", "b output", "c output")
    return Graph(groups, _edges(*edges))


def arbitrary_graph() -> Graph:
    """Groups of different sizes and activations with irregular edges, some of them removed."""
    groups = (Group("a"), Group("b", factor=0.5), Group("c", activation="softplus"), Group("d", factor=2.0), Group("e"))
    edges = (
        *_edges("input a", "input b", "input d", "b d", "d e", "e output", "c output"),
        Edge("a", "c", 0.5),
        Edge("a", "e", 0.25),
        Edge("d", "output", 0.5),
    )
    return Graph(groups, edges)


_EXAMPLES: dict[str, tuple[str, Graph]] = {
    "densenet-dropped": ("DenseNet, half of the edges dropped", dense_graph(3, 0.5)),
    "irregular": ("irregular groups", arbitrary_graph()),
    "fully-connected": ("fully connected", fully_connected_graph(3)),
    "few-bottleneck-neurons": ("two bottleneck neurons", few_bottleneck_neurons_graph()),
    "bottleneck-layer": ("bottleneck layer", bottleneck_layer_graph()),
    "bottleneck-repaired": ("bottleneck layer, repaired", repaired_bottleneck_graph()),
    "fixed-skips": ("fixed skips (ResNet)", residual_graph(3)),
    "shared-weights": ("shared weights (convolution)", shared_graph(2)),
    "unequal": ("unequal in-degrees", unequal_graph()),
}
EXAMPLE_TITLES = {name: title for name, (title, _) in _EXAMPLES.items()}


def example_graphs() -> dict[str, Graph]:
    """Name → graph of the gallery; ``EXAMPLE_TITLES`` has their titles.

    Source: Zhu, Liu & Belkin 2022, App. A and D to F; their sizes are our choice.
    """
    return {name: graph for name, (_, graph) in _EXAMPLES.items()}
