"""Bundle the small ES modules of a custom component into one module or script; free of Streamlit."""

import re
from collections.abc import Sequence
from pathlib import Path

_IMPORTS = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORTS = re.compile(r"^export (?!default)", re.MULTILINE)


def joined(folder: Path, names: Sequence[str]) -> str:
    """Concatenate the modules of a folder, without their mutual imports; names must not clash."""
    texts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in names]
    return "\n".join(_EXPORTS.sub("", _IMPORTS.sub("", text)) for text in texts)


def plain_script(module: str, *names: str) -> str:
    """Wrap a joined module as a script for pages opened from a file; export only ``names``."""
    exported = ", ".join(names)
    body = module.replace("export default ", "")
    return f'"use strict";\nconst {{ {exported} }} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n'
