"""How large a network is, by counting, without JAX: the ground of every estimate and refusal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ntk_core.networks.compositions import ConvolutionBlock, lay_out
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
    """Smallest hidden width; for a DenseNet, where edges may be missing, the smallest expected in-degree outside the
    first layer (Zhu, Liu & Belkin 2022, Eq. 8). ``sizes`` are those of :func:`layer_sizes`."""
    if architecture.kind == "densenet":
        return max(1, round((1 - architecture.drop_probability) * sizes[1].fan_in))
    return min(size.features for size in sizes[:-1])


def layer_sizes(
    architecture: ArchitectureSpec, width: int, input_shape: tuple[int, ...], num_outputs: int
) -> list[LayerSize]:
    """The layers of the network of this architecture and width, in order."""
    if architecture.uses("composition"):
        return _composed_sizes(architecture, width, input_shape, num_outputs)
    num_convolutions = architecture.num_convolutions
    positions = math.prod(input_shape[:2]) if num_convolutions else 1
    fan_in = input_shape[-1] if num_convolutions else math.prod(input_shape)
    masked = architecture.kind == "densenet" and architecture.drop_probability > 0
    sizes = []
    for index, (features, biased) in enumerate(zip(architecture.widths(width), architecture.biases(), strict=True)):
        biases = features if biased else 0
        if index < num_convolutions:
            sizes.append(LayerSize(positions, architecture.kernel_size**2 * fan_in, features, biases))
            fan_in = features
            positions = max(1, positions // architecture.pool_size**2)
            if index == num_convolutions - 1 and architecture.readout == "flatten":
                fan_in *= positions
        else:
            sizes.append(LayerSize(1, fan_in, features, biases, masked))
            fan_in = fan_in + features if architecture.kind == "densenet" else features
    return [*sizes, LayerSize(1, fan_in, num_outputs, masked=masked)]


def _composed_sizes(
    architecture: ArchitectureSpec, width: int, input_shape: tuple[int, ...], num_outputs: int
) -> list[LayerSize]:
    layout, sizes = lay_out(architecture.composition, width, input_shape), []
    for layer in layout.layers:
        features = layer.output_shape[-1]
        biases = features if layer.block.bias else 0
        if isinstance(layer.block, ConvolutionBlock):
            fan_in = layer.block.kernel_size**2 * layer.input_shape[-1]
            sizes.append(LayerSize(math.prod(layer.output_shape[:-1]), fan_in, features, biases))
        else:
            sizes.append(LayerSize(1, math.prod(layer.input_shape), features, biases))
    return [*sizes, LayerSize(1, math.prod(layout.last_shape), num_outputs)]
