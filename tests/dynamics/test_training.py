"""Simultaneous training of a network and its linear model, against plain loops in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ntk_core import Optimizer, empirical_ntk, kernel_change, linearize, train
from ntk_core.dynamics import Loss
from ntk_core.dynamics.choices import METHODS, Method
from ntk_core.networks.architectures import DenseNet, FullyConnected, Mirrored, merge
from tests.dynamics.problems import NET, problem

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

KEY = jax.random.key(3)
OPTIMIZERS = {
    "gradient-descent": (Optimizer(), lambda rate: optax.sgd(rate)),
    "sgd": (Optimizer("sgd", batch_size=3), lambda rate: optax.sgd(rate)),
    "momentum": (Optimizer("momentum", momentum=0.8), lambda rate: optax.sgd(rate, momentum=0.8)),
    "momentum-sgd": (
        Optimizer("momentum", 0.5, batch_size=2),
        lambda rate: optax.sgd(rate, momentum=0.5),
    ),
    "adam-sgd": (Optimizer("adam", batch_size=4), lambda rate: optax.adam(rate)),
}


def batches(batch_size, n, steps):
    """Rows of each step: per epoch,
    permute the previous epoch's order and drop an incomplete batch.
    """
    order = jnp.arange(n, dtype=jnp.int32)
    for step in range(steps):
        if batch_size is None:
            yield jnp.arange(n)
            continue
        epoch, position = divmod(step, n // batch_size)
        if position == 0:
            order = jax.random.permutation(jax.random.fold_in(KEY, epoch), order)
        yield order[position * batch_size : (position + 1) * batch_size]


def plain_loop(apply, params, loss, x, y, transformation, rows_of_steps):
    @jax.jit
    def step(params, memory, rows):
        gradient = jax.grad(lambda w: loss(apply(w, x[rows]), y[rows]))(params)
        updates, memory = transformation.update(gradient, memory, params)
        return optax.apply_updates(params, updates), memory

    memory = transformation.init(params)
    for rows in rows_of_steps:
        params, memory = step(params, memory, rows)
    return params


ROUTES = [
    *(("network", name) for name in OPTIMIZERS),
    *(("weights", name) for name in ("momentum", "adam-sgd")),
    *(("kernel", name) for name in ("gradient-descent", "momentum-sgd")),
]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("route", "name"), ROUTES)
def test_every_optimizer_takes_the_steps_of_a_plain_optax_loop(route, name):
    optimizer, transformation = OPTIMIZERS[name]
    params, x, y, x_test, y_test = problem()
    history = train(
        NET,
        params,
        x,
        y,
        optimizer=optimizer,
        learning_rate=0.1,
        max_steps=7,
        num_records=3,
        x_test=x_test,
        y_test=y_test,
        key=KEY,
        kernels=False,
        linearized=route != "network",
        linear_route="auto" if route == "network" else route,
    )
    apply = NET.apply if route == "network" else linearize(NET, params)
    rows = batches(optimizer.batch_size, len(x), 7)
    last = plain_loop(apply, params, Loss("linear"), x, y, transformation(0.1), rows)
    path = history.network if route == "network" else history.linearized
    np.testing.assert_allclose(path.outputs[-1], apply(last, x), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(path.test_outputs[-1], apply(last, x_test), rtol=1e-9, atol=1e-11)
    moved = np.concatenate(
        [
            np.ravel(a - b)
            for a, b in zip(jax.tree.leaves(last), jax.tree.leaves(params), strict=True)
        ]
    )
    assert path.distance[-1] == pytest.approx(np.linalg.norm(moved), rel=1e-7)
    assert path.largest_distance[-1] == pytest.approx(np.abs(moved).max(), rel=1e-7)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("linear", "logistic"),
        ("softmax", "cross-entropy"),
        pytest.param("swish", "square", marks=pytest.mark.slow),
    ],
)
def test_both_routes_of_the_linear_model_agree_for_every_loss(output, kind):
    net = FullyConnected(
        width=9, depth=2, num_outputs=2, activation="erf", output=output, use_bias=False
    )
    params, x, y, x_test, y_test = problem(net)
    y, y_test = (2 * y - 1, 2 * y_test - 1) if kind == "logistic" else (y, y_test)
    by = {
        route: train(
            net,
            params,
            x,
            y,
            loss=kind,
            learning_rate=0.3,
            max_steps=50,
            num_records=5,
            x_test=x_test,
            y_test=y_test,
            linear_route=route,
            kernels=False,
        ).linearized
        for route in ("kernel", "weights")
    }
    for name in (
        "outputs",
        "test_outputs",
        "loss",
        "test_loss",
        "distance",
        "largest_distance",
        "gradient_norm",
    ):
        np.testing.assert_allclose(
            getattr(by["kernel"], name), getattr(by["weights"], name), rtol=1e-8, atol=1e-10
        )


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("optimizer", ["gradient-descent", "adam"])
def test_model_linear_in_its_weights_equals_its_linear_model(optimizer):
    net = FullyConnected(width=9, num_outputs=2, activation="tanh", trained="last", use_bias=False)
    params, x, y, x_test, y_test = problem(net)
    history = train(
        net,
        params,
        x,
        y,
        optimizer=optimizer,
        learning_rate=0.2,
        max_steps=60,
        x_test=x_test,
        y_test=y_test,
    )
    assert history.network.loss[-1] < 0.9 * history.network.loss[0]  # it was trained
    assert history.difference.relative.max() < 1e-20
    assert history.test_difference.mean_square.max() < 1e-20
    assert history.kernel.sup_change < 1e-12


@pytest.mark.usefixtures("x64")
def test_records_are_what_the_definitions_say():
    net = FullyConnected(width=9, num_outputs=2, activation="tanh", output="swish", use_bias=True)
    params, x, y, x_test, y_test = problem(net)
    settings = {
        "learning_rate": 0.2,
        "x_test": x_test,
        "y_test": y_test,
        "followed": (5, 0),
        "followed_test": (1,),
    }
    history = train(net, params, x, y, max_steps=6, num_records=6, **settings)
    assert history.steps.tolist() == [0, 1, 2, 3, 4, 6]
    np.testing.assert_allclose(history.times, 0.2 * history.steps)
    loss, path = Loss("swish"), history.network
    rows = batches(None, len(x), 6)
    last = plain_loop(net.pre_outputs, params, loss, x, y, optax.sgd(0.2), rows)
    np.testing.assert_allclose(path.outputs[-1], net.apply(last, x)[jnp.array([5, 0])], rtol=1e-9)
    np.testing.assert_allclose(path.test_outputs[-1], net.apply(last, x_test)[1:2], rtol=1e-9)
    assert path.loss[-1] == pytest.approx(float(loss(net.pre_outputs(last, x), y)), rel=1e-9)
    assert path.test_loss[-1] == pytest.approx(
        float(loss(net.pre_outputs(last, x_test), y_test)), rel=1e-9
    )
    right = np.argmax(net.apply(last, x), 1) == np.argmax(y, 1)
    assert path.accuracy[-1] == right.mean()
    assert (path.distance[0], path.largest_distance[0]) == (0, 0)

    first, now = empirical_ntk(net, params, x), empirical_ntk(net, last, x)
    kernel = history.kernel
    assert kernel.change[-1] == pytest.approx(float(kernel_change(now, first)), rel=1e-6)
    assert kernel.sup_change == kernel.change.max()
    values = np.linalg.eigvalsh(np.asarray(now).transpose(0, 2, 1, 3).reshape(16, 16))
    assert kernel.largest[-1] == pytest.approx(values[-1], rel=1e-8)
    assert kernel.smallest[-1] == pytest.approx(values[0], rel=1e-4)
    assert kernel.condition[-1] == pytest.approx(values[-1] / values[0], rel=1e-4)
    pre_kernel = (
        np.asarray(empirical_ntk(net.with_output("linear"), last, x))
        .transpose(0, 2, 1, 3)
        .reshape(16, 16)
    )
    assert kernel.pre_output_smallest[-1] == pytest.approx(
        np.linalg.eigvalsh(pre_kernel)[0], rel=1e-4
    )
    gradient = jax.grad(lambda w: loss(net.pre_outputs(w, x), y))(last)
    norm = np.sqrt(sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(gradient)))
    assert path.gradient_norm[-1] == pytest.approx(norm, rel=1e-9)
    # PL*: the kernel bounds the gradient from below, ‖∇L‖² ≥ 2 (λ_min / n) L.
    np.testing.assert_allclose(path.pl_ratio, path.gradient_norm**2 / 2 / path.loss)
    assert (path.pl_ratio >= kernel.smallest / len(x)).all()
    layers = {name: empirical_ntk(net, last, x, per_layer=True)[name] for name in net.layers}
    for name, part in empirical_ntk(net, params, x, per_layer=True).items():
        expected = jnp.linalg.norm((layers[name] - part).ravel()) / jnp.linalg.norm(first.ravel())
        assert kernel.layer_change[name][-1] == pytest.approx(float(expected), rel=1e-6)

    linear = history.linearized
    gap = np.asarray(net.apply(last, x)) - np.asarray(
        linearize(net, params)(
            plain_loop(
                linearize(net, params),
                params,
                Loss("linear"),
                x,
                y,
                optax.sgd(0.2),
                batches(None, len(x), 6),
            ),
            x,
        )
    )
    assert history.difference.mean_square[-1] == pytest.approx((gap**2).sum(1).mean(), rel=1e-6)
    assert linear.outcome == path.outcome == "finished"


@pytest.mark.long_after(2)
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "net",
    [
        FullyConnected(width=32, num_outputs=2, activation="relu", use_bias=True, symmetric=True),
        Mirrored(FullyConnected(width=24, depth=2, num_outputs=2, activation="erf", use_bias=True)),
        DenseNet(
            width=24, depth=2, num_outputs=2, activation="erf", drop_probability=0.4, use_bias=True
        ),
        FullyConnected(
            width=24, num_outputs=2, trained="first", parameterization="standard", use_bias=False
        ),
        FullyConnected(width=24, num_outputs=2, parameterization="lecun"),  # both layouts
    ],
    ids=lambda net: (
        f"{type(net).__name__}-{getattr(net, 'trained', '')}-{getattr(net, 'parameterization', '')}"
    ),
)
def test_training_layout_equals_the_plain_gradient(net):
    params = net.init(jax.random.key(0), (2,))
    x = jax.random.normal(jax.random.key(1), (6, 2))
    y = jax.nn.one_hot(np.arange(6) % 2, 2)
    trained, fixed = net.partition(params)
    plain = plain_loop(
        lambda w, x: net.pre_outputs(merge(w, fixed), x),
        trained,
        Loss("linear"),
        x,
        y,
        optax.sgd(0.3),
        batches(None, 6, 5),
    )
    history = train(
        net,
        params,
        x,
        y,
        learning_rate=0.3,
        max_steps=5,
        num_records=2,
        linearized=False,
        kernels=False,
    )
    np.testing.assert_allclose(
        history.network.outputs[-1], net.apply(merge(plain, fixed), x), rtol=1e-9, atol=1e-12
    )
    assert history.linearized is history.kernel is history.difference is None
    np.testing.assert_allclose(
        net.apply(history.params, x), history.network.outputs[-1], rtol=1e-12, atol=1e-12
    )
    assert jax.tree.structure(history.params) == jax.tree.structure(params)


@pytest.mark.usefixtures("x64")
def test_a_callable_trains_like_the_network_that_it_is():
    params, x, y, x_test, y_test = problem()
    settings = {"learning_rate": 0.2, "max_steps": 9, "x_test": x_test, "y_test": y_test}
    ours = train(NET, params, x, y, **settings)

    def apply(w, x):
        return NET.apply({name: part for name, part in w.items() if name != "count"}, x)

    theirs = train(apply, {**params, "count": 3}, x, y, **settings)
    np.testing.assert_allclose(theirs.network.outputs, ours.network.outputs, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        theirs.linearized.test_outputs, ours.linearized.test_outputs, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(theirs.kernel.change, ours.kernel.change, rtol=1e-6, atol=1e-12)
    assert theirs.kernel.layer_change == {}
    assert theirs.params.pop("count") == 3
    for trained, same in zip(
        jax.tree.leaves(ours.params), jax.tree.leaves(theirs.params), strict=True
    ):
        np.testing.assert_allclose(trained, same, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("linear_route", ["auto", "weights"])
def test_any_optax_transformation_is_scaled_by_the_rate(linear_route):
    params, x, y, _, _ = problem()
    given = optax.chain(optax.clip_by_global_norm(0.1), optax.rmsprop(0.02))
    settings = {"max_steps": 7, "num_records": 3, "kernels": False, "linear_route": linear_route}
    history = train(NET, params, x, y, optimizer=given, **settings)
    assert (history.learning_rate, history.stable_rate) == (1.0, None)
    for apply, path in ((NET.apply, history.network), (linearize(NET, params), history.linearized)):
        last = plain_loop(apply, params, Loss("linear"), x, y, given, batches(None, len(x), 7))
        np.testing.assert_allclose(path.outputs[-1], apply(last, x), rtol=1e-9, atol=1e-11)
    double = train(
        NET, params, x, y, optimizer=Optimizer(optax.sgd(0.05)), learning_rate=2.0, **settings
    )
    plain = train(NET, params, x, y, learning_rate=0.1, **settings)
    np.testing.assert_allclose(double.network.outputs, plain.network.outputs, rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_a_method_is_one_entry(monkeypatch):
    lion = Method(
        "lion",
        "Lion",
        "steps of ±η",
        direction=lambda momentum: optax.scale_by_lion(),
        is_linear=False,
    )
    monkeypatch.setitem(METHODS, "lion", lion)
    params, x, y, _, _ = problem()
    history = train(
        NET,
        params,
        x,
        y,
        optimizer="lion",
        learning_rate=0.01,
        max_steps=5,
        num_records=2,
        kernels=False,
    )
    last = plain_loop(
        NET.apply,
        params,
        Loss("linear"),
        x,
        y,
        optax.lion(0.01, weight_decay=0),
        batches(None, 8, 5),
    )
    np.testing.assert_allclose(
        history.network.outputs[-1], NET.apply(last, x), rtol=1e-9, atol=1e-11
    )
