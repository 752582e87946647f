"""Two checkpoints of a model of your own: reported by the command ``report`` alone, kept and shown like any run."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Literal, NoReturn

from pydantic import Field

from ntk_core.data.spec import DatasetSpec
from ntk_core.errors import InvalidInput
from ntk_core.linearity import LAYER_HEAD, layer_rows, rows_of, verdict_of
from ntk_core.runs import Experiment, ExperimentSpec, PointValue, ResultValue, Value, aligned
from ntk_core.runs.columns import Column
from ntk_core.settings.grammar import text_of
from ntk_core.settings.part import Width
from ntk_core.settings.walk import values_of

_NAME = r"^[^/\\\x00-\x1f]{1,200}$"
_SHA256 = "^[0-9a-f]{64}$"


class LinearityReportSpec(ExperimentSpec):
    """Settings of ``linearity-lab report FILE.py BEFORE AFTER``.

    Files by name and SHA-256 → a linearity report.

    Source: docs/decisions/0014-own-models.md; ``ntk_core.linearity_report``.
    """

    swept_field: ClassVar[str] = "function"
    point_words: ClassVar[tuple[str, str]] = ("report", "reports")

    experiment: Literal["linearity_report"] = "linearity_report"
    file: str = Field(default="model.py", pattern=r"^[^/\\\x00-\x1f]{1,200}\.py$", title="File")
    """Name of the file, without its folder."""
    function: str = Field(default="model", pattern=r"^[^\W\d]\w{0,99}$", title="Name in the file")
    """The function of (width, key), or the model."""
    sha256: str = Field(default="0" * 64, pattern=_SHA256, title="SHA-256 of the file")
    """Of its bytes as they were run."""
    before: str = Field(default="before.npz", pattern=_NAME, title="Checkpoint before")
    """File of the weights w₀, without its folder."""
    before_sha256: str = Field(default="0" * 64, pattern=_SHA256, title="SHA-256 of the checkpoint before")
    """Of its bytes."""
    after: str = Field(default="after.npz", pattern=_NAME, title="Checkpoint after")
    """File of the weights w₁, without its folder."""
    after_sha256: str = Field(default="0" * 64, pattern=_SHA256, title="SHA-256 of the checkpoint after")
    """Of its bytes."""
    width: Width = Field(default=1, title="Width m")
    """What the function is called with."""
    dataset: DatasetSpec = DatasetSpec(num_samples=20)

    def point_keys(self) -> tuple[str, ...]:
        return ("report",)

    def data_options(self) -> dict[str, Any]:
        """The options of ``load_dataset``."""
        return self.dataset.options()

    def command(self) -> tuple[str, ...]:
        values, default = values_of(self), values_of(LinearityReportSpec())
        changed = {name: text_of(value) for name, value in values.items() if value != default.get(name)}
        settings = [
            f"{name}={text}" for name, text in changed.items() if name == "width" or name.startswith("dataset.")
        ]
        model = f"{self.file}:{self.function}"
        return ("report", model, self.before, self.after, *(["--set", *settings] if settings else []))


def counts(spec: LinearityReportSpec, key: str, most: bool = False) -> NoReturn:
    """Refuse: no page, job, upload or spec holds the code and the weights."""
    command = f"`linearity-lab report {spec.file}` in a terminal: only this command runs your own files"
    raise InvalidInput("experiment", spec.experiment, command)


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


EXPERIMENT = Experiment(LinearityReportSpec, LinearityReportPoint, LinearityReportResult, counts, report_summary)
