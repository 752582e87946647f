"""One layer of attention: heads side by side, their mean over the positions, and a linear output layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import AttentionBlock, Composition, GlobalAverageBlock
from ntk_core.networks.kinds._kind import NETWORKS, Hidden, Kind

if TYPE_CHECKING:
    from ntk_core.networks.spec import ArchitectureSpec

SETTINGS = ("width_is", "num_heads", "head_dim", "score_exponent", "causal")


def heads(settings: Any) -> AttentionBlock:
    """The heads, whose number or dimension is m where the settings say so."""
    swept = getattr(settings, "width_is", "")  # a network itself has all sizes as numbers
    return AttentionBlock.model_construct(
        num_heads="m" if swept == "num_heads" else settings.num_heads,
        head_dim="m" if swept == "head_dim" else settings.head_dim,
        score_exponent=settings.score_exponent,
        causal=settings.causal,
    )


def write_out(settings: Any, hidden: Hidden) -> Composition:
    """Attention, and the mean over the positions."""
    return Composition((heads(settings), GlobalAverageBlock()))


def check(architecture: ArchitectureSpec) -> None:
    """There is no MLP."""
    if architecture.width_is == "mlp_width":
        raise InvalidInput("width_is", architecture.width_is, "head_dim or num_heads, as there are no MLPs")


KIND = Kind(
    "attention",
    "attention",
    "(H d)^(−½) Σ u · mean over i of Σⱼ softmaxⱼ(qᵢ·kⱼ / d^τ) vⱼ, H heads of dimension d",
    write_out=write_out,
    settings=SETTINGS,
    check=check,
    network=f"{NETWORKS}:Attention",
    has_infinite_width=True,
)
