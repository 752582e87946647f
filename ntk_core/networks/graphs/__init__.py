"""Networks as data, free of JAX.

Graphs of groups, registered layers, JSON, shapes, verdicts, examples.
"""

from ntk_core.networks.graphs._blocks import (
    BLOCKS,
    ActivationBlock,
    AdapterBlock,
    AdapterDown,
    AdapterUp,
    AttentionBlock,
    AveragePoolBlock,
    Block,
    ConcatBlock,
    ConvolutionBlock,
    CopiesBlock,
    DenseBlock,
    FirstTokenBlock,
    FixedPositionsBlock,
    FlattenBlock,
    FlattenInputBlock,
    FrozenDense,
    GainBlock,
    GlobalAverageBlock,
    NormalizeBlock,
    PositionsBlock,
    ResidualBlock,
    ScaleBlock,
    TokenDenseBlock,
    Trained,
    multiple,
)
from ntk_core.networks.graphs._composition import Composition, parse_composition, positions
from ntk_core.networks.graphs._examples import (
    COMPOSITION_TITLES,
    GRAPH_TITLES,
    arbitrary_graph,
    bottleneck_layer_graph,
    composition_examples,
    dense_graph,
    example_graphs,
    few_bottleneck_neurons_graph,
    fully_connected_graph,
    residual_graph,
    shared_graph,
    unequal_graph,
)
from ntk_core.networks.graphs._graph import (
    EDGE_KINDS,
    INPUT,
    MAX_BYTES,
    MAX_GROUPS,
    OUTPUT,
    Edge,
    Graph,
    Group,
    InvalidGraph,
    graph_data,
    parse_graph,
)
from ntk_core.networks.graphs._steps import (
    LayerSize,
    Skip,
    Step,
    graph_steps,
    lay_out,
    trains_hidden,
    trains_output,
)
from ntk_core.networks.graphs._verdict import Verdict, graph_verdict, in_degrees
from ntk_core.networks.graphs._written import named_inside
