"""Results of ``architectures``: those of ``kernel_change``, for each of the networks."""

from typing import Literal

from ntk_core.experiments.architectures.spec import ArchitecturesSpec, network_key
from ntk_core.experiments.kernel_change.result import KernelChanges
from ntk_core.runs import ResultValue


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


class ArchitecturesResult(ResultValue):
    """Everything an ``architectures`` run gave; ``points`` are in the order of the spec's keys, some may be missing.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F of every network, width, output and seed.

    Source: Liu, Zhu & Belkin 2020, §6; the comparison is our choice.
    """

    spec: ArchitecturesSpec
    points: tuple[ArchitecturesPoint, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row per network, width, output and seed, as in ``points.csv``."""
        distance = self.spec.infinite_width
        return [
            {"network": point.network, **row} for point in self.points for row in point.rows(infinite_width=distance)
        ]
