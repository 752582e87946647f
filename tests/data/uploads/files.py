"""Typical uploaded files: a table, arrays, a zip of image folders; and a slow parser."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Mapping

import numpy as np
from PIL import Image

from linearity_lab.data.uploads import Candidate, Limits, parse_upload

NUM_ROWS = 60


def flowers(num_rows: int = NUM_ROWS, delimiter: str = ",") -> bytes:
    """Two features, a text with three classes, and a numeric target."""
    values = np.random.default_rng(0).normal(size=(num_rows, 2))
    rows = [
        delimiter.join((f"{a:.4f}", f"{b:.4f}", f"{a + b:.4f}", ("iris", "rose", "tulip")[i % 3]))
        for i, (a, b) in enumerate(values)
    ]
    return "\n".join([delimiter.join(("sepal", "petal", "size", "kind")), *rows, ""]).encode()


def arrays(**named) -> bytes:
    """A compressed npz file of these arrays."""
    stream = io.BytesIO()
    # Not np.savez, which stores allow_pickle as another array before NumPy 2.1.
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as entries:
        for name, values in named.items():
            array = io.BytesIO()
            np.lib.format.write_array(array, np.asanyarray(values), allow_pickle=True)
            entries.writestr(f"{name}.npy", array.getvalue())
    return stream.getvalue()


def blobs() -> bytes:
    """Forty inputs of shape (6, 6) with four classes."""
    rng = np.random.default_rng(1)
    return arrays(x=rng.normal(size=(40, 6, 6)), y=np.arange(40) % 4)


def image(width: int, height: int, seed: int = 0, form: str = "PNG", mode: str = "RGB") -> bytes:
    """Noise in one of the image formats."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(stream, form)
    return stream.getvalue()


def archive(entries: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of these entries."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as made:
        for name, data in entries.items():
            made.writestr(name, data)
    return stream.getvalue()


def pets(num: int = 12, side: int = 10, **more: bytes) -> bytes:
    """Images of cats and dogs in their folders."""
    found = {f"pets/{('cat', 'dog')[i % 2]}/{i}.png": image(side, side, i) for i in range(num)}
    return archive({**found, **more})


def sleep_on_large(data: bytes, limits: Limits, header: bool | None = None) -> Candidate:
    """Parse files of up to 1 MiB; sleep on larger ones."""
    time.sleep(600 if len(data) > 2**20 else 0)
    return parse_upload(data, limits, header)
