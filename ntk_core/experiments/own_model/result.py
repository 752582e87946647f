"""Results of ``own_model``: what was found in the program, and every run, for each width."""

from collections.abc import Sequence
from typing import Literal

from ntk_core.experiments.kernel_change.result import COLUMNS as CHANGES
from ntk_core.experiments.kernel_change.result import KernelChangeRun, KernelChanges
from ntk_core.experiments.own_model.spec import OwnModelSpec
from ntk_core.fits import PowerLaw, fit_runs
from ntk_core.runs import ResultValue, Value
from ntk_core.runs.columns import Column


class OwnLayer(Value):
    """One parameter, or a part of it, as ``ntk_core.layers_of`` finds it."""

    name: str
    kind: str
    uses: int
    positions: int
    num_params: int
    operations: tuple[str, ...]

    @property
    def route(self) -> str:
        """How its part of the kernel is computed, and what keeps it from the structured route."""
        why = f" ({', '.join(self.operations)})" if self.operations else ""
        return "structured" if self.uses else f"Jacobian{why}"


class OwnModelRun(KernelChangeRun):
    """One initialization; see ``ntk_core.own_models.OwnRun``."""

    output: str = "linear"
    hessian_norm: float | None = None
    hessian_converged: bool = True
    velocity: float | None = None


class OwnModelPoint(KernelChanges):
    """All runs of one width.

    Attributes:
        layers: of the first seed's model; none where its program cannot be traced.
        multiplications, num_bytes: of the kernel by their routes; ``jacobian_…``: by Jacobians of everything.
        difference: from plain derivatives on two inputs, relative to the largest; None where no part is structured.
    """

    kind: Literal["own_model"] = "own_model"
    runs: tuple[OwnModelRun, ...]
    layers: tuple[OwnLayer, ...] = ()
    multiplications: int = 0
    jacobian_multiplications: int = 0
    num_bytes: int = 0
    jacobian_bytes: int = 0
    difference: float | None = None


COLUMNS = (
    *(column for column in CHANGES if column.name not in ("kernel_velocity", "ball_kernel_change")),
    Column("kernel_velocity", "kernel velocity", lambda _, run: run.velocity),
    Column("hessian_norm", "Hessian norm ‖H‖"),
    Column("hessian_converged", ""),
)


class OwnModelResult(ResultValue):
    """What ``own`` computed: ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F, ‖H(w₀)‖ and ‖K̇₀‖_F / ‖K₀‖_F of every run.

    Source: Liu, Zhu & Belkin 2020, §6 and Fig. 1.
    """

    columns = COLUMNS
    spec: OwnModelSpec
    points: tuple[OwnModelPoint, ...]


def change_law(points: Sequence[OwnModelPoint]) -> PowerLaw | None:
    """ΔK against width, over the runs that converged."""
    runs = [(point.width, run) for point in points for run in point.runs]
    return fit_runs(runs, lambda run: run.sup_change, lambda run: run.outcome == "converged")
