"""Kernel change along training of several networks, one network and width at a time."""

from collections.abc import Generator

from ntk_core.data import Dataset
from ntk_core.experiments.architectures import ArchitecturesPoint, ArchitecturesSpec
from ntk_core.experiments.kernel_change import compute as kernel_change
from ntk_core.runs import Growth, PointValue, Progress


def compute(spec: ArchitecturesSpec, data: Dataset, key: str) -> Generator[Progress | Growth, None, ArchitecturesPoint]:
    """All seeds and outputs of one network of one width; yields as that of ``kernel_change``."""
    letter, width = spec.value_of(key)
    of_one = kernel_change.compute(spec.of_network(letter), data, f"width={width}", name=f"network {letter}, ")

    def of_network(point: PointValue) -> ArchitecturesPoint:
        return ArchitecturesPoint.model_validate({**dict(point), "kind": spec.experiment, "network": letter})

    while True:
        try:
            share, message, *grown = next(of_one)
        except StopIteration as end:
            return of_network(end.value)
        yield (share, message, of_network(grown[0])) if grown else (share, message)
