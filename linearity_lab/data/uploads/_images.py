"""Images in folders: exact pixels from 0 to 1, or a refusal that names the image.

PNG, JPEG and BMP contain 8 bits or fewer for each channel, or 16 in gray PNG. Pillow drops the low
byte of 16-bit colors, and rounds 5-bit colors of BMP, so these are refused. Values are divided by
the largest of their depth. Averages of opaque images are rounded to bytes.
"""

from __future__ import annotations

import io
import posixpath
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linearity_lab.data.uploads._archive import Archive, Limits, check_at_most
from linearity_lab.data.uploads._candidate import ImageEntry, ImageFolders
from ntk_core.errors import InvalidInput
from ntk_core.machine import check_installed

if TYPE_CHECKING:
    from PIL.Image import Image

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp")
_FORMATS = ("PNG", "JPEG", "BMP")
_ORIENTATION = 0x0112  # tag of EXIF
_OLD_PROFILE = "Raw profile type APP1"  # EXIF in PNG before its eXIf chunk; not read by Pillow
_SIDEWAYS = (5, 6, 7, 8)  # orientations that exchange width and height
_GRAY_16 = ("I;16", "I;16B", "I;16L", "I")
_GRAY = ("1", "L", "LA", *_GRAY_16)
_COLOR = ("P", "PA", "RGB", "RGBA")
_BMP_START = 10  # places of bytes in the header
_BMP_BITS = 28
BACKGROUNDS = {"white": 255, "black": 0}


def read_folders(archive: Archive, limits: Limits) -> ImageFolders:
    """Return the sizes and modes in the headers of all images; a folder is a class."""
    found: list[ImageEntry] = []
    pixels = 0
    for name in archive.names:
        folder = posixpath.basename(posixpath.dirname(name))
        if not name.lower().endswith(ENDINGS):
            raise InvalidInput("file", name, "images only: " + ", ".join(ENDINGS))
        if not folder:
            raise InvalidInput(
                "file", f"{name}, outside of all folders", "one folder of images for each class"
            )
        found.append(_entry(archive, name, folder, limits))
        pixels += found[-1].width * found[-1].height
        check_at_most("file", pixels, limits.max_all_pixels, "pixels in all images together")
    depths = {entry.depth for entry in found}
    if len(depths) > 1:
        deep = next(entry for entry in found if entry.depth == 16)
        raise InvalidInput(
            "file", f"{deep.path}, 16 bits beside images of 8 bits", "images of one depth"
        )
    return ImageFolders(archive.data, tuple(found))


def _entry(archive: Archive, name: str, folder: str, limits: Limits) -> ImageEntry:
    data = archive.read(name)
    image = _opened(data, name, limits)
    depth = _depth(data, image, name)
    has_alpha = image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info
    orientation = _orientation(data, image, name)
    width = image.width
    height = image.height
    if orientation in _SIDEWAYS:
        width, height = height, width
    return ImageEntry(name, folder, width, height, image.mode, depth, has_alpha, orientation)


def read_pixels(
    archive: Archive, name: str, side: int, gray: bool, limits: Limits, background: str = ""
) -> NDArray[np.float32]:
    """Return pixels (height, width, 1 or 3) of one image from 0 to 1.

    They are averaged to ``side`` × ``side`` unless 0, turned as their EXIF orientation states.

    Args:
        background: ``"white"`` or ``"black"`` behind transparent pixels; empty refuses them.
    """
    data = archive.read(name)
    image = _opened(data, name, limits)
    depth = _depth(data, image, name)
    try:
        from PIL import ImageOps

        if _orientation(data, image, name) != 1:
            image = ImageOps.exif_transpose(image)
        has_all_colors = _has_all_colors(image)
        alpha = _alpha(image, data, name)
        is_opaque = alpha is None or bool((alpha == 255).all())
        if is_opaque or background:
            if depth == 16:
                pixels = _deep_pixels(image, alpha, side, background)
            else:
                pixels = _pixels(image, alpha, side, gray, background)
    except Exception:
        raise _broken(name) from None
    if not has_all_colors:
        given = f"{name}, with pixels beyond the colors of its palette"
        raise InvalidInput("file", given, "images whose palette contains all of their pixels")
    if not is_opaque and not background:
        raise InvalidInput(
            "background", f"{name}, transparent in places", "white or black behind the images"
        )
    if depth == 16 and not gray:
        pixels = np.repeat(pixels, 3, axis=-1)
    return pixels


def _has_all_colors(image: Image) -> bool:
    """Whether the palette of an image, if any, contains all of its pixels; Pillow adds black."""
    palette = image.palette
    if image.mode not in ("P", "PA") or palette is None:
        return True
    numbers = image if image.mode == "P" else image.getchannel("P")
    num_colors = len(palette.palette) // len(palette.mode)
    return bool(np.asarray(numbers).max() < num_colors)


def _alpha(image: Image, data: bytes, name: str) -> NDArray[np.uint8] | None:
    """Return the opacity of each pixel (height, width), or None for images without transparency."""
    if image.mode not in ("LA", "PA", "RGBA") and "transparency" not in image.info:
        return None
    if image.mode in _GRAY_16 or image.mode in ("1", "L"):
        # Versions of Pillow differ in what they state for grays of fewer bits than 8.
        header = _png(data, name)
        clear = header.clear
        if image.mode == "L":
            clear = clear * 255 // (2**header.depth - 1)
        is_clear = np.asarray(image).astype(np.int64) == clear
        return np.where(is_clear, 0, 255).astype(np.uint8)
    return np.asarray(image.convert("RGBA").getchannel("A"), np.uint8)


def _pixels(
    image: Image, alpha: NDArray[np.uint8] | None, side: int, gray: bool, background: str
) -> NDArray[np.float32]:
    """Return the pixels of an image of at most 8 bits."""
    from PIL import Image as Images

    if alpha is not None:
        values = np.asarray(image.convert("RGBA"), np.float64)[..., :3]
        if background:
            weight = alpha[..., None] / 255
            values = weight * values + (1 - weight) * BACKGROUNDS[background]
        if ((alpha > 0) & (alpha < 255)).any():
            return _mixed_pixels(values / 255, side, gray)
        image = Images.fromarray(values.astype(np.uint8), "RGB")
    converted = image.convert("L" if gray else "RGB")
    if side:
        converted = converted.resize((side, side), Images.Resampling.BOX)
    averaged = np.asarray(converted, np.uint8).reshape(converted.height, converted.width, -1)
    return averaged.astype(np.float32) / np.float32(255)


def _mixed_pixels(values: NDArray[np.float64], side: int, gray: bool) -> NDArray[np.float32]:
    """Return pixels from colors (height, width, 3) between the image and its background.

    They are no whole bytes, so nothing is rounded.
    """
    if gray:
        values = values @ np.asarray([[0.299], [0.587], [0.114]])  # ITU-R 601, as Pillow
    if side:
        channels = [_averaged(values[..., index], side) for index in range(values.shape[-1])]
        values = np.stack(channels, axis=-1)
    return values.astype(np.float32)


def _averaged(values: NDArray[np.float64], side: int) -> NDArray[np.float32]:
    """Average one channel (height, width) to ``side`` × ``side``."""
    from PIL import Image as Images

    channel = Images.fromarray(values.astype(np.float32), "F")
    return np.asarray(channel.resize((side, side), Images.Resampling.BOX))


def _deep_pixels(
    image: Image, alpha: NDArray[np.uint8] | None, side: int, background: str
) -> NDArray[np.float32]:
    """Return the pixels (height, width, 1) of a 16-bit gray image."""
    values = np.asarray(image).astype(np.float64) / 65535
    if alpha is not None and background:
        values = np.where(alpha > 0, values, BACKGROUNDS[background] / 255)
    pixels = _averaged(values, side) if side else values.astype(np.float32)
    return pixels[..., None]


def _opened(data: bytes, name: str, limits: Limits) -> Image:
    check_installed("cli", "Reading images", "PIL")
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
    except Exception:
        raise _broken(name) from None
    if image.width * image.height > limits.max_pixels:
        given = f"{name}, {image.width:,} × {image.height:,} pixels"
        raise InvalidInput("file", given, f"at most {limits.max_pixels:,} pixels per image")
    return image


def _depth(data: bytes, image: Image, name: str) -> int:
    """Return 16 for 16-bit gray and 8 for images of 8 bits or fewer; refuse all others."""
    if image.mode == "CMYK":
        raise InvalidInput("file", f"{name}, in CMYK colors of ink", "images in RGB or gray")
    if image.mode not in (*_GRAY, *_COLOR):
        raise InvalidInput("file", f"{name}, of mode {image.mode}", "images in RGB or gray")
    if getattr(image, "is_animated", False):
        raise InvalidInput("file", f"{name}, of several frames", "images of one frame")
    if image.format == "BMP":
        _refuse_other_bmp(data, image, name)
    if image.format != "PNG":
        return 8
    header = _png(data, name)
    if header.depth < 16:
        return 8
    if image.mode not in _GRAY_16:
        given = f"{name}, of 16 bits with color or alpha"
        raise InvalidInput(
            "file", given, "8-bit color, 16-bit gray without alpha, or arrays in an npz file"
        )
    return 16


def _refuse_other_bmp(data: bytes, image: Image, name: str) -> None:
    """Refuse BMP of 16 bits, and of 32 bits whose fourth bytes may be the opacity.

    Pillow rounds the former and drops the latter.
    """
    bits = int.from_bytes(data[_BMP_BITS : _BMP_BITS + 2], "little")
    if bits == 16:
        given = f"{name}, a BMP image of 16 bits"
        raise InvalidInput("file", given, "PNG images, or BMP of 24 bits")
    if image.mode != "RGB" or bits != 32:
        return
    start = int.from_bytes(data[_BMP_START : _BMP_START + 4], "little")
    fourth = np.frombuffer(data[start : start + 4 * image.width * image.height], np.uint8)[3::4]
    if fourth.any() and (fourth != 255).any():
        given = f"{name}, a BMP image of 32 bits that may be transparent"
        raise InvalidInput("file", given, "PNG images for transparency, or BMP of 24 bits")


@dataclass(frozen=True)
class _PNG:
    """Header of a PNG file.

    Attributes:
        depth: bits of a channel.
        may_be_turned: whether a chunk may contain an orientation.
        clear: the transparent gray, in the file's bits; −1 without one.
    """

    depth: int
    may_be_turned: bool
    clear: int


def _png(data: bytes, name: str) -> _PNG:
    """Walk over the chunks of a PNG file, without decoding them."""
    if data[12:16] != b"IHDR" or len(data) < 33:
        raise _broken(name)
    kinds = set()
    clear = -1
    at = 8
    while at + 8 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kinds.add(data[at + 4 : at + 8])
        if data[at + 4 : at + 8] == b"tRNS":
            clear = int.from_bytes(data[at + 8 : at + 10], "big")
        at += 12 + length
    return _PNG(data[24], bool(kinds & {b"eXIf", b"zTXt", b"iTXt", b"tEXt"}), clear)


def _orientation(data: bytes, image: Image, name: str) -> int:
    """Return the EXIF orientation, from 1 to 8."""
    if image.format == "BMP" or (image.format == "PNG" and not _png(data, name).may_be_turned):
        return 1
    try:
        found = image.getexif().get(_ORIENTATION, 1)
    except Exception:
        raise _broken(name) from None
    if _OLD_PROFILE in image.info:
        given = f"{name}, whose text {_OLD_PROFILE!r} may state an orientation"
        raise InvalidInput("file", given, "images saved again, with an eXIf chunk or none")
    return found if found in range(1, 9) else 1


def _broken(name: str) -> InvalidInput:
    return InvalidInput(
        "file", f"{name}, which cannot be read as an image", "images in PNG, JPEG or BMP"
    )
