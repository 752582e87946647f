"""Inputs, targets and training from a zero function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.experiments.early_time.inputs import image_pair, synthetic_data
from ntk_core.dynamics import TrainOptions, descend
from ntk_core.early_time import (
    InputSpan,
    batch_order,
    covariance_spectrum,
    draw_inputs,
    early_start,
    layer_rates,
    outputs_in_blocks,
    standardized_images,
    weighted_kernel,
)
from ntk_core.errors import InvalidInput
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import ConvNet, FullyConnected, Mirrored, merge

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)


@pytest.mark.parametrize("entries", ["gaussian", "rademacher", "uniform"])
def test_inputs_have_the_stated_covariance(entries):
    spectrum = covariance_spectrum((0.5, 1.5), 4)
    x = draw_inputs(entries, spectrum, 20_000, 1)
    # Standard errors: at most 1.5 √(2/n) = 1.5 % of each entry; four of them.
    np.testing.assert_allclose(np.cov(x.T), np.diag(spectrum), atol=0.06)
    np.testing.assert_array_equal(draw_inputs(entries, spectrum, 7, 1), x[:7])
    if entries == "rademacher":
        np.testing.assert_allclose(np.unique(np.abs(x)), np.sqrt([0.5, 1.5]), rtol=1e-6)


@pytest.mark.parametrize("target", ["teacher", "norm", "sign", "linear"])
def test_targets_are_functions_of_the_inputs(target):
    data = synthetic_data("gaussian", np.ones(6), target, num_samples=50, num_test=20, seed=0)
    more = synthetic_data("gaussian", np.ones(6), target, num_samples=80, num_test=20, seed=0)
    # The last bit of float32 products depends on the size.
    np.testing.assert_allclose(data.y, more.y[:50], rtol=1e-5)
    assert data.y.shape == (50, 1)
    if target == "norm":
        np.testing.assert_allclose(
            data.y[:, 0], np.linalg.norm(data.x, axis=1) / np.sqrt(6), rtol=1e-6
        )
    if target == "sign":
        assert set(np.unique(data.y)) == {-1.0, 1.0}
    if target == "linear":
        assert np.linalg.lstsq(data.x, data.y[:, 0], rcond=None)[1] < 1e-6


def test_unknown_laws_targets_and_sets_are_refused():
    with pytest.raises(InvalidInput, match="entries"):
        draw_inputs("cauchy", np.ones(2), 3, 0)
    with pytest.raises(InvalidInput, match="target"):
        synthetic_data("gaussian", np.ones(2), "parity", num_samples=3, num_test=0, seed=0)
    with pytest.raises(InvalidInput, match="name"):
        image_pair("imagenet")
    for spectrum in ((1.0, -1.0), (1.0, 2.0, 3.0)):
        with pytest.raises(InvalidInput, match="spectrum"):
            covariance_spectrum(spectrum, 2)


def test_images_have_mean_zero_and_variance_one_each():
    data = image_pair("cifar2", num_samples=60, num_test=10)
    flat = data.x.reshape(60, -1).astype(np.float64)
    assert flat.shape[1] == 192
    np.testing.assert_allclose(flat.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(flat.std(axis=1), 1, rtol=1e-5)
    assert set(np.unique(data.y)) == {-1.0, 1.0}
    assert not standardized_images(np.ones((1, 2, 2, 1))).any()


def test_mean_zero_images_span_one_direction_less():
    images = standardized_images(np.random.default_rng(0).random((40, 3, 3, 1)))
    span = InputSpan(images)
    assert span.dimension == 8
    inside, outside = span.split(images.reshape(40, -1) @ np.arange(9))
    assert outside < 1e-10 * inside  # float32 inputs, squared
    residual = np.random.default_rng(1).standard_normal(40)
    assert sum(span.split(residual)) == pytest.approx(np.mean(residual**2) / 2)


def problem(net, input_shape, n=12):
    x = np.random.default_rng(0).standard_normal((n, *input_shape))
    y = np.random.default_rng(1).standard_normal(n)
    return net.init(jax.random.key(0), input_shape), x, y


SMALL = {"depth": 2, "use_bias": False}
NETS = {
    "symmetric": (
        FullyConnected(
            width=8, activation="erf", symmetric=True, output_signs=True, use_bias=False
        ),
        (3,),
    ),
    "subtracted": (
        FullyConnected(width=5, activation="softplus", **SMALL),
        (3,),
    ),  # of the initial outputs
    "mirrored": (Mirrored(FullyConnected(width=4, activation="tanh", **SMALL)), (3,)),
    "convnet": (ConvNet(width=3, activation="erf", **SMALL), (4, 4, 1)),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("net", "input_shape"), NETS.values(), ids=NETS)
@pytest.mark.parametrize("batch_size", [None, 5])
def test_training_is_that_of_a_plain_loop_with_a_rate_a_layer(net, input_shape, batch_size):
    params, x, y = problem(net, input_shape)
    batches = None if batch_size is None else batch_order(len(x), batch_size, 5, 0)
    options = TrainOptions(
        learning_rate=layer_rates(params, 0.2, 0.05),
        recorded_steps=(2, 5),
        batches=None if batches is None else jnp.asarray(batches),
    )
    descent = descend(*early_start(net, params, x, y), options)["network"]

    f0 = net.apply(params, x)[:, 0]

    def loss(w, rows):
        error = net.apply(w, jnp.asarray(x)[rows])[:, 0] - f0[rows] - jnp.asarray(y)[rows]
        return (error**2).sum() / (2 * len(rows))

    w, slope = params, jax.jit(jax.grad(loss))
    for step in range(5):
        gradient = slope(w, np.arange(len(x)) if batches is None else batches[step])
        rates = {name: 0.05 if name.endswith("output") else 0.2 for name in w}
        w = {
            name: jax.tree.map(lambda a, g, r=rates[name]: a - r * g, w[name], gradient[name])
            for name in w
        }
    found = merge(descent.trained, descent.fixed)
    np.testing.assert_allclose(outputs_in_blocks(net, found, x), net.apply(w, x)[:, 0], atol=1e-12)
    assert descent.steps.tolist() == [5]


@pytest.mark.usefixtures("x64")
def test_weighted_kernel_is_the_sum_of_the_layers_kernels():
    net = FullyConnected(width=6, depth=2, activation="tanh", use_bias=False)
    params, x, _ = problem(net, (3,), n=5)
    both = np.asarray(empirical_ntk(net, params, x))[:, :, 0, 0]
    np.testing.assert_allclose(weighted_kernel(net, params, x, 1.0, 1.0), both, rtol=1e-12)
    hidden, last = (
        weighted_kernel(net, params, x, 1.0, 0.0),
        weighted_kernel(net, params, x, 0.0, 1.0),
    )
    np.testing.assert_allclose(
        weighted_kernel(net, params, x, 0.5, 2.0), 0.5 * hidden + 2 * last, rtol=1e-12
    )
