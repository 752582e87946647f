"""From the bytes of a file to what it holds."""

from ntk_core.data.uploads._archive import Archive, is_zip
from ntk_core.data.uploads._candidate import Candidate
from ntk_core.data.uploads._csv import read_csv
from ntk_core.data.uploads._image_folders import is_image_archive, read_image_folders
from ntk_core.data.uploads._limits import DEFAULT_LIMITS, Limits
from ntk_core.data.uploads._npz import read_npz_arrays
from ntk_core.errors import InvalidInput
from ntk_core.numbers import size

_KNOWN = {
    b"\x89PNG": "a single image",
    b"\xff\xd8\xff": "a single image",
    b"%PDF": "a PDF file",
    b"\x1f\x8b": "a gzip file",
    b"\x93NUM": "a single npy array",
    b"\x89HDF": "an HDF5 file",
    b"SQLi": "an SQLite file",
    b"PAR1": "a Parquet file",
    b"\x80\x04\x95": "a pickle",
    b"\x80\x05\x95": "a pickle",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf": "a 7z archive",
}
_ALLOWED = "a CSV file, an npz file or a zip of image folders"


def parse_upload(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Candidate:
    """What the bytes of a CSV file, an npz file or a zip of image folders hold; the name of the file plays no part.

    >>> parse_upload(b"a,b,kind\\n1,2,x\\n3,4,y\\n").names
    ('a', 'b', 'kind')

    Raises:
        InvalidInput: field ``file``, one sentence: too large, damaged, dangerous, or of another kind.
    """
    if len(data) > limits.max_bytes:
        found, most = size(len(data)), size(limits.max_bytes)
        if found == most:  # after rounding
            found, most = (f"{count:,} bytes" for count in (len(data), limits.max_bytes))
        raise InvalidInput("file", f"a file of {found}", f"at most {most}")
    if not data:
        raise InvalidInput("file", "an empty file", _ALLOWED)
    if not is_zip(data):
        for magic, given in _KNOWN.items():
            if data.startswith(magic):
                raise InvalidInput("file", given, _ALLOWED)
        return read_csv(data, limits)
    archive = Archive(data, limits)
    if not archive.names:
        raise InvalidInput("file", "an empty archive", "an npz file or a zip of image folders")
    if any(name.endswith(".npy") for name in archive.names):
        return read_npz_arrays(archive, limits)
    if is_image_archive(archive):
        return read_image_folders(archive, limits)
    raise InvalidInput("file", f"an archive with {archive.names[0]}", "arrays (.npy) or images (.png, .jpg, .bmp)")
