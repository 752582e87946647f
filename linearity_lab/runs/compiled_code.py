"""Cache compiled code on disk with JAX's cache, and release it from memory above a limit.

The same directory keeps finished parts of long points, so a stopped or killed run
resumes within a point.

``import ntk_core`` does not change JAX's settings; a notebook enables the cache by
:func:`keep_compiled_code`.
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

from linearity_lab.environment import environment_settings
from linearity_lab.files import data_directory, private_directory
from linearity_lab.memory import resident_memory, return_freed_memory
from linearity_lab.variables import CACHE_OFF
from ntk_core.errors import InvalidInput

VARIABLE = "LINEARITY_LAB_CACHE"

# Above this size a start clears the directory. JAX's own limit reads every entry at each write:
# seconds per sweep.
MAX_BYTES = 200_000_000
_JAX_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
_PROCESSOR = Path("/proc/cpuinfo")
# Linux allows 65,530 memory maps and kills a process with more; a program takes about three.
MAX_MAPS = 25_000
# Memory limit of compiled programs in a process: about 10 MB each, and every width needs its own.
MOST_BYTES = 400e6
_MAPS = Path("/proc/self/maps")
KEPT_S = 14 * 24 * 3600.0  # unfinished points are deleted after this time; our choice
_keeps_unfinished = False
_at_rest = 0.0  # bytes in use after the last release
_LOG = logging.getLogger(__name__)


def keep_compiled_code() -> None:
    """Enable JAX's compilation cache in the directory ``LINEARITY_LAB_CACHE``.

    If ``JAX_COMPILATION_CACHE_DIR`` is set, the cache is unchanged. An unusable directory
    is logged in one line.
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
    options = {
        "jax_compilation_cache_dir": str(directory),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
    }
    if "jax" in sys.modules:
        import jax

        for name, value in options.items():
            jax.config.update(name, value)
    else:  # JAX reads these on import, and some commands never import it
        os.environ.update({name.upper(): str(value) for name, value in options.items()})
    warnings.filterwarnings(
        "ignore", r"Error (reading|writing) persistent compilation cache entry", UserWarning
    )


def compiled_code_directory() -> Path | None:
    """Return the directory for this processor's code; None if the cache is off."""
    given = environment_settings().cache
    if given.lower() == CACHE_OFF:
        return None
    root = Path(given).expanduser() if given else data_directory() / "compiled"
    return root / f"linearity-lab-{_processor()}"


def _processor() -> str:
    """Return a digest of the processor type, since code is specific to it.

    JAX distinguishes compilers.
    """
    try:
        lines = _PROCESSOR.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = [platform.processor()]
    facts = {line for line in lines if line.startswith(("model name", "flags", "Features"))} or set(
        lines
    )
    return hashlib.sha256(
        "\n".join([platform.system(), platform.machine(), *sorted(facts)]).encode()
    ).hexdigest()[:12]


def _tidy(directory: Path) -> None:
    """Clear a full directory; delete empty files of killed processes, which JAX never replaces."""
    files = {path: path.stat().st_size for path in directory.iterdir() if path.is_file()}
    is_full = sum(files.values()) > MAX_BYTES
    for path, size in files.items():
        if is_full or not size:
            path.unlink(missing_ok=True)


def num_maps() -> int:
    """Return the number of memory maps of this process; 0 if the system does not report it."""
    try:
        with _MAPS.open("rb") as lines:
            return sum(1 for _ in lines)
    except OSError:
        return 0


def release_compiled(most: int = MAX_MAPS, most_bytes: float = MOST_BYTES) -> bool:
    """Release all compiled programs above a limit, and return whether it did.

    The limit is ``most`` memory maps, or ``most_bytes`` more memory than at the first call
    or the last release.
    """
    global _at_rest
    _at_rest = _at_rest or resident_memory()
    if num_maps() <= most:
        if resident_memory() - _at_rest <= most_bytes:
            return False
        return_freed_memory()  # of arrays, which are not programs
        if resident_memory() - _at_rest <= most_bytes:
            return False
    import jax

    jax.clear_caches()
    gc.collect()
    return_freed_memory()
    _at_rest = resident_memory()
    return True


def unfinished_directory() -> Path | None:
    """Return the directory of finished pairs of blocks after deleting old ones.

    None if the cache is off.
    """
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
