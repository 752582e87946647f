"""Results of ``hessian``: Hessian norms, their bounds, balls and blocks, beside the kernel change in training."""

import math
from collections.abc import Iterable
from typing import Literal

from ntk_core.experiments.hessian.network import ComparedNetwork
from ntk_core.experiments.hessian.spec import HessianSpec, hessian_key
from ntk_core.runs import Outcome, ResultValue, Value, WidthPoint


class LayerBound(Value):
    """The layer quantities of Liu, Zhu & Belkin 2020, Theorem 3.1, means over the inputs.

    Attributes:
        bound: ‖H‖ is at most this, with measured constants.
        q_inf: Q_∞ = max_l ‖b⁽ˡ⁾‖_∞ with b⁽ˡ⁾ = ∂f/∂α⁽ˡ⁾.
        q_l: Q_L, the largest ‖∂α⁽ˡ⁾/∂w⁽ˡ⁾‖.
        q_221: Q_{2,2,1}, the largest (2,2,1)-norm of the layers' second derivatives.
        b_max: ‖b⁽ˡ⁾‖_∞ of each hidden layer.
        b_norm: ‖b⁽ˡ⁾‖₂ of each hidden layer.
    """

    bound: float
    q_inf: float
    q_l: float
    q_221: float
    b_max: tuple[float, ...]
    b_norm: tuple[float, ...]


class NonlinearParts(Value):
    """H̃ = φ''∇f∇fᵀ + φ'H with a nonlinear output, means over the inputs.

    Attributes:
        gradient_part: |φ''| ‖∇f‖², of order 1 at any width.
        linear_part: |φ'| ‖H‖, which vanishes with the width.
        lower: mean of max(0, gradient_part − linear_part), below ‖H̃‖.
    """

    gradient_part: float
    linear_part: float
    lower: float


class VectorNorm(Value):
    """The Hessian of all C outputs together, means over the inputs (Zhu, Liu & Belkin 2022, App. C).

    Attributes:
        norm: of the tensor, the largest value found: a lower bound.
        upper: (Σ_c ‖H_c‖²)^(1/2), an upper bound.
    """

    norm: float
    upper: float


class BallBound(Value):
    """Lower bounds of the sups over a ball B(w₀, R): the largest values met.

    Attributes:
        radius: R.
        hessian: of ‖H(w)‖ for the first input.
        hessian_random: the largest in as many random directions, at distance R.
        kernel_change: of ‖K(w) − K(w₀)‖_F / ‖K(w₀)‖_F over the inputs.
        kernel_change_random: the largest in as many random directions.
        converged: whether every norm behind them reached its tolerance.
    """

    radius: float
    hessian: float
    hessian_random: float
    kernel_change: float
    kernel_change_random: float
    converged: bool


class TrainedChange(Value):
    """Kernel change in training of the same network from the same weights, as in ``kernel_change``.

    Attributes:
        sup_change: ΔK = sup over the recorded steps.
        num_steps: steps taken.
    """

    sup_change: float
    outcome: Outcome
    learning_rate: float
    num_steps: int
    final_loss: float


class LayerShare(Value):
    """tr K_l / tr K over all training inputs and outputs, K = Σ_l K_l.

    Attributes:
        layer: its name, or what it is for where that is known: ``queries`` are those of all blocks.
    """

    layer: str
    share: float


class HessianRun(Value):
    """One network drawn with one seed.

    Attributes:
        norm: ‖∂²f_a/∂w²‖, mean over the inputs.
        largest_norm: the largest over the inputs.
        residual: the largest residual of the eigenpairs found.
        converged: whether every residual reached the tolerance; where not, ``norm`` may be too small.
        num_matvecs: products with the Hessian, of all inputs.
        kernel: K(x, x)[c, c] = ‖∇f_c(x)‖², mean over all training inputs and outputs.
        exact: where it is known in closed form, ‖H‖ (``shallow``) or its w₂ block (``quadratic-bottleneck``).
        trained: None for seeds that were not trained.
        shares: of the kernel, one for each trained layer, where the spec asks for them.
    """

    seed: int
    norm: float
    largest_norm: float
    residual: float
    converged: bool
    num_matvecs: int
    kernel: float
    exact: float | None = None
    bound: LayerBound | None = None
    parts: NonlinearParts | None = None
    vector: VectorNorm | None = None
    balls: tuple[BallBound, ...] = ()
    trained: TrainedChange | None = None
    shares: tuple[LayerShare, ...] = ()

    @property
    def relative_norm(self) -> float:
        """‖H‖ / ‖∇f‖², with the mean ‖∇f‖² over inputs and outputs."""
        return self.norm / self.kernel if self.kernel > 0 else math.nan


class HessianBlocks(Value):
    """‖H_{l,l'}‖ of all pairs of trained layers, of the first seed and input; symmetric."""

    seed: int
    layers: tuple[str, ...]
    norms: tuple[tuple[float, ...], ...]
    converged: bool


class HessianPoint(WidthPoint):
    """All seeds of one network at one width m, or number of tokens.

    Attributes:
        width: m, or what is swept in its place.
        line: the name of the network among those that are compared.
        wide_width: neurons, or channels, of the wide layers.
        min_width: of the narrowest hidden layer; of a DenseNet the smallest in-degree outside the first layer.
        num_tokens: T, where it is swept.
    """

    kind: Literal["hessian"] = "hessian"
    line: str
    network: ComparedNetwork
    wide_width: int
    min_width: int
    num_params: int
    runs: tuple[HessianRun, ...]
    blocks: HessianBlocks | None = None
    num_tokens: int | None = None

    @property
    def key(self) -> str:
        return hessian_key(self.width, self.line)

    @property
    def place(self) -> int:
        """Where it stands in a figure: at the width of the wide layers, or at T."""
        return self.num_tokens or self.wide_width


class HessianResult(ResultValue):
    """Everything a ``hessian`` run gave; ``points`` are in the order of the spec's keys, some may be missing.

    ‖∂²f_a/∂w²‖ of every network, width and seed, and what the spec asks for beside it.

    Source: Liu, Zhu & Belkin 2020, Table 1; docs/math/hessian_against_width.md.
    """

    spec: HessianSpec
    points: tuple[HessianPoint, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row per width, network and seed, as in ``points.csv``."""
        runs = [run for point in self.points for run in point.runs]
        layers = dict.fromkeys(each.layer for run in runs for each in run.shares)
        return [self._row(point, run, layers) for point in self.points for run in point.runs]

    def _row(self, point: HessianPoint, run: HessianRun, layers: Iterable[str]) -> dict[str, object]:
        bound, parts, trained, vector = run.bound, run.parts, run.trained, run.vector
        shares = {each.layer: each.share for each in run.shares}
        balls: dict[str, object] = {}
        found = {ball.radius: ball for ball in run.balls}
        for radius in self.spec.radii:
            ball = found.get(radius)
            balls[f"sup_hessian_norm_R={radius:g}"] = ball and ball.hessian
            balls[f"sup_kernel_change_R={radius:g}"] = ball and ball.kernel_change
        return {
            "m": point.width,
            "network": point.line,
            "parameterization": point.network.parameterization,
            "seed": run.seed,
            "width": point.wide_width,
            "min_width": point.min_width,
            "hessian_norm": run.norm,
            "residual": run.residual,
            "converged": run.converged,
            "kernel": run.kernel,
            "exact": run.exact,
            "bound": bound and bound.bound,
            "q_inf": bound and bound.q_inf,
            "q_l": bound and bound.q_l,
            "q_221": bound and bound.q_221,
            "lower_bound": parts and parts.lower,
            "vector_hessian_norm": vector and vector.norm,
            "vector_upper_bound": vector and vector.upper,
            "sup_kernel_change": trained and trained.sup_change,
            "outcome": trained and trained.outcome,
            **balls,
            **{f"share_{layer}": shares.get(layer) for layer in layers},
        }
