"""How large a network is, by counting, without JAX: the ground of every estimate and refusal."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ntk_core.networks.compositions import lay_out
from ntk_core.networks.spec import ArchitectureSpec


@dataclass(frozen=True)
class LayerSize:
    """One layer: ``positions`` places that share a fan_in × features weight (1 for a dense layer)."""

    positions: int
    fan_in: int
    features: int
    num_biases: int = 0
    masked: bool = False

    @property
    def num_params(self) -> int:
        """Weights and biases; edges that a mask removes are counted."""
        return self.fan_in * self.features + self.num_biases

    @property
    def multiplications(self) -> int:
        """Multiplications of one forward pass of one input."""
        return self.positions * self.fan_in * self.features

    def kernel_operations(self, num_samples: int, num_outputs: int) -> int:
        """Multiplications of this layer's part of the kernel, by the cheaper of its contractions.

        Dense: (a·a') ∘ (δ·δ'). Masked: the mask stays in a product over pairs of inputs. Convolution: over pairs of
        positions, or by the layer's own Jacobian.
        """
        rows = num_samples * num_outputs
        if self.masked:
            return num_samples**2 * self.fan_in * self.features + rows**2 * self.features
        if self.positions == 1:
            return rows**2 * self.features + num_samples**2 * self.fan_in
        pairs = self.positions**2 * (rows**2 * self.features + num_samples**2 * self.fan_in)
        jacobian = rows * self.multiplications + rows**2 * self.fan_in * self.features
        return min(pairs, jacobian)


def num_copies(architecture: ArchitectureSpec) -> int:
    """How many networks are computed: 2 where a copy makes the output 0 at w₀."""
    return 1 if architecture.initial_output == "random" else 2


def num_features(sizes: Sequence[LayerSize]) -> int:
    """Neurons of all layers for one input, at every position."""
    return sum(size.positions * size.features for size in sizes)


def min_width(architecture: ArchitectureSpec, sizes: Sequence[LayerSize]) -> int:
    """Smallest hidden width; where edges may be missing, the smallest expected in-degree outside the first layer
    (Zhu, Liu & Belkin 2022, Eq. 8). ``sizes`` are those of :func:`layer_sizes`."""
    if architecture.record.by_in_degree:
        kept = 1 - architecture.written_out.drop_probability
        return max(1, round(kept * min(size.fan_in for size in sizes[1:])))
    return min(size.features for size in sizes[:-1])


def layer_sizes(
    architecture: ArchitectureSpec, width: int, input_shape: tuple[int, ...], num_outputs: int, dimensions: int = 2
) -> list[LayerSize]:
    """The layers of the network of this architecture and width, in order; convolutions in so many ``dimensions``."""
    composition = architecture.written_out
    layout, masked = lay_out(composition, width, input_shape, dimensions), composition.drop_probability > 0
    sizes = []
    for layer in layout.layers:
        features = layer.output_shape[-1]
        sizes.append(LayerSize(layer.positions, layer.fan_in, features, features * layer.block.bias, masked))
    return [*sizes, LayerSize(1, math.prod(layout.last_shape), num_outputs, masked=masked)]
