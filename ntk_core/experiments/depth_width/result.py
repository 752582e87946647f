"""Results of ``depth_width``: the scatter of K(x, x) and the trained networks, for pairs of depth and width."""

import math
from typing import Literal

from ntk_core.experiments.depth_width.random_kernels import second_moment
from ntk_core.experiments.depth_width.spec import DepthWidthSpec, depth_key
from ntk_core.runs import Outcome, PointValue, RecordedTraining, ResultValue, finite_or_none


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


class DepthWidthResult(ResultValue):
    """Everything a ``depth_width`` run gave: CV² = Var K / (E K)² of K(x, x), ‖H‖ and ΔK of depths and widths.

    Source: Hanin & Nica 2020, Theorem 1; docs/math/depth-and-width.md.
    """

    spec: DepthWidthSpec
    points: tuple[DepthWidthPoint, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row per depth, width and seed; pairs that are not trained have one row, with empty cells."""
        return [
            {
                "depth": point.depth,
                "width": point.width,
                "beta": point.beta,
                "num_kernels": point.num_kernels,
                "mean_kernel": point.mean,
                "cv_squared": point.cv_squared,
                "cv_squared_low": point.low,
                "cv_squared_high": point.high,
                "expected_cv_squared": point.expected_cv_squared,
                "largest_share": point.largest_share,
                "log_variance": point.log_variance,
                "seed": run.seed if run else point.seed,
                "sup_change": run.sup_change if run else None,
                "hessian": finite_or_none(run.hessian) if run else None,
                "squared_gradient": run.squared_gradient if run else None,
                "last_loss": run.loss[-1] if run else None,
                "steps": run.num_steps if run else None,
                "learning_rate": finite_or_none(run.learning_rate) if run else None,
                "outcome": run.outcome if run else None,
            }
            for point in self.points
            for run in point.runs or (None,)
        ]
