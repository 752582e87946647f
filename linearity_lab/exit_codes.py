"""Exit codes of commands and of the server."""

COMPLETED = 0
FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130  # by Ctrl-C
TERMINATED = 143  # by SIGTERM
