"""Transformers: blocks of attention and an MLP, each with a way around it, on embedded sequences."""

from typing import Any

from ntk_core.networks import graphs
from ntk_core.networks.graphs import Block, Composition, ResidualBlock, TokenDenseBlock, multiple
from ntk_core.networks.kinds import attention
from ntk_core.networks.kinds._kind import NETWORKS, Hidden, Kind

_POSITIONS: dict[str, tuple[Block, ...]] = {
    "none": (),
    "fixed": (graphs.FixedPositionsBlock(),),
    "learned": (graphs.PositionsBlock(),),
}
_NORMALIZATION: dict[str, tuple[Block, ...]] = {
    "none": (),
    "plain": (graphs.NormalizeBlock(),),
    "gains": (graphs.NormalizeBlock(), graphs.GainBlock()),
}
_READOUT: dict[str, Block] = {"mean": graphs.GlobalAverageBlock(), "first": graphs.FirstTokenBlock()}


def write_out(settings: Any, hidden: Hidden) -> Composition:
    """An embedding with positions, the blocks, each normalized first, a last normalization and the readout."""
    heads, normalized = attention.heads(settings), _NORMALIZATION[settings.normalization]
    features = TokenDenseBlock.model_construct(width=heads.width)
    inner = TokenDenseBlock.model_construct(width=_mlp_width(settings, heads.width))
    activation = graphs.ActivationBlock.model_construct(function=settings.activation)
    block = (
        ResidualBlock.model_construct(layers=(*normalized, heads, features)),
        ResidualBlock.model_construct(layers=(*normalized, inner, activation, features)),
    )
    last = (*normalized, _READOUT[settings.token_readout])
    return Composition((features, *_POSITIONS[settings.positions], *block * settings.num_blocks, *last))


def _mlp_width(settings: Any, features: int | str) -> int | str:
    if getattr(settings, "width_is", "") == "mlp_width":
        return "m"
    return getattr(settings, "mlp_width", None) or multiple(features, settings.mlp_factor)


KIND = Kind(
    "transformer",
    "transformer",
    "L blocks α + W_O attention(α), then α + W₂σ(W₁α), each on normalized α",
    write_out=write_out,
    settings=(
        *attention.SETTINGS,
        *("num_blocks", "mlp_factor", "activation", "normalization", "positions", "token_readout"),
    ),
    network=f"{NETWORKS}:Transformer",
)
