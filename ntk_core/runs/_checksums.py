"""Checksums of the files of a run, as ``sha256sum --check SHA256SUMS`` reads them."""

import hashlib
from pathlib import Path

from ntk_core.errors import InvalidInput

NAME = "SHA256SUMS"
_MAX_BYTES = 10_000_000


class Checksums:
    """What the files in a directory were when they were written."""

    def __init__(self, directory: Path):
        self._path = directory / NAME

    def with_file(self, name: str, data: bytes) -> str:
        """The text of the checksums once ``name`` holds ``data``."""
        known = {**self._known(), name: hashlib.sha256(data).hexdigest()}
        return "".join(f"{known[each]}  {each}\n" for each in sorted(known))

    def is_as_written(self, name: str, data: bytes) -> bool:
        """Whether the file still holds what was written; True also where nothing was noted of any file."""
        known = self._known()
        return not known or known.get(name) == hashlib.sha256(data).hexdigest()

    def check(self, name: str, data: bytes, field: str) -> None:
        """Refuse a file that was changed after it was written.

        Raises:
            InvalidInput: naming ``field``.
        """
        if not self.is_as_written(name, data):
            allowed = f"a directory written by `run --out`; its {name} is not what {NAME} says"
            raise InvalidInput(field, str(self._path.parent), allowed)

    def _known(self) -> dict[str, str]:
        """File → checksum; lines that cannot be read leave their file without one."""
        try:
            with self._path.open("rb") as file:
                text = file.read(_MAX_BYTES).decode("utf-8", "replace")
        except OSError:
            return {}
        return {name: digest for digest, found, name in (line.partition("  ") for line in text.splitlines()) if found}
