"""Save every figure of a page as PNG or SVG; the browser draws the file."""

import re
from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from linearity_lab.charts.chart import Chart

MAX_TITLE = 60
_HTML = '<ul aria-label="Figures"></ul><p role="status"></p>'
_CSS = """\
ul { list-style: none; margin: 0; padding: 0; font: 14px/1.4 var(--st-font, sans-serif); color: var(--st-text-color) }
li { display: flex; align-items: center; gap: 6px; padding: 3px 0 }
span { flex: 1; min-width: 0 }
button {
  font: inherit; color: inherit; background: var(--st-background-color); cursor: pointer;
  min-height: 32px; padding: 2px 10px;
  border: 1px solid color-mix(in srgb, currentColor 45%, transparent); border-radius: 6px;
}
button:hover { background: var(--st-secondary-background-color) }
button:focus-visible { outline: 3px solid currentColor; outline-offset: 2px }
p { margin: 0; font: 14px/1.4 var(--st-font, sans-serif); color: var(--st-text-color) }
"""
_mount = st.components.v2.component(
    "linearity_lab_pictures",
    html=_HTML,
    css=_CSS,
    js=(Path(__file__).parent / "pictures.js").read_text(encoding="utf-8"),
)


def picture_buttons(key: str, charts: Mapping[str, Chart]) -> None:
    """Show a row for each chart, with a button per format; the figure's key on the page identifies it."""
    figures = [{"key": _as_class(each), "title": short_title(chart)} for each, chart in charts.items()]
    _mount(key=key, data={"figures": figures})


def short_title(chart: Chart) -> str:
    """Return a short title of a chart: its heading, or the start of its takeaway."""
    title = chart.heading or re.split(r"[.:;](?:\s|$)", chart.takeaway)[0]
    title = re.sub(r"<[^>]+>|\*", "", title)
    return title if len(title) <= MAX_TITLE else title[:MAX_TITLE].rpartition(" ")[0] + " …"


def _as_class(key: str) -> str:
    """Return the CSS class that Streamlit derives from a key, without ``st-key-``."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", key.strip())
