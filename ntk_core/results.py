"""What came out: plain, frozen values with their seeds, outcomes and provenance; JSON in and out; free of JAX."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ntk_core.specs import KernelDriftSpec

Outcome = Literal["converged", "over-budget", "diverged"]
OUTCOME_WORDS: dict[str, str] = {
    "converged": "reached the loss threshold",
    "over-budget": "did not reach the loss threshold within the step limit",
    "diverged": "diverged: the loss ended above its initial value, or became infinite or not a number",
}


class Value(BaseModel):
    """Base of everything that is stored or sent: frozen, JSON with NaN and infinities as strings."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Mean(Value):
    """A mean over independent seeds, never without its error.

    Attributes:
        value: arithmetic mean; NaN when there is nothing to average.
        standard_error: sample standard deviation / √count; NaN for fewer than two values.
        count: number of values.
    """

    value: float
    standard_error: float
    count: int


def mean(values: Sequence[float]) -> Mean:
    """Mean, standard error and count of ``values``."""
    count = len(values)
    if not count:
        return Mean(value=math.nan, standard_error=math.nan, count=0)
    average = math.fsum(values) / count
    if count < 2:
        return Mean(value=average, standard_error=math.nan, count=count)
    variance = math.fsum((value - average) ** 2 for value in values) / (count - 1)
    return Mean(value=average, standard_error=math.sqrt(variance / count), count=count)


class DriftRun(Value):
    """One training run seen through one output: the kernel change and the loss at the recorded steps.

    Attributes:
        output: the output nonlinearity φ whose kernel is followed.
        seed: seed of the initialization w₀.
        learning_rate: η, as used.
        outcome: whether the loss threshold was reached.
        steps: recorded step indices, starting at 0; time is learning_rate × step.
        change: ΔK(t) = ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F at those steps, over all (n, n, C, C) entries.
        loss: the mean training loss at those steps.
        infinite_distance: ‖K(w₀) − K_∞‖_F / ‖K_∞‖_F with the kernel K_∞ of infinite width; only for the linear
            output, and where the spec asks for it.
    """

    output: str
    seed: int
    learning_rate: float
    outcome: Outcome
    steps: tuple[int, ...]
    change: tuple[float, ...]
    loss: tuple[float, ...]
    infinite_distance: float | None = None

    @property
    def sup_change(self) -> float:
        """sup over the recorded times of ΔK(t) (Liu, Zhu & Belkin 2020, §6)."""
        return max((value for value in self.change if math.isfinite(value)), default=math.nan)

    @property
    def num_steps(self) -> int:
        """Steps taken until the run ended."""
        return self.steps[-1]


class KernelSnapshot(Value):
    """A kernel before and after training, small enough to draw.

    Attributes:
        initial: (n, n) mean over the outputs, (1/C) Σ_a K[i, j, a, a] at w₀; samples ordered by label.
        final: the same at the end of training.
        initial_eigenvalues: all n·C eigenvalues of K(w₀), descending.
        final_eigenvalues: the same at the end of training.
        infinite: (n, n) kernel of infinite width, where the spec asks for it.
    """

    output: str
    seed: int
    initial: tuple[tuple[float, ...], ...]
    final: tuple[tuple[float, ...], ...]
    initial_eigenvalues: tuple[float, ...]
    final_eigenvalues: tuple[float, ...]
    infinite: tuple[tuple[float, ...], ...] | None = None


class DriftPoint(Value):
    """All runs of one width.

    Attributes:
        width: m.
        num_params: p, number of trained parameters.
        runs: one entry an output and seed.
        runtime_s: wall time of the computation, in seconds.
        snapshots: kernels of the first seed, one an output, where the spec asks for them.
    """

    kind: Literal["kernel_drift"] = "kernel_drift"
    width: int
    num_params: int
    runs: tuple[DriftRun, ...]
    runtime_s: float
    snapshots: tuple[KernelSnapshot, ...] = ()

    def of(self, output: str) -> tuple[DriftRun, ...]:
        """The runs seen through this output."""
        return tuple(run for run in self.runs if run.output == output)


class Provenance(Value):
    """Where a result was computed, by which versions.

    Attributes:
        versions: package name → version.
        device: kind of device JAX ran on.
        dtype: floating-point type of the computation.
        started_at: ISO 8601 time in UTC.
        data_sha256: fingerprint of the data used.
    """

    versions: dict[str, str]
    platform: str
    device: str
    dtype: str
    started_at: str
    data_sha256: str = ""


class DriftResult(Value):
    """Everything a ``kernel_drift`` run gave; ``points`` are in the order of the widths, some may be missing."""

    spec: KernelDriftSpec
    points: tuple[DriftPoint, ...]
    provenance: Provenance
    status: Literal["completed", "cancelled", "failed"]
    runtime_s: float

    def rows(self) -> list[dict[str, object]]:
        """One row a width, output and seed, as in ``points.csv``."""
        return [
            {
                "width": point.width,
                "num_params": point.num_params,
                "output": run.output,
                "seed": run.seed,
                "sup_kernel_change": run.sup_change,
                "final_kernel_change": run.change[-1],
                "final_loss": run.loss[-1],
                "steps": run.num_steps,
                "learning_rate": run.learning_rate,
                "outcome": run.outcome,
                **({"distance_to_infinite_width": run.infinite_distance} if self.spec.infinite_width else {}),
            }
            for point in self.points
            for run in point.runs
        ]

    def csv(self) -> str:
        """``rows`` as CSV text with a header line."""
        return csv_text(self.rows())


def csv_text(rows: Sequence[dict[str, object]]) -> str:
    """CSV text with a header line from rows with equal columns; empty for no rows."""
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


# One entry an experiment: the types of its points and its results. ``kind`` tells them apart in stored JSON.
Point = Annotated[DriftPoint, Field()]
Result = Annotated[DriftResult, Field()]
