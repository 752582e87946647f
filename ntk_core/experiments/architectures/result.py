"""Results of ``architectures``: those of ``kernel_change``, for each of the networks."""

from collections.abc import Sequence
from typing import Literal

from ntk_core.experiments.architectures.spec import ArchitecturesSpec, network_key
from ntk_core.experiments.kernel_change.result import COLUMNS as CHANGES
from ntk_core.experiments.kernel_change.result import KernelChanges, kernel_change_summary
from ntk_core.runs import ResultValue
from ntk_core.runs.columns import Column


class ArchitecturesPoint(KernelChanges):
    """All runs of one network of one width.

    Attributes:
        network: its letter.
    """

    kind: Literal["architectures"] = "architectures"
    network: str

    @property
    def key(self) -> str:
        return network_key(self.network, self.width)


COLUMNS = (Column("network", "network", lambda point, _: point.network, role="line"), *CHANGES)


class ArchitecturesResult(ResultValue):
    """Result of an ``architectures`` run.

    ``points`` are in the order of the spec's keys; some may be missing.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F of every network, width, output and seed.

    Source: Liu, Zhu & Belkin 2020, §6; the comparison is our choice.

    >>> from ntk_core.runs.gallery import GALLERY
    >>> result = ArchitecturesResult.model_validate_json((GALLERY / "bottleneck.json").read_bytes())
    >>> sorted({point.network for point in result.points})
    ['A', 'B']
    """

    columns = COLUMNS
    spec: ArchitecturesSpec
    points: tuple[ArchitecturesPoint, ...]


def architectures_summary(spec: ArchitecturesSpec, points: Sequence[ArchitecturesPoint]) -> str:
    """Return :func:`kernel_change_summary` of each network."""
    return "\n\n".join(
        f"Network {letter}: {architecture.record.title}\n" + kernel_change_summary(spec.of_network(letter), found)
        for letter, architecture in spec.networks.items()
        if (found := [point for point in points if point.network == letter])
    )
