"""Losses and methods to choose from; JAX starts on first use."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from ntk_core.terms import Term, table

if TYPE_CHECKING:
    from jax import Array
    from optax import GradientTransformation


def _jax() -> ModuleType:
    import jax

    return jax


def _optax() -> ModuleType:
    import optax

    return optax


@dataclass(frozen=True, kw_only=True)
class LossTerm(Term):
    """One loss, a mean over the samples.

    Attributes:
        mean: (outputs F of the model, targets y), both (n, C) → the loss, a scalar.
        curvature: bound of the second derivative of one sample's loss in F.
        targets: any numbers; or those of classes only, one-hot or −1 and +1.
        applies: output φ that the loss applies itself: its model F is then f instead of φ(f).
        couples_outputs: whether it is no sum over the outputs of a sample.
        is_likelihood: whether it is −log p(y | F) with a curvature in F that does not depend on y:
            the Fisher information of F.
    """

    mean: "Callable[[Array, Array], Array]"
    curvature: float = 1.0
    targets: Literal["numbers", "one-hot", "plus-minus"] = "numbers"
    applies: str = ""
    couples_outputs: bool = False
    is_likelihood: bool = False

    @property
    def needs_classes(self) -> bool:
        """Whether its targets are those of classes."""
        return self.targets != "numbers"

    def targets_of(self, y: Any) -> Any:
        """Return the targets of this loss from y of shape (n, C).

        y has numbers, one-hot rows, or (one output) ±1.
        """
        is_one_hot = y.shape[-1] > 1
        return 2 * y - 1 if self.targets == "plus-minus" and is_one_hot else y


def _mean(parts: "Array") -> "Array":
    """Mean over samples of sums over outputs."""
    return _jax().numpy.mean(_jax().numpy.sum(parts, axis=-1))


LOSSES = table(
    LossTerm(
        "square",
        "square loss",
        "(1/2n) Σ ‖φ(f) − y‖²",
        mean=lambda outputs, y: 0.5 * _mean((outputs - y) ** 2),
        is_likelihood=True,
    ),
    LossTerm(
        "cross-entropy",
        "cross-entropy",
        "−(1/n) Σ log softmax(f) · y",
        mean=lambda outputs, y: -_mean(_jax().nn.log_softmax(outputs) * y),
        curvature=0.5,
        targets="one-hot",
        applies="softmax",
        couples_outputs=True,
        is_likelihood=True,
    ),
    LossTerm(
        "logistic",
        "logistic loss",
        "(1/n) Σ log(1 + e^(−y f)), y = ±1",
        mean=lambda outputs, y: _mean(_jax().nn.softplus(-y * outputs)),
        curvature=0.25,
        targets="plus-minus",
        is_likelihood=True,
    ),
)


def usual_loss(output: str) -> str:
    """Return the usual loss of an output φ.

    It is the loss that applies φ itself, else the first one of the table.
    """
    for loss in LOSSES.values():
        if loss.applies == output:
            return loss.name
    return next(iter(LOSSES))


@dataclass(frozen=True)
class Method(Term):
    """Training method: w ← w − η d, where an optax transformation computes d from the gradients.

    Attributes:
        direction: momentum μ → the transformation; the rate η is applied after it.
        is_linear: whether d is linear in the gradients, so a linear model can be trained by its
            kernel and has a stable rate.
        stable_factor: μ → ratio of its stable rate to that of gradient descent.
        batches: whether a step takes a batch of the samples.
        rate_factor: multiplies the learning rate of the spec.
        takes_momentum: whether the direction depends on the momentum μ.
        num_states: numbers that it remembers for each weight; none if it takes
            gradients as they are.
        solves: whether each step solves the Gauss–Newton system of all samples.
        own_rate: automatic learning rate of a method whose rate does not depend on the kernel.
    """

    direction: "Callable[[float], GradientTransformation]" = lambda momentum: _optax().identity()
    is_linear: bool = True
    stable_factor: Callable[[float], float] = lambda momentum: 1.0
    batches: Literal["never", "always", "if asked"] = "never"
    rate_factor: float = 1.0
    takes_momentum: bool = False
    num_states: int = 1
    solves: bool = False
    own_rate: float | None = None

    @property
    def num_copies(self) -> int:
        """Copies of the weights in its state or its direction."""
        takes_gradients = self.direction is Method.direction and not self.solves
        return 0 if takes_gradients else self.num_states


# Largest n·C of the system of equations of a Gauss–Newton step, which takes (n·C)³
# operations; our choice.
MAX_SOLVED_ROWS = 900

METHODS = table(
    Method("gradient-descent", "gradient descent", "w ← w − η ∇L(w), all samples in each step"),
    Method(
        "large-rate",
        "large rate",
        "gradient descent, η at 3.6 times: 0.9 of the stable rate when η is auto",
        rate_factor=3.6,
    ),
    Method(
        "beyond-stable",
        "beyond the stable rate",
        "gradient descent, η at 6 times: 1.5 of the stable rate",
        rate_factor=6.0,
    ),
    Method(
        "sgd", "SGD", "w ← w − η ∇L_B(w), B a batch; every sample once per epoch", batches="always"
    ),
    Method(
        "momentum",
        "momentum",
        "v ← μ v + ∇L(w), w ← w − η v",
        direction=lambda momentum: _optax().trace(decay=momentum),
        stable_factor=lambda momentum: 1 + momentum,
        batches="if asked",
        takes_momentum=True,
    ),
    Method(
        "adam",
        "Adam",
        "steps of about η for each weight, independent of its gradient",
        direction=lambda momentum: _optax().scale_by_adam(),
        is_linear=False,
        batches="if asked",
        num_states=2,
    ),
    Method(
        "gauss-newton",
        "Gauss–Newton",
        "w ← w − η (G + λI)⁻¹ ∇L(w); G is also the Fisher information, so this is the natural "
        "gradient",
        is_linear=False,
        solves=True,
        own_rate=0.5,
    ),
)
