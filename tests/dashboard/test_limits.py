"""Pages on servers that allow less than the paper used."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.open_pages import ROOT, checked, form_sentences, open_page, words


@pytest.fixture(autouse=True)
def _hosted(monkeypatch, gallery):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "hosted")


def test_the_limit_is_beside_its_field_and_run_waits():
    app = open_page("kernel_change", widths="30,10001")
    assert form_sentences(app) == ["Widths m: 10001 cannot be used; use at most 10,000 on this server."]
    assert app.button("kernel_change.run").disabled
    assert "On this server: at most 10,000." in app.text_input("kernel_change.widths").help


def test_paper_switch_offers_the_largest_allowed_size():
    app = open_page("kernel_change")
    switch = app.button("kernel_change.paper_size")
    assert switch.label == "Largest size here"
    assert "1000000 cannot be used" in switch.help.replace("\\", "")
    app = checked(switch.click().run())
    assert app.text_input("kernel_change.widths").value == "30, 100, 1000, 10000"
    assert not app.button("kernel_change.run").disabled
    assert app.button("kernel_change.paper_size").label == "Sized for two cores"


def test_a_wrong_profile_is_named_on_every_page(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "public")
    app = checked(AppTest.from_file(ROOT / "app.py", default_timeout=30).run())
    assert "LINEARITY_LAB_PROFILE: public cannot be used" in words(app)
    assert "one of local, classroom, hosted" in words(app)
