"""Linear by width or lazy by scale."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.trained_sweep import (
    Outputs,
    TrainedPoint,
    TrainedSweep,
    along,
    outputs_field,
)
from linearity_lab.networks.spec import MAX_DEPTH, ArchitectureSpec
from linearity_lab.runs import (
    Experiment,
    Outcome,
    ResultValue,
    SpecOf,
    Value,
    columns,
    costs,
    point_key,
)
from linearity_lab.runs.columns import Column
from linearity_lab.settings.part import Ascending, Once, Width
from linearity_lab.settings.training import SquareTrainingSpec
from ntk_core.errors import InvalidInput
from ntk_core.fits import PowerLaw, exponent_line, fit_runs
from ntk_core.networks.choices import OUTPUTS
from ntk_core.stored_numbers import NonNegative


class LazySpec(TrainedSweep, SpecOf["LazyResult"]):
    """Lazy and rich training by width, scale and richness.

    κ = |F(w₀) − y| ‖H(w₀)‖ / ‖∇F(w₀)‖² of F = φ(α m^(−ρ) f), and how far training moves weights,
    features and kernel.

    Points (m, α, ρ): every width at α = 1, ρ = 0; the smallest width at every scale α; every width
    at every richness ρ (r = ½ − ρ of Yang & Hu).

    Source: Chizat, Oyallon & Bach 2019, §1; Liu, Zhu & Belkin 2020, §1.1; Yang & Hu 2021, §3.

    >>> LazySpec(widths=(16,), scales=(1.0, 10.0), richness=(0.5,)).point_keys()
    ('width=16,scale=1.0', 'width=16,scale=10.0', 'width=16,scale=1.0,richness=0.5')
    """

    key_parts: ClassVar = {"width": int, "scale": float, "richness": float}
    point_words: ClassVar[tuple[str, str]] = ("pair of width and scale", "pairs of width and scale")

    experiment: Literal["lazy"] = "lazy"
    dataset: DatasetSpec = DatasetSpec(num_samples=12, num_classes=2, noise=0.5)
    # Output weights ±1, not trained: with normal ones the largest of m adds a slowly growing
    # factor. Our choice.
    architecture: ArchitectureSpec = ArchitectureSpec(
        activation="tanh", output_weights="signs", trained="hidden"
    )
    widths: tuple[Width, ...] = TrainedSweep.field(
        "widths", (100, 300, 1000, 10_000), "Widths m of the hidden layers, each at scale α = 1."
    )
    scales: Annotated[tuple[Annotated[float, Field(ge=1e-3, le=1e4)], ...], Ascending] = Field(
        default=(1.0, 3.0, 9.0, 27.0), min_length=1, max_length=12, title="Scales α"
    )
    """Factors α in front of f, each at the smallest width."""
    richness: Annotated[tuple[Annotated[float, Field(gt=0, le=0.5)], ...], Ascending] = Field(
        default=(), max_length=8, title="Richness ρ"
    )
    """Factors m^(−ρ) in front of f at every width, up to ρ = 0.5.
    The widths at scale 1 are ρ = 0.
    """
    num_seeds: int = TrainedSweep.field(
        "num_seeds", 3, "Independent initializations w₀ for each pair."
    )
    starts: Annotated[tuple[Literal["random", "subtracted", "symmetric"], ...], Once] = Field(
        default=("random", "subtracted"), min_length=1, max_length=3, title="Outputs at w₀"
    )
    """random f(w₀); 0 by subtraction, f − f(w₀); or 0 by two mirrored copies."""
    outputs: Outputs = outputs_field(
        ("linear", "swish"), ", each trained with the square loss of φ(α f)"
    )
    training: SquareTrainingSpec = SquareTrainingSpec(
        max_steps=5000, loss_threshold=1e-3, num_records=12
    )

    @model_validator(mode="after")
    def _starts_are_compared(self) -> Self:
        given = self.architecture.initial_output
        if given != "random":
            raise InvalidInput(
                "architecture.initial_output",
                given,
                "random; the setting starts lists the compared outputs at w₀",
            )
        return self

    def num_records(self, key: str) -> Mapping[str, int]:
        """One run per output, start and seed."""
        return {"runs": len(self.outputs) * len(self.starts) * self.num_seeds}

    def point_keys(self) -> tuple[str, ...]:
        """``width=100,scale=10.0``.

        The smallest width at every scale, then all widths at scale 1, every richness.
        """
        narrow = [
            point_key(width=self.widths[0], scale=scale) for scale in sorted({1.0, *self.scales})
        ]
        dial = itertools.product(self.widths, (None, *self.richness))
        return tuple(
            dict.fromkeys(
                [*narrow, *(point_key(width=m, scale=1.0, richness=rho) for m, rho in dial)]
            )
        )


def counts(spec: LazySpec, key: str, most: bool = False) -> tuple[costs.Counts, ...]:
    """Count one point with all outputs, starts and seeds; ``most`` assumes all allowed steps."""
    width, scale, _ = spec.value_of(key)
    num_lines = len(spec.outputs) * len(spec.starts)
    # A scaled linear output is trained on scaled labels too.
    num_repeated = len(spec.starts) if scale != 1 and "linear" in spec.outputs else 0
    num_trained = num_lines + num_repeated
    copies = 1 if spec.starts == ("random",) else 2  # an output of 0 at w₀ needs a copy
    network = spec.counted(width)
    directions = sum(layer.positions * (layer.fan_in + layer.features) for layer in network.layers)
    programs = {"training": num_trained, "hessian": num_lines}
    # The least distance takes five kernels between w₀ and w_T.
    found = {
        "products": 2 * network.num_outputs * costs.MATVECS,
        "kernels": 5,
        "programs": programs,
    }
    held = {
        "copies": 5 * copies,
        "views": copies,
        "numbers": costs.HESSIAN_BASIS * copies * directions,
    }
    num_copies = num_trained * copies
    return (spec.trainings(width, num_copies, spec.typical_steps(most), **found, **held),)


Of = Callable[["LazyRun"], float]
Swept = Literal["scale", "width"]
# Measures of the text summary.
_mean = partial(Column, format=columns.with_error, counts=columns.converged)
START_TITLES = {
    "random": "random f(w₀)",
    "subtracted": "f(w₀) = 0",
    "symmetric": "f(w₀) = 0, mirrored",
}


class LazyRun(Value):
    """One model F = φ(α m^(−ρ) f) at w₀, and its training by gradient descent on (1/2n) Σ ‖F − y‖².

    Attributes:
        start: how the output at w₀ is chosen.
        kappa: mean over the chosen inputs, each with the output of its class, of
            |F − y| ‖H‖ / ‖∇F‖² at w₀.
        residual, hessian, squared_gradient: the means of |F − y|, ‖H‖ and ‖∇F‖².
        hessian_converged: whether every spectral norm converged.
        first_loss, last_loss: at w₀ and at the end.
        sup_change: sup over the recorded times of ΔK(t) of the kernel of F.
        last_change: ΔK at the end: a rich kernel may recover a little.
        pre_output_change: the same as ``sup_change`` of the kernel of α m^(−ρ) f, at
            the same parameters.
        distance, largest_distance: ‖w − w₀‖₂ and ‖w − w₀‖_∞ at the end.
        least_distance: lower bounds of ``distance`` from the outputs at one input
            (Liu, Zhu & Belkin 2020, Eq. 2) and at all inputs (``kernels.least_distance``).
        hidden_change: mean |h − h₀| over inputs and neurons at the end, h the pre-activations,
            of each hidden layer.
        label_difference: ‖w − w′‖₂ / ‖w − w₀‖₂ with w′ of f trained on the labels y/α, at a rate
            α² times as large; None for α = 1, a nonlinear output and diverged runs.
    """

    output: str
    start: str
    seed: NonNegativeInt
    learning_rate: NonNegative
    outcome: Outcome
    last_finite_step: NonNegativeInt
    num_steps: NonNegativeInt
    kappa: NonNegative
    residual: NonNegative
    hessian: NonNegative
    squared_gradient: NonNegative
    hessian_converged: bool
    first_loss: NonNegative
    last_loss: NonNegative
    sup_change: NonNegative
    pre_output_change: NonNegative
    distance: NonNegative
    largest_distance: NonNegative
    least_distance: tuple[NonNegative, ...] = ()
    hidden_change: tuple[NonNegative, ...] = ()
    last_change: NonNegative | None = None
    label_difference: NonNegative | None = None

    @property
    def curvature(self) -> float:
        """‖H‖ / ‖∇F‖² at w₀."""
        return self.hessian / self.squared_gradient

    @property
    def mean_hidden_change(self) -> float:
        """Mean |h − h₀| over the hidden layers; NaN if not measured."""
        return sum(self.hidden_change) / len(self.hidden_change) if self.hidden_change else math.nan


class LazyPoint(TrainedPoint[LazyRun]):
    """All runs of one width m, scale α and richness ρ."""

    line = ("output", "start")
    key_parts = LazySpec.key_parts

    kind: Literal["lazy"] = "lazy"
    scale: NonNegative
    richness: NonNegative = 0.0

    @property
    def root_width(self) -> float:
        """√m: ‖w − w₀‖ over it is the distance in the parameters u = w/√m."""
        return math.sqrt(self.width)


def _item(name: str, title: str, field: str, index: int) -> Column:
    """Column of one entry of a run's tuple, if it has it."""
    return Column(
        name, title, lambda _, run: next(iter(getattr(run, field)[index:]), None), optional=True
    )


COLUMNS = (
    columns.WIDTH,
    Column("scale", "scale α", lambda point, _: point.scale, "{:g}".format, "swept"),
    Column("richness", "richness ρ", lambda point, _: point.richness, "ρ = {:g}".format, "line"),
    columns.NUM_PARAMS,
    columns.OUTPUT,
    Column("start", "start", format=START_TITLES.__getitem__, role="line"),
    columns.SEED,
    columns.LEARNING_RATE,
    columns.OUTCOME,
    Column("last_finite_step", ""),
    Column("num_steps", "steps"),
    _mean("kappa", "κ"),
    Column("residual", "|F − y|"),
    Column("hessian", "‖H‖"),
    Column("squared_gradient", "‖∇F‖²"),
    Column("hessian_converged", ""),
    Column("first_loss", ""),
    Column("last_loss", "final loss"),
    _mean("sup_change", "kernel change ΔK"),
    Column("pre_output_change", "ΔK of α f"),
    _mean("distance", "‖w − w₀‖₂"),
    _mean("largest_distance", "‖w − w₀‖_∞"),
    Column("last_change", ""),
    _mean("hidden_change", "|Δh|", of=lambda _, run: run.mean_hidden_change),
    _item("least_distance_of_one", "least ‖w − w₀‖₂, one input", "least_distance", 0),
    _item("least_distance", "least ‖w − w₀‖₂, all inputs", "least_distance", 1),
    Column("label_difference", "‖w − w′‖₂ / ‖w − w₀‖₂, labels y/α", optional=True),
    *(
        _item(f"hidden_change_{n + 1}", f"|Δh| of layer {n + 1}", "hidden_change", n)
        for n in range(MAX_DEPTH)
    ),
)


class LazyResult(ResultValue):
    """Result of a ``lazy`` run.

    κ = |F − y| ‖H‖ / ‖∇F‖² at w₀, ‖w − w₀‖ and ΔK of every width, α and ρ.

    Source: Chizat, Oyallon & Bach 2019, §1; Yang & Hu 2021, §3; docs/math/richness.md.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> result = LazyResult.model_validate_json((GALLERY / "richness-dial.json").read_bytes())
    >>> sorted({point.richness for point in result.points})[:3]
    [0.0, 0.125, 0.25]
    """

    columns = COLUMNS
    spec: LazySpec
    points: tuple[LazyPoint, ...]


def lazy_summary(spec: LazySpec, points: Sequence[LazyPoint]) -> str:
    """Return the table of means over seeds and the exponents of every measure."""
    exponents = []
    measures = [column for column in COLUMNS if column.role == "measure" and column.format]
    for output, start, column in itertools.product(spec.outputs, spec.starts, measures):
        line = output, start, partial(column.value, None)
        title = f"{OUTPUTS[output].title}, {start} start, {column.title}"
        exponents.append(exponent_line(title, law(points, "scale", *line), "α"))
        for rho in (0.0, *spec.richness):
            exponents.append(
                exponent_line(
                    title + f" at ρ = {rho:g}" * (rho > 0), law(points, "width", *line, rho)
                )
            )
    notes = [*filter(None, [spec.almost_everywhere]), *columns.outcome_notes(points)]
    return "\n".join([*columns.text_table(COLUMNS, points), "", *notes, *exponents])


def swept_points(points: Sequence[LazyPoint], by: Swept, rho: float = 0.0) -> list[LazyPoint]:
    """Select every scale at the smallest width, or every width at scale 1, at one richness."""
    own = [point for point in points if point.richness == rho]
    narrow = min((point.width for point in own), default=0)
    kept = [
        point for point in own if (point.width == narrow if by == "scale" else point.scale == 1)
    ]
    return sorted(kept, key=attrgetter(by))


def law(
    points: Sequence[LazyPoint], by: Swept, output: str, start: str, of: Of, rho: float = 0.0
) -> PowerLaw | None:
    """Fit a power law in α or m along :func:`swept_points` among converged runs."""
    return fit_runs(
        along(swept_points(points, by, rho), output, start, by=by), of, columns.converged
    )


EXPERIMENT = Experiment(LazySpec, LazyPoint, LazyResult, counts, lazy_summary, record_bytes=130)
