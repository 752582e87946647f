"""Networks whose layers see more than the layer below: residual and densely connected ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._layers import Shape
from ntk_core.networks.architectures._network import Network
from ntk_core.networks.architectures._settings import MAX_WIDTH, check_count
from ntk_core.networks.architectures._stack import Stack
from ntk_core.networks.graphs import check_drop_probability
from ntk_core.networks.kinds import ARCHITECTURES, Kind


@dataclass(frozen=True)
class ResNet(Stack):
    """α^(1) = σ(z^(1)), α^(l) = σ(z^(l)) + α^(l-1) for l ≥ 2, then a linear output layer.

    Liu, Zhu & Belkin 2020, App. G.2, Eq. 97, and with ``skip_every=2`` the remark after it: after the first layer,
    every ``skip_every`` layers the activation of as many layers below is added.

    Attributes:
        width: of all hidden layers, one number, since a skip adds what it skips.
        skip_every: number of layers that a skip connection spans.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["resnet"]

    depth: int = 3
    skip_every: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.width, tuple):
            raise InvalidInput(
                "width", self.width, f"one integer from 1 to {MAX_WIDTH:,} for all layers of a residual network"
            )
        super().__post_init__()
        check_count("skip_every", self.skip_every, 2)


@dataclass(frozen=True)
class DenseNet(Stack):
    """Every layer, the output included, sees the input and all hidden layers below it, concatenated.

    z_v = in(v)^(-1/2) Σ_{u→v} w_uv α_u with the actual in-degree in(v); with ``drop_probability`` each edge is removed
    at random when the parameters are drawn, and stays removed (:class:`MaskedDense`).

    Source: Zhu, Liu & Belkin 2022, App. A and Fig. 2.

    Attributes:
        drop_probability: of each edge, at least 0 and below 1.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["densenet"]

    depth: int = 3
    drop_probability: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_drop_probability(self.drop_probability)
        if self.output_signs and self.drop_probability:
            raise InvalidInput("output_signs", True, "False where edges are dropped")

    def min_width(self, input_shape: Shape) -> int:
        """Smallest expected in-degree outside the first layer (Zhu et al., Eq. 8); ``in_degree_range`` counts it."""
        return max(1, round((1 - self.drop_probability) * Network.min_width(self, input_shape)))
