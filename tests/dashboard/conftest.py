"""Fixtures: jobs without workers, a separate store and gallery."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.runtime.pages_manager import PagesManager

from linearity_lab.experiments.kernel_change.point import KernelChangeResult
from linearity_lab.runs import estimate, spec_digest
from linearity_lab.runs.store import KnownRun


class FakeJobs:
    """Jobs in states set by the test; with ``others``, Stop only detaches."""

    def __init__(self):
        self.snapshots, self.stopped, self.submitted, self.adopted = {}, [], [], []
        self.others = False
        self.viewers = 1
        self.kept_runs: dict[str, KnownRun] = {}  # runs of other versions
        self.refusal: Exception | None = None

    def warm_up(self) -> None:
        pass

    def known_run(self, job_id: str) -> KnownRun | None:
        return self.kept_runs.get(job_id)

    def needed_uploads(self) -> frozenset[str]:
        return frozenset(job.spec.dataset.digest for job in self.snapshots.values() if job.active)

    def num_viewers(self) -> int:
        return self.viewers

    def followed(self, viewer):
        return tuple(reversed(self.snapshots.values()))

    def forget(self, job_id) -> bool:
        job = self.snapshots.get(job_id)
        if job is None or not job.active:
            self.snapshots.pop(job_id, None)
            return True
        return False

    def foreseen(self, spec) -> tuple[float, int]:
        job = self.snapshots.get(spec_digest(spec)[:16])
        return estimate(spec).seconds, 0 if job is None else len(job.points)

    def adopt(self, result, *, is_preview: bool = False) -> None:
        self.adopted.append(result)

    def submit(
        self, spec, viewer="", address="", visitor="", *, is_preview=False, quick_s=math.inf
    ):
        self.quick_s = quick_s
        if self.refusal:
            raise self.refusal
        self.submitted.append(spec)
        return self.add(spec)

    def add(self, spec, **changes) -> str:
        from linearity_lab.dashboard.jobs import Snapshot

        job_id = spec_digest(spec)[:16]
        snapshot = Snapshot(
            job_id=job_id,
            spec=spec,
            status="running",
            fraction=0.25,
            remaining_s=42.0,
            message="width 30: training",
        )
        self.snapshots[job_id] = replace(snapshot, **changes)
        return job_id

    def snapshot(self, job_id, viewer=""):
        return self.snapshots.get(job_id)

    def whole(self, spec, points):
        return tuple(points)

    def stop(self, job_id, viewer="", visitor=""):
        if self.others:
            return False
        self.stopped.append(job_id)
        self.snapshots[job_id] = replace(self.snapshots[job_id], status="cancelled")
        return True


@pytest.fixture(scope="session", autouse=True)
def _nobodys_results(tmp_path_factory) -> Iterator[None]:
    """Protect the user's results from the tests."""
    with pytest.MonkeyPatch.context() as patch:
        yield from _store_at(patch, tmp_path_factory.mktemp("lab"))


@pytest.fixture
def own_store(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Iterator[None]:
    """An empty store for one test."""
    yield from _store_at(monkeypatch, tmp_path)


def _store_at(patch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    from linearity_lab.dashboard.pages.results.stored_runs import shared_store

    patch.setenv("LINEARITY_LAB_STORE", str(folder / "results.sqlite"))
    shared_store.cache_clear()
    yield
    if shared_store.cache_info().currsize:
        shared_store().close()
    shared_store.cache_clear()


@pytest.fixture(autouse=True)
def jobs(monkeypatch: pytest.MonkeyPatch) -> FakeJobs:
    """Replace the server's jobs by jobs without workers in every test."""
    fake = FakeJobs()
    _put_in_place(monkeypatch, fake)
    return fake


@pytest.fixture(autouse=True)
def _without_cached_figures() -> None:
    """Clear drawn figures, since made points may share the names of earlier ones."""
    from linearity_lab.dashboard.shown import _kept

    _kept.clear()


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Iterator[Callable]:
    """An empty gallery; a call with preset and result adds one."""
    from linearity_lab.dashboard import gallery as module

    monkeypatch.setattr(module, "GALLERY", tmp_path)

    def put(name: str, result: KernelChangeResult) -> None:
        (tmp_path / f"{name}.json").write_text(result.model_dump_json(), encoding="utf-8")

    yield put
    module._results.clear()


@pytest.fixture(scope="module")
def module_jobs() -> Iterator[FakeJobs]:
    """Jobs without workers for all tests of a module."""
    fake = FakeJobs()
    with pytest.MonkeyPatch.context() as patch:
        _put_in_place(patch, fake)
        yield fake


@pytest.fixture(scope="session", autouse=True)
def _through_the_menu() -> Iterator[None]:
    """Run every ``AppTest`` through app.py, as on a server that has shown its menu.

    An ``AppTest`` forgets ``st.navigation`` before each run and then executes a page
    of pages/ by itself.
    """
    create = PagesManager.__init__

    def create_after_the_menu(self, *arguments, **named) -> None:
        create(self, *arguments, **named)
        PagesManager.uses_pages_directory = False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PagesManager, "__init__", create_after_the_menu)
        yield


def _put_in_place(patch: pytest.MonkeyPatch, fake: FakeJobs) -> None:
    """Let ``shared_jobs`` return the fake, wherever it was imported."""
    patch.setattr("linearity_lab.dashboard.jobs._shared", lambda: fake)
