"""Networks beside their linear models."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from linearity_lab.experiments import trained_sweep
from linearity_lab.experiments.trained_sweep import (
    Outputs,
    TrainedPoint,
    TrainedSweep,
    outputs_field,
)
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import (
    Counted,
    Counts,
    Experiment,
    Outcome,
    ResultValue,
    SpecOf,
    Value,
    columns,
    costs,
    finite_or_none,
    finite_sup,
)
from linearity_lab.runs.columns import Column, text_table
from linearity_lab.settings.part import Once, Width
from linearity_lab.settings.training import (
    DescentSettings,
    DescentSpec,
    LossName,
    MethodName,
    check_solved_rows,
    check_targets,
)
from ntk_core.dynamics.choices import METHODS
from ntk_core.errors import InvalidInput
from ntk_core.fits import PowerLaw, exponent_line, fit_runs
from ntk_core.networks.choices import OUTPUTS
from ntk_core.numbers import percent
from ntk_core.stored_numbers import NonNegative


class DynamicsSpec(TrainedSweep, SpecOf["DynamicsResult"]):
    """Training of networks and their linear models by the same steps.

    Measures Σ_i ‖F − F_lin‖² / Σ_i ‖F_lin‖².

    F_lin(w) = F(w₀) + ⟨∇F(w₀), w − w₀⟩. One run per width, output, method and seed. F is the
    network with its output φ. Under cross-entropy with a softmax output it is f: that loss
    applies the softmax itself.

    Source: Liu, Zhu & Belkin 2020, §2; Lee et al. 2019, §2.2; docs/math/linearized-training.md.

    >>> spec = DynamicsSpec(widths=(30, 300), methods=("gradient-descent", "momentum"))
    >>> spec.point_keys()
    ('width=30', 'width=300')
    """

    experiment: Literal["dynamics"] = "dynamics"
    architecture: ArchitectureSpec = ArchitectureSpec()
    widths: tuple[Width, ...] = TrainedSweep.field("widths", (30, 300, 3000))
    num_seeds: int = TrainedSweep.field("num_seeds", 3)
    outputs: Outputs = outputs_field(
        ("linear", "swish"), ", each with a network and a linear model of its own"
    )
    loss: LossName = Field(default="square", title="Loss")
    """Training loss of every output."""
    methods: Annotated[tuple[MethodName, ...], Once] = Field(
        default=("gradient-descent",), min_length=1, max_length=len(METHODS), title="Methods"
    )
    """Training methods, each from the same initializations."""
    batch_size: int = Field(default=10, ge=1, le=10_000, title="Batch size")
    """Samples per SGD step; other methods use all."""
    momentum: float = Field(default=0.9, ge=0, lt=1, title="Momentum μ")
    """Fraction μ of the last step that momentum keeps."""
    num_test: int = Field(default=20, ge=1, le=2000, title="Test points")
    """Held-out inputs, fewer if the data set is smaller; a whole curve for the sine."""
    num_followed: int = Field(default=3, ge=1, le=20, title="Followed points")
    """Number of training and of test points whose outputs are kept; all for the sine."""
    infinite_width: bool = Field(default=True, title="Infinite-width prediction")
    """Add the prediction of infinite width, where it is known: linear outputs, not with Adam."""
    training: DescentSettings = DescentSpec(max_steps=3000, loss_threshold=0.01, num_records=20)

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        shapes = self.shapes()
        if shapes is not None:
            has_classes = bool(shapes.class_names)
            check_targets(self.loss, has_classes=has_classes, num_outputs=shapes.num_outputs)
            for method in self.methods:
                check_solved_rows(
                    method,
                    num_points=shapes.num_samples,
                    num_outputs=shapes.num_outputs,
                    field="methods",
                )
        if self.infinite_width:
            self.architecture.check_infinite_width()
        count = self.dataset.num_points
        if (
            any(METHODS[name].batches == "always" for name in self.methods)
            and self.batch_size > count
        ):
            raise InvalidInput(
                "batch_size", self.batch_size, f"at most {count:,}, the number of training points"
            )
        return self

    @property
    def is_curve(self) -> bool:
        """Whether the network is a curve: one input, one output."""
        return self.dataset.name in ("sine", "points")

    def num_records(self, key: str) -> Mapping[str, int]:
        """One run per output, method and seed."""
        return {"runs": len(self.outputs) * len(self.methods) * self.num_seeds}


ADAMS_LINEAR_STEP = 1.5  # cost of a step of a linear model in weight space, in steps of the network


def counts(spec: DynamicsSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """Count one width, all outputs, methods and seeds; always all steps."""
    network = Counted.of(spec, spec.architecture, spec.value_of(key))
    num_linear = sum(METHODS[method].is_linear for method in spec.methods)
    others = len(spec.methods) - num_linear
    records = spec.training.num_records * len(spec.methods)
    # A Gauss–Newton step computes one kernel and solves one system; the linear model's
    # kernel is constant.
    solved_steps = costs.typical_steps(spec.training.max_steps, most, typical=50)
    solving = sum(METHODS[method].solves for method in spec.methods) * solved_steps
    with_test = 1 + network.num_test / network.num_samples
    return (
        Counts(
            network,
            {"linear model": len(spec.outputs), "training": len(spec.outputs) * len(spec.methods)},
            times=len(spec.outputs) * spec.num_seeds,
            steps=spec.training.max_steps * (len(spec.methods) + ADAMS_LINEAR_STEP * others),
            squares=spec.training.max_steps * num_linear * (1 + spec.infinite_width),
            kernels=records + solving,
            cubes=10 * records + 2 * solving,
            copies=10 if others else 5,  # Adam stores two more, and so does its linear model
            views=1,
            matrices=4 * with_test + 8,
        ),
    )


# Relative mean-squared difference above which two models have separated; our choice.
DEPARTURE_LEVEL = 0.01

Rows = tuple[tuple[float, ...], ...]  # one row per followed point, one entry per output


class ModelPath(Value):
    """One model at the recorded steps; entries after a divergence are not finite.

    Attributes:
        outcome: how it ended, see ``ntk_core.dynamics._history.ended``.
        last_finite_step: the last step whose loss was finite.
        crossing_step: the first recorded step whose loss is at the threshold; None without one.
        loss, test_loss: mean losses.
        accuracy, test_accuracy: shares of correctly classified points; empty without classes.
        distance: ‖w_t − w₀‖₂.
        outputs, test_outputs: F at the followed points, one block of rows per record; first seed
            only.
    """

    outcome: Outcome
    last_finite_step: NonNegativeInt
    crossing_step: NonNegativeInt | None = None
    loss: tuple[NonNegative, ...]
    test_loss: tuple[NonNegative, ...]
    accuracy: tuple[NonNegative, ...] = ()
    test_accuracy: tuple[NonNegative, ...] = ()
    distance: tuple[NonNegative, ...]
    outputs: tuple[Rows, ...] = ()
    test_outputs: tuple[Rows, ...] = ()


class DynamicsRun(trained_sweep.RecordedTraining):
    """One training of a network and of its linear models.

    Attributes:
        output: output nonlinearity φ.
        method: how it was trained, one of ``ntk_core.dynamics.choices.METHODS``.
        seed: seed of the initialization w₀.
        learning_rate: η, as used.
        stable_rate: the rate above which the linear model diverges; None for Adam.
        steps: recorded step indices, starting at 0; time is learning_rate × step.
        network, linearized: the network and its linear model, at the same steps.
        infinite: the infinite-width prediction from the same outputs at w₀, if requested and known.
        largest_distance: ‖w_t − w₀‖_∞ of the network.
        change: ΔK(t) = ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F of the kernel of φ(f) on the training points.
        smallest, largest: λ_min and λ_max of that kernel.
        layer_change: the layers' parts of ΔK(t), ‖K_l(w_t) − K_l(w₀)‖_F / ‖K(w₀)‖_F.
        difference, test_difference: Σ_i ‖F − F_lin‖² / Σ_i ‖F_lin‖² over all training and test
            points.
    """

    output: str
    method: str
    seed: NonNegativeInt
    learning_rate: NonNegative
    stable_rate: NonNegative | None
    network: ModelPath
    linearized: ModelPath
    infinite: ModelPath | None
    largest_distance: tuple[NonNegative, ...]
    smallest: tuple[float, ...]
    largest: tuple[float, ...]
    layer_change: dict[str, tuple[NonNegative, ...]]
    difference: tuple[NonNegative, ...]
    test_difference: tuple[NonNegative, ...]

    @property
    def outcome(self) -> Outcome:
        """Outcome of the network."""
        return self.network.outcome

    @property
    def sup_change(self) -> float:
        """Return the largest ΔK(t) until the network reaches the threshold.

        It is over recorded times, as in every experiment.
        """
        return finite_sup(self.change[: self._num_until_crossing])

    @property
    def sup_difference(self) -> float:
        """Largest recorded relative mean-squared difference on the training points."""
        return finite_sup(self.difference)

    @property
    def sup_distance(self) -> float:
        """Sup of ‖w_t − w₀‖₂ until the network reaches the threshold.

        Radius of the smallest ball with the path.
        """
        return finite_sup(self.network.distance[: self._num_until_crossing])

    @property
    def _num_until_crossing(self) -> int:
        """Number of records until the network reaches the threshold.

        The linear model may take longer.
        """
        crossed = self.network.crossing_step
        return len(self.steps) if crossed is None else self.steps.index(crossed) + 1

    @property
    def departure_step(self) -> int | None:
        """First recorded step from which the relative difference stays above 1%.

        None without one.
        """
        index = departure(self.difference, DEPARTURE_LEVEL)
        return None if index is None else self.steps[index]


def departure(values: Sequence[float], level: float) -> int | None:
    """Return the index of the first record from which ``values`` stay above ``level``, or None.

    A temporary rise is no departure; values that are not finite count as above.
    """
    index = len(values)
    while index and not values[index - 1] <= level:
        index -= 1
    return index if index < len(values) else None


def _alive(run: DynamicsRun) -> bool:
    return run.outcome != "dead"


class DynamicsPoint(TrainedPoint[DynamicsRun]):
    """All runs of one width.

    Attributes:
        x, y: the followed training inputs (flat) and targets.
        x_test, y_test: the same for the followed test points.
    """

    line = ("output", "method")

    kind: Literal["dynamics"] = "dynamics"
    x: Rows
    y: Rows
    x_test: Rows
    y_test: Rows


COLUMNS = (
    columns.WIDTH,
    columns.NUM_PARAMS,
    columns.OUTPUT,
    Column("method", "method", format=lambda name: METHODS[name].title, role="line"),
    columns.SEED,
    Column(
        "sup_relative_difference",
        "sup difference",
        lambda _, run: run.sup_difference,
        columns.with_error,
        counts=_alive,
    ),
    Column(
        "sup_test_difference", "sup test difference", lambda _, run: finite_sup(run.test_difference)
    ),
    Column("departure_step", "departed at step", format=partial(columns.between, spec=",.0f")),
    replace(columns.CHANGE, format=columns.with_error, counts=lambda run: True),
    Column("sup_distance", "sup ‖w − w₀‖", format=columns.with_error, counts=_alive),
    Column("final_loss", "final loss", lambda _, run: run.network.loss[-1]),
    Column("final_loss_linear", "final loss, linear model", lambda _, run: run.linearized.loss[-1]),
    columns.STEPS,
    columns.LEARNING_RATE,
    Column(
        "stable_rate",
        "stable rate",
        lambda _, run: run.stable_rate and finite_or_none(run.stable_rate),
    ),
    columns.OUTCOME,
    replace(
        columns.OUTCOME,
        name="outcome_linear",
        title="linear model",
        of=lambda _, run: run.linearized.outcome,
    ),
    Column("last_finite_step", "last finite step", lambda _, run: run.network.last_finite_step),
)


class DynamicsResult(ResultValue):
    """Result of a ``dynamics`` run.

    Σ_i ‖F − F_lin‖² / Σ_i ‖F_lin‖², losses, distances and ΔK along training.

    Source: Liu, Zhu & Belkin 2020, §2; Lee et al. 2019, §2.2; docs/math/linearized-training.md.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> stored = (GALLERY / "liu-true-and-linearized.json").read_bytes()
    >>> result = DynamicsResult.model_validate_json(stored)
    >>> sorted({run.output for run in result.points[0].runs})
    ['linear', 'swish']
    """

    columns = COLUMNS
    spec: DynamicsSpec
    points: tuple[DynamicsPoint, ...]


def dynamics_summary(spec: DynamicsSpec, points: Sequence[DynamicsPoint]) -> str:
    """Return a table of means over seeds, and exponents of the difference.

    There is one exponent for each output and method.
    """
    laws = []
    for output, method in itertools.product(spec.outputs, spec.methods):
        title = f"{OUTPUTS[output].title}, {METHODS[method].title}: ‖F − F_lin‖ / ‖F_lin‖"
        laws.append(exponent_line(title, difference_law(points, output, method)))
    level = (
        "Departed: the relative mean-squared difference stays above "
        f"{percent(DEPARTURE_LEVEL)} from this step on."
    )
    return "\n".join(
        [*text_table(COLUMNS, points), "", level, *columns.outcome_notes(points), "", *laws]
    )


def difference_law(points: Sequence[DynamicsPoint], output: str, method: str) -> PowerLaw | None:
    """Fit sup over time of ‖F − F_lin‖ / ‖F_lin‖ against width, without diverged and dead runs."""
    return fit_runs(
        trained_sweep.along(points, output, method),
        lambda run: math.sqrt(run.sup_difference) if run.sup_difference >= 0 else math.nan,
        lambda run: run.outcome not in ("diverged", "dead"),
    )


EXPERIMENT = Experiment(
    DynamicsSpec, DynamicsPoint, DynamicsResult, counts, dynamics_summary, record_bytes=6000
)
