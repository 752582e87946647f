"""Published tables and pictures match the measurements, including those where peers are faster."""

from __future__ import annotations

import ast
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks import pictures
from benchmarks.measure import RESULTS, ROOT
from benchmarks.pictures import Line, Mark, Panel, figure, ticks
from benchmarks.table import IMAGES, PAGE, images, page, results
from benchmarks.words import amount, faster, size

SVG = "{http://www.w3.org/2000/svg}"


def test_the_page_of_benchmarks_shows_the_committed_results():
    assert PAGE.read_text() == page(results())


def test_the_page_lists_every_claim_of_every_drill():
    drills = {path.stem: json.loads(path.read_text()) for path in RESULTS.glob("drill_*.json")}
    shown = PAGE.read_text()
    for found in drills.values():
        for claim, holds in found["claims"].items():
            assert f"| {claim} | {'holds' if holds else '**does not hold**'} |" in shown


def test_the_pictures_of_benchmarks_show_the_committed_results():
    drawn = images(results())
    assert drawn
    assert {path: path.read_text() for path in drawn} == drawn
    assert set(IMAGES.glob("benchmarks-*.svg")) == set(drawn)


def test_rows_with_a_faster_peer_link_to_a_decision():
    marked = [line for line in PAGE.read_text().splitlines() if "▼ [peer faster]" in line]
    slower = [
        row
        for data in results().values()
        for key in ("cases", "against_plain_grad", "explicit")
        for row in data.get(key, [])
        if row["times_faster"] is not None and row["times_faster"] < 1
    ]
    assert len(marked) == len(slower)
    for line in marked:
        decision = re.search(r"\]\((decisions/[^)]+)\)", line)
        assert decision
        assert (PAGE.parent / decision[1]).exists()


@pytest.mark.parametrize(("ratio", "marked"), [(0.99, True), (1.0, False), (12.3, False)])
def test_only_a_faster_peer_is_marked(ratio, marked):
    assert ("▼" in faster(ratio, "x.md")) is marked


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (1.5e-5, "s", "15 µs"),
        (0.00172, "s", "1.72 ms"),
        (30.0, "s", "30 s"),
        (2**30, "B", "1 GiB"),
        (5e5, "B", "488 KiB"),
    ],
)
def test_amounts_are_short(value, unit, words):
    assert amount(value, unit) == words


def test_small_memory_is_not_given_more_exactly_than_it_is_known():
    assert size(5_000) == "< 1 MiB"
    assert size(None) == "–"


@pytest.mark.parametrize(("low", "high"), [(0.003, 0.004), (1.0, 1.5), (1e-6, 1e3), (0.9, 80.0), (30, 300_000)])
def test_ticks_lie_within_the_axis_and_are_few(low, high):
    found = ticks(low, high)
    assert 1 <= len(found) <= 8
    assert all(0.99 * low <= value <= 1.01 * high for value in found)


def test_a_power_law_is_drawn_as_a_straight_line():
    marks = tuple(Mark(x, 2 * x**1.5, 2 * x**1.5, 2 * x**1.5) for x in (10.0, 100.0, 1000.0))
    drawn = figure("t", "d", [Panel("p", "x", "y", (Line("law", marks, 0),))], columns=1)
    circles = [
        (float(circle.attrib["cx"]), float(circle.attrib["cy"]))
        for group in ElementTree.fromstring(drawn).iter(f"{SVG}g")
        for circle in group.iter(f"{SVG}circle")
    ]
    (x0, y0), (x1, y1), (x2, y2) = circles
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)  # coordinates are rounded to a tenth of a pixel
    assert y1 - y0 == pytest.approx(y2 - y1, abs=0.2)
    assert y2 < y0


def test_names_keep_colors_and_text_is_escaped():
    mark = (Mark(1, 1, 1, 1), Mark(2, 2, 1.5, 3))
    panels = [Panel("<p>", "x", "y", (Line("b & c", mark, 1),)), Panel("q", "x", "y", (Line("b & c", mark, 1),))]
    drawn = figure("a < b", "d", panels)
    root = ElementTree.fromstring(drawn)
    assert root.find(f"{SVG}title").text == "a < b"
    assert drawn.count("#D55E00") >= 4
    assert "#0072B2" not in drawn


def test_docstrings_begin_with_at_most_12_words():
    long = []
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = (ast.get_docstring(node) or "").partition("\n")[0]
                long += [f"{path.name}: {first}"] * (len(first.split()) > 12)
    assert long == []


def test_every_picture_has_words_for_those_who_do_not_see_it():
    for drawn in images(results()).values():
        root = ElementTree.fromstring(drawn)
        assert len(root.find(f"{SVG}desc").text) > 30
    assert set(pictures.AXES) == {"m", "n", "C", "depth"}
