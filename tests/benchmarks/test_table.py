"""Published tables match the measurements, including those where peers are faster."""

from __future__ import annotations

import ast
import json
import re

import pytest

from benchmarks.measure import RESULTS, ROOT
from benchmarks.table import PAGE, page, results
from benchmarks.words import amount, faster, size


def test_the_page_of_benchmarks_shows_the_committed_results():
    assert PAGE.read_text() == page(results())


def test_the_page_lists_every_claim_of_every_drill():
    drills = {path.stem: json.loads(path.read_text()) for path in RESULTS.glob("drill_*.json")}
    shown = PAGE.read_text()
    for found in drills.values():
        for claim, holds in found["claims"].items():
            assert f"| {claim} | {'holds' if holds else '**does not hold**'} |" in shown


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


def test_docstrings_begin_with_at_most_12_words():
    long = []
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = (ast.get_docstring(node) or "").partition("\n")[0]
                long += [f"{path.name}: {first}"] * (len(first.split()) > 12)
    assert long == []
