"""A list of a page's keys, and notes in a second window that follows the first: a custom component."""

import re
from pathlib import Path

import streamlit as st

from linearity_lab.words.markdown import Section

_CSS = """\
.speaker { font: 0.875rem/1.4 var(--st-font, sans-serif); color: var(--st-text-color) }
.row { display: flex; gap: 8px }
button {
  font: inherit; color: inherit; background: var(--st-background-color); cursor: pointer; min-height: 40px;
  padding: 4px 12px; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 8px;
}
button:focus-visible { outline: 3px solid currentColor; outline-offset: 2px }
kbd { font: inherit; font-size: 0.85em; margin-left: 0.4em }
dialog {
  color: var(--st-text-color); background: var(--st-background-color); border-radius: 10px; padding: 20px 24px;
  border: 1px solid color-mix(in srgb, currentColor 45%, transparent); max-width: min(34rem, 92vw);
}
dialog::backdrop { background: rgba(0, 0, 0, 0.5) }
caption { text-align: left; font-weight: 600; padding-bottom: 8px }
th { text-align: left; padding: 4px 20px 4px 0; white-space: nowrap }
table { margin-bottom: 14px }
@media (hover: none) and (pointer: coarse) { .row { display: none } } /* neither keys nor a second window */
"""
_mount = st.components.v2.component(
    "linearity_lab_speaker",
    html='<div class="speaker"></div>',
    css=_CSS,
    js=(Path(__file__).parent / "speaker.js").read_text(encoding="utf-8"),
)
_KEY = re.compile(r"^- (.+?): (.+)$", re.MULTILINE)


def speaker_buttons(key: str, step: str, keys: Section, notes: Section) -> None:
    """Show buttons for notes and for the list of keys; send the current step to the second window.

    Args:
        keys: a title and a list of ``- keys: what they do``.
        notes: label of the button that opens the second window.
    """
    payload = {
        "step": step,
        "keys": _KEY.findall(keys.text),
        "title": keys.field("title"),
        "close": keys.field("close"),
        "notes": notes.field("button"),
        "help": notes.field("help"),
    }
    _mount(key=key, data=payload, on_step_change=lambda: None)


def followed_step(key: str) -> str:
    """Return the step of the first window; empty before its first report."""
    at = f"{key}.at"

    def take() -> None:
        if isinstance(found := st.session_state[key].step, str):
            st.session_state[at] = found

    known: str = st.session_state.get(at, "")
    _mount(key=key, data={"follows": True, "step": known}, on_step_change=take)
    return known
