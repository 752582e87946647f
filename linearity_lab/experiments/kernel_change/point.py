"""Kernel change in training against width."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeInt

from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec, counts, kept_bytes
from linearity_lab.experiments.trained_sweep import TrainedPoint, TrainedRun, along
from linearity_lab.runs import Experiment, ResultValue, Value, columns, finite_sup
from linearity_lab.runs.columns import Column
from ntk_core.fits import exponent_line, fit_power_law, fit_runs
from ntk_core.networks.choices import OUTPUTS, SIZES
from ntk_core.numbers import percent
from ntk_core.stored_numbers import NonNegative


class KernelChangeRun(TrainedRun):
    """Kernel of one output along one training run.

    Attributes:
        output: output nonlinearity φ.
        infinite_distance: ‖K(w₀) − K_∞‖_F / ‖K_∞‖_F with the infinite-width kernel K_∞; linear
            output, if requested.
        error: standard errors of ``change`` over random vectors, if it is estimated; else empty.
        followed: φ(f(x_i)) of a few training points, (records, points), at the index of their
            class. Empty in results of older versions.
        linear_model_change: ΔK(t) of softmax(f_lin), with f_lin trained by the same steps; softmax
            output, kernels of moderate size. Empty in results of older versions.
    """

    output: str
    infinite_distance: NonNegative | None = None
    followed: tuple[tuple[float, ...], ...] = ()
    error: tuple[NonNegative, ...] = ()
    linear_model_change: tuple[NonNegative, ...] = ()

    @property
    def linear_model_sup(self) -> float:
        """ΔK of softmax(f_lin); NaN if it was not trained."""
        return finite_sup(self.linear_model_change) if self.linear_model_change else math.nan

    @property
    def sup_error(self) -> float:
        """Standard error of ΔK at its largest; 0 if exact."""
        at = [
            error
            for change, error in zip(self.change, self.error, strict=False)
            if change == self.sup_change
        ]
        return max(at, default=0.0)


class KernelAtStart(Value):
    """Kernel of one output before training.

    Attributes:
        velocity: ‖K̇₀‖_F / ‖K₀‖_F under gradient flow of the training loss, in 1/time; if
            requested.
        ball_change: a lower bound of sup ‖K(w) − K(w₀)‖_F / ‖K(w₀)‖_F over a ball; if requested.
    """

    output: str
    seed: NonNegativeInt
    velocity: NonNegative | None = None
    ball_change: NonNegative | None = None


# Kernels up to this size, of about 90 training points, stay inside the JSON of their
# point; our choice.
INLINE_BYTES = 2**17
_ARRAYS = ("initial", "final", "infinite", "initial_eigenvalues", "final_eigenvalues")


class KernelSnapshot(Value):
    """A kernel before and after training, small enough to draw.

    Large kernels are stored apart from their point: then all fields are empty until
    ``joined`` adds them.

    Attributes:
        initial: (n, n) mean over the outputs, (1/C) Σ_a K[i, j, a, a] at w₀; samples ordered by
            label.
        final: the same at the end of training.
        initial_eigenvalues: all n·C eigenvalues of K(w₀), descending.
        final_eigenvalues: the same at the end of training.
        infinite: (n, n) infinite-width kernel, if requested.
    """

    output: str
    seed: NonNegativeInt
    initial: tuple[tuple[float, ...], ...]
    final: tuple[tuple[float, ...], ...]
    initial_eigenvalues: tuple[float, ...]
    final_eigenvalues: tuple[float, ...]
    infinite: tuple[tuple[float, ...], ...] | None = None

    @property
    def is_apart(self) -> bool:
        """Whether its kernels are stored apart and not loaded here."""
        return not self.initial


class KernelChanges(TrainedPoint[KernelChangeRun]):
    """All runs of one network at one width.

    Attributes:
        snapshots: kernels of the first seed, one per output, if requested.
        at_start: one entry per output and seed, if velocities or a ball are requested.
    """

    snapshots: tuple[KernelSnapshot, ...] = ()
    at_start: tuple[KernelAtStart, ...] = ()

    @property
    def is_apart(self) -> bool:
        """Whether the point lacks kernels that are stored beside it."""
        return any(snapshot.is_apart for snapshot in self.snapshots)

    def apart(self) -> tuple[Self, dict[str, NDArray[np.float64]]]:
        """Return the point without large kernels, and these kernels by name."""
        arrays: dict[str, NDArray[np.float64]] = {}
        for index, snapshot in enumerate(self.snapshots):
            for name in _ARRAYS:
                entries = getattr(snapshot, name)
                if entries:
                    arrays[f"{index}.{name}"] = np.asarray(entries, np.float64)
        if sum(array.nbytes for array in arrays.values()) <= INLINE_BYTES:
            return self, {}
        # An empty tuple means "stored apart", None "not requested".
        light = []
        for snapshot in self.snapshots:
            empty = {name: () for name in _ARRAYS if getattr(snapshot, name) is not None}
            light.append(snapshot.model_copy(update=empty))
        return self.model_copy(update={"snapshots": tuple(light)}), arrays

    def joined(self, arrays: Mapping[str, NDArray[np.float64]]) -> Self:
        """Return the point with these kernels."""
        whole = []
        for index, snapshot in enumerate(self.snapshots):
            fields = snapshot.model_dump()
            for name in _ARRAYS if snapshot.is_apart else ():
                if fields[name] is not None:
                    fields[name] = arrays[f"{index}.{name}"].tolist()
            whole.append(KernelSnapshot.model_validate(fields))
        return self.model_copy(update={"snapshots": tuple(whole)})

    @property
    def records(self) -> Sequence[KernelChangeRun | KernelAtStart]:
        """The runs, or the kernels at w₀ if nothing is trained."""
        return self.runs or self.at_start


def _trained(column: Column) -> Column:
    """Column that is omitted if nothing is trained."""

    def of(point: KernelChanges, run: KernelChangeRun | KernelAtStart) -> object:
        return column.value(point, run) if isinstance(run, KernelChangeRun) else None

    return replace(column, of=of, optional=True)


def _start(name: str, title: str, field: str) -> Column:
    """Column of the kernel at w₀ of the same output and seed."""

    def of(point: KernelChanges, run: KernelChangeRun | KernelAtStart) -> float | None:
        found = (
            each for each in point.at_start if (each.output, each.seed) == (run.output, run.seed)
        )
        return getattr(next(found, None), field, None)

    return Column(name, title, of, columns.precise, optional=True)


COLUMNS = (
    columns.WIDTH,
    columns.NUM_PARAMS,
    columns.OUTPUT,
    columns.SEED,
    *map(
        _trained,
        (
            columns.CHANGE,
            Column(
                "kernel_change_error",
                "standard error of ΔK",
                lambda _, run: run.sup_error if run.error else None,
            ),
            Column("final_kernel_change", "ΔK at the end", lambda _, run: run.change[-1]),
            columns.FINAL_LOSS,
            columns.STEPS,
            columns.LEARNING_RATE,
            columns.OUTCOME,
            Column(
                "distance_to_infinite_width",
                "distance from K_∞",
                lambda _, run: run.infinite_distance,
            ),
        ),
    ),
    _start("kernel_velocity", "kernel velocity", "velocity"),
    _start("ball_kernel_change", "largest ΔK in the ball", "ball_change"),
)


class KernelChangePoint(KernelChanges):
    """A point of ``kernel_change``."""

    kind: Literal["kernel_change"] = "kernel_change"


class KernelChangeResult(ResultValue):
    """Result of a ``kernel_change`` run.

    ``points`` are in the order of the widths; some may be missing.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F of every width, output and seed.

    Source: Liu, Zhu & Belkin 2020, §6 and Fig. 1.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> stored = (GALLERY / "liu-fig1-left.json").read_bytes()
    >>> result = KernelChangeResult.model_validate_json(stored)
    >>> [point.width for point in result.points]
    [30, 100, 300, 1000, 3000, 10000]
    """

    columns = COLUMNS
    spec: KernelChangeSpec
    points: tuple[KernelChangePoint, ...]


START_TITLES = {"velocity": "kernel velocity", "ball_change": "largest ΔK in the ball"}


def kernel_change_summary(spec: KernelChangeSpec, points: Sequence[KernelChanges]) -> str:
    """Return the table of means over converged runs and the fitted exponents."""
    swept = replace(columns.WIDTH, title=SIZES[spec.swept].title)
    lines = columns.text_table([swept, *COLUMNS[1:]], points)
    notes = [
        *columns.outcome_notes(points, then="; excluded from means"),
        *_estimate_notes(spec, points),
    ]
    outputs = [output for output in spec.outputs if any(point.of(output) for point in points)]
    fits = {
        output: fit_runs(along(points, output), lambda run: run.sup_change, columns.converged)
        for output in outputs
    }
    exponents = [exponent_line(f"{OUTPUTS[output].title}: ΔK", law) for output, law in fits.items()]
    return "\n".join(
        [*lines, *([""] if notes else []), *notes, "", *exponents, *_start_laws(spec, points)]
    )


def _estimate_notes(spec: KernelChangeSpec, points: Sequence[KernelChanges]) -> list[str]:
    """Describe the standard error of ΔK due to random vectors."""
    runs = [run for point in points for run in point.runs if run.error and run.sup_change > 0]
    if not runs:
        return []
    worst = max(run.sup_error / run.sup_change for run in runs)
    return [
        f"ΔK is estimated by {spec.probes} random vectors, with a standard error of at most "
        f"{percent(worst)} of it"
    ]


def _start_laws(spec: KernelChangeSpec, points: Sequence[KernelChanges]) -> list[str]:
    """Return the exponents of kernel velocity and largest change in the ball against width."""
    lines: list[str] = []
    for measure, title in START_TITLES.items():
        found = [
            (p.width, each.output, getattr(each, measure)) for p in points for each in p.at_start
        ]
        for output in spec.outputs if any(value for _, _, value in found) else ():
            numbers = [
                (width, value)
                for width, name, value in found
                if name == output and value is not None
            ]
            law = fit_power_law([width for width, _ in numbers], [value for _, value in numbers])
            lines.append(exponent_line(f"{OUTPUTS[output].title}: {title}", law))
    return lines


EXPERIMENT = Experiment(
    KernelChangeSpec,
    KernelChangePoint,
    KernelChangeResult,
    counts,
    kernel_change_summary,
    ("liu", "zhu"),
    record_bytes=130,
    kept_bytes=kept_bytes,
)
