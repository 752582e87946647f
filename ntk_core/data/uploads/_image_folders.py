"""Images in folders of a zip: headers first, pixels when the size that networks see is chosen."""

from __future__ import annotations

import io
import posixpath
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ntk_core.data.uploads._archive import Archive, Limits, check_at_most
from ntk_core.data.uploads._candidate import ImageEntry, ImageFolders
from ntk_core.environment import check_installed
from ntk_core.errors import InvalidInput

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "BMP")
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp")


def is_image_archive(archive: Archive) -> bool:
    """Whether most entries are named as images are."""
    return 2 * sum(name.lower().endswith(ENDINGS) for name in archive.names) > len(archive.names)


def read_image_folders(archive: Archive, limits: Limits) -> ImageFolders:
    """Return the sizes and modes in the headers of all images; a folder is a class."""
    found: list[ImageEntry] = []
    pixels = 0
    for name in archive.names:
        folder = posixpath.basename(posixpath.dirname(name))
        if not name.lower().endswith(ENDINGS):
            raise InvalidInput("file", name, "images only: " + ", ".join(ENDINGS))
        if not folder:
            raise InvalidInput("file", f"{name}, outside of all folders", "one folder of images for each class")
        with _opened(archive, name, limits) as image:
            found.append(ImageEntry(name, folder, image.width, image.height, image.mode))
            pixels += image.width * image.height
        check_at_most("file", pixels, limits.max_all_pixels, "pixels in all images together")
    return ImageFolders(archive.data, tuple(found))


def read_pixels(archive: Archive, entry: ImageEntry, side: int, gray: bool, limits: Limits) -> NDArray[np.uint8]:
    """Pixels (height, width, 1 or 3) of one image; scaled to ``side`` × ``side`` by averages unless ``side`` is 0."""
    from PIL import Image

    with _opened(archive, entry.path, limits) as image:
        try:
            converted = image.convert("L" if gray else "RGB")
            if side:
                converted = converted.resize((side, side), Image.Resampling.BOX)
            pixels = np.asarray(converted, np.uint8)
        except Exception:
            raise _broken(entry.path) from None
    return pixels[..., None] if gray else pixels


def _opened(archive: Archive, name: str, limits: Limits) -> Image:
    check_installed("cli", "Reading images", "PIL")
    from PIL import Image

    data = archive.read(name)
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except Exception:
        raise _broken(name) from None
    if image.width * image.height > limits.max_pixels:
        given = f"{name}, {image.width:,} × {image.height:,} pixels"
        raise InvalidInput("file", given, f"at most {limits.max_pixels:,} pixels per image")
    return image


def _broken(name: str) -> InvalidInput:
    return InvalidInput("file", f"{name}, which cannot be read as an image", "images in PNG, JPEG or BMP")
