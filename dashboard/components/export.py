"""What can be exported: figures, numbers, settings, and what computes them again; one menu for every page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st

from dashboard.components.chart import image_format_chooser
from dashboard.components.exports import command_line, page_html, program
from ntk_core.runs import ResultValue, Spec
from ntk_core.runs.citation import bibtex, cite_run


@dataclass(frozen=True)
class Taken:
    """One run whose numbers can be exported.

    Attributes:
        name: begins the files' names.
        label: of its tab, where there are several.
        result: None before the run has ended, when only the settings can be taken.
    """

    name: str
    spec: Spec
    result: ResultValue | None
    label: str = ""


def export_menu(name: str, title: str, runs: Sequence[Taken], figures: Mapping[str, go.Figure]) -> None:
    """A menu of files to download, built when asked for, and texts to copy.

    Args:
        name: of the menu, and begins the name of the page of figures.
        figures: takeaway → figure, for that page.
    """
    with st.popover("Export", icon=":material/download:", key=f"export.{name}"):
        image_format_chooser()
        results = [run.result for run in runs if run.result is not None]
        if len(results) < len(runs):
            st.caption("Numbers can be exported once the run has ended.")
        elif figures:
            _download("Figures, HTML", lambda: page_html(title, figures, results), f"{name}.html", "text/html")
        tabs = st.tabs([run.label for run in runs]) if len(runs) > 1 else [st.container()]
        for run, tab in zip(runs, tabs, strict=True):
            with tab:
                _entries(title, run)


def _entries(title: str, run: Taken) -> None:
    spec, result, name = run.spec, run.result, run.name
    if result is not None:
        _download("Numbers, CSV", result.csv, f"{name}.csv", "text/csv")
        _download("Result, JSON", result.model_dump_json, f"{name}-result.json", "application/json")
    _download("Settings, JSON", lambda: spec.model_dump_json(indent=1), f"{name}-spec.json", "application/json")
    st.caption("The same from a terminal:")
    # Without colors: those of the highlighting are too pale to be read by everybody.
    st.code(command_line(spec), language=None, wrap_lines=True)
    st.caption("The same in Python:")
    st.code(program(title, spec), language=None, wrap_lines=True)
    if result is not None:
        st.caption("Cite this run:")
        st.code(cite_run(result), language=None, wrap_lines=True)
        _download("Papers and run, BibTeX", lambda: bibtex(result), f"{name}.bib", "text/x-bibtex")


def _download(label: str, data: Callable[[], str], file_name: str, mime: str) -> None:
    st.download_button(label, data, file_name, mime, on_click="ignore", width="stretch", key=f"export.{file_name}")
