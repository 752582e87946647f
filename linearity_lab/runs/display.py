"""Display of specs, results and ends of runs in notebooks: settings, cost, figure and numbers."""

from importlib.metadata import entry_points

from linearity_lab.runs._estimate import estimate
from linearity_lab.runs._result import ResultValue
from linearity_lab.runs._spec import Spec
from linearity_lab.runs._table import run_summary
from linearity_lab.runs.events import ENDS, Ended, counted_points, estimate_words
from linearity_lab.settings.grammar import settings_html
from ntk_core.errors import InvalidInput
from ntk_core.machine import how_to_install
from ntk_core.markup import Part, folded, lines, paragraph, shown_parts
from ntk_core.numbers import duration

FIGURES = "linearity_lab.figures"  # entry points: result → (Plotly figure, sentences below it)
HOW_TO_DRAW = (
    f"Its figure is drawn here where the dashboard is installed too: {how_to_install('app')}."
)


@shown_parts.register
def spec_parts(spec: Spec, with_figure: bool) -> list[Part]:
    """Settings that differ from their defaults, and the estimated cost here."""
    try:
        cost = estimate_words(estimate(spec))
    except InvalidInput as error:  # data missing here
        cost = f"No estimate: {error}."
    return [paragraph(cost, title=type(spec).__name__), settings_html(spec)]


@shown_parts.register
def result_parts(result: ResultValue, with_figure: bool) -> list[Part]:
    """Return outcome, figure with its sentences, numbers and settings, from top to bottom."""
    parts: list[Part] = [_outcome(result)]
    found = figure_of(result) if with_figure and result.points else None
    if found is not None:
        parts += [found[0], paragraph(found[1])]
    elif with_figure:
        parts.append(paragraph(HOW_TO_DRAW))
    settings = folded("Settings that are not at their defaults", settings_html(result.spec))
    return [*parts, lines(run_summary(result.spec, result.points)), settings]


@shown_parts.register
def ended_parts(event: Ended, with_figure: bool) -> list[Part]:
    """Return the reason of an early end, and the result."""
    why: list[Part] = [paragraph(event.reason, title=ENDS[event.status])] if event.reason else []
    return why + (result_parts(event.result, with_figure) if event.result is not None else [])


def figure_of(result: ResultValue) -> tuple[Part, str] | None:
    """Return the dashboard's figure of a result and its sentences.

    None without the dashboard or a view.
    """
    for entry in entry_points(group=FIGURES):
        try:
            draw = entry.load()
        except ImportError:  # its plotting packages are missing
            continue
        found: tuple[Part, str] | None = draw(result)
        return found
    return None


def _outcome(result: ResultValue) -> str:
    spec = result.spec
    origin = result.provenance
    kind, _, name = origin.device.partition(": ")
    ended = (
        f"{ENDS[result.status]}: {counted_points(spec, len(result.points))} in "
        f"{duration(result.runtime_s)} on {kind if name == kind else origin.device} in "
        f"{origin.dtype}, {origin.started_at}."
    )
    if result.num_imported:
        ended += f" {result.imported_words}."
    return paragraph(ended, title=type(result).__name__)
