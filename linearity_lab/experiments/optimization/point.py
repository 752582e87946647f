"""Convergence without linearity."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field, NonNegativeInt

from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.trained_sweep import (
    Outputs,
    TrainedPoint,
    TrainedRun,
    TrainedSweep,
    outputs_field,
)
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import (
    Counts,
    Experiment,
    ResultValue,
    SpecOf,
    columns,
    finite_or_none,
    finite_sup,
)
from linearity_lab.runs.columns import Column
from linearity_lab.settings.part import Ascending, Width
from linearity_lab.settings.training import SquareTrainingSpec
from ntk_core.networks.choices import OUTPUTS
from ntk_core.stored_numbers import NonNegative


class OptimizationSpec(TrainedSweep, SpecOf["OptimizationResult"]):
    """Gradient descent with a nonlinear output.

    The square loss of φ(f), with all eigenvalues of the kernel along the path.

    With |φ'| ≥ ρ > 0 the loss stays below (1 − ημρ²/n)^t L₀ at small rates, μ = min over t of
    λ_min(K(w_t)), although the kernel of φ(f) does not stay constant.

    Source: Liu, Zhu & Belkin 2020, §5, Theorem 5.1; docs/math/optimization-without-linearity.md.

    >>> OptimizationSpec(widths=(100,), outputs=("tanh",), rates=(1.0,)).point_keys()
    ('width=100',)
    """

    max_kernel_rows: ClassVar[int | None] = 900

    experiment: Literal["optimization"] = "optimization"
    # Well separated inputs in many dimensions: the condition number keeps the bound
    # visible. Our choice.
    dataset: DatasetSpec = DatasetSpec(num_samples=18, input_dim=50, noise=1.0)
    architecture: ArchitectureSpec = ArchitectureSpec(activation="tanh")
    widths: tuple[Width, ...] = TrainedSweep.field("widths", (100, 1000, 10_000))
    num_seeds: int = TrainedSweep.field("num_seeds", 2)
    outputs: Outputs = outputs_field(
        ("leaky_softplus", "swish", "softmax"), ", each trained with the square loss of φ(f)"
    )
    rates: Annotated[tuple[Annotated[float, Field(gt=0, le=1e6)], ...], Ascending] = Field(
        default=(2.0, 20.0, 60.0), min_length=1, max_length=6, title="Learning rates (×η)"
    )
    """Multiples of the learning rate η; with η auto, 2 is small in the theorem's sense."""
    training: SquareTrainingSpec = SquareTrainingSpec(
        max_steps=3000, loss_threshold=1e-3, num_records=24
    )

    def num_records(self, key: str) -> Mapping[str, int]:
        """One run per output, learning rate and seed."""
        return {"runs": len(self.outputs) * len(self.rates) * self.num_seeds}


def counts(spec: OptimizationSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """Count one width with all allowed steps, and all eigenvalues of two kernels per record."""
    num_lines = len(spec.outputs) * len(spec.rates)
    spectra = {"spectra": len(spec.outputs)}
    cubes = 20 * spec.training.num_records
    return (
        spec.trainings(
            spec.value_of(key), num_lines, spec.training.max_steps, programs=spectra, cubes=cubes
        ),
    )


class OptimizationRun(TrainedRun):
    """One training, usually with the square loss (1/2n) Σ ‖φ(f) − y‖².

    Entries after a divergence are not finite.

    Attributes:
        output: output nonlinearity φ.
        rate: multiple of the spec's learning rate.
        stable_rate: 2n/λ_max of the kernel of φ(f) at w₀: above it the linear model
            diverges; infinite for Adam.
        is_covered: whether the theorem covers the training: gradient descent with the square loss.
        last_finite_step: the last step whose loss was finite.
        change: ΔK(t) of the kernel of φ(f).
        smallest, largest: λ_min and λ_max of that kernel.
        pre_output_smallest: λ_min of the kernel of f.
        pl_ratio: ‖∇L‖² / 2L.
        linear_model_change: ΔK(t) of softmax(f_lin), with f_lin trained by the same steps; softmax
            output alone. Empty in results of older versions.
    """

    output: str
    rate: NonNegative
    stable_rate: NonNegative
    last_finite_step: NonNegativeInt
    smallest: tuple[float, ...]
    largest: tuple[float, ...]
    pre_output_smallest: tuple[float, ...]
    pl_ratio: tuple[NonNegative, ...]
    is_covered: bool = True
    linear_model_change: tuple[NonNegative, ...] = ()

    @property
    def linear_model_sup(self) -> float:
        """ΔK of softmax(f_lin); NaN if it was not trained."""
        return finite_sup(self.linear_model_change) if self.linear_model_change else math.nan

    @property
    def min_eigenvalue(self) -> float:
        """μ: the least λ_min of the kernel of f over the recorded times.

        NaN once one is not finite.
        """
        return _least(self.pre_output_smallest)

    @property
    def pl_constant(self) -> float:
        """The least ‖∇L‖²/2L over the recorded times: the measured PL* constant."""
        return _least(self.pl_ratio)

    @property
    def overshoot(self) -> float:
        """Max L / L₀ over recorded times; above 1 if the loss increased first or diverged."""
        return max(filter(math.isfinite, self.loss)) / self.loss[0]

    def bound(self, num_samples: int) -> tuple[float, ...] | None:
        """(1 − ημρ²/n)^t L₀ at the recorded steps; None if ρ = 0 or without a measured μ > 0.

        η here is the rate for the mean loss, n times that of Liu, Zhu & Belkin 2020, Eq. 34,
        whose loss is the sum.
        """
        slope = OUTPUTS[self.output].min_slope
        if not (self.is_covered and slope > 0 and self.min_eigenvalue > 0):
            return None
        return self._geometric(self.learning_rate * self.min_eigenvalue * slope**2 / num_samples)

    def pl_bound(self) -> tuple[float, ...] | None:
        """(1 − ημ*)^t L₀ with the measured PL* constant μ*; None unless μ* > 0."""
        return (
            self._geometric(self.learning_rate * self.pl_constant)
            if self.is_covered and self.pl_constant > 0
            else None
        )

    def _geometric(self, share: float) -> tuple[float, ...] | None:
        return (
            tuple(self.loss[0] * (1 - share) ** step for step in self.steps) if share < 1 else None
        )


class OptimizationPoint(TrainedPoint[OptimizationRun]):
    """All outputs, rates and seeds of one width; ``num_samples`` is n."""

    line = ("output", "rate")

    kind: Literal["optimization"] = "optimization"
    num_samples: NonNegativeInt


COLUMNS = (
    columns.WIDTH,
    columns.NUM_PARAMS,
    columns.OUTPUT,
    Column("rate", "rate", format="{:g} η".format, role="line"),
    columns.SEED,
    columns.LEARNING_RATE,
    Column(
        "stable_rate",
        "stable rate",
        lambda point, run: finite_or_none(run.stable_rate),
        columns.ranged,
    ),
    replace(
        columns.CHANGE,
        format=columns.with_error,
        counts=lambda run: run.outcome not in ("diverged", "dead"),
    ),
    Column("min_eigenvalue", "μ = min λ_min(K of f)", format=columns.ranged),
    Column("pl_constant", "PL* constant"),
    Column("overshoot", "max L / L₀"),
    replace(columns.FINAL_LOSS, format=columns.ranged),
    Column(
        "final_bound",
        "bound of the final loss",
        lambda point, run: (run.bound(point.num_samples) or [None])[-1],
        columns.ranged,
    ),
    columns.STEPS,
    columns.OUTCOME,
    Column("last_finite_step", "last finite step", format=columns.counted),
)


class OptimizationResult(ResultValue):
    """Result of an ``optimization`` run.

    Losses L_t, ΔK and spectra of kernels along the path.

    Beside L_t is (1 − ημρ²/n)^t L₀ with the measured μ = min over t of λ_min(K(w_t)).

    Source: Liu, Zhu & Belkin 2020, §5, Theorem 5.1; docs/math/optimization-without-linearity.md.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> stored = (GALLERY / "liu-section5.json").read_bytes()
    >>> result = OptimizationResult.model_validate_json(stored)
    >>> result.points[0].runs[0].outcome
    'converged'
    """

    columns = COLUMNS
    spec: OptimizationSpec
    points: tuple[OptimizationPoint, ...]


def optimization_summary(spec: OptimizationSpec, points: Sequence[OptimizationPoint]) -> str:
    """Return the table of widths, outputs and rates, and each output's ρ."""
    notes = []
    for output in spec.outputs:
        rho = OUTPUTS[output].min_slope
        words = "ρ = 0, the theorem does not apply"
        if rho:
            words = f"|φ'| ≥ ρ = {rho:g}, the theorem holds at small rates"
        notes.append(f"{OUTPUTS[output].title}: {words}")
    return "\n".join(
        [*columns.text_table(COLUMNS, points), "", *notes, *columns.outcome_notes(points)]
    )


def _least(values: Iterable[float]) -> float:
    found = tuple(values)
    return min(found) if all(map(math.isfinite, found)) else math.nan


EXPERIMENT = Experiment(
    OptimizationSpec, OptimizationPoint, OptimizationResult, counts, optimization_summary
)
