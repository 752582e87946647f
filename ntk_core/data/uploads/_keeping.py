"""Cleaned uploads on disk, by the SHA-256 of their content, which gives access to them and is listed nowhere.

Equal data are one file: each session that uploads them keeps a reference, and the file stays while one has it.
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

from ntk_core import numbers
from ntk_core.data.uploads._archive import MIB
from ntk_core.data.uploads._clean import Cleaned
from ntk_core.environment import data_directory, private_directory, written_whole
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
    """Header of a kept upload, read without its numbers.

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
    """A session that keeps uploads, and its quota.

    Attributes:
        session: name of a browser session; empty for the user of this process.
        max_bytes: most that it may keep.
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

    When the directory is full, the longest unused data are deleted.

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
        path, others = folder / f"{digest}.npz", _sizes(folder)
        others.pop(digest, None)
        size = sum(np.dtype(dtype).itemsize * getattr(cleaned, name).size for name, dtype in _ARRAYS.items())
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
        raise InvalidInput("file", "data", f"a data directory that can be written (here: {cause})") from None
    return digest


def forget_upload(digest: str, keeper: Keeper | None = None, *, needed: Collection[str] = ()) -> None:
    """Drop the reference of a session; the file is deleted without other references unless a job needs it."""
    if not DIGEST.match(digest):
        return
    _reference(digest, keeper or Keeper()).unlink(missing_ok=True)
    if not _references(digest) and digest not in needed:
        (_folder() / f"{digest}.npz").unlink(missing_ok=True)


def upload_shapes(digest: str) -> UploadShapes:
    """Shapes and classes of kept data, without their numbers.

    Raises:
        MissingUpload: no such data are kept here.
    """
    try:
        path = _path(digest)
        state = path.stat()
        return _shapes(path, state.st_mtime_ns, state.st_size)
    except Exception:  # no digest, no home directory, no file, or a damaged one
        raise MissingUpload("digest", digest or "nothing", HOW_TO_BRING) from None


def read_upload(digest: str) -> Cleaned:
    """Kept data; a file that no longer matches its digest is deleted.

    Raises:
        MissingUpload: no such data are kept here.
    """
    shapes, path = upload_shapes(digest), _path(digest)
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
    arrays: Any = {name: np.asarray(getattr(cleaned, name), dtype) for name, dtype in _ARRAYS.items()}
    with written_whole(path, mode=0o600) as stream:
        np.savez(stream, header=np.frombuffer(_header(cleaned), np.uint8), **arrays)


def _folder() -> Path:
    return data_directory() / "uploads"


def _path(digest: str) -> Path:
    """Where data of this digest are; what is no digest, and could name another file, is refused."""
    if not DIGEST.match(digest):
        raise ValueError(digest)
    shipped = _SHIPPED / f"{digest}.npz"
    return shipped if shipped.exists() else _folder() / f"{digest}.npz"


def _header(cleaned: Cleaned) -> bytes:
    counts, num_targets = tuple(cleaned.counts.values()), cleaned.targets.shape[1]
    header = UploadShapes(
        shape=cleaned.x.shape, class_names=cleaned.class_names, counts=counts, num_targets=num_targets
    )
    return json.dumps(header.model_dump(), sort_keys=True, separators=(",", ":")).encode()


@functools.lru_cache(maxsize=256)
def _shapes(path: Path, _mtime_ns: int, _size: int) -> UploadShapes:
    """The header of a kept file; raises where it is damaged."""
    with np.load(path, allow_pickle=False) as archive:
        return UploadShapes.model_validate_json(archive["header"].tobytes())


def _sizes(folder: Path) -> dict[str, int]:
    """Digest → bytes of what is kept, the longest unused first."""
    found = []
    for path in folder.glob("*.npz"):
        with contextlib.suppress(OSError):  # another process has deleted it
            state = path.stat()
            found.append((state.st_mtime_ns, state.st_size, path.stem))
    return {digest: size for _, size, digest in sorted(found)}


def _make_room(folder: Path, most: int, sizes: Mapping[str, int], needed: Collection[str]) -> None:
    """Delete the longest unused of these data until at most ``most`` bytes are left; needed ones stay."""
    if sum(size for digest, size in sizes.items() if digest in needed) > most:
        raise InvalidInput("file", "data beyond what can be kept now", "it later, or smaller data")
    left = sum(sizes.values())
    for digest in (each for each in sizes if each not in needed):
        if left <= most:
            return
        for path in [folder / f"{digest}.npz", *_references(digest)]:
            path.unlink(missing_ok=True)
        left -= sizes[digest]


def _reference(digest: str, keeper: Keeper) -> Path:
    """The reference of a session; its random name cannot be guessed from the hash."""
    session = hashlib.sha256(keeper.session.encode()).hexdigest()[:24]
    return private_directory(data_directory() / "upload_keepers") / f"{digest}.{session}"


def _references(digest: str, keeper: Keeper | None = None) -> list[Path]:
    """References to these data, ``*`` for any, of one session or of all."""
    pattern = _reference(digest, keeper or Keeper())
    return list(pattern.parent.glob(pattern.name if keeper else f"{digest}.*"))
