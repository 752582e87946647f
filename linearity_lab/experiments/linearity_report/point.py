"""Reports on two or more checkpoints of your model.

Computed by the command ``report`` only, stored like any run.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.own_model.point import OwnModelSpec, counts, file_argument
from linearity_lab.runs import Experiment, ExperimentSpec, PointValue, ResultValue, SpecOf, aligned
from linearity_lab.runs.columns import Column
from linearity_lab.settings.grammar import text_of
from linearity_lab.settings.part import Width
from linearity_lab.settings.walk import values_of
from ntk_core.linearity import LAYER_HEAD, LayerReport, LinearityReport

_NAME = r"^[^/\\\x00-\x1f]{1,200}$"
_SHA256 = "^[0-9a-f]{64}$"


class LinearityReportSpec(ExperimentSpec, SpecOf["LinearityReportResult"]):
    """Settings of ``linearity-lab report FILE.py BEFORE AFTER``.

    Files by name and SHA-256 → a linearity report.

    Source: docs/decisions/0014-own-models.md; ``ntk_core.linearity_report``.
    """

    swept_field: ClassVar[str] = "function"
    point_words: ClassVar[tuple[str, str]] = ("report", "reports")

    experiment: Literal["linearity_report"] = "linearity_report"
    file: str = OwnModelSpec.field("file", "model.py")
    function: str = OwnModelSpec.field(
        "function", "model", "The function of (width, key), or the model."
    )
    sha256: str = OwnModelSpec.field("sha256", "0" * 64)
    before: str = Field(default="before.npz", pattern=_NAME, title="Checkpoint before")
    """File of the weights w₀, without its folder."""
    before_sha256: str = Field(
        default="0" * 64, pattern=_SHA256, title="SHA-256 of the checkpoint before"
    )
    """Of its bytes."""
    after: str = Field(default="after.npz", pattern=_NAME, title="Checkpoint after")
    """File of the weights w₁, without its folder."""
    after_sha256: str = Field(
        default="0" * 64, pattern=_SHA256, title="SHA-256 of the checkpoint after"
    )
    """Of its bytes."""
    others: tuple[Annotated[str, Field(pattern=_NAME)], ...] = Field(
        default=(), max_length=16, title="Further checkpoints"
    )
    """Files of weights after training on other tasks from the same w₀, without their folders."""
    others_sha256: tuple[Annotated[str, Field(pattern=_SHA256)], ...] = Field(
        default=(), max_length=16, title="SHA-256 of the further checkpoints"
    )
    """Of their bytes."""
    width: Width = Field(default=1, title="Width m")
    """Arguments of the function."""
    dataset: DatasetSpec = DatasetSpec(num_samples=20)

    def point_keys(self) -> tuple[str, ...]:
        return ("report",)

    def data_options(self) -> dict[str, object]:
        """The options of ``load_dataset``."""
        return self.dataset.options()

    def command(self) -> tuple[str, ...]:
        values = values_of(self)
        default = values_of(LinearityReportSpec())
        changed = {
            name: text_of(value) for name, value in values.items() if value != default.get(name)
        }
        settings = [
            f"{name}={text}"
            for name, text in changed.items()
            if name == "width" or name.startswith("dataset.")
        ]
        model = f"{file_argument(self.file)}:{self.function}"
        checkpoints = (self.before, self.after, *self.others)
        return (
            "report",
            model,
            *map(file_argument, checkpoints),
            *(["--set", *settings] if settings else []),
        )


class LinearityReportPoint(PointValue, LinearityReport):
    """Stored report."""

    kind: Literal["linearity_report"] = "linearity_report"

    @property
    def key(self) -> str:
        return "report"

    @property
    def records(self) -> Sequence[LayerReport]:
        return self.layers


_OF_ALL = (
    "output_change",
    "output_error",
    "second_order_share",
    "derivative_change",
    "kernel_change",
    "kernel_interval",
    "kernel_distance",
    "loss",
    "linear_loss",
    "regression_loss",
    "addition_error",
    "start_correlation",
)
# Columns that are left out where no report has a value.
_OPTIONAL = ("addition_error", "start_correlation")


def _of_all(name: str, point: LinearityReportPoint, _: LayerReport) -> object:
    return getattr(point, name)


COLUMNS = (
    Column("name", "Parameter", role="line"),
    Column("num_params", "", role="label"),
    Column("distance", "Distance ‖δ‖ / ‖w₀‖"),
    Column("output_share", "Share of J₀δ"),
    Column("kernel_share", "Share of tr K₀"),
    *(
        Column(name, "", partial(_of_all, name), role="label", optional=name in _OPTIONAL)
        for name in _OF_ALL
    ),
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
    layers = aligned([LAYER_HEAD, *point.layer_rows()])
    return "\n".join([point.verdict, "", *aligned(point.number_rows()), "", *layers])


EXPERIMENT = Experiment(
    LinearityReportSpec, LinearityReportPoint, LinearityReportResult, counts, report_summary
)
