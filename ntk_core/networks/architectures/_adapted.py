"""Low-rank adapters in a frozen dense network; settings and layers are in ``networks/kinds/adapted.py``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from ntk_core.networks.architectures._numbered import Stack
from ntk_core.networks.kinds import ARCHITECTURES, Kind
from ntk_core.networks.kinds.adapted import check

if TYPE_CHECKING:
    from ntk_core.networks.spec import ArchitectureSpec


@dataclass(frozen=True)
class Adapted(Stack):
    """Dense network with frozen weights and trained low-rank updates.

    z = (W + B A / r^s) a / √fan_in + b in the adapted layers, A (r, fan_in) ~ N(0, 1), B = 0 at w₀.

    W, b and all other hidden layers are frozen. ``trained`` chooses among the rest: ``"all"`` trains A, B and the
    output layer, ``"hidden"`` A and B, ``"last"`` the output layer. Each adapted layer is three: W, A and B.

    >>> import jax, jax.numpy as jnp
    >>> net = Adapted(width=8, depth=2, adapter_rank=2, adapted_layers=(2,), use_bias=False)
    >>> net.num_params((3,), only_trained=True)  # A, B, output layer
    40

    Attributes:
        base: ``"fully-connected"``, ``"bottleneck"`` (three neurons in layer 2), ``"resnet"`` or ``"densenet"``.
        adapter_rank: r.
        rank_exponent: s, from 0 to 1; ½ keeps the size of the update's kernel, 1 is that of Hu et al.
        adapted_layers: hidden layers with an update, counted from 1; None for all.

    Source: Hu et al. 2022, §4; in the NTK parameterization docs/math/adapters.md.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["adapted"]
    skip_every: ClassVar[int] = 1
    drop_probability: ClassVar[float] = 0.0
    bottleneck_width: ClassVar[int] = 3
    bottleneck_layer: ClassVar[int] = 2
    bottleneck_activation: ClassVar[None] = None

    depth: int = 2
    base: str = "fully-connected"
    adapter_rank: int = 4
    rank_exponent: float = 0.5
    adapted_layers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check(cast("ArchitectureSpec", self))
