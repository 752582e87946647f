"""How long a network stays near its linear model: four regimes of training, each at several widths."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ntk_core.data import DatasetShapes
from ntk_core.data.spec import DatasetSpec
from ntk_core.errors import InvalidInput
from ntk_core.experiments._trained_sweep import TrainedSweep
from ntk_core.networks.sizes import num_copies
from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.runs import Counted, Counts, typical_steps
from ntk_core.settings.part import Ascending, Once, Width

RegimeName = Literal["cross-entropy", "large-rate", "weight-decay", "square"]
DECAY_END = 2.0  # in ημt: the data no longer matter there
RATE_STEPS = 200  # at most, above the stable rate; the linear model then exceeds any threshold


def stretch(regime: str, step: int) -> int:
    """Steps from this one to the next record; all of them are recorded above the stable rate."""
    return {"cross-entropy": 5, "weight-decay": 10, "square": max(1, step // 8)}.get(regime, 1)


class HorizonSpec(TrainedSweep):
    """When networks leave their linear models during training.

    Kernels and outputs f − f(w₀) are compared with those of the linear model, in float64.

    The kernel departs where ΔK exceeds its threshold; the outputs depart where ‖f − f_lin‖ / ‖f_lin‖ does on held-out
    points. Each regime has its own clock: log(1/L), steps, or ημt.

    Source: docs/math/horizon.md; after Lewkowycz et al. 2020, Lewkowycz & Gur-Ari 2020, Lyu & Li 2020.

    >>> HorizonSpec(widths=(64, 160), regimes=("square", "large-rate")).point_keys()
    ('width=64,regime=square', 'width=64,regime=large-rate', 'width=160,regime=square', 'width=160,regime=large-rate')
    """

    float_type: ClassVar[str] = "float64"
    one_output: ClassVar[bool] = True
    max_kernel_rows: ClassVar[int | None] = 400
    point_words: ClassVar[tuple[str, str]] = ("pair of width and regime", "pairs of width and regime")

    experiment: Literal["horizon"] = "horizon"
    dataset: DatasetSpec = DatasetSpec(num_samples=20, num_classes=2, noise=1.0, standardize="unit-norm")
    architecture: ArchitectureSpec = ArchitectureSpec(activation="relu", use_bias=False)
    widths: tuple[Width, ...] = TrainedSweep.field("widths", (64, 160, 400, 1000))
    num_seeds: int = TrainedSweep.field("num_seeds", 3)
    regimes: Annotated[tuple[RegimeName, ...], Once] = Field(
        default=("large-rate", "weight-decay", "square", "cross-entropy"), min_length=1, max_length=4, title="Regimes"
    )
    """Cross-entropy to tiny losses, a rate above the stable one, weight decay, or the square loss at a stable rate."""
    scale: float = Field(default=1.414, ge=1e-3, le=1e4, title="Scale α")
    """Factor α in front of f: about √2 keeps activations of a ReLU layer at their size."""
    kernel_threshold: float = Field(default=0.3, gt=0, le=10, title="Threshold of ΔK")
    """The kernel departs where ΔK first exceeds this."""
    output_threshold: float = Field(default=0.3, gt=0, le=10, title="Threshold of the outputs")
    """The outputs depart where ‖f − f_lin‖ / ‖f_lin‖ first exceeds this, on held-out points."""
    rates: Annotated[tuple[Annotated[float, Field(gt=2, lt=4)], ...], Ascending] = Field(
        default=(2.5,), min_length=1, max_length=4, title="Learning rates c = η/η₀"
    )
    """Rates η in units of η₀ = n/λ_max(K(w₀)), c = η/η₀, above the stable one, 2; targets are raised by 1."""
    decay: float = Field(default=1e-3, gt=0, le=0.01, title="Weight decay ημ")
    """Share ημ of every trained weight that a step of training with weight decay removes."""
    max_log_loss: float = Field(default=20.0, gt=0, le=100, title="Largest log(1/L)")
    """Training with cross-entropy stops at this log(1/L)."""
    loss_threshold: float = Field(default=1e-4, gt=0, le=10, title="Loss threshold")
    """Training with the square loss stops when its mean falls below it."""
    max_steps: int = Field(default=5_000, ge=1, le=1_000_000, title="Maximum steps")
    """Runs that need more are stopped; their horizon is then a lower bound."""
    num_test: int = Field(default=100, ge=1, le=2000, title="Test points")
    """Held-out inputs at which outputs are compared."""

    @model_validator(mode="after")
    def _has_classes(self) -> Self:
        shapes = self.dataset.known_shapes()
        if "cross-entropy" in self.regimes and shapes is not None and not shapes.class_names:
            others = tuple(name for name in self.regimes if name != "cross-entropy")
            raise InvalidInput(
                "regimes", "cross-entropy", "other regimes, for data without classes", others or ("square",)
            )
        return self

    def shapes(self) -> DatasetShapes | None:
        """The sizes of the data, test points included; None while they are not known."""
        shapes = self.dataset.known_shapes(**self._targets())
        if shapes is None:
            return None
        return self.dataset.known_shapes(num_test=min(self.num_test, shapes.available_test), **self._targets())

    def data_options(self) -> dict[str, Any]:
        """The options of ``load_dataset``, with as many test points as there are."""
        shapes = self.dataset.known_shapes(**self._targets())
        available = self.num_test if shapes is None else shapes.available_test
        return {**super().data_options(), "num_test": min(self.num_test, available)}

    def point_keys(self) -> tuple[str, ...]:
        """``width=100,regime=square``: every regime at the smallest width, then at the next one."""
        return tuple(f"width={width},regime={name}" for width in self.widths for name in self.regimes)

    def value_of(self, key: str) -> tuple[int, str]:
        """(width, regime) of a key."""
        width, _, regime = key.removeprefix("width=").partition(",regime=")
        return int(width), regime

    def rates_of(self, regime: str) -> tuple[float, ...]:
        """c = ηλ/n of every line; of cross-entropy, whose steps are normalized, 0."""
        return {"large-rate": self.rates, "weight-decay": (0.5,), "square": (1.0,)}.get(regime, (0.0,))

    def most_steps(self, regime: str) -> int:
        """Steps after which a run stops in any case."""
        most = {"large-rate": RATE_STEPS, "weight-decay": round(DECAY_END / self.decay)}
        return min(self.max_steps, most.get(regime, self.max_steps))


TYPICAL_STEPS = {"large-rate": 20, "cross-entropy": 1500, "weight-decay": 2000, "square": 2000}  # our measurements


def counts(spec: HorizonSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One width and regime, all rates and seeds: a step, a kernel and the outputs at each record."""
    width, regime = spec.value_of(key)
    network = Counted.of(spec, spec.architecture, width, num_copies(spec.architecture))
    steps = typical_steps(spec.most_steps(regime), most, TYPICAL_STEPS[regime])
    looks = steps / stretch(regime, steps // 8)
    with_test = 1 + network.num_test / network.num_samples
    return (
        Counts(
            network,
            {"training": 2},
            times=len(spec.rates_of(regime)) * spec.num_seeds,
            steps=6 * steps + looks * with_test,  # in float64, and those of the linear model
            kernels=2 * looks,
            copies=10,
            views=3,
            matrices=20 * with_test,
        ),
    )
