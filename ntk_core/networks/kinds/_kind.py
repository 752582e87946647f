"""Description of an architecture, free of JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ntk_core.networks.graphs import ActivationBlock, Block, Composition, DenseBlock
from ntk_core.terms import Term

# An object with a field for each setting of the architecture; its fields depend on the
# architecture.
Settings = Any
# (width, whether it has biases) of each hidden layer: a number, or in m, as ``"m"`` and ``"0.5m"``.
Hidden = tuple[tuple[int | str, bool], ...]
LAYERED = ("depth", "activation", "use_bias", "bias_layers")
NETWORKS = "ntk_core.networks.architectures"


def _accept(architecture: Settings) -> None:
    """Allow every combination of settings."""


@dataclass(frozen=True, kw_only=True)
class Kind(Term):
    """Architecture: the source of forms, counts, drawings, checks and computation.

    Attributes:
        write_out: returns the composition of registered layers for settings and numbered hidden
            layers. Settings are an object with a field for each of ``settings``: an
            ``ArchitectureSpec`` of the lab, or the network itself.
        settings: settings that it uses, among those of some architectures; :data:`LAYERED`
            for numbered layers.
        check: raises ``InvalidInput`` for incompatible settings.
        network: ``module:Class`` of the network; by default the class for any composition.
        has_infinite_width: whether the infinite-width kernel is known, in the NTK parameterization.
        by_in_degree: whether the smallest in-degree, not the smallest width, controls linearity.
    """

    write_out: Callable[[Settings, Hidden], Composition]
    settings: tuple[str, ...] = ()
    check: Callable[[Settings], None] = _accept
    network: str = f"{NETWORKS}:Composed"
    has_infinite_width: bool = False
    by_in_degree: bool = False


def dense(width: int | str, bias: bool, activation: str) -> tuple[Block, Block]:
    """Return a dense layer and its activation, without validation."""
    made = DenseBlock.model_construct(width=width, bias=bias)
    return made, ActivationBlock.model_construct(function=activation)
