"""Architectures for sequences: one layer of attention, and transformers."""

from __future__ import annotations

from ntk_core.errors import InvalidInput
from ntk_core.networks import graphs
from ntk_core.networks.graphs import (
    Block,
    Composition,
    GlobalAverageBlock,
    ResidualBlock,
    TokenDenseBlock,
    multiple,
)
from ntk_core.networks.kinds._kind import NETWORKS, Hidden, Kind, Settings

_HEADS = ("width_is", "num_heads", "head_dim", "score_exponent", "causal")
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
_READOUT: dict[str, Block] = {
    "mean": graphs.GlobalAverageBlock(),
    "first": graphs.FirstTokenBlock(),
}


def _heads(settings: Settings) -> graphs.AttentionBlock:
    """Return the heads, with their number or dimension equal to m if swept."""
    swept = getattr(settings, "width_is", "")  # networks have all sizes as numbers
    return graphs.AttentionBlock.model_construct(
        num_heads="m" if swept == "num_heads" else settings.num_heads,
        head_dim="m" if swept == "head_dim" else settings.head_dim,
        score_exponent=settings.score_exponent,
        causal=settings.causal,
    )


def _attention(settings: Settings, hidden: Hidden) -> Composition:
    """Attention, then the mean over positions."""
    return Composition((_heads(settings), GlobalAverageBlock()))


def _check_attention(architecture: Settings) -> None:
    """Refuse to grow MLPs, which it lacks."""
    if architecture.width_is == "mlp_width":
        raise InvalidInput(
            "width_is",
            architecture.width_is,
            "head_dim or num_heads: this architecture has no MLPs",
        )


def _transformer(settings: Settings, hidden: Hidden) -> Composition:
    """Embedding with positions, pre-normalized blocks, a last normalization and the readout."""
    heads = _heads(settings)
    normalized = _NORMALIZATION[settings.normalization]
    features = TokenDenseBlock.model_construct(width=heads.width)
    mlp_width = getattr(settings, "mlp_width", None) or multiple(heads.width, settings.mlp_factor)
    if getattr(settings, "width_is", "") == "mlp_width":
        mlp_width = "m"
    inner = TokenDenseBlock.model_construct(width=mlp_width)
    activation = graphs.ActivationBlock.model_construct(function=settings.activation)
    block = (
        ResidualBlock.model_construct(layers=(*normalized, heads, features)),
        ResidualBlock.model_construct(layers=(*normalized, inner, activation, features)),
    )
    last = (*normalized, _READOUT[settings.token_readout])
    return Composition(
        (features, *_POSITIONS[settings.positions], *block * settings.num_blocks, *last)
    )


KINDS = (
    Kind(
        "attention",
        "attention",
        "(H d)^(−½) Σ u · mean over i of Σⱼ softmaxⱼ(qᵢ·kⱼ / d^τ) vⱼ, H heads of dimension d",
        write_out=_attention,
        settings=_HEADS,
        check=_check_attention,
        network=f"{NETWORKS}:Attention",
        has_infinite_width=True,
    ),
    Kind(
        "transformer",
        "transformer",
        "L blocks α + W_O attention(α), then α + W₂σ(W₁α), each on normalized α",
        write_out=_transformer,
        settings=(
            *_HEADS,
            *(
                "num_blocks",
                "mlp_factor",
                "activation",
                "normalization",
                "positions",
                "token_readout",
            ),
        ),
        network=f"{NETWORKS}:Transformer",
    ),
)
