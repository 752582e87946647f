"""Kernel change along training of several networks, one network and width at a time."""

from typing import Any

from linearity_lab.data import Dataset
from linearity_lab.experiments.architectures.point import ArchitecturesPoint, ArchitecturesSpec
from linearity_lab.experiments.kernel_change import compute as kernel_change
from ntk_core.progress import Progress


def compute(
    spec: ArchitecturesSpec, data: Dataset, key: str, progress: Progress
) -> ArchitecturesPoint:
    """Compute one network at one width, all seeds and outputs, as ``kernel_change`` does."""
    letter, width = spec.value_of(key)

    def of_network(point: Any) -> ArchitecturesPoint:
        fields = {**dict(point), "kind": spec.experiment, "network": letter}
        return ArchitecturesPoint.model_validate(fields)

    point = kernel_change.compute(
        spec.of_network(letter),
        data,
        f"width={width}",
        progress.showing(of_network),
        name=f"network {letter}, ",
    )
    return of_network(point)
