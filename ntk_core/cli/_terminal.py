"""What a terminal gets: exit codes and lines of text."""

import sys

from ntk_core.errors import InvalidInput
from ntk_core.markup import printable

COMPLETED, FAILED, BAD_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143


def complain(*problems: InvalidInput | str) -> None:
    """Print one line per problem on stderr."""
    for problem in problems:
        print(printable(str(problem)), file=sys.stderr)
