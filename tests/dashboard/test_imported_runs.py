"""Imported numbers are marked wherever a page shows or exports them."""

import io
import re

import pytest

from linearity_lab.dashboard.export_formats import page_html
from linearity_lab.dashboard.pages.results import stored_runs
from linearity_lab.runs import spec_digest
from linearity_lab.runs.store import Store, read_runs, run_line
from tests.dashboard.made_results import make_points, make_result
from tests.dashboard.open_pages import checked, open_page, words
from tests.runs.store.made_runs import rewrite_settings

ALL = "3 of 3 points imported from a file, not computed here"


@pytest.fixture
def store(own_store, gallery) -> Store:
    return stored_runs.shared_store()


def imported(store: Store, **settings):
    """Import a run of three points and return its stored result."""
    result = make_result(make_points(), num_seeds=3, **settings)
    assert read_runs(store, io.BytesIO(run_line(result).encode())).left_aside == ()
    return store.result(spec_digest(result.spec))


def test_page_of_the_experiment_states_it(store, jobs):
    result = imported(store)
    job = jobs.add(result.spec, status="completed", points=result.points, result=result)
    app = open_page("kernel_change", job=job)
    assert ALL in words(app)
    (badge,) = [each.value for each in app.markdown if "badge[" in each.value]
    assert "Imported" in badge  # above the figure


def test_page_states_it_while_the_run_continues(store, jobs):
    result = imported(store)
    job = jobs.add(result.spec, points=result.points[:2])
    assert "2 of 2 points imported from a file" in words(open_page("kernel_change", job=job))


def test_embedded_page_states_it(store, jobs, monkeypatch):
    monkeypatch.setattr("streamlit.context.__class__.is_embedded", True)
    result = imported(store)
    job = jobs.add(result.spec, status="completed", points=result.points, result=result)
    shown = words(open_page("kernel_change", job=job))
    assert f"{ALL}." in shown
    assert "Computed 2026" not in shown  # the footer of other pages


def test_card_states_it(store):
    imported(store)
    (caption,) = [each.value for each in open_page("results").caption if "kB" in each.value]
    assert caption.endswith(" · imported")


def test_card_of_another_version_states_it(store):
    run = spec_digest(imported(store).spec)
    rewrite_settings(store, run, '"experiment":"kernel_change"', '"experiment":"kernel_charge"')
    app = open_page("results")
    (caption,) = [each.value for each in app.caption if "of another version" in each.value]
    assert caption.endswith(" · imported")
    app.checkbox(key=f"results.box.{run}").check()
    assert "It was imported from a file" in words(checked(app.run()))


def test_comparison_names_the_imported_run(store):
    own = make_result(make_points(), num_seeds=3, seed=50)
    store.save_result(own)
    runs = [spec_digest(own.spec), spec_digest(imported(store).spec)]
    app = open_page("results")
    for run in runs:
        app.checkbox(key=f"results.box.{run}").check()
        checked(app.run())
    assert "Imported from a file, not computed here: run B." in words(app)


def test_exported_page_states_it(store):
    html = page_html("Title", [], [imported(store)])
    assert ALL in html
    assert not re.search("imported", page_html("Title", [], [make_result(make_points())]))


def test_link_to_a_run_of_another_version_leads_to_results(store, jobs):
    run = spec_digest(imported(store).spec)
    rewrite_settings(store, run, '"experiment":"kernel_change"', '"experiment":"kernel_charge"')
    known = store.known_run(run)
    assert known is not None
    jobs.kept_runs[run[:16]] = known
    app = open_page("kernel_change", job=run[:16])
    shown = words(app)
    assert "This run is of another version: this version has no experiment" in shown
    assert "Open it on the page Results" in shown
    assert "use the id of a run from this page" not in shown
