"""Results of ``linearity_report``: the numbers of a report, its layers as rows."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from ntk_core.experiments.linearity_report.spec import LinearityReportSpec
from ntk_core.linearity import LAYER_HEAD, layer_rows, rows_of, verdict_of
from ntk_core.runs import PointValue, ResultValue, Value, aligned
from ntk_core.runs.columns import Column


class ReportedLayer(Value):
    """See ``ntk_core.linearity.LayerReport``."""

    name: str
    num_params: int
    distance: float
    output_share: float
    kernel_share: float


class LinearityReportPoint(PointValue):
    """See ``ntk_core.linearity.LinearityReport``."""

    kind: Literal["linearity_report"] = "linearity_report"
    num_inputs: int
    num_outputs: int
    num_params: int
    output_change: float
    output_error: float
    second_order_share: float
    derivative_change: float
    rounding: float
    kernel_change: float
    kernel_interval: float
    kernel_distance: float
    layers: tuple[ReportedLayer, ...]
    loss: float | None = None
    linear_loss: float | None = None
    regression_loss: float | None = None

    @property
    def key(self) -> str:
        return "report"

    @property
    def records(self) -> Sequence[Any]:
        return self.layers


_OF_ALL = (
    "output_change", "output_error", "second_order_share", "derivative_change", "kernel_change", "kernel_interval",
    "kernel_distance", "loss", "linear_loss", "regression_loss",
)  # fmt: skip


def _of_all(name: str, point: LinearityReportPoint, _: ReportedLayer) -> Any:
    return getattr(point, name)


COLUMNS = (
    Column("name", "Parameter", role="line"),
    Column("num_params", "", role="label"),
    Column("distance", "Distance ‖δ‖ / ‖w₀‖"),
    Column("output_share", "Share of J₀δ"),
    Column("kernel_share", "Share of tr K₀"),
    *(Column(name, "", partial(_of_all, name), role="label") for name in _OF_ALL),
)


class LinearityReportResult(ResultValue):
    """Result of ``linearity-lab report`` for two checkpoints.

    With w₁ = w₀ + δ: f(w₁) − f(w₀) against J₀δ, and ΔK.

    Source: Liu, Zhu & Belkin 2020, §2; Lee et al. 2019, §2.2.
    """

    columns = COLUMNS
    spec: LinearityReportSpec
    points: tuple[LinearityReportPoint, ...]


def report_summary(spec: LinearityReportSpec, points: Sequence[LinearityReportPoint]) -> str:
    """Verdict, numbers, layers."""
    (point,) = points
    return "\n".join([verdict_of(point), "", *aligned(rows_of(point)), "", *aligned([LAYER_HEAD, *layer_rows(point)])])
