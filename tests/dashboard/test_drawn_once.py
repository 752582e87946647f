"""Figures are drawn once per request key, and keys never share a figure."""

from __future__ import annotations

import pytest
import streamlit as st

from linearity_lab.components.shown import drawn_once
from ntk_core.errors import TooLarge
from ntk_core.runs import PRESETS, check_time
from ntk_core.runs._estimate import _most_in_time


@pytest.fixture(autouse=True)
def _forget():
    st.cache_resource.clear()


def test_what_was_drawn_is_not_drawn_again():
    drawn: list[tuple] = []

    def draw(*chosen):
        drawn.append(chosen)
        return object()

    first = drawn_once("page.figure", ("job", "a"), draw, 10, "by step")
    assert drawn_once("page.figure", ("job", "a"), draw, 10, "by step") is first
    others = [
        drawn_once("page.other", ("job", "a"), draw, 10, "by step"),
        drawn_once("page.figure", ("job", "b"), draw, 10, "by step"),
        drawn_once("page.figure", ("job", "a"), draw, 10, "by step²"),
        drawn_once("page.figure", ("job", "a"), draw, "10", "by step"),
        drawn_once("page.figure", ("job", "a", 10), draw, "by step"),
    ]
    assert first not in others
    assert len({*map(id, others)}) == 5
    assert drawn == [(10, "by step"), *[(10, "by step")] * 2, (10, "by step²"), ("10", "by step"), ("by step",)]


def test_how_much_fits_into_the_time_is_looked_for_once():
    spec = PRESETS["liu-fig1-left"].paper_spec
    _most_in_time.cache_clear()
    refusals = []
    for limit in (240.0, 240.0, 60.0):
        with pytest.raises(TooLarge, match="available") as error:
            check_time(spec, limit)
        refusals.append(str(error.value))
    assert refusals[0] == refusals[1] != refusals[2]
    assert _most_in_time.cache_info().misses == 2
