"""The figures of an experiment as data.

What they are called, what can be chosen, and how they are drawn.

``figures.py`` of an experiment exports them as ``FIGURES``. Its page, embedded figures, notebooks,
thumbnails, the static site and exports read them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

import plotly.graph_objects as go

from linearity_lab.charts.chart import AnyPoint, Chart
from linearity_lab.charts.choices import Row, initial_options
from linearity_lab.page_modules import has_page_module, page_module
from linearity_lab.runs import ResultValue, Spec, imported_words, spec_digest

AnySpec = TypeVar("AnySpec", bound=Spec)
NOT_DRAWN = "The imported numbers do not fit together, so this figure cannot be drawn."


@dataclass(frozen=True)
class Shown(Generic[AnySpec, AnyPoint]):
    """A result as figures draw it, complete or partial."""

    spec: AnySpec
    # Finished points, in the order of the spec's keys, then a partial one.
    points: tuple[AnyPoint, ...]
    result: ResultValue | None = None  # complete result; None until the job has ended
    origin: Literal["precomputed", "job"] = "precomputed"  # or from a job of this server
    grown: int = 0  # version of the partial points, 0 without any

    @property
    def identity(self) -> tuple[str, str, tuple[str, ...], int]:
        """Identity of the figures: finished points of a spec never change; more are added."""
        return (
            self.origin,
            spec_digest(self.spec),
            tuple(point.key for point in self.points),
            self.grown,
        )

    def point(self, width: int) -> AnyPoint:
        """Return the point of this width."""
        return next(point for point in self.points if getattr(point, "width", None) == width)


def shown_result(result: ResultValue) -> Shown[Any, Any]:
    """Return a complete result as figures draw it."""
    return Shown(result.spec, result.points, result)


def _always(_: Shown[Any, Any]) -> bool:
    return True


@dataclass(frozen=True)
class Figure:
    """A figure of an experiment.

    A row of choices that several figures of an experiment name is shown once, above all of them.
    """

    name: str  # unique in the experiment; the name of its chart, too
    title: str | Callable[[Shown[Any, Any]], str]  # title of its tab
    # (result, *chosen) → its chart, or several charts beside each other. Results are ``Shown``.
    draw: Callable[..., Chart | Sequence[Chart]]
    choices: Sequence[Row] = ()
    has_data: Callable[[Shown[Any, Any]], bool] = _always  # whether a result has what it draws
    is_main: bool = False  # whether thumbnails and notebooks show it; by default the first figure
    preset: str = ""  # name of the preset whose result in the gallery is drawn instead, if any
    # (result, *chosen) → the points whose large arrays are drawn; the store keeps these
    # beside the points.
    with_arrays: Callable[..., Sequence[Any]] | None = None

    def title_of(self, shown: Shown[Any, Any]) -> str:
        """Return its title for this result."""
        return self.title if isinstance(self.title, str) else self.title(shown)

    def charts(self, shown: Shown[Any, Any], *chosen: object) -> list[Chart]:
        """Draw its charts with these options; a chart without a name has that of its figure.

        Imports check each number, but not whether all of them fit together. Numbers from a file
        that cannot be drawn give an empty chart with a sentence.
        """
        try:
            drawn = self.draw(shown, *chosen)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            if not imported_words(shown.points):
                raise
            drawn = Chart(go.Figure(), NOT_DRAWN, (), caption=(NOT_DRAWN,))
        charts = [drawn] if isinstance(drawn, Chart) else drawn
        return [chart if chart.name else replace(chart, name=self.name) for chart in charts]

    def initial_options(self, shown: Shown[Any, Any]) -> tuple[object, ...]:
        """Return the options of all its choices before any was chosen."""
        chosen: tuple[object, ...] = ()
        for row in self.choices:
            chosen += initial_options(row(shown, *chosen))
        return chosen

    def initial_charts(self, shown: Shown[Any, Any]) -> list[Chart]:
        """Draw its charts with the initial options."""
        return self.charts(shown, *self.initial_options(shown))


def has_figures(experiment: str) -> bool:
    """Whether an experiment has figures."""
    return has_page_module(experiment, "figures")


def all_figures(experiment: str) -> Sequence[Figure]:
    """Return all figures of an experiment, in the order of its page."""
    figures: Sequence[Figure] = page_module(experiment, "figures").FIGURES
    return figures


def figures_of(shown: Shown[Any, Any]) -> list[Figure]:
    """Return the figures for which a result has data, in the order of its page."""
    return [each for each in all_figures(shown.spec.experiment) if each.has_data(shown)]


def main_chart(shown: Shown[Any, Any]) -> Chart:
    """Draw the main figure of a result with its initial options.

    Thumbnails, notebooks and exports show it.
    """
    figures = figures_of(shown)
    main = next((each for each in figures if each.is_main), figures[0])
    return main.initial_charts(shown)[0]


def name_in_url(preset: str, title: str) -> str:
    """Return the name of a figure of a preset in URLs, from its title.

    The first figure has that of the preset.
    """
    part = re.sub(r"\W+", "-", title.lower()).strip("-")  # symbols such as ΔK are kept
    return f"{preset}.{part}"
