"""Kernel change in training against width, for several outputs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from linearity_lab.experiments.trained_sweep import Outputs, TrainedSweep, outputs_field
from linearity_lab.networks.sizes import num_copies
from linearity_lab.networks.spec import ArchitectureSpec, SizeNames
from linearity_lab.runs import BYTES, Counted, Counts, SpecOf, Work, typical_steps
from linearity_lab.settings.part import Width
from linearity_lab.settings.training import USUAL_LOSS, TrainingSpec
from ntk_core.dynamics.choices import LOSSES
from ntk_core.errors import InvalidInput

if TYPE_CHECKING:
    from linearity_lab.experiments.kernel_change.point import (
        KernelChangeResult,  # noqa: F401 - SpecOf names it
    )

# With fewer the error itself is uncertain (docs/math/kernel_without_jacobians.md).
LEAST_PROBES = 16


class KernelChangeSpec(TrainedSweep, SpecOf["KernelChangeResult"]):
    """Kernel change ΔK in training, against width, for several output nonlinearities.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F over the recorded steps t.

    With the usual losses, outputs ``linear`` and ``softmax`` share one set of parameters, trained
    by cross-entropy on softmax(f); every other output φ, and ``linear`` without classes, has its
    own network, trained with ½‖φ(f) − y‖².

    Source: Liu, Zhu & Belkin 2020, §6, Figs. 1 and 2, App. B; kernel velocity:
    docs/math/kernel-velocity.md.

    >>> KernelChangeSpec(widths=(30, 100), outputs=("linear", "swish")).point_keys()
    ('width=30', 'width=100')
    """

    selector: ClassVar[str] = "swept"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {"hidden_width": ("bottleneck_width",)}

    experiment: Literal["kernel_change"] = "kernel_change"
    architecture: ArchitectureSpec = ArchitectureSpec()
    swept: Annotated[Literal["width", "bottleneck_width"], SizeNames] = Field(
        default="width", title="Swept"
    )
    """Layers with the swept widths: all hidden layers, or the bottleneck alone."""
    hidden_width: Width = Field(default=1000, title="Width m of the other layers")
    """Width m of the layers around a swept bottleneck."""
    outputs: Outputs = outputs_field(("linear", "softmax", "swish"))
    measured: Literal["training", "velocity", "both"] = Field(default="training", title="Measured")
    """ΔK in training; or the kernel velocity at w₀, which needs no training; or both."""
    ball_radius: float = Field(default=0.0, ge=0, le=1000, title="Radius R of the ball")
    """Search for the largest ΔK within distance R of w₀; 0 skips it."""
    training: TrainingSpec = TrainingSpec()
    probes: int = Field(default=0, ge=0, le=1000, title="Random vectors")
    """Number of random vectors for estimating ΔK with a standard error; 0: exact."""
    keep_kernels: bool = Field(default=False, title="Keep kernels")
    """Keep the kernel of the first seed before and after training, to draw it;
    it must fit into memory.
    """
    infinite_width: bool = Field(default=False, title="Infinite-width kernel")
    """Measure the distance of K(w₀) to the kernel K_∞ of infinite width (linear output);
    both must fit into memory.
    """

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.infinite_width:
            self.architecture.check_infinite_width()
        for name in ("keep_kernels", "infinite_width"):
            if getattr(self, name) and not self.trains:
                raise InvalidInput(name, True, "off if only the kernel velocity is measured")
        if 0 < self.probes < LEAST_PROBES:
            raise InvalidInput("probes", self.probes, f"0, or an integer from {LEAST_PROBES} on", 0)
        if self.probes and self.needs_kernel:
            raise InvalidInput(
                "probes",
                self.probes,
                "0 for velocity, ball and K_∞, which need the whole kernel",
                0,
            )
        if self.swept == "bottleneck_width" and not self.architecture.uses("bottleneck_width"):
            raise InvalidInput(
                "swept", self.swept, "width, unless the architecture has a bottleneck"
            )
        return self

    @property
    def swept_title(self) -> str:
        """Title of the swept widths."""
        return "Bottleneck widths" if self.swept == "bottleneck_width" else super().swept_title

    @property
    def groups(self) -> tuple["TrainingGroup", ...]:
        """Groups of outputs that share one training."""
        shapes = self.dataset.known_shapes()
        has_classes = shapes is None or bool(shapes.class_names)
        return training_groups(self.outputs, self.training.loss, classes=has_classes)

    @property
    def trains(self) -> bool:
        """Whether networks are trained."""
        return self.measured != "velocity"

    @property
    def needs_kernel(self) -> bool:
        """Whether a whole kernel is needed in memory."""
        return (
            self.keep_kernels or self.infinite_width or self.takes_velocity or self.ball_radius > 0
        )

    @property
    def takes_velocity(self) -> bool:
        """Whether the kernel velocity at w₀ is measured."""
        return self.measured != "training"

    def num_records(self, key: str) -> Mapping[str, int]:
        """Runs and kernels at w₀ of every output and seed, and kept kernels of the first seed."""
        each = len(self.outputs) * self.num_seeds
        measures_start = self.takes_velocity or self.ball_radius > 0
        return {
            "runs": each if self.trains else 0,
            "at_start": each if measures_start else 0,
            "snapshots": len(self.outputs) if self.keep_kernels else 0,
        }

    def network_at(self, value: int) -> tuple[ArchitectureSpec, int]:
        """(architecture, width of its hidden layers) at one swept value."""
        if self.swept == "width":
            return self.architecture, value
        return self.architecture.model_copy(update={"bottleneck_width": value}), self.hidden_width


@dataclass(frozen=True)
class TrainingGroup:
    """Outputs that share one training.

    Attributes:
        trained_output: output of the network that is built.
        loss_output: the output whose loss is minimized.
        loss: its name; empty for the usual loss of the output.
        observed: outputs whose kernels are followed on these parameters.
    """

    trained_output: str
    loss_output: str
    observed: tuple[str, ...]
    loss: str = ""


def training_groups(
    outputs: tuple[str, ...], loss: str = USUAL_LOSS, *, classes: bool = True
) -> tuple[TrainingGroup, ...]:
    """Group outputs by parameters.

    Linear and softmax share theirs (Liu, Zhu & Belkin 2020, Eq. 46).

    Without ``classes`` each output has its own parameters and the square loss, and so it has with
    any other loss than the one that applies the softmax itself.
    """
    name = "" if loss == USUAL_LOSS else loss
    shares = classes and (not name or LOSSES[name].applies == "softmax")
    shared = tuple(output for output in outputs if shares and output in ("linear", "softmax"))
    groups = [TrainingGroup("linear", "softmax", shared, name)] if shared else []
    for output in outputs:
        if output not in shared:
            groups.append(TrainingGroup(output, output, (output,), name))
    return tuple(groups)


# Of the search in a ball; our choice.
BALL_STARTS = 3
BALL_STEPS = 8
HELD_BYTES = 2**29  # larger kernels are streamed; our choice, about what streaming needs
STREAMED_BYTES = 2**28  # for blocks: a pair of them at 24 records takes seconds; our choice
BESIDE_BYTES = 1e8  # inside a contraction; measured
RATE_PRODUCTS = 40  # for λ_max, in products with a kernel
DERIVATIVE = 3  # a kernel with one derivative, in kernels


def streams(spec: KernelChangeSpec) -> bool:
    """Whether ΔK is computed after training from recorded weights, without storing kernels.

    True if ΔK is estimated, or kernels need too much memory (docs/decisions/0004-large-kernels.md).
    """
    if spec.needs_kernel:
        return False
    rows = _counted(spec, spec.point_keys()[0]).kernel_rows
    return spec.probes > 0 or BYTES * _num_matrices(spec) * rows**2 > HELD_BYTES


def training_share(spec: KernelChangeSpec, key: str) -> float:
    """Share of the work done while a network trains: all, unless kernels are streamed."""
    if not streams(spec):
        return 1.0
    (found,) = counts(spec, key)
    steps = found.steps * found.network.step.operations
    return steps / (steps + found.more.operations)


def counts(spec: KernelChangeSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """Count one width, all seeds and outputs; ``most`` takes all allowed steps."""
    network = _counted(spec, key)
    streamed = streams(spec)
    places = BALL_STARTS * (BALL_STEPS + 2) if spec.ball_radius else 0
    derivatives = len(spec.outputs) * (spec.takes_velocity + places)
    # A derivative is as large as every view; a search stores its center, its best point, and a
    # point with its gradient.
    copies = 3
    views = 1
    if places:
        copies = 6
        views = 3
    elif spec.takes_velocity:
        copies = 4
        views = 2
    copies += spec.trains * spec.training.method.num_copies
    numbers = 0
    blocks = 0.0
    if streamed:
        copies = 6 + spec.training.num_records + spec.training.method.num_copies
        views = 0
        numbers = network.num_seen + 2 * (2 * spec.probes + 50) * network.kernel_rows
        blocks = (
            max(STREAMED_BYTES, BYTES * 2 * network.num_views / network.num_samples) + BESIDE_BYTES
        )
    return (
        Counts(
            network,
            {
                "training": spec.trains,
                "streaming": spec.trains and streamed,
                "search": spec.takes_velocity + bool(places),
            },
            times=len(spec.groups) * spec.num_seeds,
            steps=spec.trains * typical_steps(spec.training.max_steps, most),
            kernels=spec.trains * (not streamed) * spec.training.num_records
            + DERIVATIVE * derivatives,
            more=_streamed(spec, network) if streamed and spec.trains else Work(),
            copies=copies,
            views=views,
            matrices=0 if streamed else _num_matrices(spec),
            numbers=numbers,
            num_bytes=blocks,
        ),
    )


def kept_bytes(spec: KernelChangeSpec, key: str) -> float:
    """Bytes of the kernels that a point keeps.

    float64, before and after training, of each output.
    """
    if not spec.keep_kernels:
        return 0.0
    network = _counted(spec, key)
    eigenvalues = 2 * network.kernel_rows
    matrices = 2 * network.num_samples**2
    infinite = network.num_samples**2 if spec.infinite_width and "linear" in spec.outputs else 0
    return 8.0 * (len(spec.outputs) * (eigenvalues + matrices) + infinite)


def _num_matrices(spec: KernelChangeSpec) -> int:
    """The kernels at w₀ and w_t with their images under each output."""
    return 4 + 2 * len(spec.outputs)


def _streamed(spec: KernelChangeSpec, network: Counted) -> Work:
    """Work for the kernels of one seed and group at all records, and λ_max at w₀ by products."""
    n = network.num_samples
    num_outputs = network.num_outputs
    records = spec.training.num_records
    # A product takes six passes over all inputs, twice as many as a step.
    rate = 2 * RATE_PRODUCTS * network.step
    if spec.probes:
        return (
            rate
            + 2 * 3.5 * spec.probes * records * len(spec.outputs) / len(spec.groups) * network.step
        )
    # Blocks of s rows: 2 views of s rows and six blocks of s² C² numbers, see ntk_core.kernels.
    view = 2 * network.num_views / n
    block = 6 * num_outputs**2
    rows = min(n, max(1, int((math.sqrt(view**2 + block * STREAMED_BYTES) - view) / (2 * block))))
    blocks = math.ceil(n / rows)
    views = 4 * n * (blocks + 1) * (1 + num_outputs) * network.multiplications
    halves = (1 + 1 / blocks) / 2 * network.kernel
    return rate + (records + 1) * (halves + Work(views, calls=blocks * (blocks + 1) / 2))


def _counted(spec: KernelChangeSpec, key: str) -> Counted:
    architecture, hidden_width = spec.network_at(spec.value_of(key))
    return Counted.of(spec, architecture, hidden_width, num_copies(architecture))
