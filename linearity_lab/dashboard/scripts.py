"""Scripts of custom components, from files.

Bundles of small ES modules, also for pages opened from a disk.
"""

import re
from collections.abc import Sequence
from pathlib import Path

# The drawing area: its script, with the style beside it, and its frame.
SKETCH = Path(__file__).with_name("sketch.js")
SKETCH_HTML = '<div class="sketch"></div>'
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
    return (
        f'"use strict";\nconst {{ {exported} }} = (() => {{\n{body}\nreturn {{ {exported} '
        f"}};\n}})();\n"
    )
