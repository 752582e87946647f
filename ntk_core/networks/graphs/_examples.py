"""Named example graphs, including those of Zhu, Liu & Belkin 2022, and example compositions."""

from functools import cache

from ntk_core.markup import JSON
from ntk_core.networks.graphs._composition import Composition, parse_composition
from ntk_core.networks.graphs._graph import INPUT, OUTPUT, Edge, Graph, Group

HIDDEN = "abcdefghijklmnop"


def _names(depth: int) -> tuple[str, ...]:
    return tuple(HIDDEN[:depth])


def _groups(names: tuple[str, ...]) -> tuple[Group, ...]:
    return tuple(Group(name) for name in names)


def _chain(names: tuple[str, ...]) -> tuple[Edge, ...]:
    return tuple(
        Edge(source, target)
        for source, target in zip((INPUT, *names), (*names, OUTPUT), strict=True)
    )


def _edges(*pairs: str) -> tuple[Edge, ...]:
    return tuple(Edge(source, target) for source, target in map(str.split, pairs))


def fully_connected_graph(depth: int) -> Graph:
    """Chain of groups (Zhu et al., App. A)."""
    names = _names(depth)
    return Graph(_groups(names), _chain(names))


def dense_graph(depth: int, drop_probability: float = 0.0) -> Graph:
    """DenseNet: each layer reads the input and all layers below.

    So does the output (Zhu et al., App. A).
    """
    names = _names(depth)
    edges = [
        Edge(source, target, drop_probability)
        for index, target in enumerate((*names, OUTPUT))
        for source in (INPUT, *names[:index])
    ]
    return Graph(_groups(names), tuple(edges))


def residual_graph(depth: int, skip_every: int = 1) -> Graph:
    """ResNet: skips of ``skip_every`` layers after the first layer.

    Each adds the output from as many layers below.
    """
    names = _names(depth)
    skips = [
        Edge(names[low], names[low + skip_every], kind="skip")
        for low in range(0, depth - skip_every, skip_every)
    ]
    return Graph(_groups(names), (*_chain(names), *skips))


def shared_graph(depth: int, kernel_size: int = 3) -> Graph:
    """Convolutional network with circular padding.

    It has a readout of all positions (Zhu et al., App. E).
    """
    names = _names(depth)
    pairs = zip((INPUT, *names[:-1]), names, strict=True)
    shared = tuple(
        Edge(source, target, kind="shared", kernel_size=kernel_size) for source, target in pairs
    )
    return Graph(_groups(names), (*shared, Edge(names[-1], OUTPUT)))


def few_bottleneck_neurons_graph() -> Graph:
    """Two neurons of in-degree 1 beside a wide group (Zhu et al., Fig. 3): harmless."""
    groups = (Group("a"), Group("one", 1), Group("few", 2), Group("b"), Group("c"))
    edges = ("input a", "input one", "one few", "a b", "b c", "few c", "c output")
    return Graph(groups, _edges(*edges))


def bottleneck_layer_graph() -> Graph:
    """All neurons of c have in-degree 2, which is harmful.

    They read only the two neurons of b (Zhu et al., App. F).
    """
    return Graph(
        (Group("a"), Group("b", 2), Group("c")), _edges("input a", "a b", "b c", "c output")
    )


def repaired_bottleneck_graph() -> Graph:
    """Bottleneck layer with added edges from a to c, which is wide again (App. F)."""
    layer = bottleneck_layer_graph()
    return Graph(layer.groups, (*layer.edges, Edge("a", "c")))


def unequal_graph() -> Graph:
    """In-degrees m, and m^1.5 beside it: a polynomial ratio, which Assumption 3.5 allows."""
    groups = (Group("a"), Group("large", power=1.5), Group("b"), Group("c"))
    edges = ("input a", "input large", "a b", "large c", "a c", "b output", "c output")
    return Graph(groups, _edges(*edges))


def arbitrary_graph() -> Graph:
    """Groups of different sizes and activations with irregular edges, some of them removed."""
    groups = (
        Group("a"),
        Group("b", factor=0.5),
        Group("c", activation="softplus"),
        Group("d", factor=2.0),
        Group("e"),
    )
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
GRAPH_TITLES = {name: title for name, (title, _) in _EXAMPLES.items()}


def example_graphs() -> dict[str, Graph]:
    """Return the example graphs.

    Name → graph of the gallery; ``GRAPH_TITLES`` has their titles.

    >>> "densenet-dropped" in example_graphs()
    True

    Returns:
        Graphs by name.

    Source: Zhu, Liu & Belkin 2022, App. A and D to F; their sizes are our choice.
    """
    return {name: graph for name, (_, graph) in _EXAMPLES.items()}


COMPOSITION_TITLES = {
    "fully-connected": "fully connected, two layers",
    "bottleneck": "with a bottleneck of 3 neurons",
    "residual": "residual: a skip around each layer",
    "concat": "DenseNet: each layer concatenated with its input",
    "convolution": "convolution, pooling, dense (images)",
    "two-speeds": "layers that grow unequally",
    "transformer": "one block of a transformer (sequences)",
}


def _dense(width: int | str = "m", function: str = "tanh", bias: bool = False) -> list[JSON]:
    return [
        {"kind": "dense", "width": width, "bias": bias},
        {"kind": "activation", "function": function},
    ]


@cache
def composition_examples() -> dict[str, Composition]:
    """Return the example compositions.

    Name → composition; :data:`COMPOSITION_TITLES` has their titles.

    >>> list(composition_examples())[:2]
    ['fully-connected', 'bottleneck']

    Returns:
        Compositions by name.

    Source: our choice, docs/own-data-and-models.md.
    """
    convolution = [
        {"kind": "convolution", "width": "m"},
        {"kind": "activation", "function": "tanh"},
    ]
    found: dict[str, list[JSON]] = {
        "fully-connected": [*_dense(), *_dense()],
        "bottleneck": [*_dense(), *_dense(3), *_dense()],
        "residual": [*_dense(), *[{"kind": "residual", "layers": _dense()}] * 2],
        "concat": [
            *_dense(),
            {"kind": "concat", "layers": _dense()},
            {"kind": "concat", "layers": _dense()},
        ],
        "convolution": [*convolution, {"kind": "global-average"}, *_dense("4m")],
        "two-speeds": [
            *_dense("4m"),
            *_dense("0.5m", "softplus", bias=True),
            {"kind": "scale", "factor": 2.0},
        ],
    }
    normalized = [{"kind": "normalize"}, {"kind": "gain"}]
    tokens = {"kind": "token-dense", "width": "4m"}
    attention = [{"kind": "attention", "num_heads": 4, "head_dim": "m"}, tokens]
    inner = [
        {"kind": "token-dense", "width": "16m"},
        {"kind": "activation", "function": "gelu"},
        tokens,
    ]
    around = [
        {"kind": "residual", "layers": [*normalized, *layers]} for layers in (attention, inner)
    ]
    found["transformer"] = [
        tokens,
        {"kind": "positions"},
        *around,
        *normalized,
        {"kind": "global-average"},
    ]
    return {name: parse_composition({"layers": layers}) for name, layers in found.items()}
