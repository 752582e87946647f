"""The Hessians that are shown before anything is run, held against the claims of Liu, Zhu & Belkin 2020."""

import math
import statistics

import pytest

from linearity_lab.components.gallery import GALLERY, gallery_result
from ntk_core import runs as experiments
from ntk_core.experiments.hessian import norm_law
from ntk_core.experiments.hessian.compute import TOLERANCE
from ntk_core.fits import LINEARITY_LIMIT, becomes_linear, fit_power_law
from ntk_core.runs import PRESETS
from ntk_core.settings.grammar import with_settings

HESSIANS = [name for name, preset in PRESETS.items() if preset.spec.experiment == "hessian"]
LINEAR, NONLINEAR, NARROW = "fully-connected", "fully-connected-swish", "bottleneck"


def hessian_runs(name, line):
    return [(point, run) for point in gallery_result(name).points if point.line == line for run in point.runs]


@pytest.mark.parametrize("name", HESSIANS)
def test_every_preset_of_hessians_has_a_small_figure(name):
    assert (GALLERY / f"{name}.json").stat().st_size < 320_000


@pytest.mark.slow
@pytest.mark.parametrize("name", HESSIANS)
def test_the_first_hessian_of_the_gallery_is_found_again(name):
    """The smallest width, first network and first seed, recomputed."""
    shown = gallery_result(name)
    changed = {"widths": [shown.spec.widths[0]], "num_seeds": 1}
    quick = {
        "networks": [shown.spec.networks[0].model_dump()],
        "radii": [],
        "num_trained": 0,
        "bounds": False,
        "blocks": False,
    }
    *_, ended = experiments.run(with_settings(shown.spec, {**changed, **quick}))
    (again,), before = ended.result.points[0].runs, shown.points[0].runs[0]
    assert again.norm == pytest.approx(before.norm, rel=1e-3)
    assert again.kernel == pytest.approx(before.kernel, rel=1e-3)


def test_nonlinear_output_keeps_its_hessian():
    assert -0.1 <= norm_law(gallery_result("liu-nonlinear-output").points, NONLINEAR).exponent <= 0.1


def test_table_1_agrees_with_the_paper():
    result = gallery_result("liu-table1")
    for line, network in result.spec.lines().items():
        law = norm_law(result.points, line, relative=True)
        stays = network.output != "linear" or network.bottleneck is not None
        assert becomes_linear(law) == ("no" if stays else "yes"), line
        if network.bottleneck is None:  # one neuron scatters too much from draw to draw for slopes between neighbors
            assert all((each.slope > LINEARITY_LIMIT) == stays for each in law.local), line


def test_every_norm_of_the_gallery_converged():
    for name in HESSIANS:
        assert all(run.converged for point in gallery_result(name).points for run in point.runs)


@pytest.mark.parametrize("name", ["liu-theorem31", "liu-shallow", "liu-nonlinear-output"])
def test_bounds_are_on_their_side_of_every_measured_norm(name):
    bounded = [run for point in gallery_result(name).points for run in point.runs if run.bound]
    assert bounded
    assert all(run.bound.bound >= run.norm * (1 - 1e-5) for run in bounded)
    behind = [run for point in gallery_result(name).points for run in point.runs if run.parts]
    assert all(run.parts.lower <= run.norm * (1 + 1e-5) for run in behind)
    assert bool(behind) == (name == "liu-nonlinear-output")


def test_medians_of_the_bottleneck_block_are_those_of_its_limit():
    limit = 0.876  # of |N(0, 3)| · ¾
    spread = 0.75 * 3**0.5
    density = 2 / spread * math.exp(-((limit / spread) ** 2) / 2) / math.sqrt(2 * math.pi)
    for point in gallery_result("liu-theorem41").points:
        standard_error = 1 / (2 * density * math.sqrt(len(point.runs)))
        assert abs(statistics.median(run.exact for run in point.runs) - limit) < 3 * standard_error


def test_diagonal_hessian_of_the_gallery_is_its_closed_form():
    for point, found in hessian_runs("liu-shallow", "shallow"):
        # Many neurons have nearly the largest |σ''|: Lanczos finds one of them, too small by the tolerance at most.
        assert -1e-6 <= 1 - found.norm / found.exact <= TOLERANCE
        assert point.width**0.5 * found.norm <= 0.7699  # max |tanh''| = 4 / (3 √3)


def test_hessian_vanishes_in_the_ball_only_for_linear_output():
    exponents = {}
    for line in (LINEAR, NONLINEAR):
        balls = [(point.wide_width, ball) for point, each in hessian_runs("liu-ball", line) for ball in each.balls]
        for radius in gallery_result("liu-ball").spec.radii:
            found = [(width, ball.hessian) for width, ball in balls if ball.radius == radius]
            exponents[line, radius] = fit_power_law(*zip(*found, strict=True)).exponent
    for radius in gallery_result("liu-ball").spec.radii:
        assert -0.7 < exponents[LINEAR, radius] < -0.35
        assert exponents[LINEAR, radius] < exponents[NONLINEAR, radius] - 0.15
        # a large ball around a narrow network holds points whose curvature no wide one has
        assert radius > 1 or abs(exponents[NONLINEAR, radius]) < 0.15
    for each in (run for point in gallery_result("liu-ball").points for run in point.runs):
        values = [ball.hessian for ball in each.balls]
        assert values == sorted(values)
        assert all(ball.hessian >= ball.hessian_random for ball in each.balls)


def test_relu_hessian_decreases_like_tanh_and_is_smaller():
    points = gallery_result("relu-and-tanh").points
    norms = {
        (point.network.activation, point.wide_width): statistics.mean(run.norm for run in point.runs)
        for point in points
    }
    for line in dict.fromkeys(point.line for point in points):
        assert -0.65 < norm_law(points, line).exponent < -0.3
    for width in {point.wide_width for point in points}:
        assert 0.5 < norms["relu", width] / norms["tanh", width] < 0.95
        moved = {
            point.network.activation: statistics.mean(run.trained.sup_change for run in point.runs if run.trained)
            for point in points
            if point.wide_width == width
        }
        assert moved["relu"] > 1.5 * moved["tanh"]  # what the kinks do
    for blocks in (point.blocks for point in points if point.blocks):
        within = [blocks.norms[at][at] for at in range(len(blocks.layers))]
        is_relu = blocks == next(
            point.blocks for point in points if point.network.activation == "relu" and point.blocks
        )
        assert (max(within) == 0) == is_relu


def test_vector_hessian_decreases_between_its_bounds():
    points = gallery_result("zhu-vector-output").points
    for line in dict.fromkeys(point.line for point in points):
        runs = [(point.wide_width, run) for point in points if point.line == line for run in point.runs]
        together = fit_power_law([width for width, _ in runs], [run.vector.norm for _, run in runs])
        assert -0.6 < together.exponent < -0.35
        assert all(run.norm * (1 - 1e-3) <= run.vector.norm <= run.vector.upper * (1 + 1e-3) for _, run in runs)


def test_only_uniform_rescaling_multiplies_kernel_and_hessian():
    runs = {
        line: [run for _, run in hessian_runs("liu-parameterization", line)] for line in (LINEAR, f"{LINEAR}-lecun")
    }
    widths = [point.wide_width for point, _ in hessian_runs("liu-parameterization", LINEAR)]
    for width, plain, scaled in zip(widths, *runs.values(), strict=True):
        assert scaled.norm == pytest.approx(width * plain.norm, rel=1e-3)
        assert scaled.relative_norm == pytest.approx(plain.relative_norm, rel=1e-3)
    for line in (LINEAR, f"{LINEAR}-standard", f"{LINEAR}-lecun"):
        law = norm_law(gallery_result("liu-parameterization").points, line, relative=True)
        assert all(each.slope < LINEARITY_LIMIT for each in law.local)
