"""Networks of one's own as compositions of registered layers: JSON, shapes, verdict; free of JAX."""

from ntk_core.networks.compositions._blocks import (
    BLOCKS,
    ActivationBlock,
    AttentionBlock,
    AveragePoolBlock,
    Block,
    ConcatBlock,
    ConvolutionBlock,
    DenseBlock,
    FirstTokenBlock,
    FixedPositionsBlock,
    FlattenBlock,
    FlattenInputBlock,
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
from ntk_core.networks.compositions._composition import (
    Composition,
    composition_data,
    parse_composition,
    positions,
)
from ntk_core.networks.compositions._examples import EXAMPLE_TITLES, composition_examples
from ntk_core.networks.compositions._shapes import lay_out
from ntk_core.networks.compositions._verdict import CompositionVerdict, composition_verdict
from ntk_core.networks.compositions._ways import Skip, Ways, trains_hidden, trains_output
