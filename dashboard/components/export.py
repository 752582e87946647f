"""What can be taken along: numbers, settings, figures, and the command that computes them again."""

from __future__ import annotations

import html
import shlex
from collections.abc import Callable, Mapping

import plotly.graph_objects as go
import streamlit as st

from dashboard.components.chart import image_format_chooser
from dashboard.components.provenance import provenance_sentence
from dashboard.figures.style import CHART_CONFIG
from dashboard.settings import differences
from ntk_core.papers import PRESETS
from ntk_core.results import ResultValue
from ntk_core.specs import Spec


def command_line(spec: Spec) -> str:
    """The shell command that computes ``spec``: the preset with the fewest differences, and these as ``--set``."""
    changed = {
        name: differences(spec, preset.spec) for name, preset in PRESETS.items() if type(preset.spec) is type(spec)
    }
    name = min(changed, key=lambda name: len(changed[name]))
    parts = ["python", "-m", "ntk_core", "run", name]
    for setting, text in changed[name].items():
        parts += ["--set", f"{setting}={text}"]
    return shlex.join([*parts, "--out", "results"])


def page_html(title: str, figures: Mapping[str, go.Figure], result: ResultValue) -> str:
    """One HTML page that needs no network: figures that can be zoomed, their captions, the spec and its origin."""
    parts = []
    for index, (caption, figure) in enumerate(figures.items()):
        light = go.Figure(figure).update_layout(template="plotly_white")
        parts.append(light.to_html(full_html=False, include_plotlyjs=index == 0, config=CHART_CONFIG))
        parts.append(f"<p>{html.escape(caption)}</p>")
    spec = html.escape(result.spec.model_dump_json(indent=1))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        "<style>body{font-family:sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}</style></head>"
        f"<body><h1>{html.escape(title)}</h1>{''.join(parts)}<p>{html.escape(provenance_sentence(result))}</p>"
        f"<pre>{html.escape(command_line(result.spec))}</pre><details><summary>Settings</summary><pre>{spec}</pre></details>"
        "</body></html>"
    )


def export_menu(
    name: str, title: str, spec: Spec, result: ResultValue | None, figures: Mapping[str, go.Figure]
) -> None:
    """Files to download, built when asked for, and the command line.

    Args:
        name: begins the files' names.
        result: what to export; None before a run has ended, when only the settings can be taken.
        figures: caption → figure, for the HTML page.
    """
    with st.popover("Export", icon=":material/download:"):
        export_entries(name, title, spec, result, figures)
        image_format_chooser()


def export_entries(
    name: str, title: str, spec: Spec, result: ResultValue | None, figures: Mapping[str, go.Figure]
) -> None:
    """The same without a menu around it, for pages that export several results."""
    if result is None:
        st.caption("Numbers and figures can be taken once the run has ended.")
    else:
        _download("Numbers, CSV", result.csv, f"{name}.csv", "text/csv")
        _download("Result, JSON", result.model_dump_json, f"{name}-result.json", "application/json")
        _download("Figures, HTML", lambda: page_html(title, figures, result), f"{name}.html", "text/html")
    _download("Settings, JSON", lambda: spec.model_dump_json(indent=1), f"{name}-spec.json", "application/json")
    st.caption("The same from a terminal:")
    st.code(command_line(spec), language="bash", wrap_lines=True)


def _download(label: str, data: Callable[[], str], file_name: str, mime: str) -> None:
    st.download_button(label, data, file_name, mime, on_click="ignore", width="stretch", key=f"export.{file_name}")
