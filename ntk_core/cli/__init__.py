"""The command line: the same specs as the pages, run here and now; one module per command.

Exit codes: 0 completed, 1 failed, 2 bad input, 130 stopped by Ctrl-C, 143 stopped by SIGTERM.
"""

from ntk_core.cli._exit_codes import BAD_INPUT, COMPLETED, FAILED, INTERRUPTED, TERMINATED
from ntk_core.cli._main import main, program
