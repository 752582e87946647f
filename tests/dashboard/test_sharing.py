"""Copied URLs show the same settings and result in another browser, also after a server restart.

Real jobs and a real store without workers, so that no shown result is recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from linearity_lab.components import gallery
from linearity_lab.jobs import Jobs
from ntk_core.runs import EXPERIMENTS, Spec, spec_digest
from ntk_core.runs.store import Store
from ntk_core.settings.grammar import with_settings
from tests.dashboard.conftest import _put_in_place
from tests.dashboard.open_pages import address, open_page, words

# For each experiment, its smallest result in the gallery.
PRESET_OF = {
    name: min(
        (each.name for each in experiment.presets),
        key=lambda preset: (gallery.GALLERY / f"{preset}.json").stat().st_size,
    )
    for name, experiment in EXPERIMENTS.items()
}


@pytest.fixture
def server(monkeypatch, tmp_path) -> Iterator[Callable[[], Store]]:
    """Restart the server on the same store, without workers."""
    running: list[Jobs] = []

    def refuse(*_) -> str:
        raise AssertionError("a shared address must not compute")

    def start() -> Store:
        store = Store(tmp_path / "shared.sqlite")
        for jobs in running:
            jobs.shutdown()
        running.append(Jobs(store))
        _put_in_place(monkeypatch, running[-1])
        return store

    monkeypatch.setattr(Jobs, "warm_up", lambda self: None)
    monkeypatch.setattr(Jobs, "submit", refuse)
    yield start
    for jobs in running:
        jobs.shutdown()


def changed_copy(store: Store, name: str) -> Spec:
    """Store a result with settings that are not in the gallery."""
    result = gallery.gallery_result(name)
    spec = with_settings(result.spec, {"seed": result.spec.seed + 123})
    store.save_result(result.model_copy(update={"spec": spec}))
    return spec


def assert_shows(app: AppTest, spec: Spec) -> None:
    """Assert that the page shows the stored run and its form the run's settings."""
    output = words(app)
    assert app.get("plotly_chart")
    assert spec_digest(spec)[:12] in output  # origin of the result, below the figures
    assert "other settings than the form" not in output
    assert "cannot be used" not in output
    assert "Precomputed figure" not in output


# A graph, a list of networks and points of two settings; the other pages are slow.
FAST = ("kernel_change", "dag", "hessian", "depth_width")


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[] if page in FAST else pytest.mark.slow) for page in PRESET_OF]
)
def test_job_address_works_in_another_browser_and_after_restart(page, server):
    spec: Any = changed_copy(server(), PRESET_OF[page])
    first = open_page(page, opened=False, job=spec_digest(spec)[:16])
    assert_shows(first, spec)
    copied = address(first)
    assert copied["seed"] == str(spec.seed)
    server()
    again = open_page(page, opened=False, **copied)
    assert_shows(again, spec)
    assert address(again) == copied


def test_address_of_a_deleted_run_keeps_its_settings(server):
    store = server()
    spec = changed_copy(store, PRESET_OF["kernel_change"])
    copied = address(open_page("kernel_change", job=spec_digest(spec)[:16]))
    jobs, job_id = Jobs(store), spec_digest(spec)[:16]
    assert jobs.snapshot(job_id).status == "completed"
    store.delete(spec_digest(spec))
    assert jobs.forget(job_id)
    assert jobs.snapshot(job_id) is None
    jobs.shutdown()
    server()
    app = open_page("kernel_change", **copied)
    assert "Press Run to compute these settings" in words(app)
    assert app.number_input(key="kernel_change.seed").value == spec.model_dump()["seed"]
