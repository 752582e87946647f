"""A custom model against its width: identity of its file and settings; never the code."""

from typing import ClassVar, Literal, NoReturn

from pydantic import Field

from ntk_core.data.spec import DatasetSpec
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.errors import InvalidInput
from ntk_core.runs import SweepSpec
from ntk_core.settings.fields import text_of
from ntk_core.settings.part import Width
from ntk_core.settings.walk import values_of


class OwnModelSpec(SweepSpec):
    """Settings of ``linearity-lab own FILE.py``.

    A file by name and SHA-256 → ΔK, ‖H‖ and ‖K̇₀‖/‖K₀‖.

    It cannot be recomputed from the spec: the file is not kept, and its SHA-256 does not cover its imports.

    Source: docs/decisions/0014-own-models.md; Liu, Zhu & Belkin 2020, §6.
    """

    options: ClassVar[dict[str, str]] = {
        "--" + name.removesuffix(".name").rpartition(".")[2].replace("_", "-"): name
        for name in (
            "widths", "dataset.name", "dataset.digest", "dataset.num_samples", "num_seeds", "seed", "loss",
            "training.max_steps", "training.loss_threshold", "num_inputs",
        )
    }  # fmt: skip

    experiment: Literal["own_model"] = "own_model"
    file: str = Field(default="model.py", pattern=r"^[^/\\\x00-\x1f]{1,200}\.py$", title="File")
    """Name of the file, without its folder."""
    function: str = Field(default="model", pattern=r"^[^\W\d]\w{0,99}$", title="Name in the file")
    """The function of (width, key), or the one model."""
    sha256: str = Field(default="0" * 64, pattern="^[0-9a-f]{64}$", title="SHA-256 of the file")
    """Of its bytes as they were run."""
    dataset: DatasetSpec = DatasetSpec(num_samples=40)
    widths: tuple[Width, ...] = SweepSpec.field("widths", (1,), "Widths m, one model each.")
    num_seeds: int = SweepSpec.field("num_seeds", 3)
    loss: Literal["square", "cross-entropy"] = Field(default="square", title="Loss")
    """Mean of ½‖f − y‖², or cross-entropy on softmax(f)."""
    training: TrainingSpec = TrainingSpec(max_steps=1000, num_records=10)
    num_inputs: int = Field(default=2, ge=0, le=1000, title="Inputs for ‖H‖")
    """How many inputs ‖H‖ is averaged over; 0 for none."""

    def command(self) -> tuple[str, ...]:
        values, default = values_of(self), values_of(OwnModelSpec())
        given = [(o, values[name]) for o, name in self.options.items() if values.get(name) != default.get(name)]
        return ("own", f"{self.file}:{self.function}", *(part for o, value in given for part in (o, text_of(value))))


def counts(spec: OwnModelSpec, key: str, most: bool = False) -> NoReturn:
    """No page, job, upload or spec gets further: they hold no code, and none is run for them."""
    command = f"`linearity-lab own {spec.file}` in a terminal: only this command runs your own files"
    raise InvalidInput("experiment", spec.experiment, command)
