"""Numbers of the gallery beyond ``claims.toml``: bounds on every run, and verdicts."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.pages.lecture.steps._edges import LARGE, NARROW, SMALL, WIDE
from linearity_lab.experiments.hessian.point import norm_law
from linearity_lab.runs import PRESETS, mean
from linearity_lab.settings.grammar import values_of
from ntk_core.fits import LINEARITY_LIMIT, becomes_linear, fit_power_law
from ntk_core.networks.graphs import graph_verdict
from tests.claims.readings import Reading, Record

# Rounding of bounds, and the tolerance of norms that are compared with each other.
EXACT, NORM = 1 + 1e-5, 1 + 1e-3
INF = math.inf
BOUNDS: list[tuple[str, Reading, float, float]] = [
    *(
        (name, Reading("every", "converged"), 1, 1)
        for name, p in PRESETS.items()
        if p.spec.experiment == "hessian"
    ),
    *(
        (name, Reading("every", "outcome", equals="completed"), 1, 1)
        for name, preset in PRESETS.items()
        if name.startswith("hu-") and values_of(preset.spec)["training.max_steps"]
    ),
    *(
        (name, Reading("every", "norm", "bound.bound"), 0, EXACT)
        for name in ("liu-shallow", "liu-nonlinear-output")
    ),
    ("liu-ball", Reading("every", "hessian", "hessian_random", records="runs.balls"), 1, INF),
    (
        "liu-ball",
        Reading("every", "kernel_change", "kernel_change_random", records="runs.balls"),
        1,
        INF,
    ),
    ("zhu-vector-output", Reading("every", "norm", "vector.norm"), 0, NORM),
    ("zhu-vector-output", Reading("every", "vector.norm", "vector.upper"), 0, NORM),
    ("zhu-pl", Reading("every", "gradient_norm", "gradient_bound"), 1, INF),
    ("liu-distance", Reading("every", "least_distance.first", "least_distance.last"), 0, 1),
]


@pytest.mark.parametrize(
    ("preset", "reading", "low", "high"), BOUNDS, ids=[f"{row[0]}-{row[1].of}" for row in BOUNDS]
)
def test_every_run_of_the_gallery_keeps_its_bounds(preset, reading, low, high):
    measured = reading.measure(gallery_result(preset))
    assert low <= measured.low <= measured.high <= high


def runs(preset: str, **where: Any) -> list[tuple[Any, Any]]:
    """(point, run) pairs of a preset that meet the conditions."""
    records = [
        each for point in gallery_result(preset).points for each in Record(point).inside("runs")
    ]
    return [each.parts for each in records if each.meets(where)]


def test_table_1_agrees_with_the_paper():
    result = gallery_result("liu-table1")
    for line, network in result.spec.lines().items():
        law = norm_law(result.points, line, relative=True)
        stays = network.output != "linear" or network.bottleneck is not None
        assert becomes_linear(law) == ("no" if stays else "yes"), line
        # One neuron varies too much between draws for slopes between neighbors.
        if network.bottleneck is None:
            assert all((each.slope > LINEARITY_LIMIT) == stays for each in law.local), line


def test_verdicts_agree_with_what_is_measured_of_the_bottlenecks():
    name = "zhu-bottleneck-neurons"
    for graph_name, graph in gallery_result(name).spec.graphs().items():
        done = runs(name, graph=graph_name, outcome="converged")
        law = fit_power_law(
            [point.width for point, _ in done], [run.hessian_norm for _, run in done]
        )
        assert graph_verdict(graph, 100, (10,)).becomes_linear == (law.exponent < -0.3)


def test_sizes_compared_in_the_lecture_differ_as_it_says():
    points = {(point.depth, point.width): point for point in gallery_result("depth-width").points}
    narrow, wide, small, large = (points[size] for size in (NARROW, WIDE, SMALL, LARGE))
    assert narrow.low < wide.high, "neither: the intervals overlap"
    assert wide.low < narrow.high
    assert (
        mean([run.sup_change for run in large.runs]).value
        > mean([run.sup_change for run in small.runs]).value
    )


RICHNESS = (Path(__file__).parents[2] / "docs/math/richness.md").read_text(encoding="utf-8")
OF_THE_SCRIPT = 4  # seeds, 3 to 5


@pytest.mark.parametrize(("written", "rho"), [("0", 0.0), ("1/4", 0.25), ("1/2", 0.5)])
def test_table_of_the_rich_kernel_is_that_of_the_gallery(written, rho):
    """Means and standard errors as the page rounds them; the script's within 10% and two errors."""
    (row,) = re.findall(rf"^\| ρ = {written} \| (.+) \| (.+) \| (.+) \|$", RICHNESS, re.MULTILINE)
    script, means, errors = (np.array(cell.split(" / "), float) for cell in row)
    changes = []  # (widths, seeds)
    for point in sorted(gallery_result("richness-anew").points, key=lambda point: point.width):
        if point.richness == rho:
            changes.append([run.last_change for run in point.runs])
    mean_changes = np.mean(changes, axis=1)
    num_seeds = len(changes[0])
    standard_errors = np.std(changes, axis=1, ddof=1) / math.sqrt(num_seeds)
    np.testing.assert_allclose(means, mean_changes, rtol=0.03)
    np.testing.assert_allclose(errors, standard_errors, rtol=0.3)  # one digit
    of_the_script = standard_errors * math.sqrt(num_seeds / OF_THE_SCRIPT)
    assert (abs(script - mean_changes) <= 0.1 * mean_changes + 2 * of_the_script).all()
