"""Cleaned uploads on disk, by the SHA-256 of their content.

The hash grants access and is never listed.

Equal data share one file: each uploading session keeps a reference, and the file
exists while one does.
"""

import contextlib
import functools
import hashlib
import json
import logging
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel

from linearity_lab.data.uploads._archive import MIB
from linearity_lab.data.uploads._clean import Cleaned
from linearity_lab.files import data_directory, private_directory, written_whole
from ntk_core import numbers
from ntk_core.errors import InvalidInput

MAX_KEPT_BYTES = 1024 * MIB
DIGEST = re.compile(r"[0-9a-f]{64}\Z")
HOW_TO_BRING = "uploaded data; upload the file again on the page Your data"
_ARRAYS = {"x": "<f4", "labels": "<i8", "targets": "<f4"}
_SHIPPED = Path(__file__).parents[1] / "files" / "uploads"  # shipped data, never deleted
_LOG = logging.getLogger(__name__)
EXAMPLE = _SHIPPED / "spirals.csv"


class MissingUpload(InvalidInput):
    """Error for uploaded data that are not stored here."""


class UploadShapes(BaseModel):
    """Header of a stored upload, read without its numbers.

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


@dataclass(frozen=True)
class Keeper:
    """Session with uploads, and its quota.

    Attributes:
        session: name of a browser session; empty for the user of this process.
        max_bytes: its quota.
    """

    session: str = ""
    max_bytes: float = float("inf")

    def check_quota(self, size: int, others: Mapping[str, int]) -> None:
        """Refuse ``size`` more bytes; ``others`` are the sizes of all other data."""
        total = size + sum(others.get(path.stem, 0) for path in _references("*", self))
        if total > self.max_bytes:
            allowed = f"at most {numbers.size(self.max_bytes)}; forget some first"
            raise InvalidInput("file", f"{numbers.size(total)} of your data with these", allowed)


def upload_digest(cleaned: Cleaned) -> str:
    """Return the SHA-256 of shapes, class names and numbers, equal on every machine."""
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
    """Store data in the user's data directory, readable by its owner only.

    If the directory is full, the longest unused data are deleted.

    Args:
        keeper: the session and its quota; by default the user of this process, without one.
        needed: digests of waiting or running jobs, never deleted.

    Returns:
        The digest for ``load_dataset("upload", digest=…)``.

    Raises:
        InvalidInput: if the directory is not writable, the quota is exceeded, or needed
            data leave no space.
    """
    keeper = keeper or Keeper()
    digest = upload_digest(cleaned)
    if (_SHIPPED / f"{digest}.npz").exists():
        return digest
    try:
        folder = private_directory(_folder())
        path = folder / f"{digest}.npz"
        others = _sizes(folder)
        others.pop(digest, None)
        size = sum(
            np.dtype(dtype).itemsize * getattr(cleaned, name).size
            for name, dtype in _ARRAYS.items()
        )
        keeper.check_quota(size, others)
        _make_room(folder, max_kept_bytes - size, others, needed)
        try:
            read_upload(digest)
        except MissingUpload:
            _write(cleaned, path)
        _reference(digest, keeper).touch(0o600)
    except (OSError, RuntimeError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        _LOG.error("An upload cannot be kept: %s", error, extra={"facts": {"cause": cause}})
        raise InvalidInput(
            "file", "data", f"a data directory that can be written (here: {cause})"
        ) from None
    return digest


def forget_upload(
    digest: str, keeper: Keeper | None = None, *, needed: Collection[str] = ()
) -> None:
    """Delete a session's reference to an upload.

    The file goes too if it has no other reference and no job needs it.
    """
    if not DIGEST.match(digest):
        return
    _reference(digest, keeper or Keeper()).unlink(missing_ok=True)
    if not _references(digest) and digest not in needed:
        (_folder() / f"{digest}.npz").unlink(missing_ok=True)


def upload_shapes(digest: str) -> UploadShapes:
    """Return shapes and classes of stored data without reading the numbers.

    Raises:
        MissingUpload: if the data are not stored here.
    """
    try:
        path = _path(digest)
        state = path.stat()
        return _shapes(path, state.st_mtime_ns, state.st_size)
    except Exception:  # no digest, no home directory, no file, or a damaged one
        raise MissingUpload("digest", digest or "nothing", HOW_TO_BRING) from None


def read_upload(digest: str) -> Cleaned:
    """Read stored data; delete a file that does not match its digest.

    Raises:
        MissingUpload: if the data are not stored here.
    """
    shapes = upload_shapes(digest)
    path = _path(digest)
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


def _write(cleaned: Cleaned, path: Path) -> None:
    arrays: Any = {
        name: np.asarray(getattr(cleaned, name), dtype) for name, dtype in _ARRAYS.items()
    }
    with written_whole(path, mode=0o600) as stream:
        np.savez(stream, header=np.frombuffer(_header(cleaned), np.uint8), **arrays)


def _folder() -> Path:
    return data_directory() / "uploads"


def _path(digest: str) -> Path:
    """Return the path of this digest; refuse other text, which could name another file."""
    if not DIGEST.match(digest):
        raise ValueError(digest)
    shipped = _SHIPPED / f"{digest}.npz"
    return shipped if shipped.exists() else _folder() / f"{digest}.npz"


def _header(cleaned: Cleaned) -> bytes:
    counts = tuple(cleaned.counts.values())
    num_targets = cleaned.targets.shape[1]
    header = UploadShapes(
        shape=cleaned.x.shape,
        class_names=cleaned.class_names,
        counts=counts,
        num_targets=num_targets,
    )
    return json.dumps(header.model_dump(), sort_keys=True, separators=(",", ":")).encode()


@functools.lru_cache(maxsize=256)
def _shapes(path: Path, _mtime_ns: int, _size: int) -> UploadShapes:
    """Return the header of a stored file; raise if damaged."""
    with np.load(path, allow_pickle=False) as archive:
        return UploadShapes.model_validate_json(archive["header"].tobytes())


def _sizes(folder: Path) -> dict[str, int]:
    """Map digests to stored bytes, longest unused first."""
    found = []
    for path in folder.glob("*.npz"):
        with contextlib.suppress(OSError):  # another process has deleted it
            state = path.stat()
            found.append((state.st_mtime_ns, state.st_size, path.stem))
    return {digest: size for _, size, digest in sorted(found)}


def _make_room(folder: Path, most: int, sizes: Mapping[str, int], needed: Collection[str]) -> None:
    """Delete the longest unused data until at most ``most`` bytes remain, except needed ones."""
    if sum(size for digest, size in sizes.items() if digest in needed) > most:
        raise InvalidInput(
            "file", "data that exceed the space now available", "it later, or smaller data"
        )
    left = sum(sizes.values())
    for digest in (each for each in sizes if each not in needed):
        if left <= most:
            return
        for path in [folder / f"{digest}.npz", *_references(digest)]:
            path.unlink(missing_ok=True)
        left -= sizes[digest]


def _reference(digest: str, keeper: Keeper) -> Path:
    """Return the reference of a session, whose random name cannot be inferred from the hash."""
    session = hashlib.sha256(keeper.session.encode()).hexdigest()[:24]
    return private_directory(data_directory() / "upload_keepers") / f"{digest}.{session}"


def _references(digest: str, keeper: Keeper | None = None) -> list[Path]:
    """Return the references to these data (``*``: any), of one session or all."""
    pattern = _reference(digest, keeper or Keeper())
    return list(pattern.parent.glob(pattern.name if keeper else f"{digest}.*"))
