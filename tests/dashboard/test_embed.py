"""One figure alone, for other pages: by its name, with its choices, without menus; or one sentence."""

from __future__ import annotations

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from linearity_lab.views.embed.page import gallery_panels
from tests.dashboard.open_pages import checked, form_sentences, open_page


def embedded(**query: str) -> AppTest:
    app = AppTest.from_string("from linearity_lab.views.embed.page import show\nshow()", default_timeout=30)
    app.query_params.update(query)
    return checked(app.run())


def test_embedded_figure_keeps_its_own_choices():
    first = embedded(figure="liu-fig1-left")
    assert len(first.get("plotly_chart")) == 1
    assert not [*first.title, *first.button, *first.selectbox]
    along = embedded(figure="liu-fig1-left.along-training")
    assert len(along.get("plotly_chart")) == 1
    widths = along.selectbox(key="kernel_change.shown_width")
    before = along.get("plotly_chart")[0].proto.spec
    widths.select(30)
    assert checked(along.run()).get("plotly_chart")[0].proto.spec != before
    assert not along.button
    assert not along.get("download_button")


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"figure": "liu-fig1-lefft"}, "such as liu-fig1-left"),
        ({}, "the name of a figure, such as"),
        ({"figure": "liu-fig1-left.training"}, "liu-fig1-left.along-training"),
        ({"figure": "<script>" * 500}, "the name of a figure, such as"),
        ({"figure": "liu-fig2", "theme": "dark"}, "only figure"),
    ],
)
def test_unknown_name_suggests_the_nearest(query, shown):
    app = embedded(**query)
    (sentence,) = form_sentences(app)
    assert shown in sentence
    assert len(sentence) < 400
    assert len(app.get("plotly_chart")) == ("theme" in query)


def test_figures_have_names_that_fit_into_a_url():
    _, panels = gallery_panels("liu-ball")
    first, *others = panels
    assert first == "liu-ball"
    assert "liu-ball.in-a-ball" in others


def test_embedded_page_shows_its_figure_alone(monkeypatch):
    monkeypatch.setattr(type(st.context), "is_embedded", property(lambda _: True))
    app = open_page("kernel_change", opened=False, preset="liu-fig1-left", tab="Along training")
    assert len(app.get("plotly_chart")) == 1
    assert [each.key for each in app.selectbox] == ["kernel_change.shown_width", "kernel_change.one_seed"]
    assert not [*app.title, *app.button, *app.get("download_button"), *app.get("popover")]
