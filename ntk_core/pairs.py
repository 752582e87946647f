"""Two networks side by side: one form, two specs that differ in nothing but the architecture; free of JAX."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from ntk_core.data import DatasetShapes, dataset_shapes
from ntk_core.data.spec import DatasetSpec
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.errors import InvalidInput
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec, has_infinite_width
from ntk_core.networks.sizes import LayerSize, layer_sizes
from ntk_core.networks.spec import ArchitectureSpec, OutputName
from ntk_core.runs import PRESETS, Preset, Spec
from ntk_core.settings.part import SpecPart, Width
from ntk_core.settings.validation import problems

PARTS = ("a", "b")
# A kernel has n² entries and is kept at every width: beyond this it is not kept, and no heatmap is drawn.
MAX_KEPT_SAMPLES = 200


def _as_in_one(name: str) -> Any:
    """Bounds, title and help of a setting, as the spec of one network has them."""
    return KernelChangeSpec.model_fields[name]


class ArchitecturePair(SpecPart):
    """Kernel change of two networks on the same data, widths, seeds and training."""

    a: ArchitectureSpec = ArchitectureSpec(depth=3)
    b: ArchitectureSpec = ArchitectureSpec(kind="bottleneck", depth=3)
    dataset: DatasetSpec = DatasetSpec(name="digits", classes=(0, 1, 2), standardize="standard")
    widths: tuple[Width, ...] = Field(
        (30, 100, 300),
        min_length=1,
        max_length=24,
        title="Widths m",
        description="Widths m of the hidden layers, one network each.",
    )
    outputs: tuple[OutputName, ...] = Field(
        ("linear",), min_length=1, max_length=4, title="Outputs φ", description="Output nonlinearities φ to compare."
    )
    num_seeds: int = _as_in_one("num_seeds")
    seed: int = _as_in_one("seed")
    training: TrainingSpec = TrainingSpec(loss_threshold=0.03)
    infinite_width: bool = Field(
        True,
        title="Infinite-width kernel",
        description="Measure the distance of K(w₀) to the kernel K_∞ of infinite width, for each network where K_∞ is "
        "known (linear output).",
    )

    @model_validator(mode="after")
    def _both_are_possible(self) -> Self:
        for part in PARTS:
            try:
                self.spec(part)
            except ValidationError as error:
                first = problems(KernelChangeSpec, error)[0]
                name = first.field.replace("architecture", part, 1)
                raise InvalidInput(name, first.given, first.allowed) from None
        return self

    def spec(self, part: str) -> KernelChangeSpec:
        """What is computed for network ``"a"`` or ``"b"``."""
        architecture = getattr(self, part)
        shared = {name: getattr(self, name) for name in ("dataset", "widths", "outputs", "num_seeds", "seed")}
        return KernelChangeSpec(
            **shared,
            training=self.training,
            architecture=architecture,
            keep_kernels=self.dataset.num_samples <= MAX_KEPT_SAMPLES,
            infinite_width=self.infinite_width and has_infinite_width(architecture),
        )

    @property
    def shapes(self) -> DatasetShapes:
        """Of the data that both networks learn."""
        return dataset_shapes(self.dataset.name, **self.dataset.options())

    def layers(self, part: str, width: int) -> list[LayerSize]:
        """The layers of one of the networks at this width."""
        return layer_sizes(getattr(self, part), width, self.shapes.input_shape, self.shapes.num_outputs)


def pair_of(a: Spec, b: Spec) -> ArchitecturePair | None:
    """The pair whose networks have these specs; None when there is none, since they differ in more."""
    if not (isinstance(a, KernelChangeSpec) and isinstance(b, KernelChangeSpec)):
        return None
    shared = {name: getattr(a, name) for name in ("dataset", "widths", "outputs", "num_seeds", "seed", "training")}
    try:
        pair = ArchitecturePair(
            a=a.architecture, b=b.architecture, infinite_width=a.infinite_width or b.infinite_width, **shared
        )
    except ValidationError:
        return None
    return pair if (pair.spec("a"), pair.spec("b")) == (a, b) else None


def _presets() -> dict[str, Preset[ArchitecturePair]]:
    convergence = PRESETS["kernel-convergence"]
    limits = ArchitecturePair(
        a=ArchitectureSpec(depth=1),
        b=ArchitectureSpec(kind="resnet", depth=2),
        widths=(30, 100, 300, 1000),
    )
    convolution = ArchitecturePair(
        a=ArchitectureSpec(depth=2),
        b=ArchitectureSpec(kind="convnet", depth=2),
        widths=(8, 16, 32),
        num_seeds=3,
    )
    choices = (
        "Data (MNIST averaged to 7 × 7, classes 0, 1 and 2), depths, widths, loss threshold and number of runs are our "
        "choice."
    )
    found = (
        Preset(
            "bottleneck",
            "With and without a bottleneck",
            "One narrow layer keeps the kernel moving, however wide the other layers are.",
            "Liu, Zhu & Belkin 2020, §4",
            choices,
            ArchitecturePair(),
            ArchitecturePair(),
        ),
        Preset(
            convergence.name,
            "Kernel at w₀ against infinite width",
            convergence.claim,
            convergence.source,
            choices,
            limits,
            limits,
        ),
        Preset(
            "convolution",
            "Dense against shared weights",
            "With shared weights the number of channels is the width: the kernel stops moving as it grows.",
            "Liu, Zhu & Belkin 2020, App. G.1; Zhu, Liu & Belkin 2022, App. E",
            choices,
            convolution,
            convolution,
        ),
    )
    return {preset.name: preset for preset in found}


PAIRS = _presets()
