"""What the theorems say of a composition with a linear output."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ntk_core.networks.compositions._blocks import ActivationBlock, AttentionBlock
from ntk_core.networks.compositions._composition import Composition, positions
from ntk_core.networks.compositions._shapes import lay_out

Outcome = Literal["wide", "not wide", "undecided"]


@dataclass(frozen=True)
class CompositionVerdict:
    """What happens as m grows, and why, one sentence per reason."""

    outcome: Outcome
    reasons: tuple[str, ...]


def composition_verdict(
    composition: Composition, width: int, input_shape: tuple[int, ...], output: str = "linear"
) -> CompositionVerdict:
    """Whether the theorems promise that the tangent kernel stops moving as m grows.

    Raises:
        InvalidInput: where the layers do not fit the inputs.

    Source: Liu, Zhu & Belkin 2020, Theorem 3.1, §4 and App. G; Zhu, Liu & Belkin 2022, Theorem 3.6.
    """
    layout = lay_out(composition, width, input_shape)
    if output != "linear":
        return CompositionVerdict("not wide", ("With a nonlinear output the Hessian keeps its size (Liu et al., §5).",))
    blocks = [block for _, block in positions(composition.layers)]
    attention = [block for block in blocks if isinstance(block, AttentionBlock)]
    smooth = attention or any(isinstance(block, ActivationBlock) and block.function != "identity" for block in blocks)
    fixed = [layer for layer in layout.layers if not layer.block.grows]
    narrow = [layer for layer in fixed if not layer.num_ways_around]
    around = [layer for layer in fixed if layer.num_ways_around]
    lengths = [layer.positions for layer in layout.layers if layer.num_heads]
    if (found := _of_heads(attention, lengths, alone=len(layout.layers) == 3)) is not None and not narrow:
        return found
    if narrow:
        words = ", ".join(f"{layer.name} has {layer.output_shape[-1]:,}" for layer in narrow)
        reason = f"Everything must pass layers that stay as they are while m grows: {words} (Liu et al., §4)."
        return CompositionVerdict("not wide", (reason,))
    if around:
        words = ", ".join(f"{layer.name} has {layer.output_shape[-1]:,}" for layer in around)
        reason = f"Layers with a way around them stay as they are while m grows: {words}. Measure it."
        return CompositionVerdict("undecided", (reason,))
    reasons = ["Every layer with weights grows with m (Liu et al., Theorem 3.1 and App. G; Zhu et al., Theorem 3.6)."]
    if not smooth:
        reasons.append("Without an activation it is a product of matrices; its kernel stops moving anyway.")
    if any(name in ("relu", "leaky_relu") for name in composition.functions()):
        reasons.append("The theorems ask for smooth activations; with ReLU the kernel is seen to behave alike.")
    return CompositionVerdict("wide", tuple(reasons))


def _of_heads(attention: Sequence[AttentionBlock], lengths: Sequence[int], alone: bool) -> CompositionVerdict | None:
    """What the scores of heads decide, by derivation and measurement: the theorems do not cover attention.

    Args:
        alone: whether there is one layer of attention and no other layer below the outputs.
    """
    if not attention:
        return None
    fixed = [length for block, length in zip(attention, lengths, strict=True) if isinstance(block.num_heads, int)]
    if fixed and all(block.score_exponent <= 0.5 for block in attention):
        words = (
            f"Bottleneck: the T² = {fixed[0] ** 2:,} scores of one head. They do not fade while m grows and keep their "
            "share of the kernel, so ‖H‖ does not fall (derived, and measured for one layer; the theorems of the "
            "papers do not cover attention)."
        )
        return CompositionVerdict("not wide", (words,))
    if fixed:
        words = (
            "Scores fade as m grows (τ > ½), and with them the part of queries and keys in the kernel: ‖H‖ falls like "
            "m^(½ − τ) because attention switches off (derived for one layer and measured)."
        )
        return CompositionVerdict("undecided", (words,))
    words = (
        "The number of heads grows with m. For one layer ‖H‖ is m^(−½) times the largest norm among the heads, which "
        "grows more slowly than any power (derived and measured); for several layers the kernel at w₀ has a limit "
        "(Hron et al. 2020)."
    )
    return CompositionVerdict("wide" if alone else "undecided", (words,))
