"""A network and its kernels on test points, against width, richness and training points."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ntk_core.data import DATASETS
from ntk_core.data.spec import DatasetSpec
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.errors import InvalidInput
from ntk_core.networks.sizes import num_copies
from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.runs import Counted, Counts, SweepSpec, typical_steps
from ntk_core.settings.part import Ascending, Width

MAX_ROWS = 5000  # n·C of a kernel that is inverted


class GeneralizationSpec(SweepSpec):
    """Test errors of networks, their linear models and their kernels.

    Of F = m^(−ρ) f, of its linear model, and of regression with K₀, with K_s along training, and with K_∞.

    Training by gradient descent on the square loss, at a rate that grows like m^(2ρ), so that F learns as fast at every
    width. Kernels predict K(x, X) (K(X, X) + (λ + ε) k̄ 1)⁻¹ y, see :func:`kernel_regression`. A point is (m, ρ, n).

    Source: Yang & Hu 2021, §3; Ghorbani, Mei, Misiakiewicz & Montanari 2020; Long 2021; docs/math/generalization.md.

    >>> GeneralizationSpec(widths=(100,), richness=(0.0, 0.5), samples=(120,)).point_keys()
    ('width=100,richness=0.0,samples=120', 'width=100,richness=0.5,samples=120')
    """

    one_output: ClassVar[bool] = True
    point_words: ClassVar[tuple[str, str]] = ("choice of width, ρ and n", "choices of width, ρ and n")

    experiment: Literal["generalization"] = "generalization"
    dataset: DatasetSpec = DatasetSpec(name="parity", num_samples=120, input_dim=20, num_relevant=2, noise=0.0)
    architecture: ArchitectureSpec = ArchitectureSpec(activation="relu", initial_output="subtracted", use_bias=False)
    widths: tuple[Width, ...] = SweepSpec.field("widths", (100, 1000, 5000))
    richness: Annotated[tuple[Annotated[float, Field(ge=0, le=0.5)], ...], Ascending] = Field(
        default=(0.0, 0.5), min_length=1, max_length=8, title="Richness ρ"
    )
    """Factors m^(−ρ) in front of f, each at every width: lazy at 0, rich at 0.5."""
    samples: Annotated[tuple[Annotated[int, Field(ge=1, le=MAX_ROWS)], ...], Ascending] = Field(
        default=(), max_length=16, title="Learning curve, n"
    )
    """Numbers n of training points, each at every width, for learning curves; those of the data when empty."""
    num_seeds: int = SweepSpec.field("num_seeds", 3, "Independent networks, with data of their own, for each point.")
    draws: Literal["network", "network and data"] = SweepSpec.field("draws", "network and data")
    num_test: int = Field(default=1000, ge=1, le=10_000, title="Test points")
    """Held-out test points; fewer if the data set is smaller."""
    ridge: float = Field(default=0.0, ge=0, le=1000, title="Ridge λ")
    """What is added to the diagonal of every kernel that is inverted: λ times its mean."""
    infinite_width: bool = Field(default=True, title="Infinite-width kernel")
    """Regression with K_∞ too, where it is known."""
    training: TrainingSpec = TrainingSpec(max_steps=20_000, loss_threshold=0.001, num_records=10)

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.samples and not self.dataset.uses("num_samples"):
            raise InvalidInput("samples", self.samples, "none: given points are as many as they are", ())
        for count in self.counts:
            field = "samples" if self.samples else "dataset.num_samples"
            try:
                shapes = self.of_samples(count).shapes()
            except InvalidInput as error:
                raise InvalidInput(field, count, error.allowed, error.nearest) from None
            if shapes is None:
                return self
            most = min(MAX_ROWS // shapes.num_outputs, shapes.available_train)
            if count > most:
                raise InvalidInput(field, count, f"at most {most:,}: kernels of n·C rows are inverted")
            if not shapes.available_test:
                raise InvalidInput(field, count, "fewer, so that points are left to test on")
            self.architecture.check_inputs(shapes.input_shape, widths=self.widths)
        return self

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers n of training points."""
        return self.samples or (self.dataset.num_points,)

    def of_samples(self, count: int) -> Self:
        """Return the spec with this number of training points only."""
        if not self.dataset.uses("num_samples"):
            return self
        dataset = self.dataset.model_copy(update={"num_samples": count})
        return self.model_copy(update={"dataset": dataset, "samples": ()})

    def data_options(self) -> dict[str, Any]:
        """The options of ``load_dataset``: two classes are one output, −1 and +1; test points as there are."""
        shapes = self.shapes()
        available = self.num_test if shapes is None else shapes.available_test
        return {**super().data_options(), "num_test": min(self.num_test, available)}

    @property
    def least_risk(self) -> tuple[float, float]:
        """(test error, test loss) that nothing is below, by the law of the data; NaN where it is not known."""
        return DATASETS[self.dataset.name].least_risk(self.dataset.options())

    def point_keys(self) -> tuple[str, ...]:
        """``width=100,richness=0.5,samples=120``, every width at every ρ and n, in order of cost."""
        sizes = sorted(((width, n) for width in self.widths for n in self.counts), key=lambda size: size[0] * size[1])
        return tuple(generalization_key(width, rho, n) for width, n in sizes for rho in self.richness)

    def value_of(self, key: str) -> tuple[int, float, int]:
        """(width, richness, number of training points) of a key."""
        values = dict(part.split("=") for part in key.split(","))
        return int(values["width"]), float(values["richness"]), int(values["samples"])


def generalization_key(width: int, richness: float, samples: int) -> str:
    """The key of a point; reads back as the same numbers."""
    return f"width={width},richness={richness!r},samples={samples}"


TYPICAL_STEPS = 300  # some 40 at ρ = 1/2 and 500 at ρ = 0
ALL_EIGENVECTORS = 1500  # rows up to which all are computed; beyond, the leading ones


def counts(spec: GeneralizationSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One point, all seeds; ``most`` counts all steps that are allowed."""
    width, _, count = spec.value_of(key)
    network = Counted.of(spec.of_samples(count), spec.architecture, width, num_copies(spec.architecture))
    records, steps = spec.training.num_records + 1, typical_steps(spec.training.max_steps, most, TYPICAL_STEPS)
    with_test = 1 + network.num_test / network.num_samples
    infinite = spec.infinite_width and spec.architecture.has_infinite_width
    whole = network.kernel_rows <= ALL_EIGENVECTORS
    shared = 1 / len(spec.richness)  # every ρ has the same programs
    return (
        Counts(
            network,
            {"regression": shared * (1 + infinite)},
            times=spec.num_seeds,
            steps=steps,
            kernels=records * with_test,
            cubes=records / 3 + 10 * whole,
            squares=2 * steps + 20 * records * with_test + 500 * (not whole),
            copies=5,
            views=1,
            matrices=4 * with_test + 10,
        ),
    )
