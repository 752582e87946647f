"""Kernel change of networks that differ only in architecture."""

import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from linearity_lab.data import DatasetShapes, dataset_shapes
from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.kernel_change.point import COLUMNS as CHANGES
from linearity_lab.experiments.kernel_change.point import KernelChanges, kernel_change_summary
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.experiments.kernel_change.spec import counts as counts_of_kernel_change
from linearity_lab.experiments.kernel_change.spec import kept_bytes as kept_bytes_of_kernel_change
from linearity_lab.experiments.lettered_networks import LetteredNetworks, architectures_field
from linearity_lab.networks.sizes import LayerSize, layer_sizes
from linearity_lab.networks.spec import ArchitectureSpec, OutputName
from linearity_lab.runs import Counts, Experiment, ResultValue, SpecOf, SweepSpec
from linearity_lab.runs.columns import Column
from linearity_lab.settings.part import Once, Width
from linearity_lab.settings.training import TrainingSpec

# A kernel has n² entries at every width; beyond this size none is kept and no heatmap is drawn.
MAX_KEPT_SAMPLES = 200


class ArchitecturesSpec(LetteredNetworks, SpecOf["ArchitecturesResult"]):
    """Kernel change of up to four networks that differ only in architecture.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F against width. Each network has its own
    :class:`KernelChangeSpec`; a point is one network at one width.

    Source: Liu, Zhu & Belkin 2020, §4, §6 and App. G; the comparison is our choice.

    >>> two = (ArchitectureSpec(kind="resnet", depth=3), ArchitectureSpec(kind="densenet", depth=3))
    >>> ArchitecturesSpec(architectures=two, widths=(30, 100)).point_keys()[:2]
    ('network=A,width=30', 'network=B,width=30')
    """

    point_words: ClassVar[tuple[str, str]] = ("point", "points")

    experiment: Literal["architectures"] = "architectures"
    architectures: tuple[ArchitectureSpec, ...] = architectures_field(
        ArchitectureSpec(depth=3), ArchitectureSpec(kind="bottleneck", depth=3)
    )
    """Number of networks to compare."""
    dataset: DatasetSpec = DatasetSpec(name="digits", classes=(0, 1, 2), standardize="standard")
    widths: tuple[Width, ...] = SweepSpec.field("widths", (30, 100, 300, 1000))
    outputs: Annotated[tuple[OutputName, ...], Once] = KernelChangeSpec.field(
        "outputs", ("linear",)
    )
    training: TrainingSpec = TrainingSpec(loss_threshold=0.03)
    infinite_width: bool = Field(
        default=True,
        title="Infinite-width kernel",
        description="Distance of K(w₀) to the infinite-width kernel K_∞, where it is known (linear "
        "output).",
    )

    def of_network(self, letter: str) -> KernelChangeSpec:
        """Kernel-change spec of one network."""
        architecture = self.networks[letter]
        return KernelChangeSpec(
            architecture=architecture,
            dataset=self.dataset,
            widths=self.widths,
            outputs=self.outputs,
            num_seeds=self.num_seeds,
            seed=self.seed,
            training=self.training,
            keep_kernels=self.dataset.num_points <= MAX_KEPT_SAMPLES,
            infinite_width=self.infinite_width and architecture.has_infinite_width,
        )

    def num_records(self, key: str) -> Mapping[str, int]:
        """Return the records of the network of this key."""
        letter, width = self.value_of(key)
        return _of_network(self, letter).num_records(f"width={width}")

    def shapes(self) -> DatasetShapes:
        """Shapes of the shared data set."""
        return dataset_shapes(self.dataset.name, **self.dataset.options())

    def layers(self, letter: str, width: int) -> tuple[LayerSize, ...]:
        """Layers of one network at this width."""
        shapes = self.shapes()
        return layer_sizes(self.networks[letter], width, shapes.input_shape, shapes.num_outputs)


_of_network = functools.lru_cache(maxsize=256)(ArchitecturesSpec.of_network)


def counts(spec: ArchitecturesSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """Count one network at one width, all seeds and outputs."""
    letter, width = spec.value_of(key)
    return counts_of_kernel_change(_of_network(spec, letter), f"width={width}", most)


def _kept_bytes(spec: ArchitecturesSpec, key: str) -> float:
    """Bytes of the kernels that a point keeps."""
    letter, width = spec.value_of(key)
    return kept_bytes_of_kernel_change(_of_network(spec, letter), f"width={width}")


class ArchitecturesPoint(KernelChanges):
    """All runs of one network at one width.

    Attributes:
        network: its letter.
    """

    key_parts = ArchitecturesSpec.key_parts

    kind: Literal["architectures"] = "architectures"
    network: str


COLUMNS = (Column("network", "network", lambda point, _: point.network, role="line"), *CHANGES)


class ArchitecturesResult(ResultValue):
    """Result of an ``architectures`` run.

    ``points`` are in the order of the spec's keys; some may be missing.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F of every network, width, output and seed.

    Source: Liu, Zhu & Belkin 2020, §6; the comparison is our choice.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> result = ArchitecturesResult.model_validate_json((GALLERY / "bottleneck.json").read_bytes())
    >>> sorted({point.network for point in result.points})
    ['A', 'B']
    """

    columns = COLUMNS
    spec: ArchitecturesSpec
    points: tuple[ArchitecturesPoint, ...]


def architectures_summary(spec: ArchitecturesSpec, points: Sequence[ArchitecturesPoint]) -> str:
    """Return :func:`kernel_change_summary` of each network."""
    parts = []
    for letter, architecture in spec.networks.items():
        own = [point for point in points if point.network == letter]
        if own:
            summary = kernel_change_summary(spec.of_network(letter), own)
            parts.append(f"Network {letter}: {architecture.record.title}\n{summary}")
    return "\n\n".join(parts)


EXPERIMENT = Experiment(
    ArchitecturesSpec,
    ArchitecturesPoint,
    ArchitecturesResult,
    counts,
    architectures_summary,
    ("liu", "zhu"),
    record_bytes=130,
    kept_bytes=_kept_bytes,
)
