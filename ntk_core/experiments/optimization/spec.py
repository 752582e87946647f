"""Convergence without linearity: networks with a nonlinear output, trained at several rates and widths."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ntk_core.data.spec import DatasetSpec
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.experiments._trained_sweep import TrainedSweep
from ntk_core.networks.spec import ArchitectureSpec, OutputName
from ntk_core.runs import Counts
from ntk_core.settings.part import Ascending, Once, Width


class OptimizationSpec(TrainedSweep):
    """Gradient descent with a nonlinear output.

    The square loss of φ(f), with all eigenvalues of the kernel along the path.

    With |φ'| ≥ ρ > 0 the loss stays below (1 − ημρ²/n)^t L₀ at small rates, μ = min over t of λ_min(K(w_t)), although
    the kernel of φ(f) does not stay constant.

    Source: Liu, Zhu & Belkin 2020, §5, Theorem 5.1; docs/math/optimization-without-linearity.md.

    >>> OptimizationSpec(widths=(100,), outputs=("tanh",), rates=(1.0,)).point_keys()
    ('width=100',)
    """

    max_kernel_rows: ClassVar[int | None] = 900

    experiment: Literal["optimization"] = "optimization"
    # Well separated inputs, many dimensions: a kernel whose condition number lets the bound be seen. Our choice.
    dataset: DatasetSpec = DatasetSpec(num_samples=18, input_dim=50, noise=1.0)
    architecture: ArchitectureSpec = ArchitectureSpec(activation="tanh")
    widths: tuple[Width, ...] = TrainedSweep.field("widths", (100, 1000, 10_000))
    num_seeds: int = TrainedSweep.field("num_seeds", 2)
    outputs: Annotated[tuple[OutputName, ...], Once] = Field(
        default=("leaky_softplus", "swish", "softmax"), min_length=1, max_length=4, title="Outputs φ"
    )
    """Output nonlinearities φ to compare, each trained with the square loss of φ(f)."""
    rates: Annotated[tuple[Annotated[float, Field(gt=0, le=1e6)], ...], Ascending] = Field(
        default=(2.0, 20.0, 60.0), min_length=1, max_length=6, title="Learning rates (×η)"
    )
    """Multiples of the learning rate η, each trained; with η auto, 2 is small as the theorem means it."""
    training: TrainingSpec = TrainingSpec(max_steps=3000, loss_threshold=1e-3, num_records=24)


def counts(spec: OptimizationSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One width: all steps in any case, and all eigenvalues of two kernels at each record."""
    num_lines, spectra = len(spec.outputs) * len(spec.rates), {"spectra": len(spec.outputs)}
    cubes = 20 * spec.training.num_records
    return (spec.trainings(spec.value_of(key), num_lines, spec.training.max_steps, programs=spectra, cubes=cubes),)
