"""Full image sets: exact contents,
and refusal of damaged or hostile files within bounded memory.
"""

import dataclasses
import gzip
import hashlib
import struct
import tracemalloc

import numpy as np
import pytest

from linearity_lab.data import _images, load_dataset
from ntk_core.errors import InvalidInput

TRAIN, TEST = 40, 20
IDX_NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def idx_bytes(array):
    return struct.pack(f">{1 + array.ndim}I", 0x0800 + array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def tiny():
    """Arrays of a ten-class set in the MNIST layout.

    4 + 2 images per class, every image different.
    """
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (n, 28, 28), dtype=np.uint8) for n in (TRAIN, TEST)]
    labels = [np.arange(n, dtype=np.uint8) % 10 for n in (TRAIN, TEST)]
    return [images[0], labels[0], images[1], labels[1]]


@pytest.fixture
def root(tmp_path, monkeypatch, tiny):
    """An empty data directory; the tiny set is declared to be the original of
    both MNIST layouts.
    """
    (tmp_path / "sets").mkdir()
    monkeypatch.setenv("LINEARITY_LAB_DATA", str(tmp_path / "sets"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    sha256 = {
        name: hashlib.sha256(idx_bytes(array)).hexdigest()
        for name, array in zip(IDX_NAMES, tiny, strict=True)
    }
    for name in ("mnist", "digits", "fashion-mnist"):
        declared = dataclasses.replace(
            _images.ORIGINALS[name], shapes=tuple(array.shape for array in tiny), sha256=sha256
        )
        monkeypatch.setitem(_images.ORIGINALS, name, declared)
    return tmp_path / "sets"


def write_idx_set(folder, arrays, compress=False):
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in zip(IDX_NAMES, arrays, strict=True):
        data = idx_bytes(array)
        path = folder / (name + ".gz" if compress else name)
        path.write_bytes(gzip.compress(data) if compress else data)


def keras_npz(path, arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path, **dict(zip(("x_train", "y_train", "x_test", "y_test"), arrays, strict=True))
    )


def assert_is_the_tiny_set(name, tiny):
    data = load_dataset(name, source="full", num_samples=TRAIN, num_test=TEST)
    for images, labels, x, positions in (
        (tiny[0], tiny[1], data.x, data.labels),
        (tiny[2], tiny[3], data.x_test, data.labels_test),
    ):
        original = {
            (image / np.float32(255)).astype(np.float32).tobytes(): c
            for image, c in zip(images, labels, strict=True)
        }
        assert {image.tobytes(): c for image, c in zip(x, positions, strict=True)} == original
    assert "SHA-256" in data.provenance


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("mnist", "sets/MNIST/raw"),
        ("fashion-mnist", "sets/FashionMNIST/raw"),
        ("fashion-mnist", "sets/fashion-mnist"),
        ("mnist", "data/MNIST/raw"),  # in the working directory, as torchvision writes it
        ("mnist", ".keras/datasets/mnist.npz"),
    ],
)
def test_copies_are_read_from_their_usual_places(root, tiny, name, folder):
    path = root.parent / folder
    if path.suffix == ".npz":
        keras_npz(path, tiny)
    else:
        write_idx_set(path, tiny, compress=name == "fashion-mnist")
    assert_is_the_tiny_set(name, tiny)


def test_named_directory_comes_first(root, tiny):
    write_idx_set(root.parent / "data/MNIST/raw", [array * 0 for array in tiny])
    keras_npz(root / "mnist.npz", tiny)
    assert_is_the_tiny_set("mnist", tiny)


def test_incomplete_copies_are_reported_with_a_remedy(root, tiny):
    write_idx_set(root / "MNIST/raw", tiny)
    (root / "MNIST/raw" / IDX_NAMES[3]).unlink()
    for name in ("mnist", "cifar2"):
        with pytest.raises(InvalidInput, match="LINEARITY_LAB_DATA") as refusal:
            load_dataset(name, source="full")
        assert refusal.value.field == "source"


def write_cifar(folder, monkeypatch, records):
    """Six batches of ``records`` images with labels 0, 1, …, 9, 0, … and random pixels,
    declared to be the original.
    """
    folder.mkdir()
    rng = np.random.default_rng(1)
    declared = _images.ORIGINALS["cifar2"]
    batches, sha256 = [], {}
    for name in declared.sha256:
        batch = rng.integers(0, 256, (records, 3073), dtype=np.uint8)
        batch[:, 0] = np.arange(records) % 10
        (folder / name).write_bytes(batch.tobytes())
        batches.append(batch)
        sha256[name] = hashlib.sha256(batch.tobytes()).hexdigest()
    replaced = dataclasses.replace(declared, shapes=((records, 3073),) * 6, sha256=sha256)
    monkeypatch.setitem(_images.ORIGINALS, "cifar2", replaced)
    return batches


def test_cifar_batches_give_channels_last_images(root, monkeypatch):
    batches = write_cifar(root / "cifar-10-batches-bin", monkeypatch, records=20)
    (x, labels), (x_test, labels_test) = _images.read_originals("cifar2")
    records = [record for batch in batches for record in batch if record[0] in (3, 7)]
    assert [*labels, *labels_test] == [{3: 0, 7: 1}[record[0]] for record in records]
    assert (len(labels), len(labels_test)) == (20, 4)
    for image, record in zip([*x, *x_test], records, strict=True):
        for row, column, channel in ((0, 0, 0), (5, 31, 1), (31, 2, 2)):
            assert image[row, column, channel] == record[1 + 1024 * channel + 32 * row + column]


def test_altered_cifar_batch_is_refused(root, monkeypatch):
    write_cifar(root / "cifar-10-batches-bin", monkeypatch, records=20)
    path = root / "cifar-10-batches-bin/test_batch.bin"
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(InvalidInput, match=r"test_batch\.bin.*SHA-256"):
        load_dataset("cifar2", source="full")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_damaged_copy_is_refused(root, tiny, suffix):
    """Truncated, extended, shifted, replaced."""
    write_idx_set(root / "MNIST/raw", tiny, compress=bool(suffix))
    good = idx_bytes(tiny[0])
    for data in (
        b"",
        good[:-1],
        good + b"\0",
        good + good,
        good[:16],
        b"\x80\x04N.",
        bytes(len(good)),
    ):
        path = root / "MNIST/raw" / f"{IDX_NAMES[0]}{suffix}"
        path.write_bytes(gzip.compress(data) if suffix else data)
        with pytest.raises(InvalidInput, match=r"train-images.*SHA-256"):
            load_dataset("mnist", source="full")


@pytest.mark.parametrize("layout", ["gzip", "npz"])
def test_copy_with_a_damaged_byte_is_read_right_or_refused(root, tiny, layout):
    if layout == "gzip":
        write_idx_set(root / "MNIST/raw", tiny, compress=True)
        path = root / "MNIST/raw" / f"{IDX_NAMES[3]}.gz"
    else:
        path = root / "mnist.npz"
        keras_npz(path, tiny)
    good, refused = path.read_bytes(), 0
    positions = [*range(0, len(good), 997), *range(max(len(good) - 100, 0), len(good))]
    for position in positions:
        path.write_bytes(good[:position] + bytes([good[position] ^ 0x55]) + good[position + 1 :])
        try:
            (x, labels), (x_test, labels_test) = _images.read_originals("mnist")
        except InvalidInput:
            refused += 1
        else:  # bytes that carry no data, such as dates
            found = (x[..., 0], labels, x_test[..., 0], labels_test)
            assert all(
                np.array_equal(array, expected) for array, expected in zip(found, tiny, strict=True)
            )
    assert refused > len(positions) / 2


BOMB_BYTES = 64 * 2**20
BOUND_BYTES = 2 * 2**20  # buffers of gzip and zipfile, far below the bomb


@pytest.mark.parametrize("layout", ["gzip", "npz"])
def test_bomb_costs_no_more_memory_than_a_good_file(root, tiny, layout):
    if layout == "gzip":
        write_idx_set(root / "MNIST/raw", tiny, compress=True)
        bomb = gzip.compress(idx_bytes(tiny[0]) + bytes(BOMB_BYTES), compresslevel=1)
        (root / "MNIST/raw" / f"{IDX_NAMES[0]}.gz").write_bytes(bomb)
    else:
        keras_npz(root / "mnist.npz", [np.zeros(BOMB_BYTES, np.uint8), *tiny[1:]])
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="SHA-256"):
            _images.read_originals("mnist")
        assert tracemalloc.get_traced_memory()[1] < BOUND_BYTES
    finally:
        tracemalloc.stop()
