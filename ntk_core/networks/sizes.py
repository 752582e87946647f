"""How large a network is, by counting, without JAX: the ground of every estimate and refusal."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ntk_core.networks.graphs import Composition, ConvolutionBlock, Step, lay_out
from ntk_core.networks.spec import ArchitectureSpec

LANCZOS_VECTORS = 20  # typical, until the residual is small


@dataclass(frozen=True)
class LayerSize:
    """One layer: ``positions`` places that share a fan_in × features weight (1 for a dense layer).

    What ``num_heads`` > 0 heads of attention do with its values (their scores among all positions) is counted with it.
    """

    positions: int
    fan_in: int
    features: int
    num_biases: int = 0
    masked: bool = False
    num_heads: int = 0
    convolution: bool = False

    @property
    def num_params(self) -> int:
        """Weights and biases; edges that a mask removes are counted."""
        return self.fan_in * self.features + self.num_biases

    @property
    def multiplications(self) -> int:
        """Multiplications of one forward pass of one input."""
        scores = 2 * self.positions**2 * self.features if self.num_heads else 0
        return self.positions * self.fan_in * self.features + scores

    @property
    def num_features(self) -> int:
        """Neurons at all positions, and the scores of its heads."""
        return self.positions * self.features + self.num_heads * self.positions**2

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
        jacobian = rows * self.positions * self.fan_in * self.features + rows**2 * self.fan_in * self.features
        return min(pairs, jacobian)


def small_space_pays(positions: int, fan_in: int, features: int) -> bool:
    """Whether a Hessian moves a layer's weights along the span of inputs and cotangents, and not one by one.

    With P positions below fan_in k and features F, a direction has P (k + F − P) numbers in place of k F. A product
    with the Hessian passes four times through it: 2 P² (k + F) multiplications by way of the bases, P k F directly, and
    is made orthogonal to those before it, twice: docs/math/hessian_in_a_small_space.md.
    """
    k, f, p = fan_in, features, positions
    if p >= min(k, f):
        return False
    return 4 * 2 * p**2 * (k + f) + 2 * LANCZOS_VECTORS * p * (k + f - p) < (4 * p + 2 * LANCZOS_VECTORS) * k * f


def num_copies(architecture: ArchitectureSpec) -> int:
    """How many networks are computed: 2 where a copy makes the output 0 at w₀."""
    return 1 if architecture.initial_output == "random" else 2


def num_features(sizes: Sequence[LayerSize]) -> int:
    """Neurons of all layers for one input, at every position, and scores."""
    return sum(size.num_features for size in sizes)


def min_width(architecture: ArchitectureSpec, sizes: Sequence[LayerSize]) -> int:
    """Smallest hidden width; where edges may be missing, the smallest expected in-degree outside the first layer
    (Zhu, Liu & Belkin 2022, Eq. 8). ``sizes`` are those of :func:`layer_sizes`."""
    if architecture.record.by_in_degree:
        kept = 1 - architecture.written_out.drop_probability
        return max(1, round(kept * min(size.fan_in for size in sizes[1:])))
    return min(size.features for size in sizes[:-1])


@functools.lru_cache(maxsize=256)  # the same network at every width of a sweep
def _written_out(architecture: ArchitectureSpec) -> Composition:
    return architecture.written_out


def layer_sizes(
    architecture: ArchitectureSpec, width: int, input_shape: tuple[int, ...], num_outputs: int, dimensions: int = 2
) -> list[LayerSize]:
    """The layers of the network of this architecture and width, in order; convolutions in ``dimensions`` dimensions."""
    return step_sizes(_written_out(architecture).steps, width, input_shape, num_outputs, dimensions)


def step_sizes(
    steps: tuple[Step, ...], width: int, input_shape: tuple[int, ...], num_outputs: int, dimensions: int = 2
) -> list[LayerSize]:
    """The layers of a network that is written as steps, in order."""
    layout = lay_out(steps, width, input_shape, dimensions)
    sizes = []
    for layer in layout.layers:
        features = layer.output_shape[-1]
        biases = features * layer.block.bias
        convolution = isinstance(layer.block, ConvolutionBlock)
        sizes.append(
            LayerSize(layer.positions, layer.fan_in, features, biases, layer.masked, layer.num_heads, convolution)
        )
    return [*sizes, LayerSize(1, math.prod(layout.last_shape), num_outputs, masked=any(steps[-1].drops))]
