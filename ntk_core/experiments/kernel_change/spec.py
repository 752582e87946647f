"""Kernel change in training against width, for several outputs."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.errors import InvalidInput
from ntk_core.networks.spec import ArchitectureSpec, OutputName
from ntk_core.runs import TrainedSweep
from ntk_core.settings.part import Once, Width

LEAST_PROBES = 16  # with fewer the error itself is uncertain (docs/math/kernel_without_jacobians.md)


class KernelChangeSpec(TrainedSweep):
    """Kernel change ΔK in training, against width, for several output nonlinearities.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F over the recorded steps t.

    Outputs ``linear`` and ``softmax`` share one set of parameters, trained by cross-entropy on softmax(f); every other
    output φ is a network of its own, trained with ½‖φ(f) − y‖², and so is ``linear`` where the data have no classes.

    Source: Liu, Zhu & Belkin 2020, §6, Figs. 1 and 2, App. B; kernel velocity: docs/math/kernel-velocity.md.
    """

    selector: ClassVar[str] = "swept"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {"hidden_width": ("bottleneck_width",)}

    experiment: Literal["kernel_change"] = "kernel_change"
    architecture: ArchitectureSpec = ArchitectureSpec()
    swept: Literal["width", "bottleneck_width"] = Field(default="width", title="Swept")
    """What the widths are: of all hidden layers, or of the bottleneck alone."""
    hidden_width: Width = Field(default=1000, title="Width m of the other layers")
    """Width m of the layers around a swept bottleneck."""
    outputs: Annotated[tuple[OutputName, ...], Once] = Field(
        default=("linear", "softmax", "swish"), min_length=1, max_length=4, title="Outputs φ"
    )
    """Output nonlinearities φ to compare."""
    measured: Literal["training", "velocity", "both"] = Field(default="training", title="Measured")
    """ΔK in training; or the kernel velocity at w₀, which needs no training; or both."""
    ball_radius: float = Field(default=0.0, ge=0, le=1000, title="Radius R of the ball")
    """Look for the largest ΔK within distance R of w₀; 0 to leave it out."""
    training: TrainingSpec = TrainingSpec()
    probes: int = Field(default=0, ge=0, le=1000, title="Random vectors")
    """Number of random vectors for estimating ΔK with a standard error; 0: exact."""

    keep_kernels: bool = Field(default=False, title="Keep kernels")
    """Keep the kernel of the first seed before and after training, to draw it; it must fit into memory."""

    infinite_width: bool = Field(default=False, title="Infinite-width kernel")
    """Measure the distance of K(w₀) to the kernel K_∞ of infinite width (linear output); both must fit into memory."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.infinite_width:
            self.architecture.check_infinite_width()
        for name in ("keep_kernels", "infinite_width"):
            if getattr(self, name) and not self.trains:
                raise InvalidInput(name, True, "off where only the kernel velocity is measured")
        if 0 < self.probes < LEAST_PROBES:
            raise InvalidInput("probes", self.probes, f"0, or an integer from {LEAST_PROBES} on", 0)
        if self.probes and self.needs_kernel:
            raise InvalidInput("probes", self.probes, "0 for what needs the whole kernel: velocity, ball, K_∞", 0)
        if self.swept == "bottleneck_width" and not self.architecture.uses("bottleneck_width"):
            raise InvalidInput("swept", self.swept, "width, unless architecture.kind is bottleneck")
        return self

    @property
    def groups(self) -> tuple["TrainingGroup", ...]:
        """Which outputs share one training."""
        shapes = self.dataset.known_shapes()
        return training_groups(self.outputs, classes=shapes is None or bool(shapes.class_names))

    @property
    def trains(self) -> bool:
        """Whether networks are trained."""
        return self.measured != "velocity"

    @property
    def needs_kernel(self) -> bool:
        """Whether something is asked for that needs a whole kernel in memory."""
        return self.keep_kernels or self.infinite_width or self.takes_velocity or self.ball_radius > 0

    @property
    def takes_velocity(self) -> bool:
        """Whether the kernel velocity at w₀ is measured."""
        return self.measured != "training"

    def network_at(self, value: int) -> tuple[ArchitectureSpec, int]:
        """(architecture, width of its hidden layers) at one value of what is swept."""
        if self.swept == "width":
            return self.architecture, value
        return self.architecture.model_copy(update={"bottleneck_width": value}), self.hidden_width


@dataclass(frozen=True)
class TrainingGroup:
    """Outputs that share one training.

    Attributes:
        trained_output: output of the network that is built.
        loss_output: the output whose loss is minimized.
        observed: outputs whose kernels are followed on these parameters.
    """

    trained_output: str
    loss_output: str
    observed: tuple[str, ...]


def training_groups(outputs: tuple[str, ...], *, classes: bool = True) -> tuple[TrainingGroup, ...]:
    """Linear and softmax output share one set of parameters (Liu, Zhu & Belkin 2020, Eq. 46); any other has its own.

    Without ``classes`` each output has its own parameters and the square loss: there are no probabilities to learn.
    """
    shared = tuple(output for output in outputs if output in ("linear", "softmax")) if classes else ()
    own = tuple(TrainingGroup(output, output, (output,)) for output in outputs if output not in shared)
    return ((TrainingGroup("linear", "softmax", shared),) if shared else ()) + own
