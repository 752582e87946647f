"""A network and its linear model, trained side by side at several widths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from ntk_core.data import DatasetShapes
from ntk_core.dynamics.choices import LOSSES, METHODS
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.errors import InvalidInput
from ntk_core.experiments._trained_sweep import TrainedSweep
from ntk_core.networks.spec import ArchitectureSpec, OutputName
from ntk_core.runs import Counted, Counts
from ntk_core.settings.part import Once, Width
from ntk_core.settings.vocabulary import one_of

if TYPE_CHECKING:  # as in ntk_core.networks.spec
    LossName = str
    MethodName = str
else:
    LossName = one_of(LOSSES)
    MethodName = one_of(METHODS)


class DynamicsSpec(TrainedSweep):
    """Training of networks and their linear models by the same steps.

    Measures Σ_i ‖F − F_lin‖² / Σ_i ‖F_lin‖².

    F_lin(w) = F(w₀) + ⟨∇F(w₀), w − w₀⟩. One run per width, output, method and seed. What is linearized is the network
    with its output φ; under cross-entropy with a softmax output it is f, since that loss takes the softmax itself.

    Source: Liu, Zhu & Belkin 2020, §2; Lee et al. 2019, §2.2; docs/math/linearized-training.md.

    >>> spec = DynamicsSpec(widths=(30, 300), methods=("gradient-descent", "momentum"))
    >>> spec.point_keys()
    ('width=30', 'width=300')
    """

    experiment: Literal["dynamics"] = "dynamics"
    architecture: ArchitectureSpec = ArchitectureSpec()
    widths: tuple[Width, ...] = TrainedSweep.field("widths", (30, 300, 3000))
    num_seeds: int = TrainedSweep.field("num_seeds", 3)
    outputs: Annotated[tuple[OutputName, ...], Once] = Field(
        default=("linear", "swish"), min_length=1, max_length=4, title="Outputs φ"
    )
    """Output nonlinearities φ to compare, each with a network and a linear model of its own."""
    loss: LossName = Field(default="square", title="Loss")
    """What is minimized, for every output."""
    methods: Annotated[tuple[MethodName, ...], Once] = Field(
        default=("gradient-descent",), min_length=1, max_length=len(METHODS), title="Methods"
    )
    """How the loss is minimized, each method from the same initializations."""
    batch_size: int = Field(default=10, ge=1, le=10_000, title="Batch size")
    """Samples of one step of SGD; other methods take all."""
    momentum: float = Field(default=0.9, ge=0, lt=1, title="Momentum μ")
    """Fraction μ of the last step that momentum keeps."""
    num_test: int = Field(default=20, ge=1, le=2000, title="Test points")
    """Inputs that are not trained on; a whole curve for the sine."""
    num_followed: int = Field(default=3, ge=1, le=20, title="Followed points")
    """Training and test points of each whose outputs are kept; for the sine all are."""
    infinite_width: bool = Field(default=True, title="Infinite-width prediction")
    """Add the prediction of infinite width, where it is known: linear outputs, not with Adam."""
    training: TrainingSpec = TrainingSpec(max_steps=3000, loss_threshold=0.01, num_records=20)

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        shapes = self.shapes()
        if shapes is not None and not shapes.class_names and self.loss != "square":
            raise InvalidInput("loss", self.loss, "square, for data without classes", "square")
        if self.infinite_width:
            self.architecture.check_infinite_width()
        count = self.dataset.num_points
        if any(METHODS[name].batches == "always" for name in self.methods) and self.batch_size > count:
            raise InvalidInput("batch_size", self.batch_size, f"at most {count:,}, the number of training points")
        return self

    def shapes(self) -> DatasetShapes | None:
        """The sizes of the data, test points included; None while they are not known."""
        return self.dataset.known_shapes(num_test=self.num_test)

    def data_options(self) -> dict[str, Any]:
        """The options of ``load_dataset``, with test points."""
        return {**self.dataset.options(), "num_test": self.num_test}

    @property
    def is_curve(self) -> bool:
        """Whether the network is a curve: one input, one output."""
        return self.dataset.name in ("sine", "points")


ADAMS_LINEAR_STEP = 1.5  # of a linear model that is trained in its weights, in steps of the network


def counts(spec: DynamicsSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One width, all outputs, methods and seeds; all steps in any case."""
    network = Counted.of(spec, spec.architecture, spec.value_of(key))
    num_linear = sum(METHODS[method].is_linear for method in spec.methods)
    others, records = len(spec.methods) - num_linear, spec.training.num_records * len(spec.methods)
    with_test = 1 + network.num_test / network.num_samples
    return (
        Counts(
            network,
            {"linear model": len(spec.outputs), "training": len(spec.outputs) * len(spec.methods)},
            times=len(spec.outputs) * spec.num_seeds,
            steps=spec.training.max_steps * (len(spec.methods) + ADAMS_LINEAR_STEP * others),
            squares=spec.training.max_steps * num_linear * (1 + spec.infinite_width),
            kernels=records,
            cubes=10 * records,
            copies=10 if others else 5,  # Adam remembers two more, and its linear model has as many
            views=1,
            matrices=4 * with_test + 8,
        ),
    )
