"""Messages for visitors when the server fails; the log has the cause."""

import re

from linearity_lab.jobs.profile import profile
from ntk_core.errors import InvalidInput

NEUTRAL = "the results of this server cannot be read or written at the moment; the server log has the cause"

_CAUSES = re.compile(
    r"RESOURCE_EXHAUSTED|[Oo]ut of memory|over (?:memory|time)|No space left on device|disk is full|readonly database"
    r"|Too many open files|SIG[A-Z]+|CUDA_ERROR_[A-Z_]+|\b[A-Z][A-Za-z]+(?:Error|Exception)\b"
)


def known_causes(text: str) -> str:
    """The causes in a text that only programs write, for logs; the rest of it may name a user's data."""
    return ", ".join(dict.fromkeys(_CAUSES.findall(text)))[:200]


def error_text(error: InvalidInput) -> str:
    """One clause about an error; of the server's own database nothing that only its operator should know."""
    from ntk_core.runs.store import VARIABLE  # not before there is an error: the server listens before it is loaded

    try:
        neutral = error.field == VARIABLE and profile().is_shared
    except InvalidInput:  # reported by lifespan
        neutral = True
    return NEUTRAL if neutral else str(error)
