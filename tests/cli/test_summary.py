"""The printed table accounts for every run.

Means with errors, marked outcomes, counted exclusions.
"""

import math
from typing import Any

import numpy as np

from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.experiments.kernel_change.point import KernelChangePoint, KernelChangeRun
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import mean, run_summary

SPEC = KernelChangeSpec(widths=(10, 100, 1000), outputs=("linear",), num_seeds=2)


def point(width: int, *runs: tuple[float, Any]) -> KernelChangePoint:
    found = tuple(
        KernelChangeRun(
            output="linear",
            seed=seed,
            learning_rate=1.0,
            outcome=outcome,
            steps=(0, 5),
            change=(0.0, change),
            loss=(1.0, 0.0),
        )
        for seed, (change, outcome) in enumerate(runs)
    )
    return KernelChangePoint(width=width, num_params=1, runs=found, runtime_s=1.0)


def test_summary_recovers_power_law_and_counts_exclusions():
    points = [point(m, (3.0 / m, "converged"), (3.0 / m, "converged")) for m in (10, 100)]
    points.append(point(1000, (3.0 / 1000, "converged"), (77.0, "over-budget")))
    law = (
        "linear output: ΔK ∝ m^(−1.000), 5 runs, 1 excluded; no interval (needs 3 seeds and 4 "
        "widths); over 5 converged runs, 0.10 with the excluded ones"
    )
    assert law in run_summary(SPEC, points).splitlines()


def test_a_run_that_did_not_converge_is_marked_and_not_averaged():
    text = run_summary(
        SPEC,
        [
            point(10, (0.5, "converged"), (0.7, "converged")),
            point(100, (0.1, "converged"), (math.nan, "diverged")),
        ],
    )
    first, second = text.splitlines()[1:3]
    error = mean([0.5, 0.7]).standard_error
    assert first.split() == ["10", "linear", "output", "0.6", "±", f"{error:.1g}", "2"]
    assert second.split() == ["100", "linear", "output", "0.1", "2", "!", "1", "diverged"]
    assert "! diverged: " in text
    assert run_summary(SPEC, []) == "No point is finished."


def test_summary_of_early_time_has_exponents_and_departures():
    result = gallery_result("hu-fig1")
    text = run_summary(result.spec, result.points)
    found = np.log(
        [(point.input_dim, run.discrepancy) for point in result.points for run in point.runs]
    )
    slope = np.polyfit(found[:, 0], found[:, 1], 1)[0]  # by least squares
    assert f"discrepancy ∝ d^(−{abs(slope):.3f} ± " in text
    for line, point in zip(text.splitlines()[1:], result.points, strict=False):
        steps = [run.departure_step for run in point.runs if run.departure_step]
        assert f"d = {point.input_dim}" in line
        assert not steps or f" {min(steps)}–{max(steps)} " in line
        assert line.endswith(f"{len(steps)} depart")
