"""What each step of the lecture claims holds in the gallery data that its figure shows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.dynamics.frames import OUTSIDE, ball_radius
from linearity_lab.views.generalization import figures as generalization
from linearity_lab.views.hessian.figures import of_line
from linearity_lab.views.hessian.part_figures import layer_share
from linearity_lab.views.kernel_change.figures import change_lines
from linearity_lab.views.lazy import dial
from linearity_lab.views.lazy import figures as lazy
from linearity_lab.views.lecture.steps import STEPS
from linearity_lab.views.lecture.steps._beyond import gap_before
from linearity_lab.views.lecture.steps._edges import LARGE, NARROW, RUNS, SMALL, WIDE
from ntk_core.experiments.generalization import values
from ntk_core.experiments.horizon.result import rate_law
from ntk_core.fits import LINEARITY_LIMIT, fit_power_law
from ntk_core.runs import Value, mean

LINEAR, NONLINEAR = "fully-connected", "fully-connected-swish"


def points(name):
    return sorted(gallery_result(name).points, key=lambda point: getattr(point, "value", 0) or point.width)


def slope(rows) -> float:
    """Exponent of (width, value) pairs."""
    return fit_power_law(*zip(*rows, strict=True)).exponent


def norms(name, line, of=lambda run: run.norm):
    own = of_line(gallery_result(name).points, line)
    return [(point.wide_width, of(run)) for point in own for run in point.runs]


def constancy_and_linearity():
    runs = [point.runs[0] for point in points("curves-in-one-dimension")]
    for narrow, wide in itertools.pairwise(runs):
        assert wide.sup_change < narrow.sup_change / 3
        assert wide.sup_difference < narrow.sup_difference / 3


def hessian_and_ball():
    for radius in (0.5, 1.0, 2.0, 4.0):
        found = {
            network: {
                point.wide_width: mean([b.kernel_change for run in point.runs for b in run.balls if b.radius == radius])
                for point in of_line(gallery_result("liu-ball").points, network)
            }
            for network in (LINEAR, NONLINEAR)
        }
        fallen = {network: means[1000].value / means[100].value for network, means in found.items()}
        assert 0.15 < fallen[LINEAR] < 0.35, "about a quarter"
        assert fallen[NONLINEAR] > (0.7 if radius <= 1 else 0.5), "it stays flat, less so in a large ball"
        assert fallen[NONLINEAR] > 2.5 * fallen[LINEAR]
        # The ascent finds what random directions miss.
        for point in of_line(gallery_result("liu-ball").points, LINEAR):
            assert all(b.kernel_change > 5 * b.kernel_change_random for run in point.runs for b in run.balls)
    linear = of_line(gallery_result("liu-ball").points, LINEAR)
    by_radius = [
        (b.radius, b.kernel_change)
        for point in linear if point.wide_width == 1000
        for run in point.runs
        for b in run.balls
    ]  # fmt: skip
    assert 0.9 < slope(by_radius) < 1.25, "about in proportion to R"


def deep_networks():
    for name in ("liu-theorem31", "liu-table1"):
        assert gallery_result(name).spec.lines()[LINEAR].depth == 2
    assert -0.55 < slope(norms("liu-theorem31", LINEAR)) < -0.4
    for point in gallery_result("liu-theorem31").points:
        assert all(run.bound.bound > run.norm for run in point.runs)
    for quantity in (lambda run: run.bound.q_221, lambda run: run.bound.q_l):
        assert slope(norms("liu-theorem31", LINEAR, quantity)) == pytest.approx(0, abs=0.03)
    for network in (LINEAR, "resnet", "densenet", "convnet", "mixed"):
        assert slope(norms("liu-table1", network)) < LINEARITY_LIMIT


def nonlinear_output():
    shown = points("liu-fig1-left")
    means = {output: [each.value for _, each in line.means] for output, line in change_lines(shown).items()}
    ends = {output: (found[0], found[-1]) for output, found in means.items()}
    assert ends["linear"][1] < 0.02 * ends["linear"][0]
    for output in ("softmax", "swish"):
        assert min(means[output]) > 0.5
    assert ends["softmax"][1] == pytest.approx(1, abs=0.15), "ends near 1"
    for point in of_line(gallery_result("liu-nonlinear-output").points, NONLINEAR):
        assert all(run.norm >= run.parts.lower * (1 - 1e-3) for run in point.runs)


def bottleneck():
    assert abs(slope(norms("liu-table1", "bottleneck"))) < 0.15
    assert slope(norms("liu-table1", LINEAR)) < -0.4
    fig2 = points("liu-fig2")
    done = [(p.width, r.sup_change) for p in fig2 for r in p.of("linear") if r.outcome == "converged"]
    assert -0.6 < slope(done) < -0.4
    narrowest = [run.outcome == "converged" for run in fig2[0].of("linear")]
    assert len(narrowest) / 2 < sum(narrowest) < len(narrowest), "most, not all, converge at the smallest"


def optimization_without_linearity():
    for point in points("liu-section5"):
        runs = point.of("leaky_softplus", 2.0)
        for run in runs:
            assert 0.45 < run.sup_change < 0.75, "about half of its size or more"
            assert run.outcome == "converged"
            for bound in (run.bound(point.num_samples), run.pl_bound()):
                assert all(loss <= above * (1 + 1e-6) for loss, above in zip(run.loss, bound, strict=True))
            # Nearly a straight line on a logarithmic axis: both halves of the steps take their share of the fall.
            middle = min(range(len(run.steps)), key=lambda i: abs(run.steps[i] - run.steps[-1] / 2))
            first, whole = math.log(run.loss[0] / run.loss[middle]), math.log(run.loss[0] / run.loss[-1])
            assert 0.3 < first / whole < 0.8
    wide = points("liu-section5")[-1]
    assert all(run.outcome == "converged" for output in ("swish", "softmax") for run in wide.of(output, 2.0))


def not_lazy_training():
    shown = gallery_result("liu-lazy").points

    def law(output, start, measure, swept="width"):
        return lazy.line(shown, swept, output, start, measure).law

    assert law("swish", "random", lazy.BEHIND_F).exponent < -0.5
    assert abs(law("swish", "random", lazy.CHANGE).exponent) < 0.3
    for point in shown:
        if point.scale == 1:
            changes = [run.sup_change for run in point.of("swish", "random") if run.outcome == "converged"]
            assert mean(changes).value > 0.5, "moves at every width"
    assert abs(law("linear", "random", lazy.DISTANCE).exponent) < 0.1
    assert -0.5 < law("linear", "random", lazy.LARGEST).exponent < -0.3
    # Scaling helps only where the output at w₀ is 0.
    assert law("linear", "subtracted", lazy.CHANGE, "scale").exponent < -0.8
    assert abs(law("linear", "random", lazy.CHANGE, "scale").exponent) < 0.2


def learning_rate():
    shown = points("catapult-map")
    assert {run.outcome for point in shown for run in point.of("linear", 3.0)} == {"diverged"}
    peaks = [(point.width, run.peak) for point in shown for run in point.of("network", 3.0)]
    assert 0.8 < slope(peaks) < 1.1, "the higher the wider"
    runs = [run for point in shown for run in point.of("network", 3.0)]
    assert all(run.converged and run.curvature < 2 for run in runs), "and then falls to 0"
    for point in shown:
        assert all(run.peak == 1 for run in point.of("network", 1.5)), "no loss ever rises"
        low = [run.peak for run in point.of("network", 2.2)]
        assert min(low) > 1.5 if point.width >= 1600 else mean(low).value < 4, "only in wide networks"


def horizon():
    entropy = [(p.width, run.kernel.horizon) for p in points("horizon-cross-entropy") for run in p.runs]
    assert 0.42 < slope(entropy) < 0.58, "grows as √m"
    for rate in (2.5, 3.0):
        law = rate_law([p for p in points("horizon-rate") if p.width >= 256], rate, "outputs")
        assert law.exponent == pytest.approx(1 / (2 * math.log(rate - 1)), rel=0.25), "a few steps"
    decay = [(p.width, run.kernel.horizon) for p in points("horizon-weight-decay") if p.width > 256 for run in p.runs]
    assert abs(slope(decay)) < 0.05, "weight decay nothing"


def lazy_to_rich():
    shown, deep = gallery_result("richness-dial").points, gallery_result("richness-deep").points
    changes = [dial.law(shown, *RUNS, lazy.CHANGE, rho).exponent for rho in (0.0, 0.125, 0.25, 0.5)]
    assert changes == sorted(changes), "the richer, the flatter"
    assert changes[0] < -0.9
    for measure in (lazy.CHANGE, lazy.HIDDEN):
        assert abs(dial.law(shown, *RUNS, measure, 0.5).exponent) < 0.05
    assert len(deep[0].runs[0].hidden_change) == 3
    for index in range(3):
        assert abs(dial.law(deep, *RUNS, dial.of_layer(index), 0.5).exponent) < 0.05


def depth_against_width():
    shown = {(point.depth, point.width): point for point in gallery_result("depth-width").points}
    narrow, wide = shown[NARROW], shown[WIDE]
    assert narrow.beta == wide.beta
    assert narrow.low < wide.high, "neither: the intervals overlap"
    assert wide.low < narrow.high
    assert shown[16, 256].cv_squared < 0.5 * narrow.cv_squared, "at one depth the wider one is more certain"
    small, large = (mean([run.sup_change for run in shown[size].runs]) for size in (SMALL, LARGE))
    assert shown[SMALL].beta == shown[LARGE].beta
    assert large.value > small.value, "it does not become linear"


def attention():
    dims, heads = gallery_result("attention-head-dim"), gallery_result("attention-heads")
    (first, *_, last), (narrow, *_, wide) = ([*of_line(each.points, "attention")] for each in (dims, heads))
    norm = {id(point): mean([run.norm for run in point.runs]).value for point in (first, last, narrow, wide)}
    assert norm[id(last)] > 0.75 * norm[id(first)], "a head is a bottleneck"
    assert norm[id(wide)] < 0.4 * norm[id(narrow)], "more heads help"
    assert slope(norms("attention-head-dim", "attention-2")) < -0.4
    start, end = (
        sum(layer_share(point, layer).value for layer in ("queries", "keys"))
        for point in of_line(dims.points, "attention-2")[:: len(dims.spec.widths) - 1]
    )
    assert end < 0.1 * start < 0.002, "attention switches off"


def graphs():
    shown = points("zhu-bottleneck-neurons")

    def change(graph, point):
        return mean([r.sup_change for r in point.of(graph, "linear") if r.outcome == "converged"]).value

    assert {run.min_in_degree for point in shown for run in point.of("drawn", "linear")} == {1}
    assert {run.min_in_degree for point in shown for run in point.of("bottleneck-layer", "linear")} == {2}
    for graph in ("drawn", "bottleneck-repaired"):
        assert change(graph, shown[-1]) < 0.15 * change(graph, shown[0])
    assert change("bottleneck-layer", shown[-1]) > 0.7 * change("bottleneck-layer", shown[0])
    dropped = [
        (run.min_in_degree, run.sup_change)
        for point in points("zhu-fig2")
        for run in point.runs
        if run.outcome == "converged"
    ]
    assert slope(dropped) < LINEARITY_LIMIT


def early_time():
    cats_and_horses = next(point for point in gallery_result("hu-fig3").points if point.width == 256).runs
    assert gallery_result("hu-fig3").spec.network.depth == 4
    assert len(cats_and_horses) == 3
    for images in cats_and_horses:
        assert images.departure is not None
        assert images.departure > images.linear_phase
        assert gap_before(images) < 0.05
        # Little is left to learn: at the departure the linear model has more than four fifths of its way behind it.
        for curve, best, left in (
            (images.linear.train_loss, images.optimal_train_loss, 0.2),
            (images.linear.test_loss, images.optimal_test_loss, 0.1),
        ):
            assert (curve[images.departure] - best) / (curve[0] - best) < left
    gaussian = {point.input_dim: point.runs for point in gallery_result("hu-fig1").points}
    # With convolutions about as much is left to learn when the network departs, on digits much more.
    convolutions, digits = (gallery_result(name).points[0].runs for name in ("hu-fig3-cnn", "hu-fig4"))
    assert all(run.share_at_departure == pytest.approx(0.8, abs=0.03) for run in convolutions)
    assert all(run.share_at_departure < 0.45 for run in digits)
    departing = [sum(run.departure is not None for run in gaussian[d]) for d in sorted(gaussian)]
    assert (departing[0], departing[-1]) == (3, 0)
    assert departing == sorted(departing, reverse=True), "the higher the dimension, the longer the network stays"


def price_of_linearity():
    parity, digits = (gallery_result(name).points for name in ("price-of-linearity", "no-price-on-digits"))

    def error(shown, model, **where):
        (point,) = generalization.at(shown, **where)
        return mean(values(point.runs, model, "error")).value

    narrow, wide = (error(parity, "network", richness=0.0, width=width) for width in (100, 5000))
    kernel = error(parity, "first_kernel", richness=0.0, width=5000)
    assert narrow < 0.8 * kernel, "not linear yet"
    assert wide == pytest.approx(kernel, rel=0.05), "rises, to that of its kernel"
    assert all(error(parity, "network", richness=0.5, width=width) < 0.01 for width in (100, 1000, 5000))
    for rho in (0.0, 0.5):
        on_digits = [error(digits, name, richness=rho, width=1000) for name in ("network", "first_kernel")]
        assert max(on_digits) < 1.25 * min(on_digits), "all lie together"


def open_questions():
    point = points("beyond-gradient-descent")[-1]
    runs = {run.method: run for run in point.of("linear")}
    plain, adam, momentum, beyond = (runs[name] for name in ("gradient-descent", "adam", "momentum", "beyond-stable"))
    assert momentum.sup_distance < 1.3 * plain.sup_distance
    assert momentum.sup_change > 3 * plain.sup_change, "the distance alone does not decide"
    assert 1.7 < adam.sup_distance / plain.sup_distance < 2.3, "about twice as far"
    assert 0.5 < adam.sup_change / plain.sup_change < 2, "about as little"
    assert max(momentum.sup_difference, adam.sup_difference) < 0.05, "both stay close to linear models of their own"
    assert beyond.sup_distance > OUTSIDE * ball_radius(point, "linear")
    assert beyond.sup_change > 20 * plain.sup_change
    assert beyond.linearized.outcome == "diverged"


CLAIMS: dict[str, Callable[[], None]] = {
    "constancy-and-linearity": constancy_and_linearity,
    "hessian-and-ball": hessian_and_ball,
    "deep-networks": deep_networks,
    "nonlinear-output": nonlinear_output,
    "bottleneck": bottleneck,
    "optimization-without-linearity": optimization_without_linearity,
    "not-lazy-training": not_lazy_training,
    "learning-rate": learning_rate,
    "horizon": horizon,
    "lazy-to-rich": lazy_to_rich,
    "depth-against-width": depth_against_width,
    "attention": attention,
    "graphs": graphs,
    "early-time": early_time,
    "price-of-linearity": price_of_linearity,
    "open-questions": open_questions,
}


@pytest.mark.parametrize("step", CLAIMS)
def test_a_step_agrees_with_its_figure_beyond_its_stated_claims(step):
    """What ``claims.toml`` states is measured in ``docs/truth.md``; here is what a step states in addition."""
    CLAIMS[step]()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_the_numbers_of_an_answer_are_read_from_the_results(step):
    """With every exponent and mean of the results changed, the reason reads differently."""
    found = {name: gallery_result(name) for name in step.gallery}
    before = step.question.why(found)
    changed = {
        name: result.model_copy(update={"points": tuple(_doubled(point) for point in result.points)})
        for name, result in found.items()
    }
    assert step.question.why(changed) != before


SETTINGS = ("rate", "radius", "learning_rate")


def _doubled(point):
    """The same point with its measured numbers times a power of its width, and those of networks twice that."""

    def walk(part, factor):
        if isinstance(part, Value):
            factors = {name: factor**2 if name == "network" else factor for name in type(part).model_fields}
            kept = {name: getattr(part, name) for name in factors if name not in SETTINGS}
            return part.model_copy(update={name: walk(each, factors[name]) for name, each in kept.items()})
        if isinstance(part, tuple):
            return tuple(walk(each, factor) for each in part)
        return part * factor if isinstance(part, float) else part

    return point.model_copy(update={"runs": tuple(walk(run, point.width**0.1) for run in point.runs)})
