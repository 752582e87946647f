"""Equal data share one file with a reference per keeper; quotas and eviction."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ntk_core.data.uploads import (
    EXAMPLE,
    Cleaned,
    Keeper,
    MissingUpload,
    clean_upload,
    forget_upload,
    keep_upload,
    parse_upload,
    read_upload,
    suggested_choices,
    upload_digest,
    upload_shapes,
)
from ntk_core.errors import InvalidInput

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
    forget_upload(digest, BEN)
    assert not is_kept(digest)


def test_what_a_job_needs_stays_when_it_is_forgotten():
    digest = keep_upload(made(0), ANNA)
    forget_upload(digest, ANNA, needed={digest})
    assert is_kept(digest)


def test_needed_data_are_never_evicted_and_excess_is_refused():
    needed = [keep_upload(made(seed), ANNA) for seed in range(4)]
    space = sum(path_of(digest).stat().st_size for digest in needed) + 1000
    with pytest.raises(InvalidInput, match="file: data that exceed the space now available"):
        keep_upload(made(9), BEN, max_kept_bytes=space, needed=needed)
    assert all(map(is_kept, needed))
    assert not is_kept(upload_digest(made(9)))
    assert keep_upload(made(9), BEN, max_kept_bytes=space, needed=needed[1:]) == upload_digest(made(9))
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


def test_names_of_sessions_are_hashed_on_disk():
    keep_upload(made(0), ANNA)
    assert "anna" not in " ".join(str(path) for path in path_of("x").parents[1].rglob("*"))


def test_the_shipped_example_is_neither_kept_nor_forgotten():
    table = parse_upload(EXAMPLE.read_bytes())
    spirals = clean_upload(table, suggested_choices(table))
    digest = upload_digest(spirals)
    assert len(read_upload(digest).x) == 120  # never kept before
    assert keep_upload(spirals, ANNA) == digest
    assert not path_of(digest).exists()
    forget_upload(digest, ANNA)
    forget_upload(digest)
    assert len(read_upload(digest).x) == 120


def path_of(digest: str) -> Path:
    return Path(os.environ["XDG_DATA_HOME"]) / "linearity-lab" / "uploads" / f"{digest}.npz"
