"""What an upload may cost: bytes, entries, rows, pixels, classes."""

from dataclasses import dataclass

from ntk_core.errors import InvalidInput

MIB = 2**20


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
    """Refuse more than ``most`` of what ``noun`` names.

    Raises:
        InvalidInput: with both counts.
    """
    if count > most:
        raise InvalidInput(field, f"{count:,} {noun}", f"at most {most:,} {noun}")
