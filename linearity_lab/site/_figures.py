"""The figures of the site as data that its pages load as a script, and their thumbnails."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from linearity_lab.charts.axes import readable
from linearity_lab.charts.chart import Chart, interval_words
from linearity_lab.dashboard.gallery import gallery_figures as figures_of_preset
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.pages.lecture.drawing import before_answer
from linearity_lab.dashboard.pages.lecture.steps import LectureStep, part_of
from linearity_lab.runs import PRESETS, ResultValue, Spec
from linearity_lab.site._page import html_of
from linearity_lab.words.markdown import typeset
from ntk_core.markup import JSON, without_marks


@dataclass(frozen=True)
class FigurePage:
    """A figure with its own page."""

    name: str  # name of its page and its data
    title: str  # short description
    of: str  # title of its preset, or part of the lecture
    page: str  # page with its words
    # Text of a choice → its charts; an empty text without a choice.
    options: Mapping[str, Sequence[Chart]]
    start: str
    results: tuple[ResultValue, ...]
    veiled: Chart | None = None  # charts before the answer; None without a question

    @property
    def charts(self) -> Sequence[Chart]:
        """Charts of the initial option."""
        return self.options[self.start]

    def data(self) -> dict[str, object]:
        """Data for the page's script."""
        specs = [result.spec for result in self.results]
        options = [
            {
                "words": html_of(words, inline=True),
                "charts": [chart_data(each, specs) for each in charts],
            }
            for words, charts in self.options.items()
        ]
        return {
            "start": list(self.options).index(self.start),
            "options": options,
            "veiled": None if self.veiled is None else chart_data(self.veiled, specs),
        }

    def script(self) -> str:
        """Return the data as a script, since a page opened from a disk cannot read other files."""
        encoded = json.dumps(
            self.data(), ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        return f"lab.take({json.dumps(self.name)}, {encoded});\n"


def chart_data(chart: Chart, specs: Sequence[Spec] = ()) -> JSON:
    """Return figure, words and numbers of a chart of results with these specs.

    The figure is without Plotly's template.
    """
    figure = json.loads(chart.sent.to_json())
    figure["layout"].pop("template", None)
    rows = readable(chart.rows)
    return {
        "figure": figure,
        "heading": html_of(without_marks(chart.heading), inline=True),
        "alt": without_marks(chart.takeaway),
        "caption": [
            html_of(typeset(each), inline=True)
            for each in (*chart.caption, *interval_words(chart, specs))
        ],
        "table": {
            "columns": list(rows[0]) if rows else [],
            "rows": [[_known(value) for value in row.values()] for row in rows],
        },
    }


def _known(value: object) -> object:
    """Return a table value as JSON, which has neither infinity nor NaN."""
    return (
        value
        if not isinstance(value, float) or math.isfinite(value)
        else {math.inf: "∞", -math.inf: "−∞"}.get(value)
    )


def gallery_figures(presets: Iterable[str] = tuple(PRESETS)) -> Iterator[FigurePage]:
    """Return the initial figures of these presets that the gallery contains."""
    for preset in presets:
        result = gallery_result(preset)
        if result is None:
            continue
        for found in figures_of_preset(preset).values():
            charts = found.figure.initial_charts(found.shown)
            if charts:
                title = PRESETS[preset].title
                yield FigurePage(
                    found.name, found.title, title, found.page, {"": charts}, "", (result,)
                )


def step_results(step: LectureStep) -> JSON:
    """Return the results that a step is drawn from, by preset."""
    return {name: gallery_result(name) for name in step.gallery}


def lecture_figure(step: LectureStep) -> FigurePage:
    """Return the figure of a step with all its options, veiled and open."""
    results = step_results(step)
    control = step.control
    as_shown = partial(replace, name=step.name, heading="")
    return FigurePage(
        f"lecture.{step.name}",
        step.title,
        part_of(step)[1],
        "lecture",
        {
            words: [as_shown(step.draw(results, option, True))]
            for option, words in control.options.items()
        },
        control.options[control.start],
        tuple(result for result in results.values() if result is not None),
        as_shown(before_answer(step, results, control.start)),
    )
