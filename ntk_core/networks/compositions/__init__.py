"""Networks of one's own as compositions of registered layers: JSON, shapes, verdict; free of JAX."""

from ntk_core.networks.compositions._blocks import (
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
from ntk_core.networks.compositions._composition import (
    Composition,
    Nesting,
    composition_data,
    composition_digest,
    nestings,
    parse_composition,
    positions,
)
from ntk_core.networks.compositions._examples import EXAMPLE_TITLES, composition_examples
from ntk_core.networks.compositions._shapes import Layout, PlacedLayer, lay_out
from ntk_core.networks.compositions._verdict import CompositionVerdict, composition_verdict

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
    "Nesting",
    "PlacedLayer",
    "ResidualBlock",
    "ScaleBlock",
    "Trained",
    "composition_data",
    "composition_digest",
    "composition_examples",
    "composition_verdict",
    "lay_out",
    "nestings",
    "parse_composition",
    "positions",
]
