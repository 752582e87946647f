"""Compiled programs kept on disk, so that the next process need not compile them again.

JAX keeps them itself (its persistent compilation cache); here it is told where, and the place is kept small and whole.
For programs, not for libraries: ``import ntk_core`` leaves JAX's settings to whoever imports it. A notebook may ask for
it by ``ntk_core.runs.compiled_code.keep_compiled_code()``.
"""

import hashlib
import logging
import os
import platform
import re
import sys
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from ntk_core.environment import data_directory, private_directory
from ntk_core.errors import InvalidInput

VARIABLE = "LINEARITY_LAB_CACHE"
OFF = "off"
# Earlier ones load what they have compiled themselves only under a complaint about the processor, on many processors.
FIRST_JAXLIB = (0, 10, 2)
MAX_BYTES = 200_000_000  # our choice: some ten thousand programs of a CPU
_JAX_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
_PREFIX = "linearity-lab-"  # only in directories of this name is anything ever deleted
_STAMP = ".looked-at"
_ZLIB, _ZSTANDARD = b"\x78", b"\x28\xb5\x2f\xfd"
_PROCESSOR = Path("/proc/cpuinfo")
_LOG = logging.getLogger(__name__)


def keep_compiled_code() -> None:
    """From now on JAX looks on disk before it compiles, and keeps there what it has compiled.

    Where ``JAX_COMPILATION_CACHE_DIR`` is set, somebody has decided already, and nothing is done; nor is it with a
    ``jaxlib`` before ``FIRST_JAXLIB``, whose compiled programs cannot be loaded again safely. A directory that
    cannot be used costs one line in the log; later trouble with it (a full disk, a damaged file) costs the time of
    compiling and nothing else.
    """
    if os.environ.get(_JAX_VARIABLE) or not is_supported():
        return
    try:
        directory = compiled_code_directory()
        if directory is None:
            return
        _make_ready(directory)
    except InvalidInput as error:
        _LOG.warning("Compiled code is not kept between starts: %s", error)
        return
    _tell_jax({"jax_compilation_cache_dir": str(directory), "jax_persistent_cache_min_compile_time_secs": 0.0})
    warnings.filterwarnings("ignore", r"Error (reading|writing) persistent compilation cache entry", UserWarning)


def is_supported() -> bool:
    """Whether the installed ``jaxlib`` reads again what it has compiled, without complaints."""
    return tuple(int(part) for part in re.findall(r"\d+", metadata.version("jaxlib"))[:3]) >= FIRST_JAXLIB


def compiled_code_directory() -> Path | None:
    """Where this machine's compiled programs belong, by ``LINEARITY_LAB_CACHE``; None when they are not to be kept.

    Raises:
        InvalidInput: for a value that is no absolute path, or when there is no home directory to fall back on.
    """
    given = os.environ.get(VARIABLE, "").strip()
    if given.lower() == OFF:
        return None
    try:
        root = Path(given).expanduser() if given else data_directory() / "compiled"
    except RuntimeError as error:
        raise _unusable(given, error) from None
    if not root.is_absolute():
        raise _unusable(given)
    return root / f"{_PREFIX}{_machine()}"


def _machine() -> str:
    """Programs hold the instructions of one processor, written by one compiler: no other one may be handed them."""
    try:
        lines = _PROCESSOR.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = [platform.processor()]
    processor = sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))} or set(lines))
    facts = [metadata.version("jaxlib"), platform.system(), platform.machine(), *processor]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]


def _make_ready(directory: Path) -> None:
    """The directory, for its owner only, without damaged files, and small."""
    try:
        private_directory(directory)
        _remove_beyond(directory.parent, MAX_BYTES)
        _remove_damaged(directory)  # last, since to look at a file is to use it
    except (OSError, RuntimeError) as error:
        raise _unusable(str(directory), error) from None


def _remove_damaged(directory: Path) -> None:
    """Delete what a killed process or a full disk has left in pieces; JAX would neither read it nor write it anew.

    Files are looked at once: those that are older than the last look are known to be whole.
    """
    began, stamp = time.time(), directory / _STAMP
    looked_at = stamp.stat().st_mtime if stamp.exists() else 0.0
    stamp.touch()
    for entry in directory.glob("*-cache"):
        with suppress(OSError):  # another process may have deleted it
            # File systems count time in steps of up to two seconds.
            if entry.stat().st_mtime >= looked_at - 2 and not _is_whole(entry.read_bytes()):
                entry.unlink()
    os.utime(stamp, (began, began))


def _is_whole(entry: bytes) -> bool:
    """By the checksum at its end; what JAX has compressed by Zstandard is left to JAX."""
    if entry.startswith(_ZSTANDARD):
        return True
    try:
        return entry.startswith(_ZLIB) and bool(zlib.decompress(entry))
    except zlib.error:
        return False


def _remove_beyond(root: Path, most_bytes: int) -> None:
    """Delete what was read or written longest ago until ``most_bytes`` are left, that of other machines included.

    Not JAX's own bound: it needs another package, and once a process is killed between the two files that it writes an
    entry, it never writes one again.
    """
    files = sorted(_files(root), reverse=True)
    total = 0
    for _, size, path in files:
        total += size
        if total > most_bytes:
            with suppress(OSError):
                path.unlink()


def _files(root: Path) -> Iterator[tuple[float, int, Path]]:
    """(time of the last use, bytes, path)."""
    for path in root.glob(f"{_PREFIX}*/**/*"):
        with suppress(OSError):
            if path.is_file() and path.name != _STAMP:
                found = path.stat()
                yield max(found.st_atime, found.st_mtime), found.st_size, path


def _tell_jax(settings: dict[str, str | float]) -> None:
    if "jax" not in sys.modules:  # it may not be needed at all, and reads these when it is imported
        os.environ.update({name.upper(): str(value) for name, value in settings.items()})
        return
    import jax

    for name, value in settings.items():
        jax.config.update(name, value)


def _unusable(given: str, error: Exception | None = None) -> InvalidInput:
    here = f" (here: {error})" if error else ""
    return InvalidInput(VARIABLE, given, f"the absolute path of a directory that can be written, or {OFF}{here}")
