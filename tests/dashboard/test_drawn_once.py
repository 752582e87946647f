"""Figures are drawn once per request key, and keys never share a figure."""

from __future__ import annotations

import pytest
import streamlit as st

from linearity_lab.components.shown import drawn_once


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
