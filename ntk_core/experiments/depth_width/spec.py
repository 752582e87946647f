"""Deep ReLU networks of many depths and widths: the law of K(x, x) at w₀, and what training moves."""

import math
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ntk_core.data.spec import DatasetSpec
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.runs import BYTES, HESSIAN_BASIS, MATVECS, Counted, Counts, SweepSpec, Work, typical_steps
from ntk_core.settings.part import Ascending, Width

# Deeper than other pages allow, so its depth is not validated.
_NETWORK = ArchitectureSpec(use_bias=False)
GAIN = math.sqrt(2)  # of the hidden layers: with it E K(x, x) grows with the depth like L + 1 and not exponentially


class DepthWidthSpec(SweepSpec):
    """Randomness and change of kernels, for depths and widths.

    The scatter of K(x, x) over random networks, ‖H‖ / K(x, x) and ΔK, for every pair of a depth and a width.

    Scatter is CV² = Var K / (E K)², and E[K²] / (E K)² = 1 + CV² grows with β = Σ_l 1/m_l = L/m.

    Fully connected ReLU networks without biases, of L hidden layers of width m, gain √2 and a linear output. At one
    input the law of K(x, x) / |x|² depends on (L, m) alone, and it is measured for every pair; ‖H‖ and ΔK need the
    data and training, and are measured up to depths and a width of their own.

    Source: Hanin & Nica 2020, Theorem 1; docs/math/depth-and-width.md.

    >>> DepthWidthSpec(depths=(1, 4), widths=(32, 64)).point_keys()
    ('depth=1,width=32', 'depth=1,width=64', 'depth=4,width=32', 'depth=4,width=64')
    """

    point_words: ClassVar[tuple[str, str]] = ("pair of depth and width", "pairs of depth and width")

    experiment: Literal["depth_width"] = "depth_width"
    depths: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Ascending] = Field(
        default=(1, 2, 4, 8, 16, 32, 64), min_length=1, max_length=16, title="Depths L"
    )
    """Numbers L of hidden layers, each at every width."""
    widths: tuple[Width, ...] = SweepSpec.field("widths", (32, 64, 128, 256, 512, 1024))
    num_kernels: int = Field(default=2000, ge=20, le=100_000, title="Networks for K(x, x)")
    """Random networks whose K(x, x) is drawn, for each pair."""
    num_seeds: int = SweepSpec.field("num_seeds", 10, "Networks that are trained, for each pair that is.")
    trained_depth: int = Field(default=64, ge=0, le=64, title="Train up to depth")
    """ΔK is measured up to this depth; 0 for none."""
    trained_width: Width = Field(default=128, title="Train up to width")
    """ΔK and ‖H‖ are measured up to this width."""
    hessian_depth: int = Field(default=64, ge=0, le=64, title="‖H‖ up to depth")
    """‖H‖ is measured up to this depth; 0 for none."""
    dataset: DatasetSpec = DatasetSpec(num_samples=8, num_classes=2, noise=0.5)
    training: TrainingSpec = TrainingSpec(loss_threshold=0.03, max_steps=500, num_records=12)

    @model_validator(mode="after")
    def _takes_inputs(self) -> Self:
        shapes = self.dataset.known_shapes()
        if shapes is not None:
            self.architecture(1).check_inputs(shapes.input_shape, "dataset")
        return self

    def architecture(self, depth: int) -> ArchitectureSpec:
        """The network of this depth; its gain is :data:`GAIN`."""
        return _NETWORK.model_copy(update={"depth": depth})

    def curves(self, depth: int) -> bool:
        """Whether ‖H‖ of networks of this depth is measured where they are trained."""
        return depth <= self.hessian_depth

    def trains(self, depth: int, width: int) -> bool:
        """Whether networks of this size are trained."""
        return depth <= self.trained_depth and width <= self.trained_width

    def point_keys(self) -> tuple[str, ...]:
        """``depth=4,width=128``, in the order of their numbers of weights."""
        pairs = [(depth, width) for depth in self.depths for width in self.widths]
        return tuple(depth_key(*pair) for pair in sorted(pairs, key=lambda pair: (pair[0] * pair[1] ** 2, pair)))

    def value_of(self, key: str) -> tuple[int, int]:
        """(depth, width) of a key."""
        depth, _, width = key.removeprefix("depth=").partition(",width=")
        return int(depth), int(width)


def depth_key(depth: int, width: int) -> str:
    """The key of a pair."""
    return f"depth={depth},width={width}"


BLOCK_NUMBERS = 2**20  # of z in a block of draws, of all layers
DRAW_BYTES = 1000  # a hidden neuron of a draw, two normal numbers and some ten products, takes as long as reading these
UNROLLED_DEPTH = 8  # up to which ‖H‖ is taken in its small space, layers unrolled; deeper: by a loop, over all weights
INPUTS = 2  # at which ‖H‖ is measured; our choice


def counts(spec: DepthWidthSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One pair, all draws and seeds; ``most`` counts all steps that are allowed."""
    depth, width = spec.value_of(key)
    traffic = float(spec.num_kernels * depth * width * DRAW_BYTES)
    drawn = Counts(more=Work(traffic=traffic), num_bytes=16.0 * max(BLOCK_NUMBERS, depth * width))
    if not spec.trains(depth, width):
        return (drawn,)
    network = Counted.of(spec, spec.architecture(depth), width)
    curves, unrolled = spec.curves(depth), depth <= UNROLLED_DEPTH
    direction = sum(layer.fan_in + layer.features for layer in network.layers) if unrolled else network.num_weights
    loop = Work(traffic=6.0 * INPUTS * HESSIAN_BASIS * BYTES * network.num_weights)
    trained = Counts(
        network,
        {"small network": 1 + (curves and unrolled)},
        times=spec.num_seeds,
        steps=typical_steps(spec.training.max_steps, most),
        kernels=spec.training.num_records,
        products=INPUTS * MATVECS * (curves and unrolled),
        more=loop if curves and not unrolled else Work(),
        copies=5,
        views=1,
        matrices=20,
        numbers=curves * HESSIAN_BASIS * direction,
    )
    return drawn, trained, Counts(programs={"loop": curves and not unrolled})
