"""Custom components from files.

A script or a bundle of small ES modules, and the style beside it.
"""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from linearity_lab.dashboard.scripts import joined


def component(
    name: str, script: Path, html: str = "", parts: Sequence[str] = ()
) -> ComponentRenderer:
    """Register a custom component and return the function that mounts it.

    Its style is beside the ES module ``script``; ``parts`` of that folder are joined in
    place of the script.
    """
    style = script.with_suffix(".css")
    return st.components.v2.component(
        f"linearity_lab_{name}",
        html=html or None,
        css=style.read_text(encoding="utf-8") if style.exists() else None,
        js=joined(script.parent, parts or (script.stem,)),
    )
