"""Precomputed results, one JSON file per preset, shown before the first run."""

import logging
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from linearity_lab.dashboard.jobs.sized_cache import SizedCache
from linearity_lab.runs import PRESETS, Result, ResultValue, Spec
from linearity_lab.runs.gallery import GALLERY, gallery_beside

MAX_BYTES = 20_000_000
KEPT_BYTES = 6_000_000  # of files whose results stay in memory; our choice
_RESULT: TypeAdapter[ResultValue] = TypeAdapter(Result)
_LOG = logging.getLogger(__name__)


def gallery_result(preset: str) -> ResultValue | None:
    """Return the precomputed result of a preset; None if it is missing or unreadable."""
    path = (gallery_beside(preset) or GALLERY) / f"{preset}.json"
    try:
        status = path.stat()
    except OSError:
        return None
    key = path, status.st_mtime_ns, status.st_size
    found = _results.get(key, lambda: (_read(path, status.st_size), status.st_size))
    return found[0]


def gallery_result_of(spec: Spec) -> ResultValue | None:
    """Return the precomputed result of exactly these settings, or None."""
    for name, preset in PRESETS.items():
        if preset.spec == spec:
            result = gallery_result(name)
            return (
                result
                if result is not None and result.spec == spec and result.status == "completed"
                else None
            )
    return None


# With the bytes of its file; results as objects take a few times as much.
_results: SizedCache[tuple[ResultValue | None, int]] = SizedCache(
    KEPT_BYTES, lambda found: found[1]
)


def _read(path: Path, size: int) -> ResultValue | None:
    if size > MAX_BYTES:
        _LOG.warning("%s has %d bytes, more than %d: it is not shown.", path, size, MAX_BYTES)
        return None
    try:
        return _RESULT.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        _LOG.warning("%s is not a result and is not shown: %s", path, str(error).splitlines()[0])
        return None
