"""From a file to a data set.

Exact values, stored once with a reference per keeper, quotas and eviction.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from linearity_lab.data import dataset_shapes, load_dataset
from linearity_lab.data.uploads import (
    EXAMPLE,
    Choices,
    Cleaned,
    Keeper,
    MissingUpload,
    Table,
    clean_upload,
    forget_upload,
    keep_upload,
    parse_upload,
    read_upload,
    suggested_choices,
    upload_digest,
    upload_shapes,
)
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import canonical_json, check_size, estimate, parse_spec
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from ntk_core.errors import InvalidInput
from tests.data.uploads.files import arrays, blobs, flowers, image, pets


@pytest.fixture(autouse=True)
def data_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "linearity-lab"


def cleaned(data: bytes, **changes):
    candidate = parse_upload(data)
    return clean_upload(candidate, replace(suggested_choices(candidate), **changes))


def private_spec(digest: str, **settings) -> KernelChangeSpec:
    named = {"dataset.name": "upload", "dataset.digest": digest, "dataset.num_samples": 30}
    return with_settings(KernelChangeSpec(), named | settings)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_tables_with_any_delimiter_read_back(delimiter):
    table = parse_upload(flowers(delimiter=delimiter))
    assert isinstance(table, Table)
    assert table.names == ("sepal", "petal", "size", "kind")
    assert [column.kind for column in table.columns] == ["number"] * 3 + ["text"]
    found = clean_upload(table, Choices(("sepal", "petal"), "kind"))
    expected = np.random.default_rng(0).normal(size=(60, 2))
    np.testing.assert_allclose(found.x, expected, atol=5e-5)
    assert found.counts == {"iris": 20, "rose": 20, "tulip": 20}
    assert found.labels.tolist() == [0, 1, 2] * 20


def test_quotes_empty_lines_and_encodings_are_read():
    text = '"größe, x","art"\r\n"1","süß, y"\r\n\r\n"2","é"\r\n"3","süß, y"\r\n"5","é"\r\n'
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        found = cleaned(text.encode(encoding))
        assert (found.x[:, 0].tolist(), found.class_names) == ([1, 2, 3, 5], ("süß, y", "é"))


def test_rows_with_gaps_are_dropped_on_request():
    text = "a,b,kind\n1,2,x\nNA,3,y\n3,4,x\n4,,y\n5,7,y\n6,8,y\n"
    found = cleaned(text.encode(), drop_missing=True)
    assert found.x.tolist() == [[1, 2], [3, 4], [5, 7], [6, 8]]
    assert found.counts == {"x": 2, "y": 2}


def test_regression_target_is_standardized_unless_raw():
    choices = {"features": ("sepal", "petal"), "target": "size", "task": "regression"}
    scaled, plain = (cleaned(flowers(), scale_targets=scale, **choices) for scale in (True, False))
    np.testing.assert_allclose([scaled.targets.mean(), scaled.targets.std()], [0, 1], atol=1e-6)
    np.testing.assert_allclose(plain.targets[:, 0], plain.x.sum(axis=1), atol=2e-4)
    assert scaled.class_names == ()


@pytest.mark.parametrize(
    "labels",
    [np.arange(40) % 3, np.eye(3)[np.arange(40) % 3], np.array(list("abc"))[np.arange(40) % 3]],
)
def test_labels_of_arrays_may_be_numbers_one_hot_rows_or_texts(labels):
    x = np.asfortranarray(np.random.default_rng(0).normal(size=(40, 5)))
    found = cleaned(arrays(inputs=x, labels=labels))
    np.testing.assert_array_equal(found.labels, np.arange(40) % 3)
    np.testing.assert_array_equal(found.x, x.astype(np.float32))


def test_three_axes_are_tokens_on_request():
    file = blobs()
    found = cleaned(file, tokens=True)
    assert (found.input_shape, cleaned(file).input_shape) == ((6, 6), (6, 6, 1))
    digest = keep_upload(found)
    assert dataset_shapes("upload", digest=digest, num_samples=8).input_shape == (6, 6)
    assert load_dataset("upload", digest=digest, num_samples=8).x.shape == (8, 6, 6)
    with pytest.raises(InvalidInput, match=r"features: x, of shape \(40, 5\).*for tokens"):
        cleaned(
            arrays(x=np.random.default_rng(0).normal(size=(40, 5)), y=np.arange(40) % 2),
            tokens=True,
        )


def test_images_are_their_pixels_or_averages_over_blocks():
    found, small = cleaned(pets()), cleaned(pets(), side=5)
    assert (found.input_shape, found.counts, found.labels[3]) == (
        (10, 10, 3),
        {"cat": 6, "dog": 6},
        1,
    )
    pixels = np.random.default_rng(3).integers(0, 256, (10, 10, 3), dtype=np.uint8)
    np.testing.assert_allclose(found.x[3], pixels / 255, rtol=1e-6)
    averages = pixels.reshape(5, 2, 5, 2, 3).mean(axis=(1, 3)) / 255
    # Rounded to bytes along both axes.
    np.testing.assert_allclose(small.x[3], averages, atol=1.01 / 255)
    assert cleaned(pets(), gray=True, side=4).input_shape == (4, 4, 1)
    bytes_of_images = np.random.default_rng(0).integers(0, 256, (40, 5, 4), dtype=np.uint8)
    of_arrays = cleaned(arrays(x=bytes_of_images, y=np.arange(40) % 2))
    np.testing.assert_allclose(of_arrays.x[..., 0], bytes_of_images / 255, rtol=1e-6)


def test_images_of_several_formats_and_sizes_go_together():
    mixed = {f"pets/dog/{form}.{form.lower()}": image(12, 9, form=form) for form in ("JPEG", "BMP")}
    mixed |= {f"pets/cat/{mode}.png": image(10, 10, mode=mode) for mode in ("L", "RGBA", "P", "1")}
    assert cleaned(pets(**mixed)).x.shape == (18, 16, 16, 3)


def test_equal_data_have_one_digest_and_are_kept_once(data_directory):
    digest = keep_upload(cleaned(flowers()))
    assert (
        keep_upload(cleaned(flowers(delimiter=";"))) == digest == upload_digest(read_upload(digest))
    )
    (path,) = (data_directory / "uploads").iterdir()
    assert (path.name, path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (
        f"{digest}.npz",
        0o600,
        0o700,
    )
    assert keep_upload(cleaned(flowers(), features=("sepal",))) != digest


def test_the_longest_unused_goes_when_the_folder_is_full(data_directory):
    first, second = (
        keep_upload(cleaned(flowers(), features=(name,))) for name in ("sepal", "petal")
    )
    size = sum(path.stat().st_size for path in (data_directory / "uploads").iterdir())
    long_ago = time.time() - 1000
    for age, digest in enumerate((second, first)):
        os.utime(data_directory / "uploads" / f"{digest}.npz", (long_ago + age,) * 2)
    read_upload(second)  # used just now
    third = keep_upload(cleaned(flowers(), features=("size",)), max_kept_bytes=size + 100)
    assert [upload_shapes(each).num_samples for each in (second, third)] == [60, 60]
    with pytest.raises(MissingUpload):
        upload_shapes(first)


def test_data_that_were_changed_on_disk_are_not_used(data_directory):
    digest, other = keep_upload(cleaned(flowers())), keep_upload(cleaned(blobs()))
    folder = data_directory / "uploads"
    os.replace(folder / f"{other}.npz", folder / f"{digest}.npz")
    with pytest.raises(MissingUpload, match="upload the file again"):
        read_upload(digest)
    (folder / f"{other}.npz").write_bytes(b"PK nothing")
    with pytest.raises(MissingUpload):
        upload_shapes(other)
    assert keep_upload(cleaned(blobs())) == other
    assert len(read_upload(other).x) == 40


def test_an_upload_is_a_data_set_like_others():
    digest = keep_upload(cleaned(flowers(), features=("sepal", "petal")))
    options = {
        "digest": digest,
        "num_samples": 45,
        "num_test": 15,
        "seed": 3,
        "standardize": "standard",
    }
    data, shapes = load_dataset("upload", **options), dataset_shapes("upload", **options)
    expected = shapes.input_shape, shapes.num_outputs, ("iris", "rose", "tulip")
    assert (data.input_shape, data.num_outputs, data.class_names) == expected
    assert (np.bincount(data.labels).tolist(), np.bincount(data.labels_test).tolist()) == (
        [15] * 3,
        [5] * 3,
    )
    np.testing.assert_allclose([data.x.mean(), data.x.std()], [0, 1], atol=1e-5)
    assert not {row.tobytes() for row in data.x} & {row.tobytes() for row in data.x_test}
    larger, smaller = (
        load_dataset("upload", digest=digest, num_samples=n, seed=3) for n in (45, 15)
    )
    assert {row.tobytes() for row in smaller.x} <= {row.tobytes() for row in larger.x}
    with pytest.raises(InvalidInput, match=r"num_test.*at most 15"):
        load_dataset("upload", **{**options, "num_test": 16})


def test_spec_with_upload_is_private_with_costs_by_shape():
    spec = private_spec(keep_upload(cleaned(flowers())))
    assert spec.is_private
    assert parse_spec(canonical_json(spec)) == spec
    assert estimate(spec).peak_bytes > 0
    wide = private_spec(keep_upload(cleaned(blobs())))
    assert estimate(wide).peak_bytes > estimate(spec).peak_bytes


def test_a_spec_whose_data_are_gone_can_be_read_but_not_computed():
    digest = keep_upload(cleaned(flowers()))
    spec = private_spec(digest)
    forget_upload(digest)
    assert parse_spec(json.loads(canonical_json(spec))) == spec
    with pytest.raises(
        MissingUpload, match=r"dataset.digest: [0-9a-f]+… is not|upload the file again"
    ) as error:
        check_size(spec)
    assert error.value.field == "dataset.digest"


def test_settings_that_do_not_fit_the_data_are_refused():
    with pytest.raises(InvalidSpec, match=r"dataset.num_samples: 61 .*at most 60"):
        private_spec(keep_upload(cleaned(flowers())), **{"dataset.num_samples": 61})
    digest = keep_upload(
        cleaned(flowers(), features=("sepal", "petal"), target="size", task="regression")
    )
    with pytest.raises(InvalidSpec, match=r"outputs: softmax .*without classes"):
        private_spec(digest)
    assert private_spec(digest, outputs=["linear"]).is_private
    data = load_dataset("upload", digest=digest, num_samples=20)
    assert (data.y.shape, data.class_names, data.labels.size) == ((20, 1), (), 0)


@pytest.mark.parametrize("digest", [None, "abc", "../../etc/passwd", "A" * 64, ["a" * 64]])
def test_what_is_no_digest_is_refused_beside_the_field(digest):
    with pytest.raises(InvalidSpec) as error:
        with_settings(KernelChangeSpec(), {"dataset.name": "upload", "dataset.digest": digest})
    assert [problem.field for problem in error.value.problems] == ["dataset.digest"]


ANNA, BEN = Keeper("anna"), Keeper("ben")


def made(seed: int, num_kib: int = 64) -> Cleaned:
    x = np.random.default_rng(seed).normal(size=(16, num_kib * 16)).astype(np.float32)
    return Cleaned(x, np.arange(16) % 2, np.zeros((16, 0), np.float32), ("a", "b"))


def is_kept(digest: str) -> bool:
    try:
        upload_shapes(digest)
    except MissingUpload:
        return False
    return True


def test_forgetting_drops_one_reference():
    digest = keep_upload(made(0), ANNA)
    assert keep_upload(made(0), BEN) == digest
    forget_upload(digest, ANNA)
    assert is_kept(digest)
    forget_upload(digest, ANNA)  # a repetition has no effect
    assert is_kept(digest)
    forget_upload("../" + digest)
    forget_upload(digest, BEN, needed={digest})  # by a job
    assert is_kept(digest)
    forget_upload(digest, BEN)
    assert not is_kept(digest)


def test_needed_data_are_never_evicted_and_excess_is_refused(data_directory):
    needed = [keep_upload(made(seed), ANNA) for seed in range(4)]
    space = sum(path.stat().st_size for path in (data_directory / "uploads").iterdir()) + 1000
    with pytest.raises(InvalidInput, match="file: data that exceed the space now available"):
        keep_upload(made(9), BEN, max_kept_bytes=space, needed=needed)
    assert all(map(is_kept, needed))
    assert not is_kept(upload_digest(made(9)))
    assert keep_upload(made(9), BEN, max_kept_bytes=space, needed=needed[1:]) == upload_digest(
        made(9)
    )
    assert [is_kept(digest) for digest in needed] == [False, True, True, True]


def test_quota_of_a_session_counts_equal_data_once():
    keeper = Keeper("anna", max_bytes=150 * 1024)
    for seed in (0, 1, 1, 0):
        keep_upload(made(seed), keeper)
    with pytest.raises(InvalidInput, match=r"0\.19 MiB of your data with these") as refused:
        keep_upload(made(2), keeper)
    assert "forget some first" in str(refused.value)
    keep_upload(made(2), BEN)
    forget_upload(upload_digest(made(0)), keeper)
    keep_upload(made(2), keeper)


def test_names_of_sessions_are_hashed_on_disk(data_directory):
    keep_upload(made(0), ANNA)
    assert "anna" not in " ".join(map(str, data_directory.rglob("*")))


def test_the_shipped_example_is_neither_kept_nor_forgotten(data_directory):
    table = parse_upload(EXAMPLE.read_bytes())
    spirals = clean_upload(table, suggested_choices(table))
    digest = upload_digest(spirals)
    assert len(read_upload(digest).x) == 120  # never kept before
    assert keep_upload(spirals, ANNA) == digest
    assert not (data_directory / "uploads" / f"{digest}.npz").exists()
    forget_upload(digest, ANNA)
    forget_upload(digest)
    assert len(read_upload(digest).x) == 120
