"""Which session keeps which upload: an empty file for each pair, with a hashed session."""

import hashlib
import os
import secrets
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ntk_core import numbers
from ntk_core.errors import InvalidInput

_HASH_BYTES = 12
_SALT = "salt"


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


class References:
    """The references in a directory, ``DIGEST.SESSION``, the session hashed with a salt of this directory."""

    def __init__(self, folder: Path):
        self._folder = folder

    def add(self, digest: str, keeper: Keeper) -> None:
        """Record that the keeper keeps these data."""
        (self._folder / f"{digest}.{self._hashed(keeper.session)}").touch(mode=0o600)

    def remove(self, digest: str, keeper: Keeper | None = None) -> None:
        """Drop the reference of one keeper, or of all."""
        for path in self._folder.glob(f"{digest}.{self._hashed(keeper.session) if keeper else '*'}"):
            path.unlink(missing_ok=True)

    def exist(self, digest: str) -> bool:
        """Whether any session keeps these data."""
        return any(self._folder.glob(f"{digest}.*"))

    def check_room(self, keeper: Keeper, digest: str, size: int, sizes: Mapping[str, int]) -> None:
        """Refuse data of ``size`` bytes beyond the quota of the keeper; data that it keeps already count once.

        Raises:
            InvalidInput: naming the limit.
        """
        kept = {path.name.partition(".")[0] for path in self._folder.glob(f"*.{self._hashed(keeper.session)}")}
        total = sum(sizes[each] for each in kept & sizes.keys() if each != digest) + size
        if total > keeper.max_bytes:
            allowed = f"at most {numbers.size(keeper.max_bytes)}; forget some first"
            raise InvalidInput("file", f"{numbers.size(total)} of your data with these", allowed)
        if len((kept & sizes.keys()) | {digest}) > keeper.max_files:
            raise InvalidInput("file", "one more data set", f"at most {keeper.max_files:g}; forget some first")

    def first_to_delete(self, sizes: Mapping[str, int], needed: Collection[str]) -> str | None:
        """Of the session that keeps most bytes, the first digest in ``sizes`` that is not needed."""
        kept: dict[str, set[str]] = {}  # session → digests; data without a session count as one session's
        for path in self._folder.glob("*.*"):
            digest, _, session = path.name.partition(".")
            kept.setdefault(session, set()).add(digest)
        kept.setdefault("", set()).update(set(sizes) - set().union(*kept.values()))
        weights = {session: sum(sizes.get(digest, 0) for digest in digests) for session, digests in kept.items()}
        for session in sorted(weights, key=weights.__getitem__, reverse=True):
            for digest in sizes:
                if digest in kept[session] and digest not in needed:
                    return digest
        return None

    def _hashed(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), key=self._salt(), digest_size=_HASH_BYTES).hexdigest()

    def _salt(self) -> bytes:
        path = self._folder / _SALT
        if not path.exists():
            part = self._folder / f".{_SALT}.{os.getpid()}"
            part.write_bytes(secrets.token_bytes(32))
            with suppress(FileExistsError):
                os.link(part, path)  # the first of several processes decides
            part.unlink()
        return path.read_bytes()[:64]
