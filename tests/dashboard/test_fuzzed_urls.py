"""Malformed URLs: no page ends in a traceback, and invalid values are named in a sentence."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from linearity_lab.views.navigation import PAGES
from ntk_core.runs import PRESETS
from ntk_core.settings.grammar import settings
from tests.dashboard.open_pages import open_page, words

URLS_OF_SETTINGS, URLS = 22, 8  # for each page that has settings, and for each other one
SEED = 20260101
WILD = (
    "",
    " ",
    "0",
    "-1",
    "1e999",
    "nan",
    "inf",
    "-inf",
    "1e-320",
    "9" * 400,
    "1,2,,3",
    "1;2;3",
    ",".join(["3"] * 3000),
    "true",
    "None",
    "null",
    "[]",
    "{}",
    '{"a": [1, 2]}',
    "[[[[[[",
    "<script>alert(1)</script>",
    "javascript:alert(1)",
    "![x](http://example.com/x.png)",
    "[a](b) :red[c] $\\frac{1}{0}$ **d** `e`",
    "'; DROP TABLE points; --",
    "../../../../etc/passwd",
    "%00%ff%25%zz",
    "\x00\x01\x7f",
    "‮abc\u0000ÿ",
    "Ω≈ç√∫˜µ≤≥÷",
    "１２３",
    "٣",
    "🦄" * 300,
    "a" * 10_000,
    "0x10",
    "1_000",
    "+5",
    "linear,linear",
    "relu\nrelu",
    "__class__",
    "model_fields",
    "{0.__class__}",
    "%s%n%d",
)
SPECS: dict[str, type] = {preset.spec.experiment: type(preset.spec) for preset in PRESETS.values()}
NAMES = tuple(entry.name for entry in PAGES)


def wild_query(page: str, draw: random.Random) -> dict[str, str | list[str]]:
    """Known settings and unknown ones with random values."""
    known = [setting.name for setting in settings(SPECS[page])] if page in SPECS else ["step", "term", "run"]
    odd = [
        "preset",
        "job",
        "a.job",
        "b.job",
        "graph",
        "",
        "seed ",
        "SEED",
        "a.b.c.d",
        "__proto__",
        "spec",
        "é",
        "x" * 500,
    ]
    query: dict[str, str | list[str]] = {}
    for _ in range(draw.randint(1, 6)):
        name = draw.choice(known if draw.random() < 0.7 else odd)
        text = draw.choice(WILD) if draw.random() < 0.8 else str(draw.uniform(-1e6, 1e6))
        query[name] = [text, draw.choice(WILD)] if draw.random() < 0.1 else text
    return query


@pytest.fixture(scope="module")
def apps(opening_through_the_menu, tmp_path_factory) -> Iterator[dict[str, AppTest]]:
    """Every page, without figures: an address has no part in those that ship."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("linearity_lab.components.gallery.GALLERY", tmp_path_factory.mktemp("gallery"))
        yield {name: open_page(name) for name in NAMES}


@pytest.mark.parametrize("page", NAMES)
def test_no_address_ends_in_a_traceback(page, apps):
    draw = random.Random(f"{SEED} {page}")
    app = apps[page]
    for _ in range(URLS_OF_SETTINGS if page in SPECS else URLS):
        query = wild_query(page, draw)
        app.query_params = query
        app.run()
        assert [error.value for error in app.exception] == [], (page, query)
        shown = words(app)
        assert "Traceback" not in shown
        assert 'File "' not in shown


@pytest.mark.parametrize("page", [name for name in NAMES if name in SPECS])
def test_what_cannot_be_used_is_named_in_one_sentence(page, apps):
    app = apps[page]
    app.query_params = {"num_seeds": "-3", "nothing": "1", "job": "no such run"}
    app.run()
    shown = [element.value.replace("\\", "") for element in app.warning]
    for begin in ("In the URL, Seeds: -3 cannot be used", "In the URL, nothing: ", "In the URL, job: "):
        assert sum(sentence.startswith(begin) for sentence in shown) == 1, shown
