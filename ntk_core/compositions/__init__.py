"""Networks of one's own as compositions of registered layers: JSON, shapes, verdict; free of JAX."""

from ntk_core.compositions._blocks import (
    BLOCKS,
    ActivationBlock,
    AveragePoolBlock,
    Block,
    ConcatBlock,
    ConvolutionBlock,
    DenseBlock,
    FlattenBlock,
    GlobalAverageBlock,
    Nested,
    ResidualBlock,
    ScaleBlock,
    Trained,
)
from ntk_core.compositions._composition import (
    Composition,
    composition_data,
    composition_digest,
    parse_composition,
    positions,
)
from ntk_core.compositions._examples import EXAMPLE_TITLES, composition_examples
from ntk_core.compositions._shapes import Layout, PlacedLayer, PlacedNesting, lay_out
from ntk_core.compositions._verdict import CompositionVerdict, composition_verdict

__all__ = [
    "BLOCKS",
    "EXAMPLE_TITLES",
    "ActivationBlock",
    "AveragePoolBlock",
    "Block",
    "Composition",
    "CompositionVerdict",
    "ConcatBlock",
    "ConvolutionBlock",
    "DenseBlock",
    "FlattenBlock",
    "GlobalAverageBlock",
    "Layout",
    "Nested",
    "PlacedLayer",
    "PlacedNesting",
    "ResidualBlock",
    "ScaleBlock",
    "Trained",
    "composition_data",
    "composition_digest",
    "composition_examples",
    "composition_verdict",
    "lay_out",
    "parse_composition",
    "positions",
]
