"""A network and its linear model, trained side by side: identities in float64 against plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ntk_core import InvalidInput, Optimizer, departure, empirical_ntk, kernel_change, linearize, train
from ntk_core.architectures import ConvNet, DenseNet, FullyConnected, Mirrored, merge
from ntk_core.dynamics import Loss, Training
from ntk_core.fits import fit_power_law

NET = FullyConnected(width=9, depth=1, num_outputs=2, activation="tanh", use_bias=True)
KEY = jax.random.key(3)
OPTIMIZERS = {
    "gradient-descent": (Optimizer(), lambda rate: optax.sgd(rate)),
    "sgd": (Optimizer("sgd", batch_size=3), lambda rate: optax.sgd(rate)),
    "momentum": (Optimizer("momentum", momentum=0.8), lambda rate: optax.sgd(rate, momentum=0.8)),
    "momentum-sgd": (Optimizer("momentum", 0.5, batch_size=2), lambda rate: optax.sgd(rate, momentum=0.5)),
    "adam": (Optimizer("adam"), lambda rate: optax.adam(rate)),
    "adam-sgd": (Optimizer("adam", batch_size=4), lambda rate: optax.adam(rate)),
}


def problem(net=NET, n=8, num_test=3, d=3):
    params = net.init(jax.random.key(0), (d,))
    x = jax.random.normal(jax.random.key(1), (n + num_test, d))
    y = jax.nn.one_hot(np.arange(n + num_test) % net.num_outputs, net.num_outputs)
    return params, x[:n], y[:n], x[n:], y[n:]


def batches(batch_size, n, steps):
    """The rows of each step: a permutation an epoch, of the order of the epoch before; an incomplete batch is left."""
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
    *(("weights", name) for name in ("sgd", "momentum", "adam-sgd")),
    *(("kernel", name) for name in ("gradient-descent", "momentum", "momentum-sgd")),
]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("route", "name"), ROUTES, ids="-".join)
def test_every_optimizer_takes_the_steps_of_a_plain_optax_loop(route, name):
    optimizer, transformation = OPTIMIZERS[name]
    params, x, y, x_test, y_test = problem()
    history = train(
        NET, params, x, y, optimizer=optimizer, learning_rate=0.1, max_steps=7, num_records=3, x_test=x_test,
        y_test=y_test, key=KEY, kernels=False, linearized=route != "network",
        linear_route="auto" if route == "network" else route,
    )  # fmt: skip
    apply = NET.apply if route == "network" else linearize(NET, params)
    rows = batches(optimizer.batch_size, len(x), 7)
    last = plain_loop(apply, params, Loss("linear"), x, y, transformation(0.1), rows)
    path = history.network if route == "network" else history.linearized
    np.testing.assert_allclose(path.outputs[-1], apply(last, x), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(path.test_outputs[-1], apply(last, x_test), rtol=1e-9, atol=1e-11)
    moved = np.concatenate(
        [np.ravel(a - b) for a, b in zip(jax.tree.leaves(last), jax.tree.leaves(params), strict=True)]
    )
    assert path.distance[-1] == pytest.approx(np.linalg.norm(moved), rel=1e-7)
    assert path.largest_distance[-1] == pytest.approx(np.abs(moved).max(), rel=1e-7)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("output", "kind"),
    [("linear", "logistic"), ("softmax", "cross-entropy"), ("softmax", "square"), ("swish", "square")],
)
def test_both_routes_of_the_linear_model_agree_for_every_loss(output, kind):
    net = FullyConnected(width=9, depth=2, num_outputs=2, activation="erf", output=output)
    params, x, y, x_test, y_test = problem(net)
    y, y_test = (2 * y - 1, 2 * y_test - 1) if kind == "logistic" else (y, y_test)
    by = {
        route: train(
            net, params, x, y, loss=kind, learning_rate=0.3, max_steps=50, num_records=5, x_test=x_test, y_test=y_test,
            linear_route=route, kernels=False,
        ).linearized
        for route in ("kernel", "weights")
    }  # fmt: skip
    for name in ("outputs", "test_outputs", "loss", "test_loss", "accuracy", "distance", "largest_distance"):
        np.testing.assert_allclose(getattr(by["kernel"], name), getattr(by["weights"], name), rtol=1e-8, atol=1e-10)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("optimizer", ["gradient-descent", "adam"])
def test_a_model_linear_in_its_weights_never_leaves_its_linear_model(optimizer):
    net = FullyConnected(width=9, num_outputs=2, activation="tanh", trained="last")
    params, x, y, x_test, y_test = problem(net)
    history = train(
        net, params, x, y, optimizer=optimizer, learning_rate=0.2, max_steps=60, x_test=x_test, y_test=y_test
    )
    assert history.network.loss[-1] < 0.9 * history.network.loss[0]  # it was trained
    assert history.difference.relative.max() < 1e-20
    assert history.test_difference.mean_square.max() < 1e-20
    assert history.kernel.sup_change < 1e-12


@pytest.mark.usefixtures("x64")
def test_records_are_what_the_definitions_say():
    net = FullyConnected(width=9, num_outputs=2, activation="tanh", output="swish", use_bias=True)
    params, x, y, x_test, y_test = problem(net)
    settings = {"learning_rate": 0.2, "x_test": x_test, "y_test": y_test, "followed": (5, 0), "followed_test": (1,)}
    history = train(net, params, x, y, max_steps=6, num_records=6, **settings)
    assert history.steps.tolist() == [0, 1, 2, 3, 4, 6]
    np.testing.assert_allclose(history.times, 0.2 * history.steps)
    loss, path = Loss("swish"), history.network
    rows = batches(None, len(x), 6)
    last = plain_loop(net.pre_outputs, params, loss, x, y, optax.sgd(0.2), rows)
    np.testing.assert_allclose(path.outputs[-1], net.apply(last, x)[jnp.array([5, 0])], rtol=1e-9)
    np.testing.assert_allclose(path.test_outputs[-1], net.apply(last, x_test)[1:2], rtol=1e-9)
    assert path.loss[-1] == pytest.approx(float(loss(net.pre_outputs(last, x), y)), rel=1e-9)
    assert path.test_loss[-1] == pytest.approx(float(loss(net.pre_outputs(last, x_test), y_test)), rel=1e-9)
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
    layers = {name: empirical_ntk(net, last, x, per_layer=True)[name] for name in net.layers}
    for name, part in empirical_ntk(net, params, x, per_layer=True).items():
        expected = jnp.linalg.norm((layers[name] - part).ravel()) / jnp.linalg.norm(first.ravel())
        assert kernel.layer_change[name][-1] == pytest.approx(float(expected), rel=1e-6)

    linear = history.linearized
    gap = np.asarray(net.apply(last, x)) - np.asarray(
        linearize(net, params)(plain_loop(linearize(net, params), params, Loss("linear"), x, y, optax.sgd(0.2),
                                          batches(None, len(x), 6)), x)
    )  # fmt: skip
    assert history.difference.mean_square[-1] == pytest.approx((gap**2).sum(1).mean(), rel=1e-6)
    assert linear.outcome == path.outcome == "finished"


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "net",
    [
        FullyConnected(width=20, num_outputs=2, activation="relu", use_bias=True),  # both layouts of training
        FullyConnected(width=32, num_outputs=2, activation="tanh", use_bias=True, symmetric=True),
        Mirrored(FullyConnected(width=24, depth=2, num_outputs=2, activation="erf", use_bias=True)),
        DenseNet(width=24, depth=2, num_outputs=2, activation="erf", drop_probability=0.4, use_bias=True),
        FullyConnected(width=24, num_outputs=2, activation="tanh", trained="first", parameterization="standard"),
        FullyConnected(width=24, num_outputs=2, activation="tanh", use_bias=True, parameterization="lecun"),
    ],
    ids=lambda net: f"{type(net).__name__}-{getattr(net, 'trained', '')}-{getattr(net, 'parameterization', '')}",
)
def test_steps_in_the_layout_of_training_are_those_of_the_plain_gradient(net):
    params = net.init(jax.random.key(0), (2,))
    x = jax.random.normal(jax.random.key(1), (6, 2))
    y = jax.nn.one_hot(np.arange(6) % 2, 2)
    trained, fixed = net.partition(params)
    plain = plain_loop(
        lambda w, x: net.pre_outputs(merge(w, fixed), x), trained, Loss("linear"), x, y, optax.sgd(0.3),
        batches(None, 6, 5),
    )  # fmt: skip
    history = train(net, params, x, y, learning_rate=0.3, max_steps=5, num_records=2, linearized=False, kernels=False)
    np.testing.assert_allclose(history.network.outputs[-1], net.apply(merge(plain, fixed), x), rtol=1e-9, atol=1e-12)
    assert history.linearized is history.kernel is history.difference is None


@pytest.mark.usefixtures("x64")
def test_a_callable_trains_like_the_network_that_it_is():
    params, x, y, x_test, y_test = problem()
    settings = {"learning_rate": 0.2, "max_steps": 9, "x_test": x_test, "y_test": y_test}
    ours = train(NET, params, x, y, **settings)
    theirs = train(lambda w, x: NET.apply(w, x), {**params, "count": 3}, x, y, **settings)
    np.testing.assert_allclose(theirs.network.outputs, ours.network.outputs, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(theirs.linearized.test_outputs, ours.linearized.test_outputs, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(theirs.kernel.change, ours.kernel.change, rtol=1e-6, atol=1e-12)
    assert theirs.kernel.layer_change == {}


@pytest.mark.usefixtures("x64")
def test_the_network_approaches_its_linear_model_at_least_as_fast_as_the_inverse_root_of_the_width():
    widths, seeds = (64, 256, 1024), range(3)
    x = jax.random.normal(jax.random.key(1), (10, 3))
    y = jax.nn.one_hot(np.arange(10) % 2, 2)
    found_widths, gaps = [], []
    for width in widths:
        net = FullyConnected(width=width, num_outputs=2, activation="tanh", use_bias=True)
        for seed in seeds:
            history = train(
                net, net.init(jax.random.key(seed), (3,)), x, y, learning_rate=0.5, max_steps=200, num_records=4,
                kernels=False,
            )  # fmt: skip
            assert history.network.loss[-1] < 0.5 * history.network.loss[0]
            found_widths.append(width)
            gaps.append(np.sqrt(history.difference.mean_square).max())
    law = fit_power_law(found_widths, gaps)
    assert law.exponent + law.interval < -0.5


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("optimizer", [Optimizer(), Optimizer("momentum", momentum=0.5)], ids=lambda each: each.name)
def test_the_stable_rate_separates_divergence_from_convergence(optimizer):
    net = FullyConnected(width=300, num_outputs=2, activation="tanh", trained="last")
    params, x, y, _, _ = problem(net)
    settings = {"optimizer": optimizer, "max_steps": 3000, "num_records": 5, "kernels": False}
    stable = train(net, params, x, y, learning_rate=1e-3, **settings | {"max_steps": 1}).stable_rate
    below = train(net, params, x, y, learning_rate=0.99 * stable, **settings)
    assert below.network.outcome == below.linearized.outcome == "finished"
    above = train(net, params, x, y, learning_rate=1.1 * stable, **settings)
    assert above.network.outcome == above.linearized.outcome == "diverged"


def test_a_divergence_ends_as_a_typed_outcome_with_the_last_finite_step():
    params, x, y, _, _ = problem()
    history = train(NET, params, x, y, learning_rate=1e6, max_steps=1000, num_records=30)
    for path in (history.network, history.linearized):
        assert path.outcome == "diverged"
        finite = np.isfinite(path.loss)
        # The recorded steps agree with the step that is named: finite up to it, not finite after it.
        assert finite.tolist() == (history.steps <= path.last_finite_step).tolist()
        assert not finite[-1]
        assert np.isnan(path.outputs[-1]).all()
    assert 0 < history.stable_rate < 1e6
    assert history.steps[-1] < 1000  # nothing is trained once everything has diverged
    stable = train(NET, params, x, y, learning_rate=0.5 * history.stable_rate, max_steps=100, num_records=3)
    assert stable.linearized.outcome == "finished"


def test_training_stops_at_the_threshold_and_where_it_is_asked_to():
    params, x, y, _, _ = problem()
    history = train(NET, params, x, y, learning_rate=0.5, max_steps=100_000, loss_threshold=0.15, kernels=False)
    assert history.network.outcome == history.linearized.outcome == "converged"
    assert history.network.loss[-1] <= 0.15 < history.network.loss[0]
    assert history.steps[-1] < 100_000
    missed = train(NET, params, x, y, learning_rate=0.5, max_steps=2, loss_threshold=1e-6, kernels=False)
    assert missed.network.outcome == "over-budget"

    training = Training(NET, params, x, y, max_steps=10**7, kernels=False)
    reached = next(step for step in training.stretches() if step > 50)
    assert training.history().steps[-1] <= reached < 10**7


@pytest.mark.usefixtures("x64")
def test_the_infinite_width_prediction_is_approached_by_wide_networks():
    x = jax.random.normal(jax.random.key(1), (8, 3))
    y = jax.nn.one_hot(np.arange(8) % 2, 2)
    apart = []
    for width in (100, 10_000):
        net = FullyConnected(width=width, num_outputs=2, activation="erf", use_bias=True)
        history = train(
            net, net.init(jax.random.key(0), (3,)), x[:6], y[:6], learning_rate=0.3, max_steps=50, x_test=x[6:],
            y_test=y[6:], infinite_width=True, kernels=False,
        )  # fmt: skip
        np.testing.assert_allclose(history.infinite.outputs[0], history.network.outputs[0])
        apart.append(np.abs(history.infinite.test_outputs[-1] - history.network.test_outputs[-1]).max())
        assert np.isnan(history.infinite.largest_distance).all()
    assert apart[1] < apart[0] / 4  # a hundred times as wide: a tenth is expected
    with pytest.raises(InvalidInput, match="infinite_width"):
        train(NET, *problem()[:3], optimizer="adam", infinite_width=True)


@pytest.mark.usefixtures("x64")
def test_the_first_step_of_adam_at_its_own_rate_moves_outputs_by_the_stated_amount():
    params, x, y, _, _ = problem()
    history = train(NET, params, x, y, optimizer="adam", max_steps=1, num_records=2, kernels=False)
    moved = np.abs(np.diff(history.linearized.outputs, axis=0)).max()
    assert 0.005 < moved <= 0.05 + 1e-9
    assert history.stable_rate is None


def test_convolutions_train_beside_their_linear_model():
    net = ConvNet(width=4, depth=1, num_outputs=2, activation="tanh")
    x = jax.random.normal(jax.random.key(1), (4, 4, 4, 1))
    y = jax.nn.one_hot(np.arange(4) % 2, 2)
    history = train(net, net.init(jax.random.key(0), (4, 4, 1)), x, y, learning_rate=0.1, max_steps=5, num_records=3)
    assert 0 < history.difference.relative[-1] < 0.1
    assert set(history.kernel.layer_change) == set(net.layers)


def test_accuracy_is_of_classes_only():
    params, x, _, _, _ = problem(FullyConnected(width=4, num_outputs=1))
    net = FullyConnected(width=4, num_outputs=1)
    signs = np.where(np.arange(8)[:, None] % 2, 1.0, -1.0)
    settings = {"max_steps": 1, "learning_rate": 0.01, "kernels": False, "linearized": False}
    path = train(net, params, x, signs, loss="logistic", **settings).network
    expected = np.mean((np.asarray(net.apply(params, x)) > 0) == (signs > 0))
    assert path.accuracy[0] == pytest.approx(expected)
    assert np.isnan(train(net, params, x, 0.3 * signs, **settings).network.accuracy).all()


@pytest.mark.parametrize(
    ("values", "index"), [([0, 1, 0, 2, 3], 3), ([0, 0, 0.5], None), ([2, 3], 0), ([0, np.nan], 1), ([], None)]
)
def test_the_departure_is_where_a_difference_rises_for_good(values, index):
    assert departure(values, 0.5) == index


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"optimizer": "lbfgs"}, "optimizer"),
        ({"optimizer": "sgd"}, "batch_size"),
        ({"loss": "hinge"}, "loss"),
        ({"max_steps": 0}, "max_steps"),
        ({"followed": (8,)}, "followed"),
        ({"linear_route": "magic"}, "linear_route"),
        ({"optimizer": "adam", "linear_route": "kernel"}, "linear_route"),
    ],
)
def test_settings_that_cannot_be_used_are_named(settings, field):
    params, x, y, _, _ = problem()
    with pytest.raises(InvalidInput) as caught:
        train(NET, params, x, y, kernels=False, **{"learning_rate": 0.1, **settings})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"momentum": 1.0}, "momentum"),
        ({"name": "gradient-descent", "batch_size": 3}, "batch_size"),
        ({"name": "adam", "batch_size": 0}, "batch_size"),
    ],
)
def test_optimizers_that_do_not_exist_are_named(settings, field):
    with pytest.raises(InvalidInput) as caught:
        Optimizer(**settings)
    assert caught.value.field == field


def test_batches_and_points_must_fit():
    params, x, y, _, _ = problem()
    with pytest.raises(InvalidInput, match="batch_size"):
        train(NET, params, x, y, optimizer=Optimizer("sgd", batch_size=9))
    with pytest.raises(InvalidInput, match="y: shape"):
        train(NET, params, x, y[:4])
    with pytest.raises(InvalidInput, match="x_test"):
        train(NET, params, x, y, x_test=x[:, :2], y_test=y)
