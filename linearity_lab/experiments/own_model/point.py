"""A custom model against its width.

Computed by the command ``own`` only, stored and shown like any run.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, NoReturn

from pydantic import Field, NonNegativeInt

from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.kernel_change.point import COLUMNS as CHANGES
from linearity_lab.experiments.kernel_change.point import KernelChangeRun, KernelChanges
from linearity_lab.experiments.trained_sweep import along
from linearity_lab.runs import (
    Experiment,
    ExperimentSpec,
    ResultValue,
    SpecOf,
    SweepSpec,
    Value,
    aligned,
    columns,
)
from linearity_lab.runs.columns import Column
from linearity_lab.settings.grammar import text_of
from linearity_lab.settings.part import Width
from linearity_lab.settings.training import DescentSettings, DescentSpec, LossName
from linearity_lab.settings.walk import values_of
from ntk_core.errors import InvalidInput
from ntk_core.fits import PowerLaw, exponent_line, fit_runs
from ntk_core.numbers import number, percent, size
from ntk_core.stored_numbers import NonNegative


class OwnModelSpec(SweepSpec, SpecOf["OwnModelResult"]):
    """Settings of ``linearity-lab own FILE.py``.

    A file by name and SHA-256 → ΔK, ‖H‖ and ‖K̇₀‖/‖K₀‖.

    It cannot be recomputed from the spec: the file is not kept, and its SHA-256 does
    not cover its imports.

    Source: docs/decisions/0014-own-models.md; Liu, Zhu & Belkin 2020, §6.
    """

    options: ClassVar[dict[str, str]] = {
        "--" + name.removesuffix(".name").rpartition(".")[2].replace("_", "-"): name
        for name in (
            "widths",
            "dataset.name",
            "dataset.digest",
            "dataset.num_samples",
            "num_seeds",
            "seed",
            "loss",
            "training.max_steps",
            "training.loss_threshold",
            "num_inputs",
        )
    }

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
    loss: LossName = Field(default="square", title="Loss")
    """Training loss of the model's outputs."""
    training: DescentSettings = DescentSpec(max_steps=1000, num_records=10)
    num_inputs: int = Field(default=2, ge=0, le=1000, title="Inputs for ‖H‖")
    """How many inputs ‖H‖ is averaged over; 0 for none."""

    def num_records(self, key: str) -> Mapping[str, int]:
        """One run per seed."""
        return {"runs": self.num_seeds}

    def command(self) -> tuple[str, ...]:
        values = values_of(self)
        default = values_of(OwnModelSpec())
        given = [
            (o, values[name])
            for o, name in self.options.items()
            if values.get(name) != default.get(name)
        ]
        return (
            "own",
            f"{file_argument(self.file)}:{self.function}",
            *(part for o, value in given for part in (o, text_of(value))),
        )


def file_argument(name: str) -> str:
    """Return the argument of a command for a file in its folder.

    A name that begins with - would be read as an option.
    """
    return f"./{name}" if name.startswith("-") else name


def counts(spec: ExperimentSpec, key: str, most: bool = False) -> NoReturn:
    """Refuse pages, jobs, uploads and specs, since they contain no code to run."""
    command, model, *_ = spec.command()
    file, _, _ = model.rpartition(":")
    typed = shlex.join(["linearity-lab", command, file])
    allowed = f"`{typed}` in a terminal: only this command runs your own files"
    raise InvalidInput("experiment", spec.experiment, allowed)


class OwnLayer(Value):
    """One parameter, or a part of it, as ``ntk_core.layers_of`` finds it."""

    name: str
    kind: str
    uses: NonNegativeInt
    positions: NonNegativeInt
    num_params: NonNegativeInt
    operations: tuple[str, ...]

    @property
    def route(self) -> str:
        """Route to this part of the kernel, and operations that prevent the structured route."""
        why = f" ({', '.join(self.operations)})" if self.operations else ""
        return "structured" if self.uses else f"Jacobian{why}"


class OwnModelRun(KernelChangeRun):
    """One initialization; see ``ntk_core.linearity.OwnRun``."""

    output: str = "linear"
    hessian_norm: NonNegative | None = None
    hessian_converged: bool = True
    velocity: NonNegative | None = None


class OwnModelPoint(KernelChanges):
    """All runs of one width.

    Attributes:
        layers: of the first seed's model; none where its program cannot be traced.
        multiplications, num_bytes: of the kernel by their routes; ``jacobian_…``: by
            Jacobians of everything.
        difference: from plain derivatives on two inputs, relative to the largest; None where
            no part is structured.
    """

    kind: Literal["own_model"] = "own_model"
    runs: tuple[OwnModelRun, ...]
    layers: tuple[OwnLayer, ...] = ()
    multiplications: NonNegativeInt = 0
    jacobian_multiplications: NonNegativeInt = 0
    num_bytes: NonNegativeInt = 0
    jacobian_bytes: NonNegativeInt = 0
    difference: NonNegative | None = None


COLUMNS = (
    *(column for column in CHANGES if column.name not in ("kernel_velocity", "ball_kernel_change")),
    Column("kernel_velocity", "kernel velocity", lambda _, run: run.velocity),
    Column("hessian_norm", "Hessian norm ‖H‖"),
    Column("hessian_converged", ""),
)


class OwnModelResult(ResultValue):
    """Result of ``linearity-lab own``.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F, ‖H(w₀)‖ and ‖K̇₀‖_F / ‖K₀‖_F of every run.

    Source: Liu, Zhu & Belkin 2020, §6 and Fig. 1.
    """

    columns = COLUMNS
    spec: OwnModelSpec
    points: tuple[OwnModelPoint, ...]


def change_law(points: Sequence[OwnModelPoint]) -> PowerLaw | None:
    """Fit ΔK against width among converged runs."""
    return fit_runs(along(points), lambda run: run.sup_change, columns.converged)


MOST_LAYERS = 40
NEARLY_LINEAR = 0.1  # of the kernel


def own_model_summary(spec: OwnModelSpec, points: Sequence[OwnModelPoint]) -> str:
    """Return layers and routes of the first width, all runs, power laws and the verdict."""
    runs = [(point.width, run) for point in points for run in point.runs]
    rows = [_row_of_text(width, run) for width, run in runs]
    layers = layer_rows(points[0])
    lines = []
    if layers:
        lines = aligned([tuple(layers[0]), *(tuple(each.values()) for each in layers)])
    lines += [found_words(points[0]), ""]
    heads = ("width", "seed", "steps", "loss", "ΔK", "‖H‖", "‖K̇‖/‖K‖", "outcome")
    lines += aligned([heads, *rows])
    if len(points) > 1:
        measured = [(width, run) for width, run in runs if run.hessian_norm is not None]
        norms = fit_runs(
            measured, lambda run: run.hessian_norm or 0.0, lambda run: run.hessian_converged
        )
        lines += [
            "",
            exponent_line("ΔK", change_law(points)),
            *([exponent_line("‖H‖", norms)] if measured else []),
        ]
    return "\n".join([*lines, "", f"Verdict: {verdict(points)}"])


def _row_of_text(width: int, run: OwnModelRun) -> tuple[str, ...]:
    norm = "–"
    if run.hessian_norm is not None:
        norm = f"{run.hessian_norm:.4g}"
        if not run.hessian_converged:
            norm += "?"
    return (
        f"{width:,}",
        str(run.seed),
        f"{run.num_steps:,}",
        f"{run.loss[-1]:.3g}",
        f"{run.sup_change:.4g}",
        norm,
        f"{run.velocity or 0:.4g}",
        run.outcome,
    )


def layer_rows(point: OwnModelPoint) -> list[dict[str, str]]:
    """Return the name, size and route of each parameter."""
    return [
        {
            "Parameter": each.name[-32:],
            "Kind": each.kind,
            "Numbers": f"{each.num_params:,}",
            "Uses": str(each.uses),
            "Positions": f"{each.positions:,}",
            "Route": each.route,
        }
        for each in point.layers[:MOST_LAYERS]
    ]


def found_words(point: OwnModelPoint) -> str:
    """Costs of the kernel by traced routes and by Jacobians, and the error of the check."""
    if not point.layers:
        return "Not traced: all parameters use Jacobians."
    more = len(point.layers) - MOST_LAYERS
    structured = f"{number(point.multiplications, 3)} multiplications and {size(point.num_bytes)}"
    jacobians = f"{number(point.jacobian_multiplications, 3)} and {size(point.jacobian_bytes)}"
    words = (
        f"Kernel of {point.num_params:,} parameters by these routes: {structured}, by "
        f"Jacobians {jacobians}"
    )
    if point.difference is not None:
        words += f"; checked on 2 inputs: relative difference {number(point.difference, 1)}"
    return f"And {more} more. {words}." if more > 0 else f"{words}."


def verdict(points: Sequence[OwnModelPoint]) -> str:
    """Describe the measured kernel change in one sentence."""
    law = change_law(points)
    if law is not None and math.isfinite(law.interval):
        low = law.exponent - law.interval
        high = law.exponent + law.interval
        if high < 0:
            return "the kernel change decreases with width: a transition to linearity."
        return f"the kernel change {'grows with' if low > 0 else 'has no clear trend in'} width."
    changes = [
        run.sup_change for point in points for run in point.runs if run.outcome == "converged"
    ]
    if not changes:
        return "none, since no run converged."
    near = (
        "stays close to its linear model"
        if max(changes) < NEARLY_LINEAR
        else "leaves its linear model"
    )
    return f"in training the kernel changes by {percent(max(changes))}; the model {near}."


EXPERIMENT = Experiment(OwnModelSpec, OwnModelPoint, OwnModelResult, counts, own_model_summary)
