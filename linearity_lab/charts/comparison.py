"""How several runs of one experiment are laid over each other; every experiment's view states it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from linearity_lab.charts.style import output_title
from ntk_core.networks.choices import OUTPUTS
from ntk_core.runs import ResultValue, Spec

Values = dict[str, Any]


def _every(_row: Values, _result: ResultValue) -> bool:
    return True


@dataclass(frozen=True)
class Axis:
    """What measures are drawn against.

    Attributes:
        letter: of it, in fitted exponents and sentences.
        keep: the rows that lie on it.
        along_time: whether every seed is a curve of its own.
    """

    column: str
    title: str
    letter: str = "m"
    keep: Callable[[Values, ResultValue], bool] = _every
    along_time: bool = False


@dataclass(frozen=True)
class Comparison:
    """How the runs of one experiment are compared, in the columns of their rows.

    Attributes:
        measures: column → title.
        lines: the columns that together name a line.
        numbers: column of ``lines`` → how its number is written, with its letter or unit.
    """

    axes: tuple[Axis, ...]
    measures: dict[str, str]
    lines: tuple[str, ...]
    numbers: Mapping[str, str] = field(default_factory=dict)

    def line_words(self, line: Sequence[Any]) -> str:
        """A line as people read it: ``linear output, random, ρ = 0.25``."""
        return ", ".join(
            self.numbers[name].format(part)
            if name in self.numbers
            else output_title(part)
            if part in OUTPUTS
            else str(part).replace("_", " ")
            for name, part in zip(self.lines, line, strict=True)
        )


WIDTH = Axis("width", "width m")
CHANGE = {"sup_kernel_change": "kernel change ΔK"}


def comparison_of(spec: Spec) -> Comparison:
    """How runs of such settings are compared, as ``elsewhere.py`` in the view of their experiment states it."""
    found: Comparison = import_module(f"linearity_lab.views.{spec.experiment}.elsewhere").compared(spec)
    return found
