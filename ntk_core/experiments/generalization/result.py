"""Results of ``generalization``: what network and kernels predict where nobody trained, and how the kernel turned."""

import math
from typing import Literal

from scipy.special import ndtri

from ntk_core.experiments.generalization.spec import GeneralizationSpec, generalization_key
from ntk_core.runs import Outcome, PointValue, RecordedTraining, ResultValue, Value, finite_or_none


class Predictor(Value):
    """How well a model predicts the test points.

    Attributes:
        error: share of points in the wrong class; NaN without classes.
        loss: (1/2n') Σ ‖F − y‖² over them.
    """

    error: float
    loss: float


class GeneralizationRun(RecordedTraining):
    """One network and its kernels on one draw of the data.

    Attributes:
        learning_rate: η of F, as used; infinite where it is automatic and the network is dead.
        last_finite_step: the last step whose loss was finite.
        steps: those at which all was measured, w₀ first; ``change`` is ΔK there.
        loss: training loss of the network there.
        network: its test error and loss there.
        after: of regression with the kernel there, K_s(x, X) K_s(X, X)⁻¹ y; the first is K₀, the last the after kernel.
        onward: of the linear model at w_s, trained to the end, f_s(x) + K_s(x, X) K_s(X, X)⁻¹ (y − f_s(X)).
        linear: of the linear model at w₀ after as many steps as the network took.
        infinite: of regression with K_∞; None where it is not known.
        alignment: yᵀKy / (‖K‖ ‖y‖²) of K_s.
        distance: 1 − ⟨K_s, K₀⟩ / (‖K_s‖ ‖K₀‖).
        moved: the same of K_s and the kernel at the record before, 0 for the first one.
        condition, jitter: of the matrix that was inverted, and what was added to its diagonal, in units of its mean.
        ranks: numbers k of leading eigenvectors; ``first_share``, ``last_share``: of y in those of K₀ and the last K_s.
        angles: principal angles between the leading eigenspaces of the two, in degrees, ascending.
        num_test: n'.
    """

    seed: int
    learning_rate: float
    outcome: Outcome
    last_finite_step: int
    loss: tuple[float, ...]
    network: tuple[Predictor, ...]
    after: tuple[Predictor, ...]
    onward: tuple[Predictor, ...]
    linear: Predictor
    infinite: Predictor | None
    alignment: tuple[float, ...]
    distance: tuple[float, ...]
    moved: tuple[float, ...]
    condition: tuple[float, ...]
    jitter: tuple[float, ...]
    ranks: tuple[int, ...]
    first_share: tuple[float, ...]
    last_share: tuple[float, ...]
    angles: tuple[float, ...]
    num_test: int

    @property
    def share_gained(self) -> float:
        """The most that the share of y in k leading eigenvectors has grown, over k."""
        return max(after - before for before, after in zip(self.first_share, self.last_share, strict=True))

    @property
    def distance_per_step(self) -> tuple[float, ...]:
        """Kernel distance per step from each record to the next; NaN at the first."""
        pairs = zip(self.steps, self.steps[1:], self.moved[1:], strict=False)
        return (math.nan, *(moved / max(1, after - before) for before, after, moved in pairs))


class GeneralizationPoint(PointValue):
    """All seeds of one width, richness and number of training points.

    Attributes:
        num_params: p, number of trained parameters.
    """

    kind: Literal["generalization"] = "generalization"
    width: int
    richness: float
    num_samples: int
    num_params: int
    runs: tuple[GeneralizationRun, ...]

    @property
    def key(self) -> str:
        return generalization_key(self.width, self.richness, self.num_samples)


class GeneralizationResult(ResultValue):
    """Everything a ``generalization`` run gave: test errors, (1/2n') Σ ‖F − y‖², yᵀKy / (‖K‖_F ‖y‖²) along training.

    Source: docs/math/generalization.md, which names those of each quantity.
    """

    spec: GeneralizationSpec
    points: tuple[GeneralizationPoint, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row per width, richness, number of training points and seed."""
        return [
            {
                "width": point.width,
                "richness": point.richness,
                "num_samples": point.num_samples,
                "num_params": point.num_params,
                "seed": run.seed,
                "learning_rate": finite_or_none(run.learning_rate),
                "outcome": run.outcome,
                "num_steps": run.num_steps,
                "last_loss": run.loss[-1],
                "num_test": run.num_test,
                **{
                    f"{name}_{what}": getattr(model, what, math.nan)
                    for what in ("error", "loss")
                    for name, model in predictors(run).items()
                },
                "sup_change": run.sup_change,
                "alignment_first": run.alignment[0],
                "alignment_last": run.alignment[-1],
                "kernel_distance": run.distance[-1],
                "condition_first": run.condition[0],
                "condition_last": run.condition[-1],
                "jitter": max(run.jitter),
            }
            for point in self.points
            for run in point.runs
        ]


def predictors(run: GeneralizationRun) -> dict[str, Predictor | None]:
    """What is compared at the end of training, by name."""
    return {
        "network": run.network[-1],
        "linear": run.linear,
        "first_kernel": run.after[0],
        "after_kernel": run.after[-1],
        "onward": run.onward[-1],
        "infinite": run.infinite,
    }


def wilson(share: float, count: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a probability of which ``share`` of ``count`` trials were seen; NaN without any.

    >>> [round(end, 3) for end in wilson(0.5, 100)]
    [0.404, 0.596]

    Source: Wilson 1927; Brown, Cai & DasGupta 2001.
    """
    if not (count and math.isfinite(share)):
        return math.nan, math.nan
    z = float(ndtri(0.5 + confidence / 2))
    center = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2) / (1 + z * z / count)
    return (center - reach if share > 0 else 0.0), (center + reach if share < 1 else 1.0)
