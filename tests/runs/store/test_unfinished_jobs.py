"""Unfinished jobs survive their server and pass to the next one, in SQLite and Postgres."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ntk_core.cli._kept import _as_json
from ntk_core.runs import spec_digest
from ntk_core.runs.store import Store, UnfinishedJob, _store
from tests.runs.store.made_runs import SPEC, spec


def job(seed: int, submitted_s: float = 1.0, **changes) -> UnfinishedJob:
    return UnfinishedJob(spec(seed), "ann", submitted_s, **changes)


def test_jobs_are_claimed_in_order_until_they_end(store, location):
    store.write_jobs([job(1, 2.0), job(2, 3.0), job(3, 1.0)])
    store.write_jobs([job(1, 2.0, running=True, spent_s=5.0), job(3, 1.0)])
    store.close()
    later = Store(location)
    assert later.claim_jobs() == (job(3, 1.0), job(1, 2.0, running=True, spent_s=5.0))
    assert later.claim_jobs() == later.unfinished_jobs()
    later.close()


@pytest.mark.slow
def test_live_server_of_a_shared_database_keeps_its_jobs(postgres, monkeypatch):
    store = Store(postgres)
    monkeypatch.setattr(_store.socket, "gethostname", lambda: "another")
    store.write_jobs([job(1)])
    monkeypatch.undo()
    store.write_jobs([job(2)])
    store.write_jobs([])  # only its own jobs
    assert store.claim_jobs() == ()
    monkeypatch.setattr(_store, "SILENT_S", -1.0)
    assert store.claim_jobs() == (job(1),)
    store.delete(spec_digest(spec(1)))
    store.close()


def test_asked_end_is_seen_by_the_server(store):
    store.write_jobs([job(1), job(2)])
    store.end_job(spec_digest(spec(2)))
    store.write_jobs([job(1), job(2, running=True)])
    assert store.jobs_to_end() == {spec_digest(spec(2))}
    assert {each.spec.seed: each.ending for each in store.unfinished_jobs()} == {1: False, 2: True}
    store.write_jobs([job(1)])
    assert store.jobs_to_end() == frozenset()


def test_job_with_a_damaged_spec_is_skipped(store, change):
    store.write_jobs([job(1), job(2)])
    change("UPDATE lab_results SET spec = '{}' WHERE digest = :run", run=spec_digest(spec(1)))
    assert store.claim_jobs() == (job(2),)
    store.delete(spec_digest(spec(2)))
    assert store.unfinished_jobs() == ()


def test_list_of_jobs_names_no_owner(monkeypatch):
    shown = _as_json(job(1))
    assert "ann" not in shown
    assert spec_digest(spec(1)) in shown
    assert '"seed": 1' in shown
    assert job(1).visitor == replace(job(2), submitted_s=2.0).visitor != replace(job(1), owner="bob").visitor
    monkeypatch.setattr(type(SPEC), "is_private", property(lambda self: True))
    assert json.loads(_as_json(job(1)))["spec"] is None
