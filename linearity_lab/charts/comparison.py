"""How several runs of one experiment are overlaid; each experiment's view defines it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linearity_lab.view_modules import has_view, view_module
from ntk_core.runs import ResultValue, Spec, experiment_of
from ntk_core.runs.columns import Columns, measures

Values = dict[str, Any]


def _every(_row: Values, _result: ResultValue) -> bool:
    return True


@dataclass(frozen=True)
class ComparedAxis:
    """The axis of a comparison.

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
        lines: the columns that together name a line → a value of it in words.
    """

    axes: tuple[ComparedAxis, ...]
    measures: dict[str, str]
    lines: Mapping[str, Callable[[Any], Any]]

    def line_words(self, line: Sequence[Any]) -> str:
        """Return the title of a line, such as ``linear output, random, ρ = 0.25``."""
        return ", ".join(str(words(part)) for words, part in zip(self.lines.values(), line, strict=True))


WIDTH = ComparedAxis("width", "width m")


def compared_by(columns: Columns, *axes: ComparedAxis) -> Comparison:
    """Compare runs by all measures of their table against ``axes``, by default the width."""
    lines = {column.name: column.words for column in columns if column.role == "line"}
    return Comparison(axes or (WIDTH,), measures(columns), lines)


def comparison_of(spec: Spec) -> Comparison:
    """Return the comparison that the view's ``figures.py`` defines, or else one by the table of the result."""
    if not has_view(spec.experiment, "figures"):
        return compared_by(experiment_of(spec).result.columns)
    found: Comparison = view_module(spec.experiment, "figures").compared(spec)
    return found
