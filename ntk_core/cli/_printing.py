"""Text for terminals."""

import sys

from ntk_core.errors import InvalidInput


def complain(*problems: InvalidInput | str) -> None:
    """One line per problem, on stderr."""
    for problem in problems:
        print(printable(str(problem)), file=sys.stderr)


def printable(text: str) -> str:
    """``text`` without what could confuse a terminal."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)
