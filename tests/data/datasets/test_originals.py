"""Full sets are read exactly, and damaged or hostile files are refused without spending memory."""

import dataclasses
import gzip
import hashlib
import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from ntk_core.data import _originals, load_dataset
from ntk_core.data._originals import idx_sha256, read_cifar_batch, read_idx, read_npz
from ntk_core.errors import InvalidInput

TRAIN, TEST = 40, 20
IDX_NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx_bytes(array):
    return struct.pack(f">{1 + array.ndim}I", 0x0800 + array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def tiny():
    """Arrays of a ten-class set in the MNIST layout: 4 + 2 images per class, every image different."""
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (n, 28, 28), dtype=np.uint8) for n in (TRAIN, TEST)]
    labels = [np.arange(n, dtype=np.uint8) % 10 for n in (TRAIN, TEST)]
    return [images[0], labels[0], images[1], labels[1]]


@pytest.fixture
def root(tmp_path, monkeypatch, tiny):
    """An empty data directory; the tiny set is declared to be the original of both MNIST layouts."""
    monkeypatch.setenv("LINEARITY_LAB_DATA", str(tmp_path / "sets"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    sha256 = dict(zip(IDX_NAMES, map(idx_sha256, tiny), strict=True))
    for name in ("mnist", "digits", "fashion-mnist"):
        declared = dataclasses.replace(_originals.ORIGINALS[name], num_images=(TRAIN, TEST), sha256=sha256)
        monkeypatch.setitem(_originals.ORIGINALS, name, declared)
    (tmp_path / "sets").mkdir()
    return tmp_path / "sets"


def write_idx_set(folder, arrays, compress=False):
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in zip(IDX_NAMES, arrays, strict=True):
        data = idx_bytes(array)
        path = folder / (name + ".gz" if compress else name)
        path.write_bytes(gzip.compress(data) if compress else data)


def keras_npz(path, arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **dict(zip(("x_train", "y_train", "x_test", "y_test"), arrays, strict=True)))


def assert_is_the_tiny_set(name, tiny):
    data = load_dataset(name, source="full", num_samples=TRAIN, num_test=TEST)
    for images, labels, x, positions in (
        (tiny[0], tiny[1], data.x, data.labels),
        (tiny[2], tiny[3], data.x_test, data.labels_test),
    ):
        original = {
            (image / np.float32(255)).astype(np.float32).tobytes(): c for image, c in zip(images, labels, strict=True)
        }
        assert {image.tobytes(): c for image, c in zip(x, positions, strict=True)} == original
    assert "SHA-256" in data.provenance


def test_digest_of_an_array_is_that_of_its_idx_file(tiny):
    for array in tiny:
        assert idx_sha256(array) == hashlib.sha256(idx_bytes(array)).hexdigest()


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize(
    ("name", "folder"),
    [("mnist", "MNIST/raw"), ("fashion-mnist", "FashionMNIST/raw"), ("fashion-mnist", "fashion-mnist")],
)
def test_idx_copies_are_read_plain_and_compressed(root, tiny, name, folder, compress):
    write_idx_set(root / folder, tiny, compress)
    assert_is_the_tiny_set(name, tiny)


def test_keras_archive_is_read_from_its_usual_place(root, tiny):
    keras_npz(root.parent / ".keras/datasets/mnist.npz", tiny)
    assert_is_the_tiny_set("mnist", tiny)


def test_torchvision_copy_is_read_from_the_working_directory(root, tiny):
    write_idx_set(root.parent / "data/MNIST/raw", tiny)
    assert_is_the_tiny_set("mnist", tiny)


def test_named_directory_comes_first(root, tiny):
    write_idx_set(root.parent / "data/MNIST/raw", [array * 0 for array in tiny])
    keras_npz(root / "mnist.npz", tiny)
    assert_is_the_tiny_set("mnist", tiny)


def test_full_digits_are_pooled_from_the_full_images(root, tiny):
    keras_npz(root / "mnist.npz", tiny)
    options = {"source": "full", "num_samples": TRAIN, "seed": 1, "num_test": 0}
    digits, mnist = load_dataset("digits", **options), load_dataset("mnist", **options)
    np.testing.assert_allclose(digits.x, mnist.x.reshape(-1, 7, 4, 7, 4, 1).mean(axis=(2, 4)), atol=4e-7)


def test_absent_or_incomplete_copies_are_reported_with_the_remedy(root, tiny):
    write_idx_set(root / "MNIST/raw", tiny)
    (root / "MNIST/raw" / IDX_NAMES[3]).unlink()
    for name in ("mnist", "cifar2"):
        with pytest.raises(InvalidInput, match="LINEARITY_LAB_DATA") as refusal:
            load_dataset(name, source="full")
        assert refusal.value.field == "source"


@pytest.mark.parametrize("layout", ["idx", "npz"])
def test_altered_copy_is_refused_by_its_checksum(root, tiny, layout):
    tiny[2] = tiny[2].copy()
    tiny[2][0, 0, 0] ^= 1
    if layout == "idx":
        write_idx_set(root / "MNIST/raw", tiny)
    else:
        keras_npz(root / "mnist.npz", tiny)
    with pytest.raises(InvalidInput, match=r"t10k-images.*SHA-256"):
        load_dataset("mnist", source="full")


def write_cifar(folder, monkeypatch, records):
    """Six batches of ``records`` images with labels 0, 1, …, 9, 0, … and random pixels, declared to be the original."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    declared = _originals.ORIGINALS["cifar2"]
    batches, sha256 = [], {}
    for name in declared.sha256:
        batch = rng.integers(0, 256, (records, 3073), dtype=np.uint8)
        batch[:, 0] = np.arange(records) % 10
        (folder / name).write_bytes(batch.tobytes())
        batches.append(batch)
        sha256[name] = hashlib.sha256(batch.tobytes()).hexdigest()
    replaced = dataclasses.replace(declared, num_records=records, sha256=sha256)
    monkeypatch.setitem(_originals.ORIGINALS, "cifar2", replaced)
    return batches


def test_cifar_batches_give_cats_and_horses_in_channels_last_order(root, monkeypatch):
    batches = write_cifar(root / "cifar-10-batches-bin", monkeypatch, records=20)
    (x, labels), (x_test, labels_test) = _originals.read_originals("cifar2")
    records = [record for batch in batches for record in batch if record[0] in (3, 7)]
    assert [*labels, *labels_test] == [{3: 0, 7: 1}[record[0]] for record in records]
    assert (len(labels), len(labels_test)) == (20, 4)
    for image, record in zip([*x, *x_test], records, strict=True):
        for row, column, channel in ((0, 0, 0), (5, 31, 1), (31, 2, 2)):
            assert image[row, column, channel] == record[1 + 1024 * channel + 32 * row + column]


def test_full_cifar2_is_pooled_or_not_as_asked(root, monkeypatch):
    write_cifar(root / "cifar-10-batches-bin", monkeypatch, records=20)
    options = {"source": "full", "num_samples": 20, "num_test": 4}
    pooled, full = (load_dataset("cifar2", resolution=side, **options) for side in (8, 32))
    np.testing.assert_allclose(pooled.x, full.x.reshape(-1, 8, 4, 8, 4, 3).mean(axis=(2, 4)), atol=4e-7)
    np.testing.assert_array_equal(pooled.labels, full.labels)


def test_altered_cifar_batch_is_refused(root, monkeypatch):
    write_cifar(root / "cifar-10-batches-bin", monkeypatch, records=20)
    path = root / "cifar-10-batches-bin/test_batch.bin"
    path.write_bytes(b"\x01" + path.read_bytes()[1:])
    with pytest.raises(InvalidInput, match=r"test_batch\.bin.*SHA-256"):
        load_dataset("cifar2", source="full")


@pytest.mark.parametrize("change", [-1, 1])
def test_cifar_file_of_another_size_is_refused(tmp_path, change):
    (tmp_path / "b.bin").write_bytes(bytes(2 * 3073 + change))
    with pytest.raises(InvalidInput, match="exactly 6,146 bytes"):
        read_cifar_batch(tmp_path / "b.bin", 2)
    with pytest.raises(InvalidInput, match="readable"):
        read_cifar_batch(tmp_path, 2)


GOOD = idx_bytes(np.arange(8, dtype=np.uint8).reshape(2, 2, 2))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GOOD[:3],
        GOOD[:-1],
        GOOD + b"\0",
        struct.pack(">I", 2052) + GOOD[4:],
        b"\x00\x00\x0d\x03" + GOOD[4:],  # floats
        struct.pack("<4I", 2051, 2, 2, 2) + GOOD[16:],  # little-endian
        struct.pack(">4I", 2051, 2**32 - 1, 2**32 - 1, 2**32 - 1) + GOOD[16:],
        GOOD[:16],
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_malformed_idx_file_is_refused(tmp_path, data, suffix):
    path = tmp_path / f"images{suffix}"
    path.write_bytes(gzip.compress(data) if suffix else data)
    with pytest.raises(InvalidInput) as refusal:
        read_idx(path, (2, 2, 2))
    assert (refusal.value.field, refusal.value.given) == ("source", path.name)


def test_damaged_gzip_file_is_refused_at_any_byte(tmp_path):
    path, good = tmp_path / "images.gz", gzip.compress(GOOD, mtime=0)
    path.write_bytes(good)
    np.testing.assert_array_equal(read_idx(path, (2, 2, 2)).ravel(), np.arange(8))
    for end in range(len(good)):
        path.write_bytes(good[:end])
        with pytest.raises(InvalidInput):
            read_idx(path, (2, 2, 2))
    for position in range(10, len(good)):  # behind the gzip header every flipped byte is caught
        path.write_bytes(good[:position] + bytes([good[position] ^ 0xFF]) + good[position + 1 :])
        with pytest.raises(InvalidInput):
            read_idx(path, (2, 2, 2))


def peak_bytes(call):
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


BOMB_BYTES = 64 * 2**20
BOUND_BYTES = 2 * 2**20  # buffers of gzip and zipfile, far below the bomb


def test_gzip_bomb_costs_no_more_memory_than_a_good_file(tmp_path):
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(GOOD + bytes(BOMB_BYTES), compresslevel=1))
    assert peak_bytes(lambda: read_idx(path, (2, 2, 2))) < BOUND_BYTES


def npy_bytes(shape, descr="|u1", payload=b""):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"shape": shape, "fortran_order": False, "descr": descr})
    return stream.getvalue() + payload


@pytest.mark.parametrize(
    "member",
    [
        npy_bytes((2**40,)),
        npy_bytes((4,), payload=bytes(3)),
        npy_bytes((4,), payload=bytes(BOMB_BYTES)),
        npy_bytes((4,), "|i1", bytes(4)),
        npy_bytes((4,), "|O", bytes(4)),
        b"\x80\x04N.",  # a pickle
        b"",
        b"\x93NUMPY\x01\x00\xff\xff{" + b"(" * 65_000,
        b"\x93NUMPY\x01\x00\x08\x00{'a': (\n",
        b"\x93NUMPY\x09\x00\x08\x00{'a': 1}",
    ],
    ids=["oversized", "short", "bomb", "signed", "object", "pickle", "empty", "nested", "truncated", "version"],
)
def test_malformed_npz_member_is_refused_within_bounded_memory(tmp_path, member):
    path = tmp_path / "mnist.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", member)
    assert peak_bytes(lambda: read_npz(path, {"x": ((4,), "u1")})) < BOUND_BYTES


def test_npz_without_the_array_or_with_another_compression_is_refused(tmp_path):
    path = tmp_path / "mnist.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", npy_bytes((4,), payload=bytes(4)))
    for name in ("x", "y"):
        with pytest.raises(InvalidInput):
            read_npz(path, {name: ((4,), "u1")})
    with pytest.raises(InvalidInput):
        read_npz(tmp_path / "absent.npz", {"x": ((4,), "u1")})


def test_npz_with_a_damaged_byte_is_read_right_or_refused(tmp_path):
    path = tmp_path / "mnist.npz"
    expected = np.arange(50, dtype=np.uint8)
    np.savez(path, x=expected)
    good = path.read_bytes()
    refused = 0
    for position in range(len(good)):
        path.write_bytes(good[:position] + bytes([good[position] ^ 0x55]) + good[position + 1 :])
        try:
            arrays = read_npz(path, {"x": ((50,), "u1")})
        except InvalidInput:
            refused += 1
        else:  # bytes that carry no data, such as dates
            np.testing.assert_array_equal(arrays["x"], expected)
    assert refused > 100
