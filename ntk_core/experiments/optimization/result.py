"""Results of ``optimization``: losses and spectra along training, for each width, output, rate and seed."""

import math
from collections.abc import Iterable
from typing import Literal

from ntk_core.experiments.optimization.spec import OptimizationSpec
from ntk_core.networks.choices import OUTPUTS
from ntk_core.runs import Outcome, RecordedTraining, ResultValue, WidthPoint, finite_or_none


class OptimizationRun(RecordedTraining):
    """One training with the square loss L = (1/2n) Σ ‖φ(f) − y‖²; entries after a divergence are not finite.

    Attributes:
        output: output nonlinearity φ.
        rate: multiple of the learning rate that the spec asks for.
        seed: seed of the initialization w₀.
        learning_rate: η, as used; infinite where it is automatic and the network is dead.
        stable_rate: 2n/λ_max of the kernel of φ(f) at w₀: above it the linear model at w₀ diverges.
        outcome: how it ended, see ``ntk_core.dynamics.outcomes.ended``.
        last_finite_step: the last step whose loss was finite.
        steps: recorded step indices, starting at 0.
        loss: L.
        change: ΔK(t) of the kernel of φ(f).
        smallest, largest: λ_min and λ_max of that kernel.
        pre_output_smallest: λ_min of the kernel of f.
        pl_ratio: ‖∇L‖² / 2L.
    """

    output: str
    rate: float
    seed: int
    learning_rate: float
    stable_rate: float
    outcome: Outcome
    last_finite_step: int
    loss: tuple[float, ...]
    smallest: tuple[float, ...]
    largest: tuple[float, ...]
    pre_output_smallest: tuple[float, ...]
    pl_ratio: tuple[float, ...]

    @property
    def min_eigenvalue(self) -> float:
        """μ: the least λ_min of the kernel of f over the recorded times; NaN once one is not finite."""
        return _least(self.pre_output_smallest)

    @property
    def pl_constant(self) -> float:
        """The least ‖∇L‖²/2L over the recorded times: the measured PL* constant."""
        return _least(self.pl_ratio)

    @property
    def condition(self) -> tuple[float, ...]:
        """λ_max / λ_min of the kernel of φ(f); infinite where λ_min is not above zero."""
        return tuple(high / low if low > 0 else math.inf for low, high in zip(self.smallest, self.largest, strict=True))

    @property
    def overshoot(self) -> float:
        """max L / L₀ over the recorded times; above 1 the loss rose before it fell, or diverged."""
        return max(filter(math.isfinite, self.loss)) / self.loss[0]

    def bound(self, num_samples: int) -> tuple[float, ...] | None:
        """(1 − ημρ²/n)^t L₀ at the recorded steps; None where ρ = 0 or no μ > 0 was measured.

        η here is the rate for the mean loss, n times that of Liu, Zhu & Belkin 2020, Eq. 34, whose loss is the sum.
        """
        slope = OUTPUTS[self.output].min_slope
        if not (slope > 0 and self.min_eigenvalue > 0):
            return None
        return self._geometric(self.learning_rate * self.min_eigenvalue * slope**2 / num_samples)

    def pl_bound(self) -> tuple[float, ...] | None:
        """(1 − ημ*)^t L₀ with the measured PL* constant μ*; None where none is positive."""
        return self._geometric(self.learning_rate * self.pl_constant) if self.pl_constant > 0 else None

    def _geometric(self, share: float) -> tuple[float, ...] | None:
        return tuple(self.loss[0] * (1 - share) ** step for step in self.steps) if share < 1 else None


class OptimizationPoint(WidthPoint):
    """All runs of one width.

    Attributes:
        num_params: p, number of trained parameters.
        num_samples: n.
        runs: one entry per output, rate and seed.
    """

    kind: Literal["optimization"] = "optimization"
    num_params: int
    num_samples: int
    runs: tuple[OptimizationRun, ...]

    def of(self, output: str, rate: float | None = None) -> tuple[OptimizationRun, ...]:
        """The runs of this output, and of this rate where one is named."""
        return tuple(run for run in self.runs if run.output == output and rate in (None, run.rate))


class OptimizationResult(ResultValue):
    """Everything an ``optimization`` run gave: losses L_t, ΔK and spectra of kernels along the path.

    Beside L_t stands (1 − ημρ²/n)^t L₀ with the measured μ = min over t of λ_min(K(w_t)).

    Source: Liu, Zhu & Belkin 2020, §5, Theorem 5.1; docs/math/optimization-without-linearity.md.
    """

    spec: OptimizationSpec
    points: tuple[OptimizationPoint, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row per width, output, rate and seed."""
        return [
            {
                "width": point.width,
                "num_params": point.num_params,
                "output": run.output,
                "rate": run.rate,
                "seed": run.seed,
                "learning_rate": finite_or_none(run.learning_rate),
                "stable_rate": finite_or_none(run.stable_rate),
                "sup_kernel_change": run.sup_change,
                "min_eigenvalue": run.min_eigenvalue,
                "pl_constant": run.pl_constant,
                "overshoot": run.overshoot,
                "final_loss": run.loss[-1],
                "steps": run.num_steps,
                "outcome": run.outcome,
                "last_finite_step": run.last_finite_step,
            }
            for point in self.points
            for run in point.runs
        ]


def _least(values: Iterable[float]) -> float:
    found = tuple(values)
    return min(found) if all(map(math.isfinite, found)) else math.nan
