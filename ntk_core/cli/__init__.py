"""The command line: the specs of the pages, computed here and now.

Exit codes: 0 completed, 1 failed, 2 bad input, 130 stopped by Ctrl-C, 143 stopped by SIGTERM.
"""

from ntk_core.cli._main import main, program
from ntk_core.cli._terminal import BAD_INPUT, COMPLETED, FAILED, INTERRUPTED, TERMINATED
