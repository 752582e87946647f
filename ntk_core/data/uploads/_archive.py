"""The limits of an upload, and zip archives from outside, read in memory; nothing is written to a path they name."""

import io
import stat
import struct
import zipfile
from collections import Counter
from dataclasses import dataclass

from ntk_core.data import _originals
from ntk_core.errors import InvalidInput
from ntk_core.numbers import size

MIB = 2**20
# Further errors of Pillow on damaged bytes, observed or documented, and any warning that is an error.
READ_ERRORS = (*_originals.READ_ERRORS, AttributeError, AssertionError, Warning)
RATIO_MATTERS_FROM = 16 * MIB
_END, _END64 = b"PK\x05\x06", b"PK\x06\x07"
_END_BYTES, _ENTRY_BYTES = 22, 300  # of the end record; of one entry of the directory with a long name
_NESTED = (".zip", ".gz", ".bz2", ".xz", ".7z", ".rar", ".tar", ".tgz", ".zst", ".npz")
_UNINTERESTING = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")


@dataclass(frozen=True)
class Limits:
    """Bounds of one upload; memory stays within a small multiple of ``max_bytes + max_unpacked_bytes``.

    Attributes:
        max_bytes: of the file.
        max_unpacked_bytes: of all entries of an archive together, as they say and as they come.
        max_ratio: unpacked to packed bytes, of archives that unpack to more than 16 MiB.
        max_entries: files in an archive.
        max_rows, max_columns: of a table, or samples and features of an array.
        max_values: entries of all inputs together, n · d.
        max_pixels: of one image as it comes.
        max_all_pixels: of all images of an archive together, as they come.
        max_side: of the images that networks see.
        max_classes: C.
        min_per_class: samples.
    """

    max_bytes: int = 20 * MIB
    max_unpacked_bytes: int = 64 * MIB
    max_ratio: int = 200
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
    """Refuse more than ``most`` of what ``noun`` names."""
    if count > most:
        raise InvalidInput(field, f"{count:,} {noun}", f"at most {most:,} {noun}")


class Archive:
    """The entries of a zip that may be read.

    Attributes:
        data: the whole of it.
        limits: within which it is read.
    """

    def __init__(self, data: bytes, limits: Limits):
        self.data, self.limits = data, limits
        _check_directory(data, limits)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            entries = [entry for entry in self._zip.infolist() if not entry.is_dir()]
        except READ_ERRORS:
            raise _damaged() from None
        check_at_most("file", len(entries), limits.max_entries, "files in the archive")
        for entry in entries:
            _check_entry(entry)
        self._check_sizes(entries)
        for name, count in Counter(entry.filename for entry in entries).items():
            if count > 1:
                raise InvalidInput("file", f"{name}, {count} times", "an archive in which every name occurs once")
        self._entries = {entry.filename: entry for entry in entries if not _uninteresting(entry.filename)}

    @property
    def names(self) -> tuple[str, ...]:
        """Paths of the entries, without those that file managers leave behind."""
        return tuple(self._entries)

    def size(self, name: str) -> int:
        """Unpacked bytes of an entry, as its header states."""
        return self._entries[name].file_size

    def read(self, name: str) -> bytes:
        """The bytes of an entry; at most what its header states and the limit allows."""
        entry = self._entries[name]
        try:
            with self._zip.open(entry) as stream:
                # One byte more than it may have: the checksum is compared at the end only.
                data = stream.read(min(entry.file_size, self.limits.max_unpacked_bytes) + 1)
        except MemoryError:  # the entry is no larger than it may be, and so not what is wrong
            raise
        except READ_ERRORS:
            raise _damaged(name) from None
        if len(data) != entry.file_size:
            raise _damaged(name)
        return data

    def _check_sizes(self, entries: list[zipfile.ZipInfo]) -> None:
        unpacked, packed = sum(e.file_size for e in entries), sum(e.compress_size for e in entries)
        most = self.limits.max_unpacked_bytes
        if unpacked > most:
            raise InvalidInput("file", f"an archive of {size(unpacked)} unpacked", f"at most {size(most)}")
        if unpacked > RATIO_MATTERS_FROM and unpacked > self.limits.max_ratio * max(1, packed):
            given = f"an archive that grows {unpacked / max(1, packed):,.0f}-fold"
            raise InvalidInput("file", given, f"at most {self.limits.max_ratio}-fold")


def is_zip(data: bytes) -> bool:
    """Whether the bytes begin as a zip does, or are an empty one."""
    return data[:4] in (b"PK\x03\x04", _END)


def _check_directory(data: bytes, limits: Limits) -> None:
    """Refuse a directory too long to be read, before zipfile makes an object of each of its entries."""
    at = len(data) - _END_BYTES
    if at < 0 or data[at : at + 4] != _END or data[-2:] != b"\0\0":
        at = data.rfind(_END, max(0, len(data) - 2**16 - _END_BYTES))
    if at < 0 or len(data) < at + _END_BYTES:
        raise _damaged()
    (size,) = struct.unpack_from("<I", data, at + 12)
    if data[max(0, at - 20) :][:4] == _END64 or size > _ENTRY_BYTES * limits.max_entries:
        raise InvalidInput("file", "an archive with a huge directory", f"at most {limits.max_entries:,} files")


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or "\\" in name or "\0" in entry.orig_filename or ":" in parts[0]:
        raise InvalidInput("file", name, "an archive whose names are paths inside it")
    if entry.flag_bits & 0x1:
        raise InvalidInput("file", f"{name}, encrypted", "an archive without a password")
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        raise InvalidInput("file", f"{name}, a link", "an archive of plain files")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidInput(
            "file", f"{name}, compressed in a rare way", "an archive without compression or with deflate"
        )
    if name.lower().endswith(_NESTED):
        raise InvalidInput("file", f"{name}, an archive inside the archive", "plain files inside the archive")


def _uninteresting(name: str) -> bool:
    parts = name.split("/")
    return parts[0] in _UNINTERESTING or parts[-1] in _UNINTERESTING or parts[-1].startswith("._")


def _damaged(name: str = "") -> InvalidInput:
    return InvalidInput("file", f"{name}, damaged" if name else "a damaged archive", "a zip archive that can be read")
