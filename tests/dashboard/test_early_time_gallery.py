"""The precomputed figures of early time show what the paper claims, and are found again."""

import itertools

import pytest

from linearity_lab.components.gallery import GALLERY, gallery_result
from ntk_core.experiments.early_time import fit_discrepancy, fit_kernel_distance
from ntk_core.runs import run
from ntk_core.settings.grammar import with_settings

NAMES = sorted(path.stem for path in GALLERY.glob("hu-*.json"))


def runs_of(name):
    return [(point, each) for point in gallery_result(name).points for each in point.runs]


@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_small_and_no_run_diverged(name):
    assert (GALLERY / f"{name}.json").stat().st_size < 300_000
    assert {each.outcome for _, each in runs_of(name)} <= {"completed"}


def test_discrepancy_falls_with_the_dimension():
    """Fig. 1c, with a width that grows faster than d as the theorem asks: by half over all, not at every step."""
    points = gallery_result("hu-fig1").points
    law = fit_discrepancy("erf", points)
    assert law.exponent + law.interval < -0.4
    ends = [[each.discrepancy for each in point.of("erf")] for point in (points[0], points[-1])]
    assert max(ends[1]) < 0.6 * min(ends[0])


def test_networks_of_low_dimension_depart_after_the_linear_phase():
    """Fig. 1a: the losses are those of the linear model until it is trained; then the network continues."""
    for point, each in runs_of("hu-fig1"):
        if point.input_dim == 25:
            assert each.departure is not None
            assert each.departure > each.linear_phase
            assert each.network.test_loss[-1] < 0.9 * each.optimal_test_loss


def test_the_norm_feature_is_needed():
    """Fig. 2: the network is much nearer to ψ than to the naive model, at every recorded step."""
    for _, each in runs_of("hu-fig2"):
        assert all(
            naive > 2 * distance for naive, distance in list(zip(each.naive_distance, each.distance, strict=True))[1:]
        )
        assert each.naive.test_loss[-1] > 1.5 * each.network.test_loss[-1]
        assert each.network.test_loss[-1] == pytest.approx(each.linear.test_loss[-1], rel=0.1)


def test_cats_and_horses_losses_agree_until_the_network_gains():
    """Fig. 3: within 5 % until the departure, which comes after the linear phase."""
    for _, each in runs_of("hu-fig3"):
        assert each.loss_gap <= 0.05
        assert each.departure > each.linear_phase
        outside = each.linear.complement_loss
        assert max(outside) - min(outside) < 1e-4  # a linear function of the inputs cannot change it
        gained = [1 - loss / outside[0] for loss in each.network.complement_loss]
        assert gained[each.linear_phase] < 0.05
        assert gained[-1] > max(0.065, 1.9 * gained[each.linear_phase])


def gap_at_first(each, share=0.8):
    """Largest relative gap of the test losses until the linear model has made this share of its way to its best one."""
    linear, network = each.linear.test_loss, each.network.test_loss
    goal = linear[0] - share * (linear[0] - min(linear))
    before = itertools.takewhile(lambda pair: pair[1] >= goal, zip(network, linear, strict=True))
    return max(abs(net - lin) / lin for net, lin in before)


@pytest.mark.parametrize("name", ["hu-fig1", "hu-fig3", "hu-fig3-cnn"])
def test_most_of_the_gain_is_outside_the_span_of_the_inputs(name):
    for _, each in runs_of(name):
        if each.departure is not None:
            of = ("complement_loss", "test_loss")
            outside, whole = (getattr(each.linear, loss)[-1] - getattr(each.network, loss)[-1] for loss in of)
            assert outside > 0.7 * whole > 0


@pytest.mark.parametrize("name", ["hu-fig3-cnn", "hu-fig4-cifar"])
def test_full_size_convolutional_losses_agree_at_first(name):
    for _, each in runs_of(name):
        assert gap_at_first(each) <= 0.1
        assert min(each.linear.test_loss) < 0.8 * each.linear.test_loss[0]


@pytest.mark.parametrize(
    ("name", "way", "better"), [("hu-fig4", (0.15, 0.45), (0.12, 0.16)), ("hu-fig4-fashion", (0.1, 0.2), (0.08, 0.15))]
)
def test_digits_and_clothing_depart_early_and_improve(name, way, better):
    """Which seed decides where: how far the linear model has come by then."""
    runs = [each for _, each in runs_of(name)]
    assert len(runs) == 3
    for each in runs:
        assert each.loss_gap <= 0.05
        assert way[0] < each.share_at_departure < way[1]
        ratios = [net / lin for net, lin in zip(each.network.test_loss, each.linear.test_loss, strict=True)]
        assert better[0] < 1 - min(ratios) < better[1]
        assert each.share_at(-1) > 0.8  # past the linear phase


def test_single_outputs_differ_more_than_losses():
    names = ("hu-fig3", "hu-fig3-cnn", "hu-fig4", "hu-fig4-fashion")
    runs = [each for name in names for _, each in runs_of(name)]
    differences = [max(each.relative_error[1 : each.departure + 1]) for each in runs]
    assert 0.08 < min(differences) < max(differences) < 1.1
    assert all(each.loss_gap <= 0.05 for each in runs)


def test_full_size_convolutions_depart_sooner():
    """The paper's exception: the relative distance of the outputs after the first tenth of the linear model's way."""

    def early(name):
        found = [
            next(
                each.relative_error[i]
                for i, loss in enumerate(each.linear.train_loss)
                if loss < 0.9 * each.linear.train_loss[0]
            )
            for _, each in runs_of(name)
        ]
        return sum(found) / len(found)

    assert early("hu-fig4-cifar-cnn") > 1.5 * early("hu-fig4-cifar")
    ((_, run),) = runs_of("hu-fig4-cifar-cnn")
    assert run.share_at_departure < 0.6 < 0.7 < run.share_at(-1)  # past the linear phase
    assert run.network.train_loss[-1] < 0.1 * run.network.train_loss[0]


def test_convolutions_learn_digits_more_slowly():
    """Not the agreement that the paper shows: patches of digits have unequal norms."""
    for _, each in runs_of("hu-fig4-cnn"):
        assert 0.1 < gap_at_first(each) < 0.5
        assert each.network.test_loss[-1] > each.linear.test_loss[-1]
        assert each.network.test_loss[-1] < 0.6 * each.network.test_loss[0]


@pytest.mark.parametrize(
    ("name", "activation"), [("hu-theorem32", "erf"), ("hu-theorem35", "erf"), ("hu-theorem35", "softplus")]
)
def test_each_layer_follows_its_linear_model_in_high_dimension(name, activation):
    """Theorems 3.2 and 3.5: the whole linear phase, on test inputs."""
    points = gallery_result(name).points
    steps = [[each.discrepancy for each in point.of(activation)] for point in points]
    assert all(max(after) < min(before) for before, after in itertools.pairwise(steps))
    assert max(steps[-1]) < 0.6 * min(steps[0])
    assert all(each.discrepancy < 0.15 for point in points for each in point.of(activation))


@pytest.mark.parametrize(("name", "activation"), [("hu-fig5", "relu"), ("hu-prop41", "erf")])
def test_spectral_distance_decreases_faster_than_frobenius(name, activation):
    """Fig. 5, Props. 3.4 and 4.1."""
    points = gallery_result(name).points
    steps = [[each.difference for each in point.kernels] for point in points]
    assert all(max(after) < min(before) for before, after in itertools.pairwise(steps))
    spectral, frobenius = (fit_kernel_distance(activation, points, norm) for norm in ("spectral", "Frobenius"))
    assert all(each.slope < -1 for each in spectral.local)
    assert frobenius.exponent > -1


def test_only_activations_like_the_teacher_improve():
    """Our own experiment, with an erf teacher: the gain at the end, in every run of three seeds."""
    runs = runs_of("hu-departure")
    assert {each.seed for _, each in runs} == {0, 1, 2}
    for _, each in runs:
        gain = 1 - each.network.test_loss[-1] / each.linear.test_loss[-1]
        assert 0.04 < gain < 0.14 if each.activation in ("erf", "tanh") else gain < 0.01


@pytest.mark.slow
def test_one_point_of_each_kind_is_found_again():
    """The smallest point of a trained network and of a compared kernel, recomputed."""
    for name in ("hu-fig1", "hu-fig5"):
        shown = gallery_result(name)
        spec = with_settings(shown.spec, {"values": [shown.spec.values[0]], "num_seeds": 1})
        *_, ended = run(spec)
        before, again = shown.points[0], ended.result.points[0]
        for second in again.kernels:
            first = next(each for each in before.kernels if (each.activation, each.seed) == (second.activation, 0))
            assert second.difference == pytest.approx(first.difference, rel=1e-3)
        for second in again.runs:
            first = before.of(second.activation)[0]
            # Hundreds of float32 steps on another processor.
            assert second.network.test_loss == pytest.approx(first.network.test_loss, rel=0.02)
            assert second.linear.test_loss == pytest.approx(first.linear.test_loss, rel=1e-3)
