"""``python -m linearity_lab``: the command line."""

import sys

from linearity_lab.cli import program

if __name__ == "__main__":
    sys.exit(program())
