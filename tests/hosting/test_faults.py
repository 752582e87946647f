"""Failing servers and random specs.

One sentence for visitors, the cause in the log, never a traceback.
"""

import json
import logging
import re
import sqlite3
from types import SimpleNamespace

import pytest

from benchmarks.drills.fuzzed_specs import fuzz
from linearity_lab.dashboard.jobs.profile import NEUTRAL, error_text
from linearity_lab.runs import PRESETS, canonical_json, parse_spec
from linearity_lab.runs.store import VARIABLE, Store
from linearity_lab.runs.store import _database as database
from linearity_lab.settings.grammar import InvalidSpec
from linearity_lab.words.markdown import plain
from ntk_core.errors import InvalidInput


def test_log_has_database_errors_and_visitors_see_none(monkeypatch):
    error = InvalidInput(
        VARIABLE,
        "postgresql+psycopg://lab@db.internal:5432/lab",
        "a database (here: no route to host)",
    )
    for name in ("classroom", "hosted"):
        monkeypatch.setenv("LINEARITY_LAB_PROFILE", name)
        assert error_text(error) == NEUTRAL
        assert (
            error_text(InvalidInput("widths", 0, "1 to 3"))
            == "widths: 0 cannot be used; use 1 to 3"
        )
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "local")
    assert "db.internal" in error_text(error)


def test_full_database_is_not_treated_as_damaged(tmp_path, caplog):
    file = tmp_path / "results.sqlite"
    store = Store(file)
    store.try_to_write()

    def full(connection) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_FULL, "SQLITE_FULL"
        raise database.sa.exc.OperationalError("x", {}, error)

    with pytest.raises(InvalidInput, match="disk is full"):
        store.do(full)
    assert caplog.records[-1].facts["cause"].startswith("SQLITE_FULL")
    assert not list(tmp_path.glob("*.damaged-*"))
    store.close()


def test_a_store_that_cannot_be_written_is_not_ready(tmp_path, monkeypatch, caplog):
    store = Store(tmp_path / "results.sqlite")
    with monkeypatch.context() as full:
        full.setattr(database.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
        with pytest.raises(InvalidInput, match="1,000 bytes are left on its disk"):
            store.try_to_write()
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.facts["cause"] == "OSError: 1,000 bytes are left on its disk"
    store.try_to_write()
    (tmp_path / "results.sqlite").unlink()
    store._written_at = -1e9
    with pytest.raises(InvalidInput, match="deleted"):
        store.try_to_write()
    store.close()


@pytest.mark.parametrize(
    "text",
    ["http://evil.example/x", "HTTPS://evil.example", "see www.evil.example", "a@evil.example"],
)
def test_address_in_user_text_is_no_link(text):
    shown = plain(text).replace("\\", "")
    assert not re.search(r"https?://|www\.|[\w.+-]@[\w-]", shown, re.IGNORECASE)
    assert shown.replace("\u2060", "") == text


@pytest.mark.slow
def test_every_fuzzed_spec_is_let_pass_or_refused_in_sentences():
    """``python -m benchmarks.drills.fuzzed_specs`` tries ten thousand."""
    findings = fuzz(50, seed=1)
    assert findings.failures == []
    # Which values are drawn depends on the loaded modules, whose constants Hypothesis tries, too:
    # only that each input was tried holds for every order of tests.
    tried = {outcome.partition(":")[0] for outcome in findings.outcomes}
    assert tried == {"command line", "JSON", "address"}


def test_half_of_a_character_is_refused_and_sentences_are_short():
    """JSON may contain an unpaired surrogate, which neither browsers nor terminals can display."""
    data = json.loads(canonical_json(PRESETS["zhu-fig2"].spec))
    data["graph"]["edges"][0]["kind"] = "\ud800"
    with pytest.raises(InvalidSpec) as refused:
        parse_spec(json.dumps(data))
    for problem in refused.value.problems:
        assert str(problem).encode()
    with pytest.raises(InvalidSpec):
        parse_spec({"experiment": "dag", "activation": "\ud800"})
    assert len(str(InvalidInput("9" * 5000, "x" * 5000, "less"))) < 250
