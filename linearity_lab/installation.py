"""How this package is installed.

Its top folder, its command, experiments of other distributions.
"""

import sys
from pathlib import Path

from ntk_core.machine import IS_CHECKOUT

COMMAND = "linearity-lab"
OUTSIDE = "linearity_lab.experiments"  # entry points of other distributions: name = package
# Where app.py, pages/ and gallery/ are: the top of a checkout, or a folder of the
# wheel (pyproject.toml).
_PACKAGE = Path(__file__).resolve().parent
TOP = _PACKAGE.parent if IS_CHECKOUT else _PACKAGE


def command_name() -> str:
    """Name of the command line: ``python -m linearity_lab`` if it started this process."""
    if not sys.argv:
        return COMMAND
    started_by = Path(sys.argv[0]).parts[-2:]
    is_module = started_by == ("linearity_lab", "__main__.py")
    return "python -m linearity_lab" if is_module else COMMAND
