"""``architectures`` as text: the table and the exponents of each network."""

from collections.abc import Sequence

from ntk_core.experiments.architectures.result import ArchitecturesPoint
from ntk_core.experiments.architectures.spec import ArchitecturesSpec
from ntk_core.experiments.kernel_change.summary import kernel_change_summary


def architectures_summary(spec: ArchitecturesSpec, points: Sequence[ArchitecturesPoint]) -> str:
    """For each network what :func:`kernel_change_summary` says of it."""
    return "\n\n".join(
        f"Network {letter}: {architecture.record.title}\n" + kernel_change_summary(spec.of_network(letter), found)
        for letter, architecture in spec.networks.items()
        if (found := [point for point in points if point.network == letter])
    )
