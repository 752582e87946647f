"""Finished parts of long points, kept on disk so that a stopped or killed run resumes within a point.

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
    """Keep pairs of blocks in the user's data directory until their point is finished."""
    global _is_kept
    _is_kept = True


def unfinished_directory() -> Path | None:
    """Return their directory after deleting old ones; None where nothing is kept."""
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
