"""Linear and quadratic models against explicit derivatives, and the recursion of one sample."""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.dynamics import (
    Loss,
    Measure,
    NetworkModel,
    Origin,
    QuadraticModel,
    Samples,
    Start,
    TrainOptions,
    descend,
    linearize,
    one_sample_catapult,
    quadratic_model,
)
from ntk_core.networks.architectures import ConvNet, DenseNet, FullyConnected, merge

pytestmark = [pytest.mark.usefixtures("x64"), pytest.mark.first_cases(1)]

NETWORKS = [
    (
        DenseNet(
            width=5, depth=2, num_outputs=2, activation="tanh", drop_probability=0.4, use_bias=False
        ),
        (3,),
    ),
    (FullyConnected(width=5, activation="relu", output="swish", use_bias=True), (3,)),
    (ConvNet(width=2, depth=1, activation="erf", num_outputs=2, use_bias=False), (3, 3, 1)),
]


def drawn(net, shape):
    """(Trained and fixed parameters, a step of the trained ones, inputs)."""
    trained, fixed = net.partition(net.init(jax.random.key(0), shape))
    keys = iter(jax.random.split(jax.random.key(1), 50))
    step = jax.tree.map(lambda w: jax.random.normal(next(keys), w.shape), trained)
    return trained, fixed, step, jax.random.normal(jax.random.key(2), (4, *shape))


def moved(params, step, size):
    return jax.tree.map(lambda w, d: w + size * d, params, step)


@pytest.mark.slow
@pytest.mark.parametrize(("net", "shape"), NETWORKS, ids=lambda each: type(each).__name__)
def test_models_are_the_expansions_by_explicit_derivatives(net, shape):
    trained, fixed, step, x = drawn(net, shape)
    flat, restore = jax.flatten_util.ravel_pytree(trained)
    delta = 0.3 * jax.flatten_util.ravel_pytree(step)[0]

    def f(w):
        return net.apply(merge(restore(w), fixed), x)

    @jax.jit
    def expansions(w):
        linear = f(w) + jax.jacobian(f)(w) @ delta
        return linear, linear + 0.5 * (jax.hessian(f)(w) @ delta) @ delta

    params, after = merge(trained, fixed), merge(moved(trained, step, 0.3), fixed)
    for model, expected in zip((linearize, quadratic_model), expansions(flat), strict=True):
        np.testing.assert_allclose(model(net, params)(after, x), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("net", "shape"), NETWORKS[:2], ids=lambda each: type(each).__name__)
def test_the_gradient_of_its_training_is_that_of_its_loss(net, shape):
    trained, fixed, step, x = drawn(net, shape)
    y = jax.random.normal(jax.random.key(3), net.apply(merge(trained, fixed), x).shape)
    model = QuadraticModel(NetworkModel(net, Loss(net.output, "square")))
    origin, now = Origin(trained, fixed), moved(trained, step, 0.2)
    loss, gradient = model.loss_and_gradient(origin, x, y)(now, None)
    expected, by_reverse = jax.value_and_grad(
        lambda w: 0.5 * jnp.mean(jnp.sum((model.outputs(w, origin, x) - y) ** 2, axis=-1))
    )(now)
    assert loss == pytest.approx(float(expected), rel=1e-12)
    for ours, theirs in zip(jax.tree.leaves(gradient), jax.tree.leaves(by_reverse), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rate", [1.5, 3.5])
def test_one_sample_is_the_recursion_of_the_plane(rate):
    width, dim, target = 60, 7, 0.8
    net = FullyConnected(width=width, activation="relu", use_bias=False)
    params = net.init(jax.random.key(4), (dim,))
    x, y = jax.random.normal(jax.random.key(5), (1, dim)), jnp.full((1, 1), target)
    model, (trained, fixed) = NetworkModel(net, Loss("linear")), net.partition(params)
    curvature = sum(
        float(jnp.sum(g**2))
        for g in jax.tree.leaves(jax.grad(lambda p: net.apply(p, x)[0, 0])(params))
    )
    eta = rate / curvature
    start = Start(jax.tree.map(jnp.copy, trained), Origin(trained, fixed))
    gain = float(net.apply(params, x)[0, 0]) - target
    factor = float(jnp.sum(x**2)) * eta**2 / (width * dim) * _relu_gain(net, params, x, width, dim)
    expected = one_sample_catapult(factor * gain**2, rate, factor * gain * target, 8)
    residuals = Residuals(target)
    options = TrainOptions(learning_rate=eta, recorded_steps=tuple(range(1, 9)))
    descend(
        {"quadratic": QuadraticModel(model)},
        {"quadratic": start},
        Samples(x, y),
        options,
        [residuals],
    )
    np.testing.assert_allclose(factor * np.square(residuals.found), expected.u, rtol=1e-9)


class Residuals(Measure):
    """f − y of the first sample at every step."""

    def __init__(self, target):
        self.target = target
        self.found = []

    def record(self, step, models):
        self.found.append(float(models["quadratic"].outputs[0, 0]) - self.target)


def _relu_gain(net, params, x, width, dim):
    """Squared ratio of this package's f, with its gain, to v·relu(Wx/√d)/√m."""
    hidden, output = params["hidden1"]["weight"], params["output"]["weight"]
    plain = (jnp.maximum(x @ hidden / np.sqrt(dim), 0) @ output / np.sqrt(width))[0, 0]
    return float(net.apply(params, x)[0, 0] / plain) ** 2


def test_gradient_takes_memory_of_few_copies_of_the_weights():
    """10⁵ weights, whose Hessian would take 10⁵ times as much."""
    net, shape = FullyConnected(width=300, depth=2, activation="tanh", use_bias=False), (5,)
    params, _, _, x = drawn(net, shape)

    def loss(moved):
        return jnp.sum(quadratic_model(net, params)(moved, x) ** 2)

    taken = jax.jit(jax.grad(loss)).lower(params).compile().memory_analysis().temp_size_in_bytes
    weights = sum(leaf.nbytes for leaf in jax.tree.leaves(params))
    assert weights > 7e5
    assert taken < 6 * weights
