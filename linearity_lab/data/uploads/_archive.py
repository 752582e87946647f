"""Limits of uploads, and zip archives read in memory; nothing is extracted to disk."""

import io
import re
import stat
import zipfile
from collections import Counter
from dataclasses import dataclass

from ntk_core.errors import InvalidInput
from ntk_core.numbers import size

MIB = 2**20
_UNINTERESTING = re.compile(
    r"\A__MACOSX(/|\Z)|(\A|/)(\.DS_Store|Thumbs\.db|desktop\.ini|\._[^/]*)\Z"
)


@dataclass(frozen=True)
class Limits:
    """Bounds of one upload.

    Memory stays within a small multiple of ``max_bytes + max_unpacked_bytes``.

    Attributes:
        max_bytes: of the file.
        max_unpacked_bytes: of all entries of an archive together, stated and actual.
        max_entries: files in an archive.
        max_rows, max_columns: of a table, or samples and features of an array.
        max_values: entries of all inputs together, n · d.
        max_pixels: of one uploaded image.
        max_all_pixels: of all uploaded images of an archive together.
        max_side: of images as network inputs.
        max_classes: C.
        min_per_class: samples.
    """

    max_bytes: int = 20 * MIB
    max_unpacked_bytes: int = 64 * MIB
    max_entries: int = 20_000
    max_rows: int = 50_000
    max_columns: int = 5_000
    max_values: int = 2**23
    max_pixels: int = 4_000_000
    max_all_pixels: int = 100_000_000
    max_side: int = 64
    max_classes: int = 20
    min_per_class: int = 2


DEFAULT_LIMITS = Limits()


def check_at_most(field: str, count: int, most: int, noun: str) -> None:
    """Refuse more than ``most`` of ``noun``."""
    if count > most:
        raise InvalidInput(field, f"{count:,} {noun}", f"at most {most:,} {noun}")


class Archive:
    """Readable entries of a zip archive.

    Attributes:
        data: all of its bytes.
        limits: bounds for reading it.
    """

    def __init__(self, data: bytes, limits: Limits):
        self.data = data
        self.limits = limits
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            entries = [entry for entry in self._zip.infolist() if not entry.is_dir()]
        except Exception:
            raise _damaged() from None
        check_at_most("file", len(entries), limits.max_entries, "files in the archive")
        for entry in entries:
            _check_entry(entry)
        unpacked = sum(entry.file_size for entry in entries)
        most = limits.max_unpacked_bytes
        if unpacked > most:
            raise InvalidInput(
                "file", f"an archive of {size(unpacked)} unpacked", f"at most {size(most)}"
            )
        for name, count in Counter(entry.filename for entry in entries).items():
            if count > 1:
                raise InvalidInput(
                    "file", f"{name}, {count} times", "an archive in which every name occurs once"
                )
        self._entries = {
            entry.filename: entry for entry in entries if not _UNINTERESTING.search(entry.filename)
        }

    @property
    def names(self) -> tuple[str, ...]:
        """Paths of the entries, without files of file managers."""
        return tuple(self._entries)

    def read(self, name: str) -> bytes:
        """Return the bytes of an entry, up to its stated size and the limit."""
        entry = self._entries[name]
        try:
            with self._zip.open(entry) as stream:
                # One byte more than allowed, since the checksum is compared only at the end.
                data = stream.read(min(entry.file_size, self.limits.max_unpacked_bytes) + 1)
        except MemoryError:  # not caused by the entry, whose size is allowed
            raise
        except Exception:
            raise _damaged(name) from None
        if len(data) != entry.file_size:
            raise _damaged(name)
        return data


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    parts = name.replace("\\", "/").split("/")
    if (
        name.startswith(("/", "\\"))
        or ".." in parts
        or "\\" in name
        or "\0" in entry.orig_filename
        or ":" in parts[0]
    ):
        raise InvalidInput("file", name, "an archive whose names are paths inside it")
    if entry.flag_bits & 0x1:
        raise InvalidInput("file", f"{name}, encrypted", "an archive without a password")
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        raise InvalidInput("file", f"{name}, a link", "an archive of plain files")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidInput(
            "file",
            f"{name}, compressed in a rare way",
            "an archive without compression or with deflate",
        )


def _damaged(name: str = "") -> InvalidInput:
    return InvalidInput(
        "file",
        f"{name}, damaged" if name else "a damaged archive",
        "a zip archive that can be read",
    )
