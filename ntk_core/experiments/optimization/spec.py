"""Convergence without linearity: networks with a nonlinear output, trained at several rates and widths."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ntk_core.data.spec import DatasetSpec
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.errors import InvalidInput
from ntk_core.networks.spec import ArchitectureSpec, OutputName
from ntk_core.runs import SweepSpec
from ntk_core.settings.part import Ascending, Once, Width

MAX_KERNEL_ROWS = 900  # n·C of a kernel whose spectrum is taken at every record


class OptimizationSpec(SweepSpec):
    """Gradient descent on the square loss of φ(f), with all eigenvalues of the kernel along the path.

    With |φ'| ≥ ρ > 0 the loss stays below (1 − ημρ²/n)^t L₀ at small rates, μ = min over t of λ_min(K(w_t)), although
    the kernel of φ(f) does not stay constant.

    Source: Liu, Zhu & Belkin 2020, §5, Theorem 5.1; docs/math/optimization-without-linearity.md.
    """

    experiment: Literal["optimization"] = "optimization"
    # Well separated inputs, many dimensions: a kernel whose condition number lets the bound be seen. Our choice.
    dataset: DatasetSpec = DatasetSpec(num_samples=18, input_dim=50, noise=1.0)
    architecture: ArchitectureSpec = ArchitectureSpec(activation="tanh")
    widths: tuple[Width, ...] = SweepSpec.field("widths", (100, 1000, 10_000))
    num_seeds: int = SweepSpec.field("num_seeds", 2)
    outputs: Annotated[tuple[OutputName, ...], Once] = Field(
        ("leaky_softplus", "swish", "softmax"), min_length=1, max_length=4, title="Outputs φ"
    )
    """Output nonlinearities φ to compare, each trained with the square loss of φ(f)."""
    rates: Annotated[tuple[Annotated[float, Field(gt=0, le=1e6)], ...], Ascending] = Field(
        (2.0, 20.0, 60.0), min_length=1, max_length=6, title="Learning rates (×η)"
    )
    """Multiples of the learning rate η, each trained; with η auto, 2 is small as the theorem means it."""
    training: TrainingSpec = TrainingSpec(max_steps=3000, loss_threshold=1e-3, num_records=24)

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        shapes = self.dataset.known_shapes()
        if shapes is None:
            return self
        self.architecture.check_inputs(shapes.input_shape, widths=self.widths)
        most = MAX_KERNEL_ROWS // shapes.num_outputs
        if shapes.num_samples > most:
            raise InvalidInput(
                "dataset.num_samples", shapes.num_samples, f"at most {most}: all n·C eigenvalues are taken"
            )
        return self
