"""Kernel change, Hessian norm and logits against width: points, result and table."""

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import NonNegativeInt

from linearity_lab.experiments.explore.spec import ExploreSpec, counts
from linearity_lab.experiments.trained_sweep import TrainedPoint, TrainedRun, along
from linearity_lab.runs import Experiment, ResultValue, Value, columns, finite_sup
from linearity_lab.runs.columns import Column, text_table
from ntk_core.fits import PowerLaw, exponent_line, fit_runs
from ntk_core.networks.choices import OUTPUTS
from ntk_core.stored_numbers import NonNegative

Rows = tuple[tuple[float, ...], ...]


class ExploreRun(TrainedRun):
    """Network and linear model of one output along one training run.

    F = φ(f) is the output, and F_lin its linear model, trained by the same steps. Cross-entropy
    applies the softmax itself: there f_lin is trained, and F_lin = φ(f₀) + φ'(f₀)(f_lin − f₀)
    for a softmax output.

    Attributes:
        output: output nonlinearity φ.
        loss_linear: the mean training loss of the trained linear model, at the recorded steps.
        difference: Σ_i ‖F − F_lin‖² / Σ_i ‖F_lin‖² over all training points, at the recorded steps.
        hessian: ‖H(w₀)‖ of one output of F, mean over the first inputs; None if it is not measured.
        hessian_converged: whether each of these norms converged.
        outputs, outputs_linear: F and F_lin at the followed points, one block of rows per record,
            to four digits; first seed only.
        linear_model_change: ΔK(t) of softmax(f_lin), with f_lin trained by the same steps; softmax
            output alone. Empty for large kernels and in results of older versions.
    """

    output: str
    loss_linear: tuple[NonNegative, ...]
    difference: tuple[NonNegative, ...]
    hessian: NonNegative | None = None
    hessian_converged: bool = True
    outputs: tuple[Rows, ...] = ()
    outputs_linear: tuple[Rows, ...] = ()
    linear_model_change: tuple[NonNegative, ...] = ()

    @property
    def linear_model_sup(self) -> float:
        """ΔK of softmax(f_lin); NaN if it was not compared."""
        return finite_sup(self.linear_model_change) if self.linear_model_change else math.nan

    @property
    def sup_difference(self) -> float:
        """Largest relative mean-squared difference of network and linear model."""
        return finite_sup(self.difference)


class DrawnKernel(Value):
    """The kernel of one output before and after training.

    It is of the first seed, at a few points ordered by class.

    Attributes:
        initial: (k, k) mean over the outputs, (1/C) Σ_a K[i, j, a, a] at w₀, to three digits.
        final: the same at the last record.
    """

    output: str
    initial: Rows
    final: Rows


class ExplorePoint(TrainedPoint[ExploreRun]):
    """All runs of one width.

    Attributes:
        followed: indices of the followed training points.
        targets: their targets y.
        kernels: drawn kernels of the first seed, one per output.
    """

    kind: Literal["explore"] = "explore"
    followed: tuple[NonNegativeInt, ...]
    targets: Rows
    kernels: tuple[DrawnKernel, ...] = ()


COLUMNS = (
    columns.WIDTH,
    columns.NUM_PARAMS,
    columns.OUTPUT,
    columns.SEED,
    columns.CHANGE,
    Column(
        "hessian_norm",
        "‖H(w₀)‖",
        lambda _, run: run.hessian,
        lambda values: columns.precise([value for value in values if value is not None]),
        optional=True,
    ),
    Column(
        "sup_relative_difference",
        "sup difference",
        lambda _, run: run.sup_difference,
        columns.with_error,
        counts=columns.converged,
    ),
    columns.FINAL_LOSS,
    Column("final_loss_linear", "final loss, linear model", lambda _, run: run.loss_linear[-1]),
    columns.STEPS,
    columns.LEARNING_RATE,
    columns.OUTCOME,
)


class ExploreResult(ResultValue):
    """Result of an ``explore`` run.

    ΔK, ‖H(w₀)‖, logits of network and linear model, kernels and losses, of every
    width, output and seed.

    Source: Liu, Zhu & Belkin 2020, §3, §6 and Fig. 1.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> result = ExploreResult.model_validate_json((GALLERY / "explore.json").read_bytes())
    >>> [point.width for point in result.points]
    [30, 200, 1000]
    """

    columns = COLUMNS
    spec: ExploreSpec
    points: tuple[ExplorePoint, ...]


def change_law(points: Sequence[ExplorePoint], output: str) -> PowerLaw | None:
    """Fit ΔK of converged runs against width."""
    return fit_runs(along(points, output), lambda run: run.sup_change, columns.converged)


def explore_summary(spec: ExploreSpec, points: Sequence[ExplorePoint]) -> str:
    """Return the table of means over converged runs and the exponents of ΔK."""
    notes = columns.outcome_notes(points, then="; excluded from means")
    laws = [
        exponent_line(f"{OUTPUTS[output].title}: ΔK", change_law(points, output))
        for output in spec.outputs
    ]
    return "\n".join([*text_table(COLUMNS, points), "", *notes, *laws])


EXPERIMENT = Experiment(
    ExploreSpec, ExplorePoint, ExploreResult, counts, explore_summary, record_bytes=700
)
