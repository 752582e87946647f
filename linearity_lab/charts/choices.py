"""Choices of a figure as data.

What can be chosen, the initial option, and how options are named.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from linearity_lab.charts.axes import beginning
from linearity_lab.charts.chart import occurring
from linearity_lab.charts.lines import Axis, width_axis
from linearity_lab.charts.style import output_title
from linearity_lab.runs import PointValue, WidthPoint

Option = TypeVar("Option")
ALL_SEEDS = -1  # not the seed of any run; None would be an empty selectbox
# Targets of clicks on figures, as Choice.axis.
WIDTH = "m"
SEED = "seed"


@dataclass(frozen=True)
class Choice(Generic[Option]):
    """A choice between options, shown above the charts."""

    name: str  # ``page.name`` is its key in the session
    label: str
    options: Sequence[Option]
    words: Callable[[Option], str] = str  # format of an option
    pixels: int = 130  # width of the list
    begins: int = 0  # index of the initial option; -1 is the last
    # Axis of figures (``layout.meta.cursor``) on which clicks choose, or SEED; empty for none.
    axis: str = ""
    at: Callable[[Option], object] = lambda option: option  # position of an option on that axis
    is_rare: bool = False  # whether it is behind "View"
    is_slider: bool = False  # whether it is a slider, for numbers in order
    is_stepped: bool = False  # whether arrows lead to the previous and the next option

    @property
    def initial(self) -> Option:
        """The option before any was chosen."""
        return self.options[self.begins]

    @property
    def is_settled(self) -> bool:
        """Whether there is only one option, and no cursor to follow it."""
        return len(self.options) == 1 and not self.axis


@dataclass(frozen=True)
class Cursor:
    """A position on an axis of figures, without a widget.

    Clicks choose it, and it is None before.
    """

    axis: str


Part = str | Choice | Cursor  # words are between the choices
# A row of choices, from the result and the options chosen in the rows above.
Row = Callable[..., Sequence[Part]]


def initial_options(parts: Iterable[Part]) -> tuple[object, ...]:
    """Return the initial options of choices and cursors; words have none."""
    found: list[object] = []
    for part in parts:
        if isinstance(part, Choice):
            found.append(part.initial)
        elif isinstance(part, Cursor):
            found.append(None)
    return tuple(found)


def width_choice(
    points: Sequence[WidthPoint], *, axis: Axis | None = None, is_rare: bool = False
) -> Choice[int]:
    """Return a choice of finished widths, initially the largest.

    Clicks on a width in a figure choose it, too. ``axis`` is that of another size that
    grows, such as the rank r.
    """
    swept = axis or width_axis()
    widths = list(dict.fromkeys(point.width for point in points))
    return Choice(
        "width",
        beginning(swept.title),
        widths,
        swept.at,
        begins=-1,
        axis=swept.word,
        is_rare=is_rare,
    )


def seed_choice(points: Iterable[PointValue], *, is_rare: bool = False) -> tuple[Choice[int], ...]:
    """Return a choice of one or all seeds; clicks on marks and curves choose too.
    None for a single seed.
    """
    seeds = sorted(occurring(points, "seed"))
    words = {ALL_SEEDS: "all seeds", **{seed: f"seed {seed}" for seed in seeds}}
    choice = Choice(
        "one_seed",
        "Seed",
        list(words),
        words.__getitem__,
        108,
        axis=SEED,
        at=lambda seed: None if seed == ALL_SEEDS else seed,
        is_rare=is_rare,
    )
    return (choice,) if len(seeds) > 1 else ()


def output_choice(
    outputs: Sequence[str], pixels: int = 190, *, is_rare: bool = False
) -> Choice[str]:
    """Return a choice of the outputs that occur."""
    return Choice("output", "Output φ", outputs, output_title, pixels, is_rare=is_rare)
