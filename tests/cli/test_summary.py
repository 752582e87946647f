"""The printed table never hides a run: means with errors, outcomes marked, exclusions counted."""

from __future__ import annotations

import math
from typing import Any

from ntk_core.experiments.early_time.spec import EarlyTimeSpec
from ntk_core.experiments.kernel_change import KernelChangePoint, KernelChangeRun, exponent
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import mean, run_summary
from tests.dashboard.made_early import make_early_point

SPEC = KernelChangeSpec(widths=(10, 100, 1000), outputs=("linear",), num_seeds=2)
EARLY = EarlyTimeSpec(swept="input_dim", values=(25, 50, 100))


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
    assert exponent("linear", points) == (
        "linear output: ΔK ∝ m^(−1.000), 5 runs, 1 excluded; no interval (needs 3 seeds and 4 widths); "
        "over 5 converged runs, 0.10 with the excluded ones"
    )


def test_a_run_that_did_not_converge_is_marked_and_not_averaged():
    text = run_summary(
        SPEC,
        [point(10, (0.5, "converged"), (0.7, "converged")), point(100, (0.1, "converged"), (math.nan, "diverged"))],
    )
    first, second = text.splitlines()[1:3]
    error = mean([0.5, 0.7]).standard_error
    assert first.split() == ["10", "linear", "output", "0.6", "±", f"{error:.1g}", "2"]
    assert second.split() == ["100", "linear", "output", "0.1", "2", "!", "1", "diverged"]
    assert "! diverged: " in text


def test_a_summary_without_points_is_a_sentence():
    assert run_summary(SPEC, []) == "No point is finished."


def test_summary_of_early_time_has_departures_and_exponent():
    text = run_summary(EARLY, [make_early_point(25), make_early_point(50), make_early_point(100, departs=False)])
    lines = text.splitlines()
    assert "d = 25" in lines[1]
    assert "1,000" in lines[1]
    assert lines[1].endswith("2 depart")
    assert lines[3].endswith("0 depart")
    assert "discrepancy ∝ d^(−1.000), 6 runs, 0 excluded; no interval (needs 3 seeds and 4 values)" in text


def test_summary_of_early_time_has_both_kernel_norms():
    text = run_summary(EARLY, [make_early_point(value, trained=False) for value in (25, 50, 100)])
    assert "erf: spectral norm of the distance ∝ d^(−1.500), 3 runs, 0 excluded; no interval" in text
    assert "erf: Frobenius norm of the distance ∝ d^(−0.500" in text
    assert "departure" not in text
