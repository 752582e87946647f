"""Early time: what networks learn first."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import ClassVar, Literal

from pydantic import NonNegativeInt

from linearity_lab.experiments.early_time.spec import EarlyTimeSpec, counts
from linearity_lab.runs import (
    Experiment,
    PointValue,
    ResultValue,
    Value,
    columns,
    outcome_notes,
    with_error,
)
from linearity_lab.runs.columns import Column, csv_rows, runs_of, text_table
from ntk_core.fits import exponent_line, fit_power_law, fit_runs
from ntk_core.networks.choices import ACTIVATIONS
from ntk_core.stored_numbers import NonNegative

EarlyOutcome = Literal["completed", "diverged"]
EARLY_OUTCOME_WORDS: dict[str, str] = {
    "completed": "took all steps",
    "diverged": "diverged: the loss rose far above its initial value, or became infinite or not a "
    "number",
}
# Our choices: when the linear model counts as trained, and when the network counts as better than
# it.
LINEAR_PHASE_SHARE = 0.8
DEPARTURE_SHARE = 0.05

Series = tuple[float, ...]


class Constants(Value):
    """Constants of the linear model ψ of an activation.

    ψ = [inputs · x/√d; constant; norm₀ + norm₁ s + norm₂ s²].

    Attributes:
        zeta, nu, theta: ζ, ν and (ϑ₀, ϑ₁, ϑ₂) of Hu, Xiao, Adlam & Pennington 2020.
        inputs, constant, norm: feature weights at rate 1, including the rate factors of layers.
    """

    zeta: float
    nu: float
    theta: tuple[float, float, float]
    inputs: float
    constant: float
    norm: tuple[float, float, float]


class ModelCurve(Value):
    """One model along training, at the recorded steps.

    Attributes:
        train_loss, test_loss: (1/2n) Σ (f − y)², the first on at most 5,000 training inputs.
        span_loss, complement_loss: test loss of the residual inside and outside the span of the
            inputs.
        outputs: outputs on a few test inputs at each recorded step; first seed only.
    """

    train_loss: tuple[NonNegative, ...]
    test_loss: tuple[NonNegative, ...]
    span_loss: tuple[NonNegative, ...]
    complement_loss: tuple[NonNegative, ...]
    outputs: tuple[Series, ...] = ()


class PathBound(Value):
    """The quantities of Theorem C.2 of Hu, Xiao, Adlam & Pennington 2020, at the recorded steps.

    Attributes:
        distance: ‖u − u_lin‖/√n, the root of the mean (f − f_lin)² on the training inputs.
        movement: ‖θ − θ₀‖, with the weights of a layer divided by the root of its rate factor.
        kernel_error: ε = ‖K(w₀) − ψψᵀ‖ on the training inputs, at rate 1.
        scale: ‖y‖/√n.
        num_samples: n.
    """

    distance: tuple[NonNegative, ...]
    movement: tuple[NonNegative, ...]
    kernel_error: NonNegative
    scale: NonNegative
    num_samples: NonNegativeInt


class EarlyRun(Value):
    """One network with its linear model and the naive linear model.

    Attributes:
        learning_rate: η, as used.
        steps: recorded steps, starting at 0; time is learning_rate × step.
        distance, naive_distance: mean (f − f_lin)² on the test inputs, for ψ and
            without the norm feature.
        linear_power: mean f_lin² on the test inputs.
        target_power: mean y² on the test inputs.
        optimal_train_loss, optimal_test_loss: losses of the best linear fit to the training inputs.
        targets: y at the inputs of ``outputs``.
        path: distance and movement of the training beside their bounds; for full batches and a
            kernel on all training inputs. None in results of older versions.
    """

    recorded_at: ClassVar[str] = "steps"
    other_lengths: ClassVar[tuple[str, ...]] = ("targets",)

    activation: str
    seed: NonNegativeInt
    learning_rate: NonNegative
    outcome: EarlyOutcome
    steps: tuple[NonNegativeInt, ...]
    network: ModelCurve
    linear: ModelCurve
    naive: ModelCurve
    distance: tuple[NonNegative, ...]
    naive_distance: tuple[NonNegative, ...]
    linear_power: tuple[NonNegative, ...]
    target_power: NonNegative
    optimal_train_loss: NonNegative
    optimal_test_loss: NonNegative
    targets: Series = ()
    path: PathBound | None = None

    @property
    def times(self) -> Series:
        """Times η t of the records."""
        return tuple(self.learning_rate * step for step in self.steps)

    @property
    def distance_bounds(self) -> Series:
        """(ε/n) η t ‖y‖/√n at the records: bounds of ‖u − u_lin‖/√n for a constant kernel.

        Empty without a path.
        """
        if self.path is None:
            return ()
        slope = self.path.kernel_error / self.path.num_samples * self.path.scale
        return tuple(slope * time for time in self.times)

    @property
    def movement_bounds(self) -> Series:
        """√(η t) ‖y‖/√n at the records: bounds of ‖θ − θ₀‖ at stable rates.

        Empty without a path.
        """
        if self.path is None:
            return ()
        return tuple(self.path.scale * math.sqrt(time) for time in self.times)

    @property
    def distance_share(self) -> float | None:
        """Largest ‖u − u_lin‖ over its bound, in the linear phase; None without a path."""
        if self.path is None:
            return None
        return self._largest_share(self.path.distance, self.distance_bounds)

    @property
    def movement_share(self) -> float | None:
        """Largest ‖θ − θ₀‖ over its bound, in the linear phase; None without a path."""
        if self.path is None:
            return None
        return self._largest_share(self.path.movement, self.movement_bounds)

    def _largest_share(self, values: Series, bounds: Series) -> float:
        last = self.linear_phase + 1
        pairs = zip(values[1:last], bounds[1:last], strict=True)
        return max((value / bound for value, bound in pairs), default=math.nan)

    @property
    def linear_phase(self) -> int:
        """Index of the first record with 80% of the linear model's progress; else of the last."""
        start = self.linear.train_loss[0]
        end = self.optimal_train_loss
        goal = start - LINEAR_PHASE_SHARE * (start - end)
        return next(
            (i for i, loss in enumerate(self.linear.train_loss) if loss <= goal),
            len(self.steps) - 1,
        )

    def share_at(self, index: int) -> float:
        """Progress of the linear model from its initial to its best training loss.

        NaN if they are equal.
        """
        start = self.linear.train_loss[0]
        way = start - self.optimal_train_loss
        return (start - self.linear.train_loss[index]) / way if way > 0 else math.nan

    @property
    def share_at_departure(self) -> float:
        """Progress of the linear model when the network departs; NaN without a departure."""
        return math.nan if self.departure is None else self.share_at(self.departure)

    @property
    def share_followed(self) -> float:
        """Progress of the linear model when the network departs, or else at the end."""
        return self.share_at(-1 if self.departure is None else self.departure)

    @property
    def share_together(self) -> float:
        """Progress of the linear model when the test losses first differ.

        They differ if they are 5% apart in either direction.
        """
        pairs = zip(self.network.test_loss, self.linear.test_loss, strict=True)
        apart = (i for i, (net, lin) in enumerate(pairs) if abs(net - lin) > DEPARTURE_SHARE * lin)
        return self.share_at(next(apart, -1))

    @property
    def departure(self) -> int | None:
        """Index of the first record at which the network is better.

        Its test loss is then 5% below that of the linear model.
        """
        pairs = zip(self.network.test_loss, self.linear.test_loss, strict=True)
        return next(
            (i for i, (net, lin) in enumerate(pairs) if net < (1 - DEPARTURE_SHARE) * lin), None
        )

    @property
    def departure_step(self) -> int | None:
        """The departure time in steps."""
        return None if self.departure is None else self.steps[self.departure]

    @property
    def loss_gap(self) -> float:
        """Largest |L − L_lin| / L_lin of the test losses before the departure."""
        pairs = list(zip(self.network.test_loss, self.linear.test_loss, strict=True))[
            : self.departure
        ]
        return max((abs(net - lin) / lin for net, lin in pairs if lin > 0), default=math.nan)

    @property
    def phase_time(self) -> float:
        """Time η t at which the linear model has made 80% of its progress."""
        return self.learning_rate * self.steps[self.linear_phase]

    @property
    def discrepancy(self) -> float:
        """Sup of mean (f − f_lin)² / mean y² over the linear phase."""
        return max(self.distance[: self.linear_phase + 1]) / self.target_power

    @property
    def relative_error(self) -> Series:
        """Mean (f − f_lin)² / mean f_lin² at each record; NaN at the start, where both are 0."""
        return tuple(
            d / p if p > 0 else math.nan
            for d, p in zip(self.distance, self.linear_power, strict=True)
        )


class KernelComparison(Value):
    """Kernels of the network and its linear model at rate 1.

    Both are on ``num_samples`` inputs; that of the network is at w₀ or infinite width.

    Attributes:
        kernel, linear: spectral norms of both.
        difference, naive_difference: spectral norms of the distance, with and without the norm
            feature.
        frobenius_difference: Frobenius norm of the distance.
    """

    activation: str
    seed: NonNegativeInt
    num_samples: NonNegativeInt
    kernel: NonNegative
    linear: NonNegative
    difference: NonNegative
    naive_difference: NonNegative
    frobenius_difference: NonNegative


class InputSizes(Value):
    """Deviations of inputs from orthogonal ones of equal norms.

    As ``ntk_core.early_time.input_sizes``.

    Attributes:
        norms: max over i of |‖x_i‖²/d − 1|.
        products: max over i ≠ j of |x_i·x_j|/d.
        matrix: ‖X Xᵀ‖/n.
    """

    norms: NonNegative
    products: NonNegative
    matrix: NonNegative


class EarlyPoint(PointValue):
    """All activations and seeds of one width or input dimension.

    Attributes:
        swept: the swept quantity.
        covariance_ratio: Tr[Σ²]/d of the inputs.
        span_dimension: dimension of the span of the test inputs.
        constants: by activation.
        inputs: sizes of the random inputs of compared kernels. None without, and in
            results of older versions.
    """

    of_each_seed: ClassVar[tuple[str, ...]] = ("runs", "kernels")

    kind: Literal["early_time"] = "early_time"
    swept: Literal["width", "input_dim"]
    width: NonNegativeInt
    input_dim: NonNegativeInt
    covariance_ratio: NonNegative
    span_dimension: NonNegativeInt
    constants: dict[str, Constants]
    runs: tuple[EarlyRun, ...]
    kernels: tuple[KernelComparison, ...] = ()
    inputs: InputSizes | None = None

    @property
    def value(self) -> int:
        """The swept value."""
        return self.width if self.swept == "width" else self.input_dim

    @property
    def time_scale(self) -> float:
        """d ln d: in units of 1/η the time that the theorems of Hu et al.
        2020 allow, up to a constant.
        """
        return self.input_dim * math.log(self.input_dim)

    @property
    def key(self) -> str:
        return f"{self.swept}={self.value}"

    def of(self, activation: str) -> tuple[EarlyRun, ...]:
        """The runs of this activation."""
        return tuple(run for run in self.runs if run.activation == activation)


WIDTH = replace(columns.WIDTH, format="m = {:,}".format, role="line")
INPUT_DIM = Column(
    "input_dim", "dimension d", lambda point, _: point.input_dim, "d = {:,}".format, "line"
)
ACTIVATION = Column(
    "activation", "activation", format=lambda name: ACTIVATIONS[name].title, role="line"
)


def _took_all(run: EarlyRun) -> bool:
    return run.outcome == "completed"


def _last(name: str, title: str, of: Callable[[EarlyRun], float]) -> Column:
    return Column(
        name, title, lambda _, run: of(run), partial(with_error, digits=4), counts=_took_all
    )


RUNS = (
    WIDTH,
    INPUT_DIM,
    ACTIVATION,
    columns.SEED,
    columns.LEARNING_RATE,
    Column("discrepancy", "discrepancy", format=with_error, counts=_took_all),
    Column(
        "linear_phase_step", "linear phase ends at step", lambda _, run: run.steps[run.linear_phase]
    ),
    Column("departure_step", "departs at step", format=columns.counted, counts=_took_all),
    Column("loss_gap", "largest gap of losses before"),
    _last("test_loss", "test loss", lambda run: run.network.test_loss[-1]),
    _last("linear_test_loss", "test loss, linear model", lambda run: run.linear.test_loss[-1]),
    _last("optimal_test_loss", "best linear test loss", lambda run: run.optimal_test_loss),
)


def _of_run(column: Column) -> Column:
    """Column of the run, repeated at each step."""
    return replace(column, of=lambda point, at: column.value(point, at[0]))


def _at(name: str, title: str, path: str = "") -> Column:
    """A number of the run at a step: ``network.test_loss``."""
    of = attrgetter(path or name)
    return Column(name, title, lambda _, at: of(at[0])[at[1]])


STEPS = (
    WIDTH,
    INPUT_DIM,
    _of_run(ACTIVATION),
    _of_run(columns.SEED),
    _of_run(Column("learning_rate", "")),
    replace(_at("step", "step", "steps"), role="swept"),
    _at("train_loss", "training loss", "network.train_loss"),
    _at("linear_train_loss", "training loss, linear model", "linear.train_loss"),
    _at("test_loss", "test loss", "network.test_loss"),
    _at("linear_test_loss", "test loss, linear model", "linear.test_loss"),
    _at("naive_test_loss", "test loss, without norm", "naive.test_loss"),
    _at("span_loss", "residual inside the span", "network.span_loss"),
    _at("complement_loss", "residual outside", "network.complement_loss"),
    _at("distance", "mean squared difference to the linear model"),
    _at("naive_distance", "the same without the norm feature"),
    _of_run(Column("optimal_test_loss", "best linear test loss")),
    _of_run(Column("departure_step", "departs at step")),
    _of_run(Column("outcome", "outcome", role="label")),
)
KERNELS = (
    WIDTH,
    INPUT_DIM,
    ACTIVATION,
    columns.SEED,
    Column("num_samples", "n", role="label"),
    Column("kernel", "‖K‖", format=columns.precise),
    Column("linear", "‖ψψᵀ‖"),
    Column("difference", "‖K − ψψᵀ‖", format=columns.precise),
    Column("naive_difference", "‖K − ψψᵀ‖ without norm feature", format=columns.precise),
    Column("frobenius_difference", "‖K − ψψᵀ‖, Frobenius", format=columns.precise),
)


class EarlyTimeResult(ResultValue):
    """Result of an ``early_time`` run.

    Losses, mean (f − f_lin)² and ‖K − ψψᵀ‖, with f_lin(x) = ψ(x)·β.

    Source: Hu, Xiao, Adlam & Pennington 2020, §3.4 and §4.2; docs/math/early-time.md.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> result = EarlyTimeResult.model_validate_json((GALLERY / "hu-fig1.json").read_bytes())
    >>> [point.input_dim for point in result.points]
    [25, 40, 63, 100]
    """

    columns = STEPS
    spec: EarlyTimeSpec
    points: tuple[EarlyPoint, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row per run and recorded step; or, without training, one per compared kernel."""
        if self.spec.training.max_steps == 0:
            return csv_rows(
                KERNELS, ((point, each) for point in self.points for each in point.kernels)
            )
        steps = (
            (point, (run, i)) for point, run in runs_of(self.points) for i in range(len(run.steps))
        )
        return csv_rows(STEPS, steps)


def early_summary(spec: EarlyTimeSpec, points: Sequence[EarlyPoint]) -> str:
    """Return one line per point and activation.

    Trained networks come first, then compared kernels, each with exponents.
    """
    swept = {"width": "m", "input_dim": "d"}[spec.swept]
    lines: list[str] = []
    if any(point.runs for point in points):
        lines += text_table(
            RUNS, points, lambda runs: f"{sum(run.departure is not None for run in runs)} depart"
        )
        lines += outcome_notes(points, EARLY_OUTCOME_WORDS, "completed", "; excluded from means")
        for activation in spec.network.activations:
            runs = [(point.value, run) for point in points for run in point.of(activation)]
            law = fit_runs(runs, lambda run: run.discrepancy, _took_all)
            lines.append(exponent_line(f"{activation}: discrepancy", law, swept))
    if any(point.kernels for point in points):
        kernels = [point.model_copy(update={"runs": point.kernels}) for point in points]
        lines += text_table(KERNELS, kernels, lambda runs: "")
        norms = {"spectral": "difference", "Frobenius": "frobenius_difference"}
        for activation, (norm, name) in itertools.product(spec.network.activations, norms.items()):
            found = [
                (point.value, each)
                for point in points
                for each in point.kernels
                if each.activation == activation
            ]
            swept_values = [value for value, _ in found]
            compared = [each for _, each in found]
            values = [getattr(each, name) for each in compared]
            law = fit_power_law(swept_values, values, seeds=[each.seed for each in compared])
            lines.append(exponent_line(f"{activation}: {norm} norm of the distance", law, swept))
    return "\n".join(lines)


EXPERIMENT = Experiment(
    EarlyTimeSpec, EarlyPoint, EarlyTimeResult, counts, early_summary, ("hu",), record_bytes=2000
)
