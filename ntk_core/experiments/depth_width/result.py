"""Results of ``depth_width``: the scatter of K(x, x) and the trained networks, for pairs of depth and width."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from ntk_core.experiments.depth_width.random_kernels import MOST_OF_ONE, second_moment
from ntk_core.experiments.depth_width.spec import DepthWidthSpec, depth_key
from ntk_core.numbers import percent
from ntk_core.runs import (
    Outcome,
    PointValue,
    RecordedTraining,
    ResultValue,
    columns,
    finite_or_none,
    outcome_notes,
    with_error,
)
from ntk_core.runs.columns import Column, text_table


class DepthRun(RecordedTraining):
    """One network at w₀, and its training by gradient descent on (1/2n) Σ ‖f − y‖².

    Attributes:
        seed: seed of the initialization w₀.
        learning_rate: η, as used; infinite where it is automatic and the network is dead.
        outcome: how it ended, see ``ntk_core.dynamics.outcomes.ended``.
        loss: the mean training loss at the recorded steps.
        hessian: mean over the chosen inputs of ‖H‖ of the first output at w₀; NaN where it was not measured.
        squared_gradient: mean over the same inputs of ‖∇f‖² = K(x, x).
        hessian_converged: whether every spectral norm that was measured converged.
    """

    seed: int
    learning_rate: float
    outcome: Outcome
    loss: tuple[float, ...]
    hessian: float
    squared_gradient: float
    hessian_converged: bool

    @property
    def curvature(self) -> float:
        """‖H‖ / ‖∇f‖²; NaN for a dead network, and where ‖H‖ was not measured."""
        return self.hessian / self.squared_gradient if self.squared_gradient else math.nan


class DepthWidthPoint(PointValue):
    """One pair of depth and width.

    Attributes:
        depth, width: L and m.
        num_kernels: random networks whose K(x, x) was drawn, at |x|² = d.
        seed: of them.
        mean: of K(x, x); in expectation L + 1.
        cv_squared: squared coefficient of variation of K(x, x).
        low, high: its 95% bootstrap interval; too short where a single network decides.
        largest_share: of the largest draw in Σ K².
        log_variance: of ln K(x, x).
        runs: one entry per seed, where networks of this size are trained.
    """

    kind: Literal["depth_width"] = "depth_width"
    depth: int
    width: int
    num_kernels: int
    seed: int
    mean: float
    cv_squared: float
    low: float
    high: float
    largest_share: float
    log_variance: float
    runs: tuple[DepthRun, ...] = ()

    @property
    def key(self) -> str:
        return depth_key(self.depth, self.width)

    @property
    def records(self) -> Sequence[DepthRun | None]:
        """The runs; one empty row for a pair that is not trained."""
        return self.runs or (None,)

    @property
    def beta(self) -> float:
        """β = Σ_l 1/m_l = L/m."""
        return self.depth / self.width

    @property
    def log_moment(self) -> float:
        """ln(E[K²] / E[K]²) = ln(1 + CV²)."""
        return math.log1p(self.cv_squared)

    @property
    def expected_cv_squared(self) -> float:
        """CV² of K(x, x) to leading order in 1/m; exactly 3/m for one hidden layer."""
        return second_moment(self.depth, self.width) - 1

    @property
    def growth(self) -> float:
        """ln(E[K²] / E[K]²) / β."""
        return self.log_moment / self.beta


def _of_pair(name: str, title: str, field: str = "", words: Callable[[float], str] | None = None) -> Column:
    """What is known of a pair, the same for all of its runs; in the text summary where it has a format."""

    def of(point: DepthWidthPoint, _: DepthRun | None) -> Any:
        return getattr(point, field or name)

    return Column(name, title, of, (lambda values: words(values[0]) if values else "–") if words else None)


def _of_run(column: Column) -> Column:
    """A column that is empty for pairs that are not trained."""
    return replace(column, of=lambda point, run: None if run is None else column.value(point, run))


PAIR = (
    Column("depth", "depth L", lambda point, _: point.depth, str, "swept"),
    replace(columns.WIDTH, format="m = {:,}".format, role="line"),
    _of_pair("beta", "β", words="{:.4g}".format),
    _of_pair("num_kernels", "networks"),
    _of_pair("mean_kernel", "mean K(x, x)", "mean"),
    _of_pair("cv_squared", "CV² of K(x, x)", words="{:.3g}".format),
    _of_pair("cv_squared_low", "from", "low", "{:.3g}".format),
    _of_pair("cv_squared_high", "to", "high", "{:.3g}".format),
    _of_pair("expected_cv_squared", "CV² by formula"),
    _of_pair("growth", "ln(1 + CV²) / β", words="{:.2f}".format),
    _of_pair("largest_share", "largest share of Σ K²", words=percent),
    _of_pair("log_variance", "variance of ln K"),
)
COLUMNS = (
    *PAIR,
    replace(columns.SEED, of=lambda point, run: run.seed if run else point.seed),
    *map(
        _of_run,
        (
            replace(columns.CHANGE, name="sup_change", format=with_error),
            Column("hessian", "‖H‖", lambda _, run: finite_or_none(run.hessian)),
            Column("squared_gradient", "‖∇f‖²"),
            Column("curvature", "‖H‖ / ‖∇f‖²", lambda _, run: finite_or_none(run.curvature), with_error),
            replace(columns.FINAL_LOSS, name="last_loss"),
            columns.STEPS,
            columns.LEARNING_RATE,
            columns.OUTCOME,
        ),
    ),
)


class DepthWidthResult(ResultValue):
    """Result of a ``depth_width`` run.

    CV² = Var K / (E K)² of K(x, x), ‖H‖ and ΔK of depths and widths.

    Source: Hanin & Nica 2020, Theorem 1; docs/math/depth-and-width.md.

    >>> from ntk_core.runs.gallery import GALLERY
    >>> result = DepthWidthResult.model_validate_json((GALLERY / "depth-width.json").read_bytes())
    >>> point = result.points[0]
    >>> point.depth, point.width, point.low < point.cv_squared < point.high
    (1, 32, True)
    """

    columns = COLUMNS
    spec: DepthWidthSpec
    points: tuple[DepthWidthPoint, ...]


TAILS = (
    f"One network contributes more than {percent(MOST_OF_ONE)} of the sum of K². The tail is heavier than the sample "
    "shows, and the interval of CV² is too short."
)


def depth_width_summary(spec: DepthWidthSpec, points: Sequence[DepthWidthPoint]) -> str:
    """One row per pair; ΔK and ‖H‖ / ‖∇f‖² are means over the seeds."""
    tails = [TAILS] if any(point.largest_share > MOST_OF_ONE for point in points) else []
    return "\n".join([*text_table(COLUMNS, points), "", *tails, *outcome_notes(points)])
