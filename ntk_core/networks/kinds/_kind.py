"""Description of an architecture, free of JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ntk_core.networks.graphs import ActivationBlock, Block, Composition, DenseBlock
from ntk_core.settings.part import Term

if TYPE_CHECKING:
    from ntk_core.networks.spec import ArchitectureSpec

# (width, whether it has biases) of each hidden layer: a number, or in m, as ``"m"`` and ``"0.5m"``.
Hidden = tuple[tuple[int | str, bool], ...]
LAYERED = ("depth", "activation", "use_bias", "bias_layers")
NETWORKS = "ntk_core.networks.architectures"


def _nothing(architecture: ArchitectureSpec) -> None:
    """Every combination of its settings is allowed."""


@dataclass(frozen=True, kw_only=True)
class Kind(Term):
    """An architecture: the source of forms, counts, drawings, refusals, limits and computation.

    Attributes:
        write_out: the network as a composition of registered layers, from its settings and its numbered hidden layers.
            Settings are those of an ``ArchitectureSpec``, or the network itself, which names them alike.
        settings: of those that only some kinds use, the ones of this kind; :data:`LAYERED` for numbered layers.
        check: refuses settings that do not go together, with ``InvalidInput``.
        network: ``module:Class`` of the network; by default the one that computes any composition.
        has_infinite_width: whether the kernel of infinite width is known, in the NTK parameterization.
        by_in_degree: whether the smallest in-degree, and not the smallest width, decides how linear it is.
    """

    write_out: Callable[[ArchitectureSpec, Hidden], Composition]
    settings: tuple[str, ...] = ()
    check: Callable[[ArchitectureSpec], None] = _nothing
    network: str = f"{NETWORKS}:Composed"
    has_infinite_width: bool = False
    by_in_degree: bool = False


def dense(width: int | str, bias: bool, activation: str) -> tuple[Block, Block]:
    """A dense layer and its activation, whose settings are checked already."""
    made = DenseBlock.model_construct(width=width, bias=bias)
    return made, ActivationBlock.model_construct(function=activation)
