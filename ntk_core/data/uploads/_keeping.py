"""Cleaned uploads on disk, by the SHA-256 of their content, which gives access to them and is listed nowhere.

Equal data are one file: each session that uploads them keeps a reference, and the file stays while one has it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel

from ntk_core import numbers
from ntk_core.data.uploads._archive import MIB
from ntk_core.data.uploads._cleaned import Cleaned
from ntk_core.environment import data_directory, private_directory
from ntk_core.errors import InvalidInput

MAX_KEPT_BYTES = 1024 * MIB
DIGEST = re.compile(r"[0-9a-f]{64}\Z")
HOW_TO_BRING = "uploaded data; upload the file again on the page Your data"
_ARRAYS = {"x": "<f4", "labels": "<i8", "targets": "<f4"}
_SHIPPED = Path(__file__).parents[1] / "files" / "uploads"  # what comes with the program is neither kept nor forgotten
_LOG = logging.getLogger(__name__)
EXAMPLE = _SHIPPED / "spirals.csv"


class MissingUpload(InvalidInput):
    """The data are not, or no longer, kept here."""


class UploadShapes(BaseModel):
    """What is known of a kept upload without reading its numbers; the header of its file.

    Attributes:
        shape: of all inputs.
        counts: samples of each class.
        num_targets: columns of a regression target; 0 for classes.
    """

    version: Literal[1] = 1
    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    counts: tuple[int, ...]
    num_targets: int

    @property
    def num_samples(self) -> int:
        """Number n of samples."""
        return self.shape[0]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return self.shape[1:]


def upload_digest(cleaned: Cleaned) -> str:
    """SHA-256 over shapes, class names and numbers: equal data have equal digests on every machine."""
    digest = hashlib.sha256(_header(cleaned))
    for name, dtype in _ARRAYS.items():
        digest.update(np.ascontiguousarray(getattr(cleaned, name), dtype).tobytes())
    return digest.hexdigest()


def keep_upload(
    cleaned: Cleaned,
    keeper: Keeper | None = None,
    *,
    max_kept_bytes: int = MAX_KEPT_BYTES,
    needed: Collection[str] = (),
) -> str:
    """Keep the data in the user's data directory, readable by its owner only.

    When the directory is full, data of the session that keeps most are deleted, the longest unused first.

    Args:
        keeper: the session and its quota; by default the user of this process, without one.
        needed: digests that waiting or running jobs need, which stay.

    Returns:
        The digest, by which ``load_dataset("upload", digest=…)`` finds them.

    Raises:
        InvalidInput: the directory cannot be written, the quota is used up, or needed data leave no space.
    """
    keeper, digest = keeper or Keeper(), upload_digest(cleaned)
    if (_SHIPPED / f"{digest}.npz").exists():
        return digest
    try:
        folder = private_directory(_folder())
        path = folder / f"{digest}.npz"
        size = sum(np.dtype(dtype).itemsize * getattr(cleaned, name).size for name, dtype in _ARRAYS.items())
        _check_space(keeper, digest, size, _sizes(folder))
        if _is_intact(path):
            os.utime(path)
        else:
            _write(cleaned, folder, path, max_kept_bytes)
        (_keepers() / f"{digest}.{_hashed(keeper.session)}").touch(0o600)
        if not _evict(folder, max_kept_bytes, {*needed, digest}):
            _drop(_references(digest, _hashed(keeper.session)))
            path.unlink(missing_ok=True)
            most = numbers.size(max_kept_bytes)
            raise InvalidInput(
                "file", "data beyond what can be kept now", f"it later; at most {most} are stored together"
            )
    except (OSError, RuntimeError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        _LOG.error("An upload cannot be kept: %s", error, extra={"facts": {"cause": cause}})
        raise InvalidInput("file", "data", f"a data directory that can be written (here: {cause})") from None
    return digest


def forget_upload(digest: str, keeper: Keeper | None = None, *, needed: Collection[str] = ()) -> None:
    """Drop the reference of a session; the file is deleted without other references unless a job needs it."""
    path = _path(digest)
    if path is None or path.parent == _SHIPPED:
        return
    _drop(_references(digest, _hashed((keeper or Keeper()).session)))
    if not _references(digest) and digest not in needed:
        path.unlink(missing_ok=True)


def _write(cleaned: Cleaned, folder: Path, path: Path, most: int) -> None:
    arrays: Any = {name: np.asarray(getattr(cleaned, name), dtype) for name, dtype in _ARRAYS.items()}
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")  # mode 600
    try:
        with os.fdopen(handle, "wb") as stream:
            np.savez(stream, header=np.frombuffer(_header(cleaned), np.uint8), **arrays)
            stream.flush()
            os.fsync(stream.fileno())
        if os.path.getsize(temporary) > most:
            raise InvalidInput("file", "data larger than all that may be kept", f"{most:,} bytes")
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


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
    """Kept data; a file that no longer matches its digest is deleted.

    Raises:
        MissingUpload: no such data are kept here.
    """
    shapes, path = upload_shapes(digest), _path(digest)
    assert path is not None
    try:
        with np.load(path, allow_pickle=False) as archive:
            x, labels, targets = (archive[name] for name in _ARRAYS)
        if path.parent != _SHIPPED:
            os.utime(path)
    except Exception:
        raise MissingUpload("digest", digest, HOW_TO_BRING) from None
    cleaned = Cleaned(x, labels, targets, shapes.class_names)
    if upload_digest(cleaned) != digest:
        path.unlink(missing_ok=True)
        raise MissingUpload("digest", digest, HOW_TO_BRING)
    return cleaned


def _folder() -> Path:
    return data_directory() / "uploads"


def _keepers() -> Path:
    return private_directory(data_directory() / "upload_keepers")


def _path(digest: str) -> Path | None:
    """Where data of this digest are; None for what is no digest, so that no other file can be named."""
    try:
        if not DIGEST.match(digest):
            return None
        shipped = _SHIPPED / f"{digest}.npz"
        return shipped if shipped.exists() else _folder() / f"{digest}.npz"
    except RuntimeError:  # no home directory
        return None


def _header(cleaned: Cleaned) -> bytes:
    counts, num_targets = tuple(cleaned.counts.values()), cleaned.targets.shape[1]
    header = UploadShapes(
        shape=cleaned.x.shape, class_names=cleaned.class_names, counts=counts, num_targets=num_targets
    )
    return json.dumps(header.model_dump(), sort_keys=True, separators=(",", ":")).encode()


@functools.lru_cache(maxsize=256)
def _shapes(path: str, _mtime_ns: int, _size: int) -> UploadShapes | None:
    """The header of a kept file; None where it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return UploadShapes.model_validate_json(archive["header"].tobytes())
    except Exception:
        return None


def _is_intact(path: Path) -> bool:
    try:
        read_upload(path.stem)
    except MissingUpload:
        return False
    return True


def _sizes(folder: Path) -> dict[str, int]:
    """Digest → bytes of what is kept, the longest unused first."""
    found = []
    for path in folder.glob("*.npz"):
        try:
            state = path.stat()
        except OSError:  # another process has deleted it
            continue
        found.append((state.st_mtime_ns, state.st_size, path.stem))
    return {digest: size for _, size, digest in sorted(found)}


def _evict(folder: Path, most: int, needed: Collection[str]) -> bool:
    """Delete data of the sessions that keep most until ``most`` bytes are left; False when needed data exceed them."""
    sizes = _sizes(folder)
    while sum(sizes.values()) > most:
        digest = _first_to_delete(sizes, needed)
        if digest is None:
            return False
        _drop(_references(digest))
        (folder / f"{digest}.npz").unlink(missing_ok=True)
        del sizes[digest]
    return True


@dataclass(frozen=True)
class Keeper:
    """A session that keeps uploads, and its quota.

    Attributes:
        session: name of a browser session; empty for the user of this process.
        max_bytes, max_files: most that it may keep.
    """

    session: str = ""
    max_bytes: float = float("inf")
    max_files: float = float("inf")


def _references(digest: str = "*", session: str = "*") -> list[Path]:
    """The references of these data and this session, files ``DIGEST.SESSION``; by default all of them."""
    return list(_keepers().glob(f"{digest}.{session}"))


def _hashed(session: str) -> str:
    """The name of a session on disk; browser sessions are random, so it cannot be guessed from its hash."""
    return hashlib.sha256(session.encode()).hexdigest()[:24]


def _drop(references: list[Path]) -> None:
    for path in references:
        path.unlink(missing_ok=True)


def _check_space(keeper: Keeper, digest: str, size: int, sizes: Mapping[str, int]) -> None:
    """Refuse data of ``size`` bytes beyond the quota of the keeper; data that it keeps already count once."""
    kept = {path.stem for path in _references(session=_hashed(keeper.session))} & sizes.keys() - {digest}
    total = sum(sizes[each] for each in kept) + size
    if total > keeper.max_bytes:
        allowed = f"at most {numbers.size(keeper.max_bytes)}; forget some first"
        raise InvalidInput("file", f"{numbers.size(total)} of your data with these", allowed)
    if len(kept) >= keeper.max_files:
        raise InvalidInput("file", "one more data set", f"at most {keeper.max_files:g}; forget some first")


def _first_to_delete(sizes: Mapping[str, int], needed: Collection[str]) -> str | None:
    """Of the session that keeps most bytes, the first digest in ``sizes`` that is not needed."""
    kept: dict[str, set[str]] = {}
    for path in _references():
        kept.setdefault(path.suffix, set()).add(path.stem)
    kept[""] = set(sizes).difference(*kept.values())  # data without a session count as one session's
    weights = {session: sum(sizes.get(digest, 0) for digest in digests) for session, digests in kept.items()}
    for session in sorted(weights, key=weights.__getitem__, reverse=True):
        for digest in sizes:
            if digest in kept[session] and digest not in needed:
                return digest
    return None
