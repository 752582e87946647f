"""The linear models of early time.

Constants against closed forms, features against kernels, descent against a loop.
"""

import math

import numpy as np
import pytest
from scipy import integrate

from ntk_core.early_time import (
    LinearFeatures,
    LinearModel,
    activation_constants,
    batch_order,
    covariance_spectrum,
    deep_features,
    draw_inputs,
    input_sizes,
    kernel_norms,
    spectral_norm,
    two_layer_features,
)
from ntk_core.errors import InvalidInput
from ntk_core.kernels import infinite_width_ntk
from ntk_core.networks.architectures import FullyConnected, activation_function
from ntk_core.networks.choices import ACTIVATIONS

ROOT_2PI = math.sqrt(2 * math.pi)
# (ζ, ϑ₀, ϑ₁, ϑ₂) by hand. GELU is z Φ(z): E[φ((1 + s)g)] = v / √(2π(1 + v)) with v = (1 + s)².
CLOSED_FORMS = {
    "erf": (2 / math.sqrt(3 * math.pi), 0, 0, 0),
    "relu": (1 / 2, 1 / ROOT_2PI, 1 / ROOT_2PI, 0),
    "leaky_relu": (1.01 / 2, 0.99 / ROOT_2PI, 0.99 / ROOT_2PI, 0),
    "quadratic": (0, 1 / 2, 1, 1 / 2),
    "identity": (1, 0, 0, 0),
    "gelu": (
        1 / 2,
        0.5 / math.sqrt(math.pi),
        0.75 / math.sqrt(math.pi),
        1 / (16 * math.sqrt(math.pi)),
    ),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_constants_are_those_of_the_closed_forms(name):
    constants = activation_constants(name)
    found = np.array([constants.zeta, constants.theta0, constants.theta1, constants.theta2])
    np.testing.assert_allclose(found, CLOSED_FORMS[name], rtol=0, atol=1e-8)
    # No feature from rounding.
    np.testing.assert_array_equal(found == 0, np.equal(CLOSED_FORMS[name], 0))


def test_tanh_has_no_norm_feature():
    features = two_layer_features(activation_constants("tanh"), 10, 0.1, 1.0, 1.0)
    assert features == features.naive()
    assert features.constant == 0


@pytest.mark.first_cases(4)  # one formula for all functions
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_constants_are_taylor_coefficients(name):
    """E[φ((1 + s)g)] = ϑ₀ + ϑ₁s + ϑ₂s² + O(s³), by Simpson's rule on both sides of the kink.

    And ζ by Stein's lemma.
    """
    sigma = activation_function(name)

    def mean(s, weight=lambda g: 1.0):
        total = 0.0
        for ends in ((-12, 0), (0, 12)):
            g = np.linspace(*ends, 4001, dtype=np.float32)
            values = (
                np.asarray(sigma((1 + s) * g), np.float64)
                * weight(g)
                * np.exp(-(g.astype(float) ** 2) / 2)
            )
            total += integrate.simpson(values, x=g.astype(float)) / ROOT_2PI
        return total

    constants, step = activation_constants(name), 0.04
    high, middle, low = mean(step), mean(0), mean(-step)
    assert constants.zeta == pytest.approx(mean(0, lambda g: g), abs=1e-5)
    assert constants.theta0 == pytest.approx(middle, abs=1e-5)
    # Central differences leave terms of order step² = 1.6e-3 times derivatives of
    # order one fifth (cos).
    assert constants.theta1 == pytest.approx((high - low) / (2 * step), abs=5e-4)
    assert constants.theta2 == pytest.approx((high - 2 * middle + low) / (2 * step**2), abs=3e-3)


@pytest.mark.parametrize("name", ["erf", "softplus", "relu", "gelu"])
def test_expanded_infinite_kernel_gives_the_two_layer_model(name):
    """Two independent derivations of ψ.

    Gaussian moments, and derivatives of the infinite-width kernel.
    """
    for rates in ((1.0, 1.0), (0.7, 0.0), (0.0, 0.3)):
        moments = two_layer_features(activation_constants(name), 40, 1.5, *rates)
        expansion = deep_features(name, 1, 40, 1.5, *rates)
        assert expansion.inputs == pytest.approx(moments.inputs, abs=1e-7)
        # Square roots of rounding errors, for activations without this term.
        assert expansion.constant == pytest.approx(abs(moments.constant), abs=1e-6)
        np.testing.assert_allclose(expansion.norm, moments.norm, atol=1e-6)


def test_deep_linear_network_has_the_data_kernel():
    features = deep_features("identity", 3, 10, 1.0, 1.0, 1.0)
    assert features.inputs == pytest.approx(2.0)  # √4: three hidden layers and the output layer
    assert features.norm == (0, 0, 0)


@pytest.mark.slow  # draws wide networks
def test_first_layer_kernel_approaches_its_linear_model():
    """Prop. 3.4: the distance in units n/d of the kernel decreases with d,
    also for unequal eigenvalues.
    """
    ratios = []
    for d in (20, 80):
        spectrum = covariance_spectrum((0.5, 1.0, 1.5), d)
        x = draw_inputs("uniform", spectrum, 10 * d, 0)
        features = two_layer_features(
            activation_constants("softplus"), d, float(np.mean(spectrum**2)), 1.0, 0.0
        )
        kernel = np.asarray(
            infinite_width_ntk(
                FullyConnected(activation="softplus", trained="first", use_bias=False), x
            )
        )
        norms = kernel_norms(kernel, features, x)
        ratios.append(norms.difference / norms.linear)
    assert ratios[1] < 0.6 * ratios[0] < 0.1


def test_norms_equal_dense_algebra_and_vanish_if_linear():
    x = draw_inputs("gaussian", np.ones(4), 30, 0)
    features = LinearFeatures(0.7, 0.1, (0.5, 0.3, 0.2))
    norms = kernel_norms(features.kernel(x), features, x)
    assert norms.difference == 0
    assert norms.frobenius_difference == 0
    assert norms.naive_difference > 0.01 * norms.kernel
    matrix = features.kernel(x) - 0.4 * np.eye(30)
    assert spectral_norm(matrix) == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-9)
    assert spectral_norm(-np.eye(2)) == 1


def model(n=40, d=3, scale=1.0, norm=(0.5, 0.4, 0.1)):
    x = draw_inputs("gaussian", np.ones(d), n, 0)
    y = np.linalg.norm(x, axis=1) + x[:, 0]
    features = LinearFeatures(0.8 * scale, 0.2 * scale, tuple(scale * value for value in norm))
    return LinearModel(features, x, y), x, y


@pytest.mark.parametrize(("n", "d"), [(40, 3), (4, 6)])  # more and fewer samples than features
def test_closed_form_of_descent_is_that_of_a_plain_loop(n, d):
    linear, x, y = model(n, d)
    psi = linear.features(x)
    weights = np.zeros(psi.shape[1])
    for step in range(51):
        if step in (0, 1, 7, 50):
            np.testing.assert_allclose(linear.weights_at(step), weights, atol=1e-13)
        weights = weights - psi.T @ (psi @ weights - y) / len(y)
    batches = np.tile(np.arange(len(y)), (9, 1))  # minibatches of the whole set
    np.testing.assert_allclose(
        linear.after_batches(np.zeros(d + 2), batches), linear.weights_at(9), atol=1e-13
    )


def test_descent_converges_to_least_squares():
    for changes in ({}, {"norm": (0.0, 0.0, 0.0)}):
        linear, x, y = model(**changes)
        psi = linear.features(x)
        best = psi @ np.linalg.lstsq(psi, y, rcond=None)[0]
        np.testing.assert_allclose(linear.outputs(linear.optimal_weights()), best, atol=1e-9)
        np.testing.assert_allclose(linear.outputs(linear.weights_at(10**8)), best, atol=1e-6)


def test_descent_diverges_beyond_the_largest_stable_rate():
    linear, _, _ = model()
    for share, grows in ((0.99, False), (1.01, True)):
        scaled, _, _ = model(scale=math.sqrt(2 * share / linear.largest_eigenvalue))
        assert (np.linalg.norm(scaled.weights_at(5000)) > 1e3) == grows


@pytest.mark.parametrize("rates", [(0, 0), (-1, 1), (math.nan, 1)])
def test_rates_without_meaning_are_refused(rates):
    with pytest.raises(InvalidInput, match="learning_rate"):
        two_layer_features(activation_constants("erf"), 10, 1.0, *rates)


def test_every_epoch_sees_every_sample_once():
    order = batch_order(10, 4, 10, seed=3)
    assert order.shape == (10, 4)
    for epoch in order.reshape(4, 10):
        assert sorted(epoch) == list(range(10))
    np.testing.assert_array_equal(order[:5], batch_order(10, 4, 5, seed=3))


def test_input_sizes_are_those_of_all_pairs():
    x = np.random.default_rng(3).standard_normal((1007, 5))
    products = x @ x.T
    norms = np.diag(products)
    found = input_sizes(x)
    assert found.norms == pytest.approx(np.abs(norms / 5 - 1).max(), rel=1e-12)
    apart = products - np.diag(norms)
    assert found.products == pytest.approx(np.abs(apart).max() / 5, rel=1e-12)
    assert found.matrix == pytest.approx(np.linalg.norm(products, 2) / 1007, rel=1e-12)
