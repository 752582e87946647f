"""Numbers of runs against a swept setting: a dot per run, means, fitted exponents."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from linearity_lab.charts.style import Style
from linearity_lab.runs import OUTCOME_WORDS, Mean, mean
from ntk_core.fits import NO_POWER_LAW, PowerLaw, fit_power_law, remarks
from ntk_core.numbers import width_label


@dataclass(frozen=True)
class Dot:
    """The number of one run."""

    at: float  # swept value; runs that share it have one mean
    value: float  # NaN if the run has no number; it is then listed as excluded
    seed: int
    why: str = ""  # reason for exclusion from means and fits (open marker); empty if included
    note: str = ""  # text of its hover below the number; by default the reason
    x: float | None = None  # its position, if not ``at``
    outcome: str = ""  # of its training if that is the reason; selects the mark
    error: float = 0.0  # standard error of an estimate, drawn as a bar; 0 where the value is exact

    @property
    def place(self) -> float:
        """Position on the axis."""
        return self.at if self.x is None else self.x

    @property
    def counts(self) -> bool:
        """Whether means and exponents include it."""
        return not self.why and math.isfinite(self.value)


# Two slopes that differ by less are of one flat line, whatever their signs.
FLAT = 0.05


def fitted(dots: Sequence[Dot]) -> PowerLaw | None:
    """Fit a power law through all converged runs."""
    return fit_power_law(
        [dot.place for dot in dots],
        [dot.value for dot in dots],
        seeds=[dot.seed for dot in dots],
        usable=[dot.counts for dot in dots],
        diverged=[dot.outcome in NO_POWER_LAW for dot in dots],
        swept=[dot.at for dot in dots],
    )


@dataclass(frozen=True)
class Line:
    """The numbers of one network, output, or other object with a style."""

    style: Style
    dots: Sequence[Dot]
    fit: bool = True  # whether its exponent is fitted and shown
    # Swept value → further columns of its row in the table.
    more: Mapping[float, Mapping[str, object]] = field(default_factory=dict)
    group: str = ""  # legend group of its traces, by default the title

    @property
    def in_legend(self) -> str:
        """Name of its legend group."""
        return self.group or self.style.title

    @functools.cached_property
    def by_value(self) -> dict[float, list[Dot]]:
        """Map swept values to dots, ascending."""
        found: dict[float, list[Dot]] = {}
        for dot in sorted(self.dots, key=lambda dot: dot.at):
            found.setdefault(dot.at, []).append(dot)
        return found

    @property
    def places(self) -> list[float]:
        """Tick positions: the swept values, or near the means of dots at other positions."""
        moved = any(dot.x is not None for dot in self.dots)
        return [round(place) for place, _ in self.means] if moved else list(self.by_value)

    @functools.cached_property
    def means(self) -> list[tuple[float, Mean]]:
        """Return (position, mean) at every value with converged runs, ascending."""
        found = []
        for dots in self.by_value.values():
            counted = [dot for dot in dots if dot.counts]
            if counted:
                place = mean([dot.place for dot in counted]).value
                found.append((place, mean([dot.value for dot in counted])))
        return found

    def remarks(self, axis: "Axis", *, brief: bool = False) -> list[str]:
        """Return the remarks beside its exponent."""
        return remarks(self.law, axis.values_name, brief=brief) if self.law else []

    @functools.cached_property
    def law(self) -> PowerLaw | None:
        """Fit a power law through all converged runs, if its exponent is shown.

        None without an interval where the drawn means go the other way: a fit is through the
        logarithms of single runs, and of few runs that scatter it can rise while the means fall.
        """
        law = fitted(self.dots) if self.fit else None
        if law is None or math.isfinite(law.interval):
            return law
        slope = self._slope_of_means()
        is_opposite = slope * law.exponent < 0 and abs(slope - law.exponent) > FLAT
        return None if is_opposite else law

    def _slope_of_means(self) -> float:
        """Return the slope between the first and the last mean, both axes logarithmic.

        0 for a single mean, and where a logarithm does not exist.
        """
        if not self.means:
            return 0.0
        (first, start), (last, end) = self.means[0], self.means[-1]
        if not (0 < first < last and start.value > 0 and end.value > 0):
            return 0.0
        return math.log(end.value / start.value) / math.log(last / first)


@dataclass(frozen=True)
class Axis:
    """The swept setting."""

    title: str
    letter: str = "m"  # symbol in fitted exponents, guides and sentences
    values: Sequence[
        float
    ] = ()  # values of the whole sweep, which fix the axis while points arrive
    symbol: str = ""  # symbol of a dot's position in hovers and sentences, by default the letter
    column: str = ""  # name of the swept setting in the table, by default the title
    values_name: str = "values"  # its values in a sentence

    @property
    def word(self) -> str:
        """Prefix of a value."""
        return self.symbol or self.letter

    def at(self, value: float) -> str:
        """Return a value with its symbol: ``m = 1,024``."""
        return f"{self.word} = {width_label(value)}"


GROWN_AXES = {
    "num_heads": Axis("heads H", "H"),
    "head_dim": Axis("head dimension d", "d"),
    "rank": Axis("rank r", "r"),
}


def width_axis(widths: Sequence[int] = (), title: str = "width m") -> Axis:
    """The widths of a sweep."""
    return Axis(title, values=widths, values_name="widths")


class SeededRun(Protocol):
    """A run of one seed, and how it ended."""

    @property
    def seed(self) -> int: ...
    @property
    def outcome(self) -> str: ...


def trained_dot(
    at: float, value: float, run: SeededRun, note: str = "", *, converged_only: bool = True
) -> Dot:
    """Return the number of a run; it counts if the run converged or was not trained."""
    words = OUTCOME_WORDS[run.outcome]
    why = words if converged_only and run.outcome != "converged" else ""
    return Dot(
        at,
        value,
        run.seed,
        why,
        f"{note}<br>{words}" if note else words,
        outcome=run.outcome if why else "",
    )


Run = TypeVar("Run", bound=SeededRun)


@dataclass(frozen=True)
class RunNumber(Generic[Run]):
    """One number per run."""

    title: str  # of the vertical axis
    symbol: str  # in hovers, tables and legends
    of: Callable[[Run], float | None]  # the number of a run; None where it has none
    before_training: bool = False  # whether the outcome of training is irrelevant

    def has(self, runs: Iterable[Run]) -> bool:
        """Whether some run has a finite number."""
        return any(value is not None and math.isfinite(value) for value in map(self.of, runs))

    def dots(
        self, runs: Iterable[tuple[float, Run]], note: str | Callable[[Run], str] = ""
    ) -> list[Dot]:
        """Return the numbers of runs at these places."""
        dots = []
        for place, run in runs:
            value = self.of(run)
            if value is None:
                continue
            words = note if isinstance(note, str) else note(run)
            dot = trained_dot(place, value, run, words, converged_only=not self.before_training)
            dots.append(dot)
        return dots
