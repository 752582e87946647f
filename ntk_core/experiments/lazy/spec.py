"""From lazy to rich training: the width of a model, its scale, and a dial between the two limits of infinite width."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ntk_core.data.spec import DatasetSpec
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.errors import InvalidInput
from ntk_core.networks.choices import almost_everywhere
from ntk_core.networks.spec import ArchitectureSpec, OutputName
from ntk_core.runs import SweepSpec
from ntk_core.settings.part import Ascending, Once, Width

StartName = Literal["random", "subtracted", "symmetric"]


class LazySpec(SweepSpec):
    """κ = |F(w₀) − y| ‖H(w₀)‖ / ‖∇F(w₀)‖² of F = φ(α m^(−ρ) f), and how far training moves weights, features, kernel.

    Every width at α = 1, ρ = 0, the smallest width at every scale α, and every width at every richness ρ (r = ½ − ρ
    of Yang & Hu): a point is (m, α, ρ).

    Source: Chizat, Oyallon & Bach 2019, §1; Liu, Zhu & Belkin 2020, §1.1; Yang & Hu 2021, §3.
    """

    point_words: ClassVar[tuple[str, str]] = ("pair of width and scale", "pairs of width and scale")

    experiment: Literal["lazy"] = "lazy"
    dataset: DatasetSpec = DatasetSpec(num_samples=12, num_classes=2, noise=0.5)
    # Output weights ±1, not trained: with normal ones the largest of m adds a slowly growing factor. Our choice.
    architecture: ArchitectureSpec = ArchitectureSpec(activation="tanh", output_weights="signs", trained="hidden")
    widths: tuple[Width, ...] = SweepSpec.field(
        "widths", (100, 300, 1000, 10_000), "Widths m of the hidden layers, each at scale α = 1."
    )
    scales: Annotated[tuple[Annotated[float, Field(ge=1e-3, le=1e4)], ...], Ascending] = Field(
        (1.0, 3.0, 9.0, 27.0), min_length=1, max_length=12, title="Scales α"
    )
    """Factors α in front of f, each at the smallest width."""
    richness: Annotated[tuple[Annotated[float, Field(gt=0, le=0.5)], ...], Ascending] = Field(
        (), max_length=8, title="Richness ρ"
    )
    """Factors m^(−ρ) in front of f at every width, up to ρ = 0.5; beside ρ = 0, the widths at scale 1."""
    num_seeds: int = SweepSpec.field("num_seeds", 3, "Independent initializations w₀ for each pair.")
    starts: Annotated[tuple[StartName, ...], Once] = Field(
        ("random", "subtracted"), min_length=1, max_length=3, title="Outputs at w₀"
    )
    """random f(w₀); 0 by subtraction, f − f(w₀); or 0 by two mirrored copies."""
    outputs: Annotated[tuple[OutputName, ...], Once] = Field(
        ("linear", "swish"), min_length=1, max_length=4, title="Outputs φ"
    )
    """Output nonlinearities φ to compare, each trained with the square loss of φ(α f)."""
    training: TrainingSpec = TrainingSpec(max_steps=5000, loss_threshold=1e-3, num_records=12)

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        shapes = self.dataset.known_shapes()
        if shapes is not None:
            self.architecture.check_inputs(shapes.input_shape, widths=self.widths)
        if self.architecture.initial_output != "random":
            raise InvalidInput(
                "architecture.initial_output", self.architecture.initial_output, "random; starts says what is compared"
            )
        return self

    @property
    def almost_everywhere(self) -> str:
        """What κ misses where an activation or output has a kink; empty for others."""
        return almost_everywhere(self.architecture.activations, self.outputs)

    def point_keys(self) -> tuple[str, ...]:
        """``width=100,scale=10.0``: the smallest width at every scale, then all widths at scale 1, every richness."""
        narrow = [lazy_key(self.widths[0], scale) for scale in sorted({1.0, *self.scales})]
        dial = [lazy_key(width, 1.0, richness) for width in self.widths for richness in (0.0, *self.richness)]
        return tuple(dict.fromkeys([*narrow, *dial]))

    def value_of(self, key: str) -> tuple[int, float, float]:
        """(width, scale, richness) of a key."""
        values = dict(part.split("=") for part in key.split(","))
        return int(values["width"]), float(values["scale"]), float(values.get("richness", 0))


def lazy_key(width: int, scale: float, richness: float = 0.0) -> str:
    """The key of a point; reads back as the same numbers. Without richness the key has no entry for it."""
    return f"width={width},scale={scale!r}" + (f",richness={richness!r}" if richness else "")
