"""Results of ``architectures``: those of ``kernel_change``, for each of the networks."""

from typing import Literal

from ntk_core.experiments.architectures.spec import ArchitecturesSpec, network_key
from ntk_core.experiments.kernel_change.result import COLUMNS as CHANGES
from ntk_core.experiments.kernel_change.result import KernelChanges
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
    """Everything an ``architectures`` run gave; ``points`` are in the order of the spec's keys, some may be missing.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F of every network, width, output and seed.

    Source: Liu, Zhu & Belkin 2020, §6; the comparison is our choice.
    """

    columns = COLUMNS
    spec: ArchitecturesSpec
    points: tuple[ArchitecturesPoint, ...]
