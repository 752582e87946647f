"""Directories of the user's files, and files that are written atomically."""

import contextlib
import functools
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_NAME = "linearity-lab"
_OWNER_ONLY = 0o700


def data_directory() -> Path:
    """Return the user's data directory by platform convention, without creating it."""
    import platformdirs

    directory = platformdirs.user_data_path(_NAME, appauthor=False)
    if not directory.is_absolute():
        raise RuntimeError(f"{directory} is not an absolute path; set HOME or XDG_DATA_HOME to one")
    return directory


def private_directory(path: Path) -> Path:
    """Create ``path`` if needed, readable by its owner only (mode 700)."""
    path.mkdir(parents=True, exist_ok=True, mode=_OWNER_ONLY)
    if os.name == "posix" and path.stat().st_mode & 0o777 != _OWNER_ONLY:
        path.chmod(_OWNER_ONLY)
    return path


@contextlib.contextmanager
def written_whole(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Open a file that is written atomically, even if the machine stops; create its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Other threads and processes may write the same file at the same time.
    writer = f"{os.getpid()}.{threading.get_ident()}"
    part = path.with_name(f".{path.name}.{writer}.part")
    opener = functools.partial(os.open, mode=mode)
    try:
        with open(part, "wb", opener=opener) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
