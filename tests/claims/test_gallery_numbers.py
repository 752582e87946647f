"""Numbers of the gallery beyond ``claims.toml``: ``facts``, and comparisons of several results."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.dynamics.frames import OUTSIDE, ball_radius
from linearity_lab.views.lecture.steps._edges import LARGE, NARROW, SMALL, WIDE
from ntk_core.data import load_dataset
from ntk_core.dynamics import one_sample_catapult
from ntk_core.experiments.generalization import values
from ntk_core.experiments.hessian import norm_law
from ntk_core.experiments.horizon import rate_law
from ntk_core.fits import LINEARITY_LIMIT, becomes_linear, fit_power_law
from ntk_core.networks.graphs import graph_verdict
from ntk_core.runs import mean
from tests.claims.facts import FACTS, LINEAR
from tests.claims.measures import MEASURES
from tests.claims.readings import Record


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.preset)
def test_numbers_of_the_gallery_are_in_their_intervals(fact):
    numbers = MEASURES[fact.how](list(fact.seen()))
    assert fact.low <= min(numbers) <= max(numbers) <= fact.high


def runs(preset: str, **where: Any) -> list[tuple[Any, Any]]:
    """(point, run) pairs of a preset that meet the conditions."""
    records = [each for point in gallery_result(preset).points for each in Record(point).inside("runs")]
    return [each.parts for each in records if each.meets(where)]


def test_networks_and_seeds_are_those_that_sentences_name():
    assert [gallery_result(name).spec.lines()[LINEAR].depth for name in ("liu-theorem31", "liu-table1")] == [2, 2]
    assert gallery_result("hu-fig3").spec.network.depth == 4
    assert {run.seed for _, run in runs("hu-departure")} == {0, 1, 2}
    assert [len(runs(name)) for name in ("hu-fig4", "hu-fig4-fashion", "hu-fig3-cnn")] == [3, 3, 3]


# Hessians


def test_table_1_agrees_with_the_paper():
    result = gallery_result("liu-table1")
    for line, network in result.spec.lines().items():
        law = norm_law(result.points, line, relative=True)
        stays = network.output != "linear" or network.bottleneck is not None
        assert becomes_linear(law) == ("no" if stays else "yes"), line
        if network.bottleneck is None:  # one neuron varies too much between draws for slopes between neighbors
            assert all((each.slope > LINEARITY_LIMIT) == stays for each in law.local), line


def test_medians_of_the_bottleneck_block_are_those_of_its_limit():
    limit, spread = 0.876, 0.75 * 3**0.5  # of |N(0, 3)| · ¾
    density = 2 / spread * math.exp(-((limit / spread) ** 2) / 2) / math.sqrt(2 * math.pi)
    for point in gallery_result("liu-theorem41").points:
        standard_error = 1 / (2 * density * math.sqrt(len(point.runs)))
        assert abs(statistics.median(run.exact for run in point.runs) - limit) < 3 * standard_error


def test_relu_hessian_is_smaller_but_its_kernel_moves_more():
    points = gallery_result("relu-and-tanh").points
    for width in {point.wide_width for point in points}:
        relu, tanh = (
            [p for p in points if (p.network.activation, p.wide_width) == (name, width)] for name in ("relu", "tanh")
        )
        norms, moved = (
            [statistics.mean(of(run) for run in point.runs if run.trained or not trained) for (point,) in (relu, tanh)]
            for trained, of in ((False, lambda run: run.norm), (True, lambda run: run.trained.sup_change))
        )
        assert 0.5 < norms[0] / norms[1] < 0.95
        assert moved[0] > 1.5 * moved[1]  # the effect of the kinks
    for point in points:
        if point.blocks:
            assert (max(np.diag(point.blocks.norms)) == 0) == (point.network.activation == "relu")


def test_uniform_rescaling_multiplies_kernel_and_hessian():
    pairs = zip(
        runs("liu-parameterization", line=LINEAR), runs("liu-parameterization", line=f"{LINEAR}-lecun"), strict=True
    )
    for (point, plain), (_, scaled) in pairs:
        assert scaled.norm == pytest.approx(point.wide_width * plain.norm, rel=1e-3)
        assert scaled.relative_norm == pytest.approx(plain.relative_norm, rel=1e-3)


# Graphs


def test_verdicts_agree_with_what_is_measured_of_the_bottlenecks():
    name = "zhu-bottleneck-neurons"
    for graph_name, graph in gallery_result(name).spec.graphs().items():
        done = runs(name, graph=graph_name, outcome="converged")
        law = fit_power_law([point.width for point, _ in done], [run.hessian_norm for _, run in done])
        assert graph_verdict(graph, 100, (10,)).becomes_linear == (law.exponent < -0.3)
    last = {"width": max(gallery_result(name).spec.widths), "outcome": "converged"}
    layer, *others = (
        [run.sup_change for _, run in runs(name, graph=graph, **last)]
        for graph in ("bottleneck-layer", "drawn", "bottleneck-repaired")
    )
    assert min(layer) > 5 * max(itertools.chain(*others))


def test_smallest_eigenvalues_drop_less_in_wide_graphs():
    kept = [
        [run.ball_eigenvalue / run.smallest_eigenvalue[0] for run in p.runs] for p in gallery_result("zhu-pl").points
    ]
    assert min(kept[-1]) > max(kept[0])


# Kernels and training


@pytest.mark.parametrize("network", ["A", "B"])
def test_convergence_pair_approaches_infinite_width(network):
    rows = [(point.width, run.infinite_distance) for point, run in runs("kernel-convergence-pair", network=network)]
    law = fit_power_law(*zip(*rows, strict=True))
    assert abs(law.exponent + 0.5) < 2 * law.interval


def test_only_the_unstable_rate_leaves_the_ball():
    (point,) = [each for each in gallery_result("beyond-gradient-descent").points if each.width == 3000]
    plain, beyond = (point.of("linear", method)[0] for method in ("gradient-descent", "beyond-stable"))
    assert beyond.sup_distance > max(3 * plain.sup_distance, OUTSIDE * ball_radius(point, "linear"))
    assert beyond.sup_change > 20 * plain.sup_change


def test_losses_are_below_their_bound_or_catapult():
    slow, large, too_large = (
        runs("liu-section5", output="leaky_softplus", rate=rate) for rate in gallery_result("liu-section5").spec.rates
    )
    for point, run in slow:
        bound = run.bound(point.num_samples)
        assert all(loss <= limit * (1 + 1e-6) for loss, limit in zip(run.loss, bound, strict=True))
    assert any(run.overshoot > 1.2 and run.loss[-1] < 0.01 * run.loss[0] for _, run in large)
    assert all(run.learning_rate > 5 * run.stable_rate for _, run in too_large)
    assert sum(run.outcome == "diverged" for _, run in too_large) > 0.6 * len(too_large)  # usually


def test_departures_end_in_high_dimension():
    departing = [sum(run.departure is not None for run in point.runs) for point in gallery_result("hu-fig1").points]
    assert (departing[0], departing[-1]) == (3, 0)
    assert departing == sorted(departing, reverse=True), "the higher the dimension, the longer the network stays"


def test_full_size_convolutions_depart_sooner():
    """The paper's exception, by the relative output distance after a tenth of the linear model's progress."""

    def early(name):
        found = []
        for _, run in runs(name):
            tenth = next(i for i, loss in enumerate(run.linear.train_loss) if loss < 0.9 * run.linear.train_loss[0])
            found.append(run.relative_error[tenth])
        return statistics.fmean(found)

    assert early("hu-fig4-cifar-cnn") > 1.5 * early("hu-fig4-cifar")


@pytest.mark.parametrize("rate", [2.5, 3.0])
def test_horizons_beyond_two_grow_by_steps(rate):
    law = rate_law([p for p in gallery_result("horizon-rate").points if p.width >= 256], rate, "outputs")
    assert law.exponent == pytest.approx(1 / (2 * math.log(rate - 1)), rel=0.25)


# Depth against width

# E[K²] / E[K]² by an independent script with 1,500 networks of drawn weights: β → value at m = 32, 64, 128.
INDEPENDENT = {1 / 16: (1.21, 1.24, 1.24), 1 / 8: (1.49, 1.48, 1.59), 1 / 4: (2.41, 2.27, 2.40), 1 / 2: (4.99, 4.70)}


def test_random_kernels_agree_with_an_independent_script():
    points = {(point.depth, point.width): point for point in gallery_result("depth-width").points}
    for beta, ratios in INDEPENDENT.items():
        for width, expected in zip((32, 64, 128), ratios, strict=False):
            point = points[round(beta * width), width]
            # Reference: means of 1,500 heavy-tailed numbers, taken as ± 10%; ours: the stated interval.
            assert abs(1 + point.cv_squared - expected) < 0.1 * (expected - 1) + (point.high - point.low), (beta, width)
    for beta in (1 / 32, 1 / 16, 1 / 8):
        growth = [point.growth for point in points.values() if point.beta == beta and point.depth > 1]
        assert len(growth) >= 3
        assert max(growth) < 1.35 * min(growth)
    narrow, wide, small, large = (points[size] for size in (NARROW, WIDE, SMALL, LARGE))
    assert narrow.low < wide.high, "neither: the intervals overlap"
    assert wide.low < narrow.high
    assert points[16, 256].cv_squared < 0.5 * narrow.cv_squared, "at one depth the wider one is more certain"
    assert mean([run.sup_change for run in large.runs]).value > mean([run.sup_change for run in small.runs]).value


# Tables of independent scripts, on other draws


def near(found: Sequence[float], expected: float, num_test: float = math.inf) -> bool:
    """Within a tenth and two deviations: our mean over seeds, one reference draw, and its test points."""
    spread = statistics.stdev(found) * math.sqrt(1 + 1 / len(found))
    binomial = math.sqrt(expected * (1 - expected) / num_test)
    return abs(statistics.fmean(found) - expected) <= 0.1 * expected + 2 * max(spread, binomial)


# Network, K₀, K_T; alignment before and after.
PARITY = {
    (0.0, 100): (0.106, 0.222, 0.041, 0.042, 0.069),
    (0.0, 1000): (0.190, 0.224, 0.147, 0.043, 0.049),
    (0.0, 5000): (0.200, 0.208, 0.189, 0.043, 0.044),
    (0.5, 100): (0.001, 0.222, 0.000, 0.042, 0.156),
    (0.5, 1000): (0.000, 0.224, 0.000, 0.043, 0.153),
    (0.5, 5000): (0.000, 0.208, 0.000, 0.043, 0.155),
}
MODELS = ("network", "first_kernel", "after_kernel")


@pytest.mark.parametrize(("rho", "width"), PARITY)
def test_price_of_linearity_equals_the_earlier_measurement(rho, width):
    *errors, before, after = PARITY[rho, width]
    found = [run for _, run in runs("price-of-linearity", richness=rho, width=width)]
    for name, expected in zip(MODELS, errors, strict=True):
        assert near(values(found, name, "error"), expected, 1000), name
    for end, expected in ((0, before), (-1, after)):
        assert near([run.alignment[end] for run in found], expected), end


def test_on_two_digits_there_is_no_price_though_the_kernel_turns():
    for point in gallery_result("no-price-on-digits").points:
        for name in MODELS:
            assert near(values(point.runs, name, "error"), 0.0625, 400), (point.key, name)
        if point.richness == 0.5:
            assert near([run.alignment[0] for run in point.runs], 0.12)
            assert near([run.alignment[-1] for run in point.runs], 0.28)
            assert all(run.alignment[-1] > 1.5 * run.alignment[0] for run in point.runs)


def test_wide_lazy_networks_err_as_their_kernel():
    def error(preset, model, **where):
        return statistics.fmean(values([run for _, run in runs(preset, **where)], model, "error"))

    narrow, wide = (error("price-of-linearity", "network", richness=0.0, width=width) for width in (100, 5000))
    kernel = error("price-of-linearity", "first_kernel", richness=0.0, width=5000)
    assert narrow < 0.8 * kernel, "not linear yet"
    assert wide == pytest.approx(kernel, rel=0.05), "rises, to that of its kernel"
    for width in (100, 1000, 5000):
        assert error("price-of-linearity", "network", richness=0.5, width=width) < 0.01
    for rho in (0.0, 0.5):
        digits = [error("no-price-on-digits", name, richness=rho, width=1000) for name in MODELS[:2]]
        assert max(digits) < 1.25 * min(digits)


def agrees(found: Sequence[float], expected: float, resolution: float) -> bool:
    """Within a tenth and two errors of means, the reference counted as four of our draws; ours resolve enough."""
    error = np.std(found, ddof=1) * math.sqrt(1 / len(found) + 1 / 4)
    assert error < resolution * expected, "otherwise the check is empty"
    return bool(abs(np.mean(found) - expected) < 0.1 * expected + 2 * error)


def test_dial_has_the_table_of_an_independent_script():
    """Final ΔK and exponents of |Δh|, n = 20, d = 10, one hidden layer; references are means over 3 to 5 seeds."""
    table = {0.0: (0.152, 0.055, 0.013), 0.25: (0.85, 0.62, 0.40), 0.5: (3.07, 3.02, 3.01)}
    exponents = {0.0: -0.44, 0.25: -0.14, 0.5: 0.0}
    for rho, row in table.items():
        found = {
            width: [run for _, run in runs("richness-anew", richness=rho, width=width)] for width in (256, 1024, 4096)
        }
        for expected, each in zip(row, found.values(), strict=True):
            assert {run.outcome for run in each} == {"converged"}
            assert agrees([run.last_change for run in each], expected, 0.25)
        moved = [np.mean([run.mean_hidden_change for run in found[width]]) for width in (256, 4096)]
        assert math.log(moved[1] / moved[0]) / math.log(16) == pytest.approx(exponents[rho], abs=0.1)


# n = d = 10: peak and last c at m = 100, 1,000 and 10,000, over 3–5 seeds.
CATAPULTS = {
    ("network", 3.0): ((4.1, 42, 380), (1.20, 1.14, 1.09)),
    ("quadratic", 3.0): ((5.0, 50, 450), (1.13, 0.97, 0.92)),
    ("network", 2.2): ((None, 2.1, 19), (1.82, 1.80, 1.80)),  # at m = 100 the loss never rises above its initial value
    ("network", 1.5): (None, (1.5, 1.5, 1.5)),
    ("quadratic", 1.5): (None, (1.5, 1.5, 1.5)),
}


@pytest.mark.parametrize(("model", "rate"), CATAPULTS)
def test_peaks_and_curvatures_agree_with_the_independent_script(model, rate):
    peaks, curvatures = CATAPULTS[model, rate]
    for width, peak, curvature in zip((100, 1000, 10_000), peaks or [None] * 3, curvatures, strict=True):
        found = [run for _, run in runs("catapult-anew", model=model, rate=rate, width=width)]
        assert peak is None or agrees([2 * run.peak_loss for run in found], peak, 0.4)
        assert agrees([run.curvature for run in found], curvature, 0.4)


@pytest.mark.parametrize("width", [1000, 10_000])
def test_last_curvature_varies_over_draws_after_a_catapult(width):
    below, above = (
        np.std([run.curvature for _, run in runs("catapult-anew", model="network", rate=rate, width=width)], ddof=1)
        for rate in (2.2, 3.0)
    )
    assert above > 5 * below


def test_one_sample_quadratic_model_is_the_planar_recursion():
    """u = |x|²η²(g − y)²/(md), v = ηλ, w = |x|²η²(g − y)y/(md), whose sign is that of g(w₀) − y."""
    spec = gallery_result("catapult-one-sample").spec
    data = load_dataset(spec.dataset.name, **spec.data_options())
    for point, run in runs("catapult-one-sample", model="quadratic"):
        gain = float((data.x[0] ** 2).sum()) * run.learning_rate**2 / (point.width * data.x.shape[1])
        u, steps = gain * 2 * run.first_loss, run.path.steps[:30]
        found = [
            one_sample_catapult(u, run.rate, sign * gain * math.sqrt(2 * run.first_loss) * float(data.y[0, 0]), 30)
            for sign in (-1, 1)
        ]
        scale = np.array(run.path.loss[: len(steps)]) * 2 * gain
        off = [np.abs(np.log(each.u[list(steps)] / scale))[scale > 1e-5 * u].max() for each in found]
        best = found[int(np.argmin(off))]
        assert min(off) < 0.01  # float32 over some dozen steps
        assert np.abs(best.v[list(steps)] - run.path.curvature[: len(steps)]).max() < 0.01
        assert run.outcome == "monotone" or run.rate >= 2
