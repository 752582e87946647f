"""Results of ``lazy``: κ at initialization and what training moved, for each width, scale and richness."""

import math
from typing import Literal

from ntk_core.experiments.lazy.spec import LazySpec, lazy_key
from ntk_core.runs import Outcome, PointValue, ResultValue, Value, finite_or_none


class LazyRun(Value):
    """One model F = φ(α m^(−ρ) f) at w₀, and its training by gradient descent on (1/2n) Σ ‖F − y‖².

    Attributes:
        output: output nonlinearity φ.
        start: how the output at w₀ is chosen.
        seed: seed of the initialization w₀.
        learning_rate: η, as used; infinite where it is automatic and the network is dead.
        outcome: how it ended, see ``ntk_core.dynamics.outcomes.ended``.
        last_finite_step: the last step whose loss was finite.
        num_steps: steps taken until the run ended.
        kappa: mean over the chosen inputs, each with the output of its class, of |F − y| ‖H‖ / ‖∇F‖² at w₀.
        residual, hessian, squared_gradient: the means of |F − y|, ‖H‖ and ‖∇F‖².
        hessian_converged: whether every spectral norm converged.
        first_loss, last_loss: at w₀ and at the end.
        sup_change: sup over the recorded times of ΔK(t) of the kernel of F.
        last_change: ΔK at the end, None in results from before it was kept: a rich kernel may come back a little.
        pre_output_change: the same as ``sup_change`` of the kernel of α m^(−ρ) f, at the same parameters.
        distance, largest_distance: ‖w − w₀‖₂ and ‖w − w₀‖_∞ at the end.
        least_distance: lower bounds of ``distance`` by what the outputs did: from one input (Liu, Zhu & Belkin 2020,
            Eq. 2) and from all (``kernels.least_distance``); empty in results from before they were computed.
        hidden_change: mean |h − h₀| over inputs and neurons at the end, h the pre-activations, for each hidden layer;
            empty in results from before it was measured.
    """

    output: str
    start: str
    seed: int
    learning_rate: float
    outcome: Outcome
    last_finite_step: int
    num_steps: int
    kappa: float
    residual: float
    hessian: float
    squared_gradient: float
    hessian_converged: bool
    first_loss: float
    last_loss: float
    sup_change: float
    pre_output_change: float
    distance: float
    largest_distance: float
    least_distance: tuple[float, ...] = ()
    hidden_change: tuple[float, ...] = ()
    last_change: float | None = None

    @property
    def curvature(self) -> float:
        """‖H‖ / ‖∇F‖² at w₀."""
        return self.hessian / self.squared_gradient

    @property
    def mean_hidden_change(self) -> float:
        """Mean |h − h₀| over the hidden layers; NaN where it was not measured."""
        return sum(self.hidden_change) / len(self.hidden_change) if self.hidden_change else math.nan


class LazyPoint(PointValue):
    """All runs of one width, scale and richness.

    Attributes:
        width, scale, richness: m, α and ρ.
        num_params: p, number of trained parameters of f.
        runs: one entry per output, start and seed.
    """

    kind: Literal["lazy"] = "lazy"
    width: int
    scale: float
    richness: float = 0.0
    num_params: int
    runs: tuple[LazyRun, ...]

    @property
    def key(self) -> str:
        return lazy_key(self.width, self.scale, self.richness)

    def of(self, output: str, start: str | None = None) -> tuple[LazyRun, ...]:
        """The runs of this output, and of this start where one is named."""
        return tuple(run for run in self.runs if run.output == output and start in (None, run.start))


class LazyResult(ResultValue):
    """Everything a ``lazy`` run gave: κ = |F − y| ‖H‖ / ‖∇F‖² at w₀, ‖w − w₀‖ and ΔK of every width, α and ρ.

    Source: Chizat, Oyallon & Bach 2019, §1; Yang & Hu 2021, §3; docs/math/richness.md.
    """

    spec: LazySpec
    points: tuple[LazyPoint, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row per width, scale, richness, output, start and seed."""
        return [
            {
                "width": point.width,
                "scale": point.scale,
                "richness": point.richness,
                "num_params": point.num_params,
                **run.model_dump(exclude={"hidden_change", "least_distance"}),
                **dict(zip(("least_distance_of_one", "least_distance"), run.least_distance, strict=False)),
                **{f"hidden_change_{number}": change for number, change in enumerate(run.hidden_change, 1)},
                "learning_rate": finite_or_none(run.learning_rate),
            }
            for point in self.points
            for run in point.runs
        ]
