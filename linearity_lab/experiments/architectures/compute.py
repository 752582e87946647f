"""Kernel change along training of several networks, one network and width at a time."""

from collections.abc import Generator

from linearity_lab.data import Dataset
from linearity_lab.experiments.architectures.point import ArchitecturesPoint, ArchitecturesSpec
from linearity_lab.experiments.kernel_change import compute as kernel_change
from linearity_lab.runs import Growth, PointValue, Progress, relayed


def compute(
    spec: ArchitecturesSpec, data: Dataset, key: str
) -> Generator[Progress | Growth, None, ArchitecturesPoint]:
    """Compute one network at one width, all seeds and outputs; yield like ``kernel_change``."""
    letter, width = spec.value_of(key)
    of_one = kernel_change.compute(
        spec.of_network(letter), data, f"width={width}", name=f"network {letter}, "
    )

    def of_network(point: PointValue) -> ArchitecturesPoint:
        return ArchitecturesPoint.model_validate(
            {**dict(point), "kind": spec.experiment, "network": letter}
        )

    def renamed(report: Progress | Growth) -> Progress | Growth:
        return (
            report._replace(point=of_network(report.point))
            if isinstance(report, Growth)
            else report
        )

    return of_network((yield from relayed(of_one, renamed)))
