"""The precomputed figures of early time show what the paper claims, and are found again."""

import itertools

import pytest

from dashboard.components.gallery import GALLERY, gallery_result
from ntk_core.experiments.early_time.summary import fit_discrepancy, fit_kernel_distance
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
    """Fig. 1c, with a width that grows faster than d as the theorem asks."""
    law = fit_discrepancy("erf", gallery_result("hu-fig1").points)
    assert all(each.slope < 0 for each in law.local)


def test_networks_of_low_dimension_depart_after_the_linear_phase():
    """Fig. 1a: the losses are those of the linear model until it is trained; then the network goes on."""
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


def test_on_cats_and_horses_losses_agree_until_the_network_gains_outside_the_span():
    """Fig. 3: within 5 % until the departure, which comes after the linear phase."""
    for _, each in runs_of("hu-fig3"):
        assert each.loss_gap <= 0.05
        assert each.departure > each.linear_phase
        outside = each.linear.complement_loss
        assert max(outside) - min(outside) < 1e-4  # a linear function of the inputs cannot change it
        assert each.network.complement_loss[each.linear_phase] > 0.97 * outside[0]
        assert each.network.complement_loss[-1] < 0.93 * outside[0]


def gap_at_first(each, share=0.8):
    """Largest relative gap of the test losses until the linear model has made this share of its way to its best one."""
    linear, network = each.linear.test_loss, each.network.test_loss
    goal = linear[0] - share * (linear[0] - min(linear))
    return max(abs(net - lin) / lin for net, lin in zip(network, linear, strict=True) if lin >= goal)


@pytest.mark.parametrize("name", ["hu-fig3-cnn", "hu-fig4", "hu-fig4-fashion", "hu-fig4-cifar"])
def test_on_other_images_and_with_convolutions_losses_agree_at_first(name):
    for _, each in runs_of(name):
        assert gap_at_first(each) <= 0.1
        assert each.linear.test_loss[-1] < 0.8 * each.linear.test_loss[0]


def test_on_clothing_the_network_becomes_better_than_its_linear_model():
    for _, each in runs_of("hu-fig4-fashion"):
        assert each.departure is not None


def test_at_full_size_convolutions_part_from_the_linear_model_sooner_than_a_connected_network():
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


def test_convolutions_learn_digits_more_slowly_than_the_linear_model():
    """Not the agreement that the paper shows: patches of digits have unequal norms."""
    for _, each in runs_of("hu-fig4-cnn"):
        assert 0.1 < gap_at_first(each) < 0.5
        assert each.network.test_loss[-1] > each.linear.test_loss[-1]
        assert each.network.test_loss[-1] < 0.6 * each.network.test_loss[0]


@pytest.mark.parametrize(
    ("name", "activation"), [("hu-theorem32", "erf"), ("hu-theorem35", "erf"), ("hu-theorem35", "softplus")]
)
def test_each_layer_alone_follows_its_linear_model_the_closer_the_higher_the_dimension(name, activation):
    """Theorems 3.2 and 3.5: the whole linear phase, on test inputs."""
    points = gallery_result(name).points
    law = fit_discrepancy(activation, points)
    assert law.exponent + law.interval < -0.2
    assert all(each.discrepancy < 0.15 for point in points for each in point.of(activation))


def test_at_full_size_the_network_fits_few_images_sooner_than_its_linear_model():
    """Past the linear model's best test loss: the network's training loss is lower, its test loss is not."""
    for _, each in runs_of("hu-fig4-cifar"):
        assert each.network.train_loss[-1] < 0.5 * each.linear.train_loss[-1]
        assert each.network.test_loss[-1] > each.linear.test_loss[-1]


@pytest.mark.parametrize(("name", "activation"), [("hu-fig5", "relu"), ("hu-prop41", "erf")])
def test_spectral_distance_falls_faster_than_one_over_d_and_frobenius_distance_slower(name, activation):
    """Fig. 5, Props. 3.4 and 4.1."""
    points = gallery_result(name).points
    steps = [[each.difference for each in point.kernels] for point in points]
    assert all(max(after) < min(before) for before, after in itertools.pairwise(steps))
    spectral, frobenius = (fit_kernel_distance(activation, points, norm) for norm in ("spectral", "Frobenius"))
    assert all(each.slope < -1 for each in spectral.local)
    assert frobenius.exponent > -1


def test_activations_akin_to_the_teacher_depart_sooner_the_wider_and_the_others_stay():
    """Our own experiment, with an erf teacher."""
    departs: dict[str, set[bool]] = {}
    for _, each in runs_of("hu-departure"):
        departs.setdefault(each.activation, set()).add(each.departure_step is not None)
    for activation in ("erf", "tanh"):
        steps = [each.departure_step for _, each in runs_of("hu-departure") if each.activation == activation]
        assert steps == sorted(steps, reverse=True)
    assert departs == {"erf": {True}, "tanh": {True}, "softplus": {False}, "relu": {False}}


@pytest.mark.slow
def test_one_point_of_each_kind_is_found_again():
    """The smallest point of a trained network and of a compared kernel, computed anew."""
    for name in ("hu-fig1", "hu-fig5"):
        shown = gallery_result(name)
        spec = with_settings(shown.spec, {"values": [shown.spec.values[0]], "num_seeds": 1})
        *_, ended = run(spec)
        before, again = shown.points[0], ended.result.points[0]
        for first, second in zip(before.kernels, again.kernels, strict=True):
            assert second.difference == pytest.approx(first.difference, rel=1e-3)
        for second in again.runs:
            first = before.of(second.activation)[0]
            # Hundreds of float32 steps on another processor.
            assert second.network.test_loss == pytest.approx(first.network.test_loss, rel=0.02)
            assert second.linear.test_loss == pytest.approx(first.linear.test_loss, rel=1e-3)
