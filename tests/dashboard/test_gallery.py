"""What is shown before anything is run was computed by this project, from the presets as they are now."""

import numpy as np
import pytest

from linearity_lab.components.gallery import GALLERY, gallery_result
from ntk_core.cli import main
from ntk_core.experiments.kernel_change import start_law
from ntk_core.fits import fit_power_law
from ntk_core.runs import presets, run
from ntk_core.settings.grammar import with_settings

SPECS = presets()
NAMES = sorted(path.relative_to(GALLERY).with_suffix("").as_posix() for path in GALLERY.glob("**/[!.]*.json"))
NAMES = [name for name in NAMES if not name.startswith(".")]
KERNEL_CHANGES = [name for name in NAMES if SPECS[name].experiment in ("kernel_change", "architectures")]


def test_every_preset_is_there():
    assert set(NAMES) == set(SPECS)


@pytest.mark.parametrize("name", NAMES)
def test_gallery_result_is_that_of_its_preset_with_its_origin(name):
    result = gallery_result(name)
    assert result.spec == SPECS[name]
    assert result.status == "completed"
    assert tuple(point.key for point in result.points) == result.spec.point_keys()
    assert result.provenance.versions["jax"]
    assert result.provenance.data_sha256


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KERNEL_CHANGES if name != "liu-fig1-right"])
def test_one_point_of_the_gallery_is_found_again(name):
    """The smallest width and first seed, recomputed; liu-fig1-right has one large width, with the runs of left."""
    shown = gallery_result(name)
    spec = with_settings(shown.spec, {"widths": [shown.spec.widths[0]], "num_seeds": 1})
    *_, ended = run(spec)
    for point, kept in zip(ended.result.points, shown.points, strict=False):
        first = [each for each in kept.at_start if each.seed == spec.seed]
        for again, before in zip(point.at_start, first, strict=True):
            assert again.velocity == pytest.approx(before.velocity, rel=1e-3)
            if shown.spec.ball_radius:
                assert again.ball_change == pytest.approx(before.ball_change, rel=0.05)
    for output in spec.outputs if shown.points[0].runs else ():
        for point, kept in zip(ended.result.points, shown.points, strict=False):
            (again,), before = point.of(output), kept.of(output)[0]
            assert point.key == kept.key
            assert (again.outcome, again.seed) == (before.outcome, before.seed)
            # Hundreds of float32 steps on another processor; narrow networks amplify rounding.
            assert again.sup_change == pytest.approx(before.sup_change, rel=0.05)
            assert again.learning_rate == pytest.approx(before.learning_rate, rel=1e-4)


def test_kernel_change_scales_as_1_over_m_to_a_hundred_thousand():
    points = {point.width: point for point in gallery_result("liu-fig1-wide").points}

    def change(output, width):
        return np.mean([each.sup_change for each in points[width].of(output) if each.outcome == "converged"])

    assert -1.2 < np.log10(change("linear", 100_000) / change("linear", 10_000)) < -0.8
    for output in ("softmax", "swish"):  # “as large there as at width 100”
        assert abs(np.log10(change(output, 100_000) / change(output, 100))) < 0.2


def test_velocity_predicts_which_kernel_converges():
    points = gallery_result("kernel-velocity").points
    laws = {output: start_law(points, output, "velocity") for output in ("linear", "softmax", "swish")}
    assert -1.3 < laws["linear"].exponent < -0.8
    for output in ("softmax", "swish"):
        assert abs(laws[output].exponent) < 0.3


@pytest.mark.parametrize("network", ["A", "B"])
def test_convergence_pair_approaches_infinite_width(network):
    points = [point for point in gallery_result("kernel-convergence-pair").points if point.network == network]
    rows = [(point.width, each.infinite_distance) for point in points for each in point.of("linear")]
    fit = fit_power_law(*zip(*rows, strict=True))
    assert abs(fit.exponent + 0.5) < 2 * fit.interval


def test_an_entry_that_is_not_known_is_refused_in_one_sentence(capsys):
    assert main(["gallery", "nothing"]) == 2
    assert capsys.readouterr().err.startswith("NAME: nothing cannot be used; use one of liu-fig1-left, ")


def test_squared_difference_decreases_at_least_as_1_over_m():
    points = gallery_result("liu-true-and-linearized").points
    squares = [(point.width, each.sup_difference) for point in points for each in point.of("linear")]
    law = fit_power_law(*zip(*squares, strict=True))
    assert -1.25 < law.exponent < -0.75
    assert all(-1.25 < each.slope < -0.75 for each in law.local if each.low >= 300)  # narrower ones scatter
    for point in points:
        for plain, swish in zip(point.of("linear"), point.of("swish"), strict=True):
            assert swish.sup_difference > plain.sup_difference
        apart = [each.sup_difference > 0.01 for each in point.of("swish")]
        assert sum(apart) > len(apart) / 2  # “most drift apart, however wide”
    # tanh is smooth: from width 300 on ten times the width divides the square by far more than ten.
    _, middle, wide = (point.runs[0].sup_difference for point in gallery_result("curves-in-one-dimension").points)
    assert wide < middle / 30


@pytest.mark.slow
def test_smallest_linear_model_point_is_reproduced():
    shown = gallery_result("liu-true-and-linearized")
    settings = {"widths": [shown.spec.widths[0]], "num_seeds": 1, "outputs": ["linear"]}
    *_, ended = run(with_settings(shown.spec, settings))
    again, before = ended.result.points[0].runs[0], shown.points[0].of("linear")[0]
    assert again.outcome == before.outcome
    # Hundreds of float32 steps on another processor; a narrow network amplifies rounding.
    assert again.sup_difference == pytest.approx(before.sup_difference, rel=0.05)
    assert again.sup_distance == pytest.approx(before.sup_distance, rel=0.01)


def test_a_wide_network_bends_like_its_linear_model():
    narrow, *_, wide = (point.of("linear")[0] for point in gallery_result("curves-in-one-dimension").points)
    assert wide.sup_difference < 1e-4 < narrow.sup_difference
    assert wide.departure_step is None


def test_only_unstable_methods_leave_their_linear_model():
    result = gallery_result("beyond-gradient-descent")
    widest = result.points[-1]
    plain = widest.of("linear", "gradient-descent")[0]
    for method in result.spec.methods:
        (each,) = widest.of("linear", method)
        assert each.network.outcome == "converged"
        if method == "beyond-stable":
            assert each.linearized.outcome == "diverged"
            assert each.learning_rate > each.stable_rate
            assert each.sup_distance > 3 * plain.sup_distance
            assert each.sup_change > 0.3
        else:
            assert each.sup_difference < 0.05
            assert each.sup_change < 0.1
