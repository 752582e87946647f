"""The store keeps what is finished, whatever happens around it: real SQLite files, real processes."""

from __future__ import annotations

import concurrent.futures
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ntk_core.errors import InvalidInput
from ntk_core.results import DriftPoint, DriftResult, DriftRun, Provenance
from ntk_core.specs import KernelDriftSpec, digest
from ntk_core.store import Store

SPEC = KernelDriftSpec(widths=(10, 20), num_seeds=1)
ROOT = Path(__file__).resolve().parents[2]


def point(width: int, change: float = 0.5) -> DriftPoint:
    run = DriftRun(
        output="linear",
        seed=0,
        learning_rate=0.1,
        outcome="diverged",
        steps=(0, 3),
        change=(0.0, change),
        loss=(1.0, float("inf")),
    )
    return DriftPoint(width=width, num_params=7 * width, runs=(run,), runtime_s=0.1)


def result(status: str = "completed", spec: KernelDriftSpec = SPEC) -> DriftResult:
    provenance = Provenance(versions={"jax": "0"}, platform="p", device="cpu", dtype="float32", started_at="2026-01-01")
    return DriftResult(spec=spec, points=(point(10), point(20)), provenance=provenance, status=status, runtime_s=1.0)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "lab" / "results.sqlite"


@pytest.fixture
def store(file):
    store = Store(file)
    yield store
    store.close()


def change_file(file: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(file)
    with connection:
        assert connection.execute(statement, values).rowcount == 1
    connection.close()


def test_a_saved_point_is_seen_by_another_connection_at_once(store, file):
    store.points(SPEC).save("width=10", point(10))
    other = Store(file)
    assert other.points(SPEC).finished() == {"width=10": point(10)}
    assert other.points(KernelDriftSpec(widths=(10,))).finished() == {}
    other.close()


def test_a_saved_point_survives_a_killed_writer(file):
    script = (
        "import os, signal, sys; from ntk_core.results import DriftPoint; from ntk_core.specs import KernelDriftSpec\n"
        "from ntk_core.store import Store\n"
        "p = DriftPoint.model_validate_json(sys.argv[2])\n"
        "Store(sys.argv[1]).points(KernelDriftSpec(widths=(10, 20), num_seeds=1)).save('width=10', p)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(file), point(10).model_dump_json()], cwd=ROOT, check=False)
    assert done.returncode == -9
    store = Store(file)
    assert store.points(SPEC).finished() == {"width=10": point(10)}
    store.close()


def test_the_first_of_two_intact_points_stays(store):
    points = store.points(SPEC)
    points.save("width=10", point(10, change=0.25))
    points.save("width=10", point(10, change=0.75))
    assert points.finished()["width=10"] == point(10, change=0.25)


@pytest.mark.parametrize("damage", ["{}", "", b"\xff\xfe\x00", '{"kind": "kernel_drift", "width": 10}'])
def test_a_damaged_point_is_left_aside_and_replaced(store, file, damage):
    points = store.points(SPEC)
    points.save("width=10", point(10))
    points.save("width=20", point(20))
    change_file(file, "UPDATE points SET json = CAST(? AS TEXT) WHERE key = 'width=10'", damage)
    assert points.finished() == {"width=20": point(20)}
    points.save("width=10", point(10))
    assert points.finished() == {"width=10": point(10), "width=20": point(20)}


def test_one_flipped_digit_is_noticed(store, file):
    points = store.points(SPEC)
    points.save("width=10", point(10, change=0.125))
    change_file(file, "UPDATE points SET json = replace(json, '0.125', '0.126')")
    assert points.finished() == {}


def test_a_result_is_found_by_its_digest(store):
    assert store.result(digest(SPEC)) is None
    store.save_result(result())
    assert store.result(digest(SPEC)) == result()
    assert store.spec(digest(SPEC)[:16]) == SPEC


def test_a_completed_result_is_not_replaced_by_a_cancelled_one(store):
    store.save_result(result("cancelled"))
    store.save_result(result("completed"))
    store.save_result(result("cancelled"))
    found = store.result(digest(SPEC))
    assert found is not None
    assert found.status == "completed"
    assert [run.status for run in store.recent()] == ["completed"]


def test_a_damaged_result_is_none(store, file):
    store.save_result(result())
    change_file(file, "UPDATE runs SET result = 'x'")
    assert store.result(digest(SPEC)) is None
    store.save_result(result())
    assert store.result(digest(SPEC)) == result()


@pytest.mark.parametrize("text", ["{", '{"schema_version": 0}', '{"widths":[7]}'])
def test_a_damaged_or_older_spec_is_left_aside_and_repaired(store, file, text):
    store.save_spec(SPEC)
    change_file(file, "UPDATE runs SET spec = ?", text)
    assert store.spec(digest(SPEC)) is None
    assert store.recent() == ()
    store.save_spec(SPEC)
    assert store.spec(digest(SPEC)) == SPEC


@pytest.mark.parametrize("prefix", ["", "%", "a" * 15, "g" * 16, "' OR 1=1 --      ", "é" * 16, "a" * 65])
def test_a_prefix_that_is_no_digest_finds_nothing(store, prefix):
    store.save_spec(SPEC)
    assert store.spec(prefix) is None


def test_recent_runs_come_newest_first(store):
    other = KernelDriftSpec(widths=(5,))
    store.points(SPEC).save("width=10", point(10))
    store.save_spec(other)
    assert [(run.spec, run.num_points, run.status) for run in store.recent()] == [
        (other, 0, "started"),
        (SPEC, 1, "started"),
    ]
    store.save_result(result())
    assert [run.spec for run in store.recent(limit=1)] == [SPEC]


def test_a_deleted_run_is_gone_with_its_points(store):
    store.points(SPEC).save("width=10", point(10))
    store.save_result(result())
    store.delete(digest(SPEC))
    assert store.spec(digest(SPEC)) is None
    assert store.points(SPEC).finished() == {}


@pytest.mark.parametrize("junk", [b"this is no database " * 500, os.urandom(9000)])
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(file, junk):
    file.parent.mkdir()
    file.write_bytes(junk)
    store = Store(file)
    store.points(SPEC).save("width=10", point(10))
    assert set(store.points(SPEC).finished()) == {"width=10"}
    store.close()
    (aside,) = (path for path in file.parent.glob("*.damaged-*") if not path.name.endswith(("-wal", "-shm")))
    assert aside.read_bytes() == junk


def test_a_file_that_is_damaged_while_in_use_does_not_stop_the_store(store, file):
    points = store.points(SPEC)
    points.save("width=10", point(10))
    store.close()
    for part in file.parent.iterdir():
        if part != file:
            part.unlink()
    file.write_bytes(b"overwritten by something else " * 1000)
    assert points.finished() == {}
    points.save("width=20", point(20))
    assert points.finished() == {"width=20": point(20)}


def test_threads_and_processes_write_at_once_without_losing_a_point(file):
    script = (
        "import sys; from ntk_core.results import DriftPoint; from ntk_core.specs import KernelDriftSpec\n"
        "from ntk_core.store import Store\n"
        "p = DriftPoint.model_validate_json(sys.argv[2])\n"
        "points = Store(sys.argv[1]).points(KernelDriftSpec(widths=(10, 20), num_seeds=1))\n"
        "for i in range(40): points.save(f'{sys.argv[3]}-{i}', p); points.save(f'shared-{i}', p)\n"
    )
    command = [sys.executable, "-c", script, str(file), point(10).model_dump_json()]
    processes = [subprocess.Popen([*command, str(number)], cwd=ROOT) for number in range(4)]
    store = Store(file)  # opened while the others create it

    def write(thread: int) -> None:
        for i in range(20):
            store.points(SPEC).save(f"thread{thread}-{i}", point(10))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert [process.wait() for process in processes] == [0] * 4
    assert len(store.points(SPEC).finished()) == 4 * 40 + 40 + 4 * 20
    store.close()


@pytest.mark.parametrize(
    "location",
    [
        "/proc/none/x.sqlite",
        "/dev/null/x.sqlite",
        "nonsense://host/db",
        "sqlite:////proc/none/x",
        "://",
        "a\0b",
        "postgresql://u:secret@/\0",
    ],
)
def test_an_unusable_store_is_refused_in_one_sentence(location):
    with pytest.raises(InvalidInput) as caught:
        Store(location)
    assert caught.value.field == "LINEARITY_LAB_STORE"
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_directory_is_not_a_store(tmp_path):
    with pytest.raises(InvalidInput, match="LINEARITY_LAB_STORE"):
        Store(tmp_path)


def test_the_environment_names_the_store(file, monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(file))
    Store().close()
    assert file.exists()


def test_the_default_store_is_private_to_the_user(tmp_path, monkeypatch):
    monkeypatch.delenv("LINEARITY_LAB_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    store = Store()
    assert store.location == str(tmp_path / "linearity-lab" / "results.sqlite")
    assert stat.S_IMODE((tmp_path / "linearity-lab").stat().st_mode) == 0o700
    store.close()


def test_a_url_opens_the_same_store_as_a_path(store, file):
    store.save_spec(SPEC)
    other = Store(f"sqlite:///{file}")
    assert other.location == store.location
    assert other.spec(digest(SPEC)) == SPEC
    other.close()


def test_the_store_does_not_start_jax():
    script = "import sys, ntk_core.store, ntk_core.run_directory, ntk_core.cli; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0
