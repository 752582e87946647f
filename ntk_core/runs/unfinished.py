"""What is finished of a long point, kept on disk, so that a run that was stopped or killed continues inside of it.

For programs, not for libraries: until :func:`keep_unfinished` is called, nothing is kept.
"""

import logging
import time
from contextlib import suppress
from pathlib import Path

from ntk_core.environment import data_directory, private_directory

KEPT_S = 14 * 24 * 3600.0  # abandoned after this time; our choice
_LOG = logging.getLogger(__name__)
_is_kept = False


def keep_unfinished() -> None:
    """From now on pairs of blocks are kept in the user's data directory until their point is finished."""
    global _is_kept
    _is_kept = True


def unfinished_directory() -> Path | None:
    """Where they are kept, without those that are too old; None where they are not, or cannot be."""
    if not _is_kept:
        return None
    try:
        directory = private_directory(data_directory() / "unfinished")
        for path in directory.iterdir():
            with suppress(OSError):  # another process may have deleted it
                if time.time() - path.stat().st_mtime > KEPT_S:
                    path.unlink()
    except (OSError, RuntimeError) as error:
        _LOG.warning("Unfinished points are not kept: %s", error)
        return None
    return directory
