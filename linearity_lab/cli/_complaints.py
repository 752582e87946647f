"""Problems on stderr, one line each."""

import sys

from ntk_core.errors import InvalidInput
from ntk_core.markup import printable


def complain(*problems: InvalidInput | str) -> None:
    """Print one line per problem on stderr."""
    for problem in problems:
        print(printable(str(problem)), file=sys.stderr)
