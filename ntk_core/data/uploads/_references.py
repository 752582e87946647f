"""Who keeps which upload: an empty file for each digest and keeper, without anything that tells who that is."""

import hashlib
import os
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from ntk_core.data.uploads._limits import megabytes
from ntk_core.errors import InvalidInput

_HASH_BYTES = 12
_SALT = "salt"


@dataclass(frozen=True)
class Keeper:
    """Somebody who keeps uploads.

    Attributes:
        session: the name of a browser session; empty for whoever started this process.
        address: the network address behind it.
        max_session_bytes, max_address_bytes: most that the session, and all sessions of the address, may keep.
        max_files: most files of the address.
    """

    session: str = ""
    address: str = ""
    max_session_bytes: float = float("inf")
    max_address_bytes: float = float("inf")
    max_files: float = float("inf")


class References:
    """The references in a directory, ``DIGEST.ADDRESS.SESSION``, both hashed with a salt of this directory."""

    def __init__(self, folder: Path):
        self._folder = folder

    def add(self, digest: str, keeper: Keeper) -> None:
        """Note that the keeper keeps these data."""
        (self._folder / f"{digest}.{self._name(keeper)}").touch(mode=0o600)

    def remove(self, digest: str, keeper: Keeper) -> None:
        """The keeper keeps them no longer."""
        (self._folder / f"{digest}.{self._name(keeper)}").unlink(missing_ok=True)

    def remove_all(self, digest: str) -> None:
        """Nobody keeps them any longer."""
        for path in self._folder.glob(f"{digest}.*"):
            path.unlink(missing_ok=True)

    def of(self, digest: str) -> tuple[str, ...]:
        """``ADDRESS.SESSION`` of all who keep these data."""
        return tuple(path.name.partition(".")[2] for path in self._folder.glob(f"{digest}.*"))

    def check_room(self, keeper: Keeper, digest: str, size: int, sizes: Mapping[str, int]) -> None:
        """Refuse data of ``size`` bytes beyond what the keeper may keep; what is kept already is counted once.

        Raises:
            InvalidInput: naming the limit.
        """
        name, address = self._name(keeper), self._hashed(keeper.address)
        of_session, of_address = {digest: size}, {digest: size}
        for path in self._folder.glob("*.*.*"):
            kept, _, by = path.name.partition(".")
            if kept in sizes and by.startswith(f"{address}."):
                of_address[kept] = sizes[kept]
                if by == name:
                    of_session[kept] = sizes[kept]
        for found, most, whose in (
            (of_session, keeper.max_session_bytes, "yours"),
            (of_address, keeper.max_address_bytes, "your network address"),
        ):
            if sum(found.values()) > most:
                given = f"data of {whose}, {megabytes(sum(found.values()))} with these,"
                raise InvalidInput("file", given, f"at most {megabytes(most)}; forget some first")
        if len(of_address) > keeper.max_files:
            allowed = f"at most {keeper.max_files:g}; forget some first"
            raise InvalidInput("file", f"{len(of_address)} sets of data of your network address", allowed)

    def heaviest(self, sizes: Mapping[str, int], needed: Collection[str]) -> str | None:
        """What goes first: of the address that keeps most bytes, the first in ``sizes`` that is not needed."""
        keepers: dict[str, set[str]] = {}  # address → digests; nobody's count as one address's
        held: set[str] = set()
        for path in self._folder.glob("*.*.*"):
            digest, address, _ = path.name.split(".", 2)
            keepers.setdefault(address, set()).add(digest)
            held.add(digest)
        keepers.setdefault("", set()).update(set(sizes) - held)
        weights = {address: sum(sizes.get(digest, 0) for digest in kept) for address, kept in keepers.items()}
        for address in sorted(weights, key=weights.__getitem__, reverse=True):
            for digest in sizes:
                if digest in keepers[address] and digest not in needed:
                    return digest
        return None

    def _name(self, keeper: Keeper) -> str:
        return f"{self._hashed(keeper.address)}.{self._hashed(keeper.session)}"

    def _hashed(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), key=self._salt(), digest_size=_HASH_BYTES).hexdigest()

    def _salt(self) -> bytes:
        path = self._folder / _SALT
        try:
            return path.read_bytes()[:64]
        except FileNotFoundError:
            part = self._folder / f".{_SALT}.{os.getpid()}"
            part.write_bytes(secrets.token_bytes(32))
            try:
                os.link(part, path)  # whoever comes first
            except FileExistsError:
                pass
            finally:
                part.unlink()
            return path.read_bytes()[:64]
