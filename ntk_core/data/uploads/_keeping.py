"""Cleaned uploads on disk, by the SHA-256 of their content; whoever knows it may use them, and nobody lists them."""

import functools
import hashlib
import json
import os
import re
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ntk_core.data.uploads._archive import READ_ERRORS
from ntk_core.data.uploads._cleaned import Cleaned
from ntk_core.data.uploads._limits import MIB
from ntk_core.environment import data_directory, private_directory
from ntk_core.errors import InvalidInput

MAX_KEPT_BYTES = 1024 * MIB
DIGEST = re.compile(r"[0-9a-f]{64}\Z")
HOW_TO_BRING = "data brought here; bring the file again on the page Your data"
_ARRAYS = {"x": "<f4", "labels": "<i8", "targets": "<f4"}
_MAX_HEADER = 100_000


class MissingUpload(InvalidInput):
    """The data are not, or no longer, kept here."""


@dataclass(frozen=True)
class UploadShapes:
    """What is known of a kept upload without reading its numbers.

    Attributes:
        counts: samples of each class.
        num_targets: columns of a regression target; 0 for classes.
    """

    num_samples: int
    input_shape: tuple[int, ...]
    class_names: tuple[str, ...]
    counts: tuple[int, ...]
    num_targets: int


def upload_digest(cleaned: Cleaned) -> str:
    """SHA-256 over shapes, class names and numbers: equal data have equal digests on every machine."""
    digest = hashlib.sha256(_header(cleaned))
    for name, dtype in _ARRAYS.items():
        digest.update(np.ascontiguousarray(getattr(cleaned, name), dtype).tobytes())
    return digest.hexdigest()


def keep_upload(cleaned: Cleaned, *, max_kept_bytes: int = MAX_KEPT_BYTES) -> str:
    """Keep the data in the user's data directory, readable by its owner only; the longest unused go when it is full.

    Returns:
        The digest, by which ``load_dataset("upload", digest=…)`` finds them.

    Raises:
        InvalidInput: the directory cannot be written, or the data alone are larger than it may be.
    """
    digest = upload_digest(cleaned)
    try:
        folder = private_directory(_folder())
        path = folder / f"{digest}.npz"
        if _is_intact(path):
            os.utime(path)
            return digest
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")  # mode 600
        try:
            with os.fdopen(handle, "wb") as stream:
                arrays: Any = {name: np.asarray(getattr(cleaned, name), dtype) for name, dtype in _ARRAYS.items()}
                np.savez(stream, header=np.frombuffer(_header(cleaned), np.uint8), **arrays)
                stream.flush()
                os.fsync(stream.fileno())
            if os.path.getsize(temporary) > max_kept_bytes:
                raise InvalidInput("file", "data larger than all that may be kept", f"{max_kept_bytes:,} bytes")
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)
        _evict(folder, path, max_kept_bytes)
    except (OSError, RuntimeError) as error:
        raise InvalidInput("file", "data", f"a data directory that can be written (here: {error})") from None
    return digest


def forget_upload(digest: str) -> None:
    """Delete the data of this digest, where they are kept."""
    path = _path(digest)
    if path is not None:
        path.unlink(missing_ok=True)


def upload_shapes(digest: str) -> UploadShapes:
    """Shapes and classes of kept data, without their numbers.

    Raises:
        MissingUpload: no such data are kept here.
    """
    path = _path(digest)
    try:
        state = path.stat() if path else None
    except OSError:
        state = None
    found = _shapes(str(path), state.st_mtime_ns, state.st_size) if state else None
    if found is None:
        raise MissingUpload("digest", digest or "nothing", HOW_TO_BRING)
    return found


def read_upload(digest: str) -> Cleaned:
    """Kept data; what is no longer what its digest says is deleted.

    Raises:
        MissingUpload: no such data are kept here.
    """
    shapes, path = upload_shapes(digest), _path(digest)
    assert path is not None
    try:
        with np.load(path, allow_pickle=False) as archive:
            x, labels, targets = (archive[name] for name in _ARRAYS)
        os.utime(path)
    except READ_ERRORS:
        raise MissingUpload("digest", digest, HOW_TO_BRING) from None
    cleaned = Cleaned(x, labels, targets, shapes.class_names)
    if upload_digest(cleaned) != digest:
        path.unlink(missing_ok=True)
        raise MissingUpload("digest", digest, HOW_TO_BRING)
    return cleaned


def _folder() -> Path:
    return data_directory() / "uploads"


def _path(digest: str) -> Path | None:
    """Where data of this digest are; None for what is no digest, so that no other file can be named."""
    try:
        return _folder() / f"{digest}.npz" if DIGEST.match(digest) else None
    except RuntimeError:  # no home directory
        return None


def _header(cleaned: Cleaned) -> bytes:
    said = {
        "version": 1,
        "shape": cleaned.x.shape,
        "class_names": cleaned.class_names,
        "counts": list(cleaned.counts.values()),
        "num_targets": cleaned.targets.shape[1],
    }
    return json.dumps(said, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


@functools.lru_cache(maxsize=256)
def _shapes(path: str, _mtime_ns: int, _size: int) -> UploadShapes | None:
    """The header of a kept file; None where it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("header.npy") as stream:
            np.lib.format.read_magic(stream)
            np.lib.format.read_array_header_1_0(stream)
            said = json.loads(stream.read(_MAX_HEADER))
        num_samples, *input_shape = map(int, said["shape"])
        return UploadShapes(
            num_samples,
            tuple(input_shape),
            tuple(map(str, said["class_names"])),
            tuple(map(int, said["counts"])),
            int(said["num_targets"]),
        )
    except READ_ERRORS:
        return None


def _is_intact(path: Path) -> bool:
    try:
        read_upload(path.stem)
    except MissingUpload:
        return False
    return True


def _evict(folder: Path, newest: Path, most: int) -> None:
    """Delete the longest unused until all together are small enough; never the one that has just come."""
    found = []
    for path in folder.iterdir():
        try:
            state = path.stat()
        except OSError:  # another process has deleted it
            continue
        found.append((state.st_mtime_ns, state.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= most:
            return
        if path != newest:
            path.unlink(missing_ok=True)
            total -= size
