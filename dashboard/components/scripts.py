"""The small ES modules of a component of our own as the one module that Streamlit loads; free of Streamlit."""

import re
from collections.abc import Sequence
from pathlib import Path

_IMPORTS = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORTS = re.compile(r"^export (?!default)", re.MULTILINE)


def joined(folder: Path, names: Sequence[str]) -> str:
    """The modules of a folder one below the other, without what they import from each other; names must not clash."""
    texts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in names]
    return "\n".join(_EXPORTS.sub("", _IMPORTS.sub("", text)) for text in texts)
