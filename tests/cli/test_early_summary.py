"""Early time in a terminal: departures, exponents and kernels, none without its count."""

from ntk_core.experiments.early_time.spec import EarlyTimeSpec
from ntk_core.runs import run_summary
from tests.dashboard.made_early import make_early_point

SPEC = EarlyTimeSpec(swept="input_dim", values=(25, 50, 100))


def test_summary_has_departures_and_the_exponent():
    text = run_summary(SPEC, [make_early_point(25), make_early_point(50), make_early_point(100, departs=False)])
    lines = text.splitlines()
    assert "d = 25" in lines[1]
    assert "1,000" in lines[1]
    assert lines[1].endswith("2 depart")
    assert lines[3].endswith("0 depart")
    assert "discrepancy ∝ (input dim)^(−1.000), 6 runs, 0 excluded; no interval (needs 3 seeds and 4 values)" in text


def test_summary_has_both_kernel_norms():
    text = run_summary(SPEC, [make_early_point(value, trained=False) for value in (25, 50, 100)])
    assert "erf: spectral norm of the distance ∝ (input dim)^(−1.500), 3 runs, 0 excluded; no interval" in text
    assert "erf: Frobenius norm of the distance ∝ (input dim)^(−0.500" in text
    assert "departure" not in text
