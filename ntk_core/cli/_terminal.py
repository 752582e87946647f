"""What a terminal gets: exit codes and lines of text."""

import sys

from ntk_core.errors import InvalidInput

COMPLETED, FAILED, BAD_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143


def complain(*problems: InvalidInput | str) -> None:
    """Print one line per problem on stderr."""
    for problem in problems:
        print(printable(str(problem)), file=sys.stderr)


def printable(text: str) -> str:
    """``text`` without control characters, which could confuse a terminal."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)
