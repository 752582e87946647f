"""The store keeps finished points despite failures, with real SQLite files and a real Postgres."""

from __future__ import annotations

import pytest

from ntk_core.errors import InvalidInput
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import spec_digest
from ntk_core.runs.store import Store
from tests.runs.store.made_runs import SPEC, point, result


def test_a_computed_point_replaces_and_an_imported_one_does_not(store):
    points = store.points(SPEC)
    for change in (0.25, 0.75):
        points.save("width=10", point(10, change=change))
    store.save_result(result(), imported=True)
    assert points.finished() == {"width=10": point(10, change=0.75), "width=20": point(20)}


def test_a_completed_result_is_not_replaced_by_a_cancelled_one(store):
    assert store.result(spec_digest(SPEC)) is None
    for given, kept in (("cancelled", "cancelled"), ("completed", "completed"), ("cancelled", "completed")):
        store.save_result(result(given))
        assert store.result(spec_digest(SPEC)) == result(kept)
    assert [run.status for run in store.runs().runs] == ["completed"]


def test_a_deleted_run_is_gone_until_a_later_point(store):
    points = store.points(SPEC)
    store.save_result(result())
    store.delete(spec_digest(SPEC))
    assert (store.spec(spec_digest(SPEC)), store.num_bytes(), points.finished()) == (None, 0, {})
    points.save("width=20", point(20))
    assert store.spec(spec_digest(SPEC)) == SPEC
    assert points.finished() == {"width=20": point(20)}


@pytest.mark.parametrize("damage", ["{}", "", "�\x01", '{"kind": "kernel_change", "width": 10}'])
def test_damaged_point_is_dropped_and_replaced(store, change, damage):
    points = store.points(SPEC)
    store.save_result(result())
    change("UPDATE lab_points SET json = :damage WHERE key = 'width=10'", damage=damage)
    assert points.finished() == {"width=20": point(20)}
    points.save("width=10", point(10))
    assert points.finished() == {"width=10": point(10), "width=20": point(20)}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE lab_results SET ending = 'x'",
        "UPDATE lab_results SET ending = '{}'",
        "UPDATE lab_points SET json = '{}' WHERE key = 'width=10'",
        "DELETE FROM lab_points WHERE key = 'width=20'",
    ],
)
def test_damaged_result_is_none_until_it_is_computed_again(store, change, damage):
    store.save_result(result())
    change(damage)
    assert store.result(spec_digest(SPEC)) is None
    store.save_result(result())
    assert store.result(spec_digest(SPEC)) == result()


@pytest.mark.parametrize("text", ["{", '{"schema_version": 0}', '{"widths":[7]}'])
def test_damaged_spec_is_repaired_with_its_points(store, change, text):
    store.points(SPEC).save("width=10", point(10))
    change("UPDATE lab_results SET spec = :text", text=text)
    assert store.spec(spec_digest(SPEC)) is None
    assert [run.spec for run in store.runs().runs] == [None]
    assert store.points(SPEC).finished() == {"width=10": point(10)}
    assert store.spec(spec_digest(SPEC)) == SPEC


def test_run_of_another_version_is_listed_without_its_settings(store, change):
    store.save_result(result("cancelled"))
    other = "0" * 64
    change("UPDATE lab_results SET digest = :other, spec = '{\"schema_version\": 1}'", other=other)
    assert store.result(other) is None
    (listed,) = store.runs().runs
    assert (listed.digest, listed.spec) == (other, None)
    store.delete(other)
    assert store.runs().total == 0


@pytest.mark.parametrize("prefix", ["", "%", "a" * 15, "g" * 16, "' OR 1=1 --      ", "é" * 16, "a" * 65, "\0" * 16])
def test_a_prefix_that_is_no_digest_finds_nothing(store, prefix):
    store.save_spec(SPEC)
    assert store.spec(prefix) is None


def test_a_short_prefix_finds_all_digests_that_begin_so(store):
    specs = [KernelChangeSpec(widths=(width,)) for width in range(1, 40)]
    for each in specs:
        store.save_spec(each)
    first = spec_digest(SPEC)[:1]
    assert set(store.find(first)) == {spec_digest(each) for each in specs if spec_digest(each).startswith(first)}
    assert store.find("") == store.find("xyz") == store.find("a" * 65) == ()


@pytest.mark.parametrize(
    "location",
    [
        "/proc/none/x.sqlite",
        "/dev/null/x.sqlite",
        "nonsense://host/db",
        "sqlite:////proc/none/x",
        "://",
        "a\0b",
        "/usr",
        "postgresql://u:secret@/\0",
        "postgres://u:secret@/db?host=/nowhere/at/all",
    ],
)
def test_an_unusable_store_is_refused_in_one_sentence(location):
    with pytest.raises(InvalidInput) as caught:
        Store(location)
    assert caught.value.field == "LINEARITY_LAB_STORE"
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
