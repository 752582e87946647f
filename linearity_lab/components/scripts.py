"""The small ES modules of a component of our own as one module, or as one plain script; free of Streamlit."""

import re
from collections.abc import Sequence
from pathlib import Path

_IMPORTS = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORTS = re.compile(r"^export (?!default)", re.MULTILINE)


def joined(folder: Path, names: Sequence[str]) -> str:
    """The modules of a folder one below the other, without what they import from each other; names must not clash."""
    texts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in names]
    return "\n".join(_EXPORTS.sub("", _IMPORTS.sub("", text)) for text in texts)


def plain_script(module: str, *names: str) -> str:
    """A joined module as a script that a page from a file can load, as it can no module; it leaves only ``names``."""
    told = ", ".join(names)
    body = module.replace("export default ", "")
    return f'"use strict";\nconst {{ {told} }} = (() => {{\n{body}\nreturn {{ {told} }};\n}})();\n'
