"""From lazy to rich training: the width of a model, its scale, and a dial between the two limits of infinite width."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ntk_core.data.spec import DatasetSpec
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.errors import InvalidInput
from ntk_core.experiments._trained_sweep import TrainedSweep
from ntk_core.networks.spec import ArchitectureSpec, OutputName
from ntk_core.runs import HESSIAN_BASIS, MATVECS, Counts
from ntk_core.settings.part import Ascending, Once, Width


class LazySpec(TrainedSweep):
    """Lazy and rich training by width, scale and richness.

    κ = |F(w₀) − y| ‖H(w₀)‖ / ‖∇F(w₀)‖² of F = φ(α m^(−ρ) f), and how far training moves weights, features and kernel.

    Every width at α = 1, ρ = 0, the smallest width at every scale α, and every width at every richness ρ (r = ½ − ρ
    of Yang & Hu): a point is (m, α, ρ).

    Source: Chizat, Oyallon & Bach 2019, §1; Liu, Zhu & Belkin 2020, §1.1; Yang & Hu 2021, §3.

    >>> LazySpec(widths=(16,), scales=(1.0, 10.0), richness=(0.5,)).point_keys()
    ('width=16,scale=1.0', 'width=16,scale=10.0', 'width=16,scale=1.0,richness=0.5')
    """

    point_words: ClassVar[tuple[str, str]] = ("pair of width and scale", "pairs of width and scale")

    experiment: Literal["lazy"] = "lazy"
    dataset: DatasetSpec = DatasetSpec(num_samples=12, num_classes=2, noise=0.5)
    # Output weights ±1, not trained: with normal ones the largest of m adds a slowly growing factor. Our choice.
    architecture: ArchitectureSpec = ArchitectureSpec(activation="tanh", output_weights="signs", trained="hidden")
    widths: tuple[Width, ...] = TrainedSweep.field(
        "widths", (100, 300, 1000, 10_000), "Widths m of the hidden layers, each at scale α = 1."
    )
    scales: Annotated[tuple[Annotated[float, Field(ge=1e-3, le=1e4)], ...], Ascending] = Field(
        default=(1.0, 3.0, 9.0, 27.0), min_length=1, max_length=12, title="Scales α"
    )
    """Factors α in front of f, each at the smallest width."""
    richness: Annotated[tuple[Annotated[float, Field(gt=0, le=0.5)], ...], Ascending] = Field(
        default=(), max_length=8, title="Richness ρ"
    )
    """Factors m^(−ρ) in front of f at every width, up to ρ = 0.5. The widths at scale 1 are ρ = 0."""
    num_seeds: int = TrainedSweep.field("num_seeds", 3, "Independent initializations w₀ for each pair.")
    starts: Annotated[tuple[Literal["random", "subtracted", "symmetric"], ...], Once] = Field(
        default=("random", "subtracted"), min_length=1, max_length=3, title="Outputs at w₀"
    )
    """random f(w₀); 0 by subtraction, f − f(w₀); or 0 by two mirrored copies."""
    outputs: Annotated[tuple[OutputName, ...], Once] = Field(
        default=("linear", "swish"), min_length=1, max_length=4, title="Outputs φ"
    )
    """Output nonlinearities φ to compare, each trained with the square loss of φ(α f)."""
    training: TrainingSpec = TrainingSpec(max_steps=5000, loss_threshold=1e-3, num_records=12)

    @model_validator(mode="after")
    def _starts_are_compared(self) -> Self:
        given = self.architecture.initial_output
        if given != "random":
            raise InvalidInput("architecture.initial_output", given, "random; starts names what is compared")
        return self

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


def counts(spec: LazySpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One point, all outputs, starts and seeds; ``most`` counts all steps that are allowed."""
    width, num_lines = spec.value_of(key)[0], len(spec.outputs) * len(spec.starts)
    copies = 1 if spec.starts == ("random",) else 2  # an output of 0 at w₀ needs a copy
    network = spec.counted(width)
    directions = sum(layer.positions * (layer.fan_in + layer.features) for layer in network.layers)
    programs = {"training": num_lines, "hessian": num_lines}
    # The least distance takes five kernels between w₀ and w_T.
    found = {"products": 2 * network.num_outputs * MATVECS, "kernels": 5, "programs": programs}
    held = {"copies": 5 * copies, "views": copies, "numbers": HESSIAN_BASIS * copies * directions}
    return (spec.trainings(width, num_lines * copies, spec.typical_steps(most), **found, **held),)
