"""Custom components from files: a script or a bundle of small ES modules, and the style beside it."""

import re
from collections.abc import Sequence
from pathlib import Path

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

_IMPORTS = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORTS = re.compile(r"^export (?!default)", re.MULTILINE)


def component(
    name: str, script: Path, html: str = "", parts: Sequence[str] = ()
) -> ComponentRenderer:
    """Register a custom component and return the function that mounts it.

    Its style is beside the ES module ``script``; ``parts`` of that folder are joined in place of the script.
    """
    style = script.with_suffix(".css")
    return st.components.v2.component(
        f"linearity_lab_{name}",
        html=html or None,
        css=style.read_text(encoding="utf-8") if style.exists() else None,
        js=joined(script.parent, parts or (script.stem,)),
    )


def joined(folder: Path, names: Sequence[str]) -> str:
    """Concatenate the modules of a folder, without their mutual imports; names must not clash."""
    texts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in names]
    return "\n".join(_EXPORTS.sub("", _IMPORTS.sub("", text)) for text in texts)


def plain_script(module: str, *names: str) -> str:
    """Wrap a joined module as a script for pages opened from a file; export only ``names``."""
    exported = ", ".join(names)
    body = module.replace("export default ", "")
    return f'"use strict";\nconst {{ {exported} }} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n'
