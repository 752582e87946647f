"""Settings of *Explore*: one network on one data set, at several widths, under several outputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.kernel_change.spec import TrainingGroup, training_groups
from linearity_lab.experiments.trained_sweep import Outputs, TrainedSweep, outputs_field
from linearity_lab.networks.sizes import num_copies
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import Counted, Counts, SpecOf
from linearity_lab.runs.costs import HESSIAN_BASIS, MATVECS
from linearity_lab.settings.part import Width
from linearity_lab.settings.training import DescentSettings, DescentSpec
from ntk_core.errors import InvalidInput

if TYPE_CHECKING:
    from linearity_lab.experiments.explore.point import (
        ExploreResult,  # noqa: F401 - SpecOf names it
    )


@dataclass(frozen=True)
class Sizes:
    """Sizes of one family of architectures, chosen by measured times (docs/benchmarks.md).

    Attributes:
        first: widths of a first answer, with two seeds.
        full: widths of a full run, with five seeds.
        max_steps: limit of training.
    """

    first: tuple[int, ...]
    full: tuple[int, ...]
    max_steps: int


FIRST_SEEDS = 2
FULL_SEEDS = 5
DENSE = Sizes((30, 200, 1000), (30, 100, 300, 1000, 3000, 10_000), 1000)
CONVOLUTIONS = Sizes((4, 12, 36), (4, 8, 16, 32, 64, 128), 300)
# Several matrices of m² weights: a step at m = 1,000 takes eight times as long as at m = 300.
SEVERAL = Sizes((30, 100, 300), (30, 100, 300, 1000, 3000), 1000)
OF_SEVERAL = ("resnet", "assembly", "composed")
SEQUENCES = Sizes((4, 8, 16), (4, 8, 16, 32, 64), 300)


def sizes_of(architecture: ArchitectureSpec) -> Sizes:
    """Return the sizes for an architecture, by its most expensive layers."""
    if architecture.uses("num_heads"):
        return SEQUENCES
    if architecture.uses("kernel_size"):
        return CONVOLUTIONS
    if architecture.kind in OF_SEVERAL:
        return SEVERAL
    return DENSE


# Three classes of images: a kernel with C outputs has C² blocks. Centered inputs train in fewer
# steps. Our choice.
IMAGE_CLASSES = 3
DATA = DatasetSpec(num_samples=24, standardize="centered")


class ExploreSpec(TrainedSweep, SpecOf["ExploreResult"]):
    """Kernel change, Hessian norm and logits of one network, against width.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F, and the logits of network and linear model at a
    few training points.

    Outputs ``linear`` and ``softmax`` share one set of parameters, trained by cross-entropy on
    softmax(f); every other output φ, and ``linear`` without classes, has its own network,
    trained with ½‖φ(f) − y‖².

    Source: Liu, Zhu & Belkin 2020, §3, §6 and Fig. 1.

    >>> ExploreSpec(widths=(30, 100), outputs=("linear",)).point_keys()
    ('width=30', 'width=100')
    """

    experiment: Literal["explore"] = "explore"
    dataset: DatasetSpec = DATA
    architecture: ArchitectureSpec = ArchitectureSpec()
    outputs: Outputs = outputs_field(("linear", "softmax", "swish"))
    widths: tuple[Width, ...] = TrainedSweep.field("widths", DENSE.first)
    num_seeds: int = TrainedSweep.field("num_seeds", FIRST_SEEDS)
    num_followed: int = Field(default=3, ge=1, le=20, title="Followed points")
    """Number of training points whose logits are kept; classes in rotation."""
    num_inputs: int = Field(default=2, ge=0, le=100, title="Inputs of ‖H‖")
    """Number of training inputs over which ‖H(w₀)‖ is averaged; 0 skips it."""
    num_drawn: int = Field(default=12, ge=0, le=60, title="Points of the drawn kernel")
    """Number of training points in the drawn kernels K₀ and K_t; 0 skips them."""
    training: DescentSettings = DescentSpec(
        max_steps=DENSE.max_steps, loss_threshold=0.1, num_records=12
    )

    @model_validator(mode="after")
    def _inputs_exist(self) -> Self:
        for name in ("num_followed", "num_inputs"):
            given = getattr(self, name)
            most = self.dataset.num_points
            if given > most:
                raise InvalidInput(
                    name, given, f"at most {most:,}, the number of training points", most
                )
        return self

    @property
    def groups(self) -> tuple[TrainingGroup, ...]:
        """Groups of outputs that share one training."""
        shapes = self.dataset.known_shapes()
        return training_groups(self.outputs, classes=shapes is None or bool(shapes.class_names))

    def num_records(self, key: str) -> Mapping[str, int]:
        """One run per output and seed."""
        return {"runs": len(self.outputs) * self.num_seeds}


def counts(spec: ExploreSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """Count one width, all outputs and seeds; ``most`` takes all allowed steps."""
    network = Counted.of(spec, spec.architecture, spec.value_of(key), num_copies(spec.architecture))
    num_groups = len(spec.groups)
    num_outputs = len(spec.outputs)
    directions = sum(layer.positions * (layer.fan_in + layer.features) for layer in network.layers)
    steps = spec.typical_steps(most)
    return (
        Counts(
            network,
            {
                "training": num_groups,
                "hessian": num_outputs if spec.num_inputs else 0,
            },
            times=num_groups * spec.num_seeds,
            steps=steps,
            squares=steps,  # the linear model
            kernels=spec.training.num_records,
            products=num_outputs / num_groups * spec.num_inputs * MATVECS,
            copies=5,
            views=1,
            matrices=6 + 2 * num_outputs,
            numbers=HESSIAN_BASIS * directions if spec.num_inputs else 0,
        ),
    )
