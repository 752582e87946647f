"""Compiled code: kept on disk for the next process by JAX's cache, and released from memory before there is too much.

Programs also keep finished parts of long points, so that a stopped or killed run resumes within a point.

``import ntk_core`` leaves the settings of JAX alone. A notebook turns the cache on by
``ntk_core.runs.compiled_code.keep_compiled_code()``.
"""

import gc
import hashlib
import logging
import os
import platform
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

from ntk_core.environment import data_directory, private_directory, resident_memory, return_freed_memory, settings
from ntk_core.errors import InvalidInput

VARIABLE = "LINEARITY_LAB_CACHE"
OFF = "off"
# Above this the directory is cleared at a start. JAX's own bound reads every entry at each write: seconds per sweep.
MAX_BYTES = 200_000_000
_JAX_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
_PROCESSOR = Path("/proc/cpuinfo")
# Linux allows 65,530 memory maps; a program takes about three, and one too many ends the process.
MAX_MAPS = 25_000
# Memory that compiled programs may add to a process, about 10 MB a program; other widths need other programs.
MOST_BYTES = 400e6
_MAPS = Path("/proc/self/maps")
KEPT_S = 14 * 24 * 3600.0  # after this time unfinished points are abandoned; our choice
_keeps_unfinished = False
_at_rest = 0.0  # bytes when this process last let them go
_LOG = logging.getLogger(__name__)


def keep_compiled_code() -> None:
    """Turn on JAX's compilation cache in the directory of ``LINEARITY_LAB_CACHE``, and keep parts of long points.

    The cache stays as it is where ``JAX_COMPILATION_CACHE_DIR`` is set. An unusable directory is
    logged in one line.
    """
    global _keeps_unfinished
    _keeps_unfinished = True
    if os.environ.get(_JAX_VARIABLE):
        return
    try:
        if (directory := compiled_code_directory()) is None:
            return
        _tidy(private_directory(directory))
    except (InvalidInput, OSError, RuntimeError) as error:
        _LOG.warning("Compiled code is not kept between starts: %s", error)
        return
    options = {"jax_compilation_cache_dir": str(directory), "jax_persistent_cache_min_compile_time_secs": 0.0}
    if "jax" in sys.modules:
        import jax

        for name, value in options.items():
            jax.config.update(name, value)
    else:  # JAX reads these when it is imported, which some commands never do
        os.environ.update({name.upper(): str(value) for name, value in options.items()})
    warnings.filterwarnings("ignore", r"Error (reading|writing) persistent compilation cache entry", UserWarning)


def compiled_code_directory() -> Path | None:
    """The directory for code of this processor; None when the cache is off."""
    given = settings().cache
    if given.lower() == OFF:
        return None
    root = Path(given).expanduser() if given else data_directory() / "compiled"
    if not root.is_absolute():
        raise InvalidInput(VARIABLE, given, f"the absolute path of a directory that can be written, or {OFF}")
    return root / f"linearity-lab-{_processor()}"


def _processor() -> str:
    """Digest of the processor, whose instructions the code holds; JAX distinguishes compilers itself."""
    try:
        lines = _PROCESSOR.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = [platform.processor()]
    facts = {line for line in lines if line.startswith(("model name", "flags", "Features"))} or set(lines)
    return hashlib.sha256("\n".join([platform.system(), platform.machine(), *sorted(facts)]).encode()).hexdigest()[:12]


def _tidy(directory: Path) -> None:
    """Clear a directory that is full; delete empty files, which a killed process leaves and JAX never replaces."""
    files = {path: path.stat().st_size for path in directory.iterdir() if path.is_file()}
    is_full = sum(files.values()) > MAX_BYTES
    for path, size in files.items():
        if is_full or not size:
            path.unlink(missing_ok=True)


def num_maps() -> int:
    """Memory maps of this process; 0 where the system does not report it."""
    try:
        with _MAPS.open("rb") as lines:
            return sum(1 for _ in lines)
    except OSError:
        return 0


def release_compiled(most: int = MAX_MAPS, most_bytes: float = MOST_BYTES) -> bool:
    """Forget all compiled programs once there are many; whether it did.

    Many are more than ``most`` memory maps, or ``most_bytes`` more memory than when this was first asked or last done.
    """
    global _at_rest
    _at_rest = _at_rest or resident_memory()
    if num_maps() <= most and resident_memory() - _at_rest <= most_bytes:
        return False
    import jax

    jax.clear_caches()
    gc.collect()
    return_freed_memory()
    _at_rest = resident_memory()
    return True


def unfinished_directory() -> Path | None:
    """Directory of finished pairs of blocks, without old ones; None where nothing is kept."""
    if not _keeps_unfinished:
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
