"""How large a network is, by counting, without JAX: the ground of every estimate and refusal."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ntk_core.specs import ArchitectureSpec


@dataclass(frozen=True)
class LayerSize:
    """One layer: ``positions`` places that share a fan_in × features weight (1 for a dense layer)."""

    positions: int
    fan_in: int
    features: int
    num_biases: int = 0

    @property
    def num_params(self) -> int:
        return self.fan_in * self.features + self.num_biases

    @property
    def multiplications(self) -> int:
        """Multiplications of one forward pass of one input."""
        return self.positions * self.fan_in * self.features


def layer_sizes(
    architecture: ArchitectureSpec, width: int, input_shape: tuple[int, ...], num_outputs: int
) -> list[LayerSize]:
    """The layers of the network of this architecture and width, in order."""
    fan_in = math.prod(input_shape)
    sizes = []
    for _ in range(architecture.depth):
        sizes.append(LayerSize(1, fan_in, width, width if architecture.use_bias else 0))
        fan_in = width
    return [*sizes, LayerSize(1, fan_in, num_outputs)]
