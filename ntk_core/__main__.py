"""``python -m ntk_core``: the command line."""

import sys

from ntk_core.cli import program

if __name__ == "__main__":
    sys.exit(program())
