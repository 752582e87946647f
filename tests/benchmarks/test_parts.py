"""Benchmarks run in tiny sizes without peers; the published page matches the committed results."""

from __future__ import annotations

import json
import pkgutil
import re
from functools import cache
from typing import Any

import pytest

from benchmarks.__main__ import PARTS as ALL
from benchmarks.measure import RESULTS, Settings, environment
from benchmarks.table import PAGE, page, results

# Parts with a naive route, or with their own numbers of work; the others run whole programs.
PARTS = ("kernel", "hessian", "training", "gpu")
NOTE = {
    "at_start": 0.5,
    "at_end": 1.5,
    "took_s": 3.0,
    "busy_by_others": 0.01,
    "high": False,
    "forced": False,
}


@cache
def measured(name: str) -> dict[str, Any]:
    return pkgutil.resolve_name(f"benchmarks.{ALL[name].measure}")(Settings(quick=True))


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_part_runs_and_its_numbers_can_be_shown(quick_compilation, name):
    data = {"environment": environment(), "load": NOTE, **measured(name)}
    shown = page({name: data})
    assert shown.count("\n## ") == 1
    assert "load 0.5 at the start, 1.5 at the end, 0.01 cores busy with other programs" in shown
    assert "too many for these numbers" in page({name: {**data, "load": {**NOTE, "high": True}}})


@pytest.mark.slow
def test_plain_routes_find_the_same_numbers(quick_compilation):
    # Both stop at a relative residual of 1e-2; an eigenvalue's error is of the order of its square.
    assert all(
        row["relative_differences"]["jax hvp + arpack"] < 1e-2
        for row in measured("hessian")["cases"]
    )
    # float32 sums in a different order
    assert all(row["relative_difference_of_norms"] < 1e-5 for row in measured("kernel")["cases"])
    assert all(
        row["largest_difference"] < 1e-5 for row in measured("training")["against_plain_grad"]
    )


@pytest.mark.slow
def test_share_is_the_least_time_of_the_ceiling_that_binds(quick_compilation):
    data = measured("gpu")
    for row in data["rows"]:
        least = {kind: need / data["ceilings_per_s"][kind] for kind, need in row["needs"].items()}
        assert row["bound_by"] == max(least, key=least.get)
        assert row["share"] == pytest.approx(max(least.values()) / row["unit_s"], rel=1e-12)


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
        for key in ("cases", "whole", "against_plain_grad", "explicit")
        for row in data.get(key, [])
        if row["times_faster"] is not None and row["times_faster"] < 1
    ]
    of_models = [
        found
        for data in results().values()
        for row in data.get("models", [])
        for found in row.get("quantities", {}).values()
        if found["times_faster"] is not None and found["times_faster"] < 1
    ]
    assert len(marked) == len(slower) + len(of_models)
    for line in marked:
        decision = re.search(r"\]\((decisions/[^)]+)\)", line)
        assert decision
        assert (PAGE.parent / decision[1]).exists()
