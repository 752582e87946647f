"""Bit depth, transparency and orientation of images, against their pixels."""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from linearity_lab.data.uploads import clean_upload, parse_upload, suggested_choices
from ntk_core.errors import InvalidInput
from tests.data.uploads.files import archive, arrays

RNG = np.random.default_rng(0)


def saved(image: Image.Image, form: str = "PNG", **options) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def png(
    depth: int,
    color: int,
    pixels: np.ndarray,
    clear: int | None = None,
    palette: np.ndarray | None = None,
) -> bytes:
    """Write a PNG file of rows of bytes, for depths that Pillow does not write.

    Args:
        clear: the transparent gray.
        palette: colors (num_colors, 3), in bytes.
    """
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", 8, len(pixels), depth, color, 0, 0, 0)
    clears = [] if clear is None else [(b"tRNS", struct.pack(">H", clear))]
    colors = [] if palette is None else [(b"PLTE", palette.tobytes())]
    chunks = [(b"IHDR", header), *colors, *clears, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    made = b"\x89PNG\r\n\x1a\n"
    for kind, data in chunks:
        made += struct.pack(">I", len(data)) + kind + data
        made += struct.pack(">I", zlib.crc32(kind + data))
    return made


def folders(files: list[bytes], ending: str = "png") -> bytes:
    return archive({f"{'ab'[i % 2]}/{i:02}.{ending}": data for i, data in enumerate(files)})


def inputs(data: bytes, **changes) -> np.ndarray:
    """Return the inputs in the order of the files."""
    candidate = parse_upload(data)
    choices = replace(suggested_choices(candidate), **changes)
    found = clean_upload(candidate, choices).x
    order = np.argsort([entry.path[2:] for entry in candidate.entries])
    return found[order]


def test_gray_images_of_16_bits_keep_all_bits():
    pixels = RNG.integers(0, 65536, (6, 8, 8), dtype=np.uint16)
    data = folders([saved(Image.fromarray(each)) for each in pixels])
    np.testing.assert_allclose(inputs(data)[..., 0], pixels / 65535, rtol=1e-6)
    assert inputs(data, gray=False).shape == (6, 8, 8, 3)
    averages = pixels.reshape(6, 4, 2, 4, 2).mean(axis=(2, 4)) / 65535
    np.testing.assert_allclose(inputs(data, side=4)[..., 0], averages, atol=1e-6)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_gray_images_of_few_bits_reach_white(depth):
    packed = [RNG.integers(0, 256, (8, depth), dtype=np.uint8) for _ in range(6)]
    found = inputs(folders([png(depth, 0, each) for each in packed]))
    bits = np.unpackbits(np.stack(packed), axis=-1).reshape(6, 8, 8, depth)
    values = bits @ (2 ** np.arange(depth)[::-1])
    np.testing.assert_allclose(found[..., 0], values / (2**depth - 1), rtol=1e-6)


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_pixels_beyond_their_palette_are_refused(depth):
    """Such files are damaged; Pillow reads the missing colors as black."""
    num_colors = 2**depth - 1
    palette = RNG.integers(0, 256, (num_colors, 3), dtype=np.uint8)
    packed = np.stack([RNG.integers(0, 255, (8, depth), dtype=np.uint8) for _ in range(6)])
    bits = np.unpackbits(packed, axis=-1).reshape(6, 8, 8, depth)
    colors = bits @ (2 ** np.arange(depth)[::-1])
    inside = np.minimum(colors, num_colors - 1)
    bits_inside = (inside[..., None] >> np.arange(depth)[::-1]) & 1
    packed_inside = np.packbits(bits_inside.reshape(6, 8, 8 * depth).astype(np.uint8), axis=-1)
    if num_colors > 1:  # a palette of one color is the same for all images
        files = [png(depth, 3, each, palette=palette) for each in packed_inside]
        np.testing.assert_allclose(inputs(folders(files)), palette[inside] / 255, rtol=1e-6)
    packed[0, 0] = 255
    beyond = [png(depth, 3, each, palette=palette) for each in packed]
    with pytest.raises(InvalidInput, match=r"a/00\.png, with pixels beyond the colors"):
        inputs(folders(beyond))


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_the_transparent_gray_of_every_depth_is_found(depth):
    packed = [RNG.integers(0, 256, (8, depth), dtype=np.uint8) for _ in range(6)]
    bits = np.unpackbits(np.stack(packed), axis=-1).reshape(6, 8, 8, depth)
    grays = bits @ (2 ** np.arange(depth)[::-1])
    clear = int(grays[0, 0, 0])
    data = folders([png(depth, 0, each, clear) for each in packed])
    with pytest.raises(InvalidInput, match="transparent in places"):
        inputs(data)
    white = 2**depth - 1
    expected = np.where(grays == clear, white, grays) / white
    if depth > 1:  # else all is white
        np.testing.assert_allclose(inputs(data, background="white")[..., 0], expected, rtol=1e-6)


def test_a_fourth_channel_of_bmp_is_refused():
    opaque = RNG.integers(0, 256, (6, 8, 8, 4), dtype=np.uint8)
    opaque[..., 3] = 255
    of_24 = [saved(Image.fromarray(each[..., :3]), "BMP") for each in opaque]
    of_32 = [saved(Image.fromarray(each), "BMP") for each in opaque]
    np.testing.assert_array_equal(inputs(folders(of_32, "bmp")), inputs(folders(of_24, "bmp")))
    clear = opaque.copy()
    clear[2, 0, 0, 3] = 0
    files = folders([saved(Image.fromarray(each), "BMP") for each in clear], "bmp")
    with pytest.raises(InvalidInput, match="BMP image of 32 bits that may be transparent"):
        inputs(files)


def test_colors_of_5_bits_are_refused():
    header = struct.pack("<IiiHHIIiiII", 40, 8, 8, 1, 16, 0, 128, 0, 0, 0, 0)
    rows = RNG.integers(0, 2**15, (6, 8, 8)).astype("<u2")
    files = [b"BM" + struct.pack("<IHHI", 182, 0, 0, 54) + header + each.tobytes() for each in rows]
    assert Image.open(io.BytesIO(files[0])).size == (8, 8)
    with pytest.raises(InvalidInput, match="BMP image of 16 bits"):
        inputs(folders(files, "bmp"))


def test_orientations_in_old_texts_are_refused():
    text = PngInfo()
    text.add_text("Raw profile type APP1", "\nAPP1\n 4\n45786966\n")
    pixels = Image.fromarray(RNG.integers(0, 256, (8, 8), dtype=np.uint8))
    with pytest.raises(InvalidInput, match="may state an o"):
        inputs(folders([saved(pixels, pnginfo=text)] * 6))


def test_half_transparent_grays_are_averaged_without_rounding():
    pixels = RNG.integers(0, 256, (6, 8, 8, 4), dtype=np.uint8)
    data = folders([saved(Image.fromarray(each, "RGBA")) for each in pixels])
    weight = pixels[..., 3] / 255
    gray = pixels[..., :3] @ [0.299, 0.587, 0.114] / 255
    full = weight * gray + 1 - weight
    expected = full.reshape(6, 4, 2, 4, 2).mean((2, 4))
    found = inputs(data, background="white", gray=True, side=4)
    np.testing.assert_allclose(found[..., 0], expected, atol=1e-6)


@pytest.mark.parametrize(("color", "channels"), [(2, 3), (4, 2), (6, 4)])
def test_16_bits_with_color_or_alpha_are_refused(color, channels):
    pixels = RNG.integers(0, 65536, (8, 8, channels)).astype(">u2")
    with pytest.raises(InvalidInput, match="of 16 bits with color or alpha"):
        inputs(folders([png(16, color, pixels)] * 6))


def test_depths_do_not_mix():
    small = saved(Image.fromarray(RNG.integers(0, 256, (8, 8), dtype=np.uint8)))
    deep = saved(Image.fromarray(RNG.integers(0, 65536, (8, 8), dtype=np.uint16)))
    with pytest.raises(InvalidInput, match="16 bits beside images of 8 bits"):
        inputs(folders([small, deep] * 3))


def test_inks_are_refused():
    ink = Image.fromarray(RNG.integers(0, 256, (8, 8, 4), dtype=np.uint8), "CMYK")
    with pytest.raises(InvalidInput, match="CMYK"):
        inputs(folders([saved(ink, "JPEG")] * 6, "jpg"))


def clear(mode: str, pixels: np.ndarray) -> bytes:
    """Save an image with transparency in this mode."""
    image = Image.fromarray(pixels, "RGBA")
    if mode == "P":
        return saved(image.convert("RGB").quantize(4), transparency=0)
    if mode == "RGB":
        return saved(image.convert("RGB"), transparency=tuple(int(v) for v in pixels[0, 0, :3]))
    return saved(image.convert(mode))


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "RGB"])
@pytest.mark.parametrize("background", ["white", "black"])
def test_transparent_pixels_are_refused_or_show_the_background(mode, background):
    made = [RNG.integers(0, 256, (8, 8, 4), dtype=np.uint8) for _ in range(6)]
    files = [clear(mode, each) for each in made]
    with pytest.raises(InvalidInput, match="transparent in places") as refused:
        inputs(folders(files))
    assert refused.value.field == "background"
    found = inputs(folders(files), background=background, gray=False)
    for image, data in zip(found, files, strict=True):
        full = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"), float) / 255
        alpha = full[..., 3:]
        expected = alpha * full[..., :3] + (1 - alpha) * (background == "white")
        np.testing.assert_allclose(image, expected, atol=1e-6)


def test_palettes_of_several_opacities_show_the_background():
    """A PNG palette may state an opacity for each color."""
    indices = RNG.integers(0, 4, (6, 8, 8), dtype=np.uint8)
    colors = RNG.integers(0, 256, (4, 3), dtype=np.uint8)
    opacities = np.array([0, 85, 170, 255], np.uint8)
    files = []
    for each in indices:
        image = Image.fromarray(each, "P")
        image.putpalette(colors.ravel().tolist())
        files.append(saved(image, transparency=opacities.tobytes()))
    found = inputs(folders(files), background="white", gray=False)
    weight = (opacities / 255)[indices][..., None]
    expected = weight * colors[indices] / 255 + 1 - weight
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_transparent_images_are_turned_with_their_alpha(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = RNG.integers(0, 256, (6, 6, 9, 4), dtype=np.uint8)
    data = folders([saved(Image.fromarray(each, "RGBA"), exif=exif) for each in pixels])
    turned = np.stack([TURNS[orientation](each) for each in pixels]) / 255
    expected = turned[..., 3:] * turned[..., :3]
    found = inputs(data, side=0, background="black", gray=False)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_opaque_alpha_changes_nothing():
    pixels = RNG.integers(0, 256, (6, 8, 8, 4), dtype=np.uint8)
    pixels[..., 3] = 255
    data = folders([saved(Image.fromarray(each, "RGBA")) for each in pixels])
    np.testing.assert_allclose(inputs(data), pixels[..., :3] / 255, rtol=1e-6)


TURNS = {
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: lambda a: np.swapaxes(a, 0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: np.rot90(np.swapaxes(a, 0, 1), 2),
    8: np.rot90,
}


@pytest.mark.parametrize("orientation", TURNS)
def test_images_are_turned_as_their_orientation_states(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = RNG.integers(0, 256, (6, 6, 9, 3), dtype=np.uint8)
    data = folders([saved(Image.fromarray(each), exif=exif) for each in pixels])
    expected = np.stack([TURNS[orientation](each) for each in pixels]) / 255
    np.testing.assert_allclose(inputs(data, side=0), expected, rtol=1e-6)


@pytest.mark.parametrize(("dtype", "most"), [("u1", 255), ("u2", 65535), ("i8", 1), ("i2", 1)])
def test_arrays_of_unsigned_images_are_divided_by_their_range(dtype, most):
    x = RNG.integers(0, 200, (12, 4, 4)).astype(dtype)
    found = inputs_of_arrays(arrays(x=x, y=np.arange(12) % 2))
    np.testing.assert_allclose(found[..., 0], x / most, rtol=1e-6)


def inputs_of_arrays(data: bytes) -> np.ndarray:
    candidate = parse_upload(data)
    return clean_upload(candidate, suggested_choices(candidate)).x
