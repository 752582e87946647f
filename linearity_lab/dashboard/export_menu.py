"""Export menu of every page.

Figures as files, numbers, settings, and programs that recompute them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from linearity_lab.charts.chart import Chart
from linearity_lab.citation import bibtex, cite_run
from linearity_lab.dashboard.components import component
from linearity_lab.dashboard.export_formats import command_line, notebook, page_html, program
from linearity_lab.dashboard.shown import whole_points
from linearity_lab.runs import ResultValue, Spec

MAX_TITLE = 60
_HTML = '<ul aria-label="Figures"></ul><p role="status"></p>'
_mount = component("pictures", Path(__file__).with_name("pictures.js"), _HTML)


def short_title(chart: Chart) -> str:
    """Return a short title of a chart, without markup."""
    title = re.sub(r"<[^>]+>|\*", "", chart.title)
    return title if len(title) <= MAX_TITLE else title[:MAX_TITLE].rpartition(" ")[0] + " …"


@dataclass(frozen=True)
class Taken:
    """One run with exportable numbers."""

    name: str  # prefix of file names
    spec: Spec
    result: ResultValue | None  # None before the run has ended, when only the settings can be taken
    label: str = ""  # title of its tab, if there are several


def export_menu(
    name: str,
    title: str,
    runs: Sequence[Taken],
    charts: Mapping[str, Chart],
    stored: Callable[[], bytes] | None = None,
) -> None:
    """Show a menu of downloads, built on demand, and texts to copy; disabled if empty.

    Every page with a result shows it once, above its figures (key → chart) at the right. ``stored``
    are runs in the file format that *Results* imports.
    """
    nothing = not runs and not charts and stored is None
    with st.popover("Export", icon=":material/download:", key=f"export.{name}", disabled=nothing):
        if stored is not None:
            _download("Runs, JSON Lines", stored, "linearity-lab-runs.jsonl", "application/jsonl")
        if charts:
            # By the CSS classes that Streamlit derives from the keys of figures, without "st-key-".
            classes = {re.sub(r"[^a-zA-Z0-9_-]", "-", key): chart for key, chart in charts.items()}
            figures = [
                {"key": each, "title": short_title(chart)} for each, chart in classes.items()
            ]
            _mount(key=f"export.{name}.pictures", data={"figures": figures})
            st.caption("Key P shows a figure on the whole screen.")
        results = [run.result for run in runs if run.result is not None]
        if len(results) < len(runs):
            st.caption("Numbers can be exported once the run has ended.")
        elif charts:
            _download(
                "Figures, HTML and PDF",
                lambda: page_html(title, charts.values(), results),
                f"{name}.html",
                "text/html",
            )
        tabs = (
            st.tabs([run.label for run in runs]) if len(runs) > 1 else [st.container()] * len(runs)
        )
        for run, tab in zip(runs, tabs, strict=True):
            with tab:
                _entries(title, run)


def _whole(result: ResultValue) -> ResultValue:
    """Return the result with the arrays that the store keeps beside its points."""
    return result.model_copy(update={"points": whole_points(result.spec, result.points)})


def _entries(title: str, run: Taken) -> None:
    spec = run.spec
    result = run.result
    name = run.name
    if result is not None:
        _download("Numbers, CSV", result.csv, f"{name}.csv", "text/csv")
        _download(
            "Result, JSON",
            lambda: _whole(result).model_dump_json(),
            f"{name}-result.json",
            "application/json",
        )
    _download(
        "Settings, JSON",
        lambda: spec.model_dump_json(indent=1),
        f"{name}-spec.json",
        "application/json",
    )
    if not spec.command():  # custom models are in files that are not stored
        _download("Program, Python", lambda: program(title, spec), f"{name}.py", "text/x-python")
        _download(
            "Notebook, Jupyter",
            lambda: notebook(title, spec),
            f"{name}.ipynb",
            "application/x-ipynb+json",
        )
    st.caption("The same from a terminal:")
    # Without highlighting, whose colors have too little contrast.
    st.code(command_line(spec), language=None, wrap_lines=True)
    if result is not None:
        st.caption("Cite this run:")
        st.code(cite_run(result), language=None, wrap_lines=True)
        _download("Papers and run, BibTeX", lambda: bibtex(result), f"{name}.bib", "text/x-bibtex")


def _download(label: str, data: Callable[[], str | bytes], file_name: str, mime: str) -> None:
    st.download_button(
        label, data, file_name, mime, on_click="ignore", width="stretch", key=f"export.{file_name}"
    )
