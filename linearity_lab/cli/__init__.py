"""The command line: computes the specs of the pages on this machine.

Exit codes: 0 completed, 1 failed, 2 bad input, 130 stopped by Ctrl-C, 143 stopped by SIGTERM.
"""

import sys
from collections.abc import Sequence

from linearity_lab.cli._complaints import complain
from linearity_lab.exit_codes import COMPLETED, FAILED
from ntk_core._version import __version__
from ntk_core.machine import check_installed

_NEEDED = ("cyclopts", "filelock", "pandas", "PIL", "psutil", "sqlalchemy")


def program() -> int:
    """Run the command of this process and return the exit code."""
    if sys.argv[1:] == ["--version"]:  # needs no other package
        print(__version__)
        return COMPLETED
    try:
        check_installed(
            "app" if sys.argv[1:2] in (["app"], ["site"]) else "cli", "The command line", *_NEEDED
        )
    except ModuleNotFoundError as error:
        complain(str(error))
        return FAILED
    from linearity_lab.cli import _main

    return _main.program()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    from linearity_lab.cli import _main

    return _main.main(arguments)
