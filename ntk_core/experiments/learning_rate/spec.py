"""A network, its linear and its quadratic model, trained at rates below and above the stable one."""

from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ntk_core.data.spec import DatasetSpec
from ntk_core.errors import InvalidInput
from ntk_core.experiments._trained_sweep import TrainedSweep
from ntk_core.networks.sizes import num_copies
from ntk_core.networks.spec import ArchitectureSpec, OutputName
from ntk_core.runs import Counted, Counts, Work
from ntk_core.settings.part import Ascending, Once, Width

ModelName = Literal["linear", "quadratic", "network"]


class LearningRateSpec(TrainedSweep):
    """Gradient descent at large rates, of networks and their expansions.

    η = c n / (β λ_max(K(w₀))); f, f_lin and f_quad start at the same w₀ and take the same steps.

    f_lin diverges above c = 2 at every width; up to about 4, f_quad and f rise to a peak and come down at a smaller
    curvature.

    Source: Lewkowycz, Bahri, Dyer, Sohl-Dickstein & Gur-Ari 2020, §2; Zhu, Liu, Radhakrishnan & Belkin 2022.

    >>> LearningRateSpec(widths=(100, 300), rates=(1.0, 3.0)).point_keys()
    ('width=100', 'width=300')
    """

    one_output: ClassVar[bool] = True
    max_kernel_rows: ClassVar[int | None] = 400
    selector: ClassVar[str] = "method"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {"batch_size": ("sgd",)}

    experiment: Literal["learning_rate"] = "learning_rate"
    dataset: DatasetSpec = DatasetSpec(num_samples=10, num_classes=2, noise=1.0)
    architecture: ArchitectureSpec = ArchitectureSpec(activation="relu", use_bias=False)
    widths: tuple[Width, ...] = TrainedSweep.field("widths", (100, 300, 1000, 3000, 10_000))
    num_seeds: int = TrainedSweep.field("num_seeds", 3)
    rates: Annotated[tuple[Annotated[float, Field(gt=0, le=100)], ...], Ascending] = Field(
        default=(0.5, 1.0, 1.5, 1.8, 2.2, 2.5, 3.0, 3.5, 3.8, 4.2, 5.0, 6.0),
        min_length=1,
        max_length=32,
        title="Learning rates c = η/η₀",
    )
    """Learning rates η in units of η₀ = n/(β λ_max(K(w₀))), c = η/η₀: the linear model diverges above 2."""
    models: Annotated[tuple[ModelName, ...], Once] = Field(
        default=("linear", "quadratic", "network"), min_length=1, max_length=3, title="Models"
    )
    """The linear model, the quadratic model, and the network itself, from the same w₀."""
    output: OutputName = Field(default="linear", title="Output φ")
    """Output nonlinearity φ; cross-entropy for softmax, the square loss of φ(f) otherwise."""
    method: Literal["gradient-descent", "sgd"] = Field(default="gradient-descent", title="Method")
    """All samples in each step, or batches redrawn each epoch."""
    batch_size: int = Field(default=5, ge=1, le=10_000, title="Batch size")
    """Samples per step."""
    loss_threshold: float = Field(default=0.001, gt=0, le=10, title="Loss threshold")
    """Training stops when the mean loss falls below it."""
    max_steps: int = Field(default=300, ge=1, le=100_000, title="Maximum steps")
    """Runs that need more are stopped and marked."""
    keep_paths: bool = Field(default=False, title="Follow along training")
    """Keep loss, curvature, distance and kernel change along the runs of the first seed."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        shapes = self.shapes()
        if shapes is None:
            return self
        if self.output == "softmax" and not shapes.class_names:
            raise InvalidInput("output", self.output, "another output, for data without classes")
        if self.method == "sgd" and self.batch_size > shapes.num_samples:
            raise InvalidInput("batch_size", self.batch_size, f"at most {shapes.num_samples}, the number of samples")
        return self


DENSE_RECORDS = 100  # steps from the first that are all looked at, so that no peak is missed
TOGETHER_BYTES = 2**30  # runs are trained together up to this
_STEPS_OF = {"linear": 0, "quadratic": 4, "network": 1}  # a step, in those of the network
_PROGRAMS = {"linear": "linear model", "quadratic": "many trainings", "network": "many trainings"}


def counts(spec: LearningRateSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One width, all models, rates and seeds; all steps in any case."""
    network, runs = counted_at(spec, key), len(spec.rates) * spec.num_seeds
    return tuple(_of_model(spec, network, model, runs) for model in spec.models)


def _of_model(spec: LearningRateSpec, network: Counted, model: str, runs: int) -> Counts:
    looks = min(spec.max_steps, DENSE_RECORDS) + DENSE_RECORDS
    group = together(network, model)
    held, trains = _held(network, model), model != "linear"
    jacobians = (looks if spec.keep_paths else 1) * network.kernel_rows
    at_once, groups = min(runs, group), -(-runs // group)
    return replace(
        held,
        programs={_PROGRAMS[model]: 1},
        times=runs,
        steps=trains * (_STEPS_OF[model] * spec.max_steps + looks / 3 + jacobians),
        squares=(not trains) * 2 * spec.max_steps,
        more=Work(calls=40 * looks * groups / runs),
        copies=held.copies * at_once + 3 * network.kernel_rows + spec.num_seeds,
        views=held.views * at_once,
        matrices=held.matrices * at_once,
    )


def counted_at(spec: LearningRateSpec, key: str) -> Counted:
    """The network of a point, counted."""
    counted = Counted.of(spec, spec.architecture, spec.value_of(key), num_copies(spec.architecture))
    return replace(counted, num_test=0)  # test points are not looked at


def together(network: Counted, model: str) -> int:
    """How many runs are trained at once."""
    return max(1, min(256, int(TOGETHER_BYTES // _held(network, model).peak_bytes)))


def _held(network: Counted, model: str) -> Counts:
    """One run: weights at w₀ and w_t, gradients and temporaries, and what passes hold of every input."""
    copies, views = {"linear": (0, 1), "quadratic": (10, 3), "network": (6, 1)}[model]
    return Counts(network, copies=copies, views=views, matrices=4)
