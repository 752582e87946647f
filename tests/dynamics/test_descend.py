"""One training loop: steps of plain loops, and what measures see."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ntk_core.dynamics import (
    KernelChangeMeasure,
    Loss,
    Measure,
    NetworkModel,
    Optimizer,
    Samples,
    Start,
    TrainOptions,
    compile_steps,
    descend,
    network_of_seeds,
)
from ntk_core.dynamics.choices import LOSSES, METHODS
from ntk_core.errors import InvalidInput
from ntk_core.progress import Progress, Stopped
from tests.dynamics.problems import NET, problem

KEY = jax.random.key(3)
RATE = 0.1
NUM_STEPS = 6
PLAIN = {
    "gradient-descent": optax.sgd(RATE),
    "large-rate": optax.sgd(RATE),
    "beyond-stable": optax.sgd(RATE),
    "sgd": optax.sgd(RATE),
    "momentum": optax.sgd(RATE, momentum=0.9),
    "adam": optax.adam(RATE),
}
# Every method with the square loss, every loss with the default method. Gauss–Newton has
# test_second_order.py.
CASES = [
    *((name, "square") for name, method in METHODS.items() if not method.solves),
    *(("momentum", loss) for loss in LOSSES),
]


def targets(loss):
    return LOSSES[loss].targets_of(problem()[2])


def optimizer_of(method):
    return Optimizer(method, batch_size=3 if METHODS[method].batches == "always" else None)


def plain_loop(method, loss_name, params):
    """w of every step of a Python loop, from gradients of the loss by its definition."""
    x = problem()[1]
    loss = Loss("linear", loss_name)
    batch = optimizer_of(method).batch_size
    gradient = jax.jit(jax.grad(lambda w, x, y: loss(NET.pre_outputs(w, x), y)))
    memory = PLAIN[method].init(params)
    order = jnp.arange(len(x), dtype=jnp.int32)
    found = [params]
    for step in range(NUM_STEPS):
        rows = order
        if batch is not None:
            epoch, position = divmod(step, len(x) // batch)
            if position == 0:
                order = jax.random.permutation(jax.random.fold_in(KEY, epoch), order)
            rows = order[position * batch : (position + 1) * batch]
        slope = gradient(params, x[rows], targets(loss_name)[rows])
        updates, memory = PLAIN[method].update(slope, memory, params)
        params = optax.apply_updates(params, updates)
        found.append(params)
    return found


class Outputs(Measure):
    """Steps, outputs and losses of a model."""

    def __init__(self, name="network"):
        self.name = name
        self.steps, self.outputs, self.losses = [], [], []

    def record(self, step, models):
        self.steps.append(step)
        self.outputs.append(np.asarray(models[self.name].outputs))
        self.losses.append(np.asarray(models[self.name].losses))


def network(loss="square", **options):
    """Arguments of ``descend`` for the network of the problem."""
    params, x, _, _, _ = problem()
    trained, fixed = NET.partition(jax.tree.map(jnp.copy, params))
    model = NetworkModel(NET, Loss("linear", loss))
    chosen = TrainOptions(**{"learning_rate": RATE, "max_steps": NUM_STEPS, "key": KEY, **options})
    data = Samples(x, targets(loss))
    return {"network": model}, {"network": Start(trained, fixed)}, data, chosen


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("method", "loss"), CASES)
def test_steps_are_those_of_a_plain_loop(method, loss):
    params, x, _, _, _ = problem()
    seen = Outputs()
    options = {"optimizer": optimizer_of(method), "num_records": 3}
    descend(*network(loss, **options), [seen])
    path = plain_loop(method, loss, params)
    assert seen.steps == [0, 1, 2, 6]
    for step, outputs, value in zip(seen.steps, seen.outputs, seen.losses, strict=True):
        expected = NET.pre_outputs(path[step], x)
        np.testing.assert_allclose(outputs, expected, rtol=1e-9, atol=1e-12)
        mean = LOSSES[loss].mean(expected, targets(loss))
        np.testing.assert_allclose(value, mean, rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_losses_that_share_their_steps_train_as_alone():
    _, x, y, _, _ = problem()
    rates = np.asarray([0.1])
    options = TrainOptions(learning_rate=rates, max_steps=NUM_STEPS, together=True)
    losses = (Loss("softmax"), Loss("swish"), Loss("linear"))
    for loss in losses:
        ends = []
        for shared in ((), losses):
            params = jax.vmap(lambda seed: NET.init(jax.random.key(seed), (3,)))(jnp.arange(1))
            given = network_of_seeds(NET, params, x, y, loss, losses=shared)
            if shared:
                compile_steps(*given, options)
                params = jax.vmap(lambda seed: NET.init(jax.random.key(seed), (3,)))(jnp.arange(1))
                given = network_of_seeds(NET, params, x, y, loss, losses=shared)
            ends.append(descend(*given, options)["network"])
        alone, among = ends
        assert float(among.losses[0]) == pytest.approx(float(alone.losses[0]), rel=1e-12)
        for one, other in zip(
            jax.tree.leaves(alone.trained), jax.tree.leaves(among.trained), strict=True
        ):
            np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-14)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "method",
    ["momentum", *(pytest.param(name, marks=pytest.mark.slow) for name in ("sgd", "adam"))],
)
def test_seeds_together_are_seeds_alone(method):
    _, x, y, _, _ = problem()
    draws = jax.vmap(lambda seed: NET.init(jax.random.key(seed), (3,)))(jnp.arange(2))
    alone = [jax.tree.map(lambda leaf, seed=seed: leaf[seed], draws) for seed in range(2)]
    rates = np.asarray([0.1, 0.1])
    options = TrainOptions(
        learning_rate=rates,
        optimizer=optimizer_of(method),
        max_steps=NUM_STEPS,
        key=KEY,
        together=True,
    )
    given = network_of_seeds(NET, jax.tree.map(jnp.copy, draws), x, y, Loss("linear"))
    together = descend(*given, options)["network"]
    for seed, params in enumerate(alone):
        last = plain_loop(method, "square", params)[-1]
        expected = NET.pre_outputs(last, x)
        np.testing.assert_allclose(together.outputs[seed], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow  # compiles Jacobians
def test_automatic_rate_of_adam_is_that_of_each_seed():
    _, x, y, _, _ = problem()
    draws = jax.vmap(lambda seed: NET.init(jax.random.key(seed), (3,)))(jnp.arange(2))
    options = TrainOptions(optimizer="adam", max_steps=1, together=True)
    given = network_of_seeds(NET, jax.tree.map(jnp.copy, draws), x, y, Loss("linear"))
    found = descend(*given, options)["network"].learning_rate
    for seed, rate in enumerate(found):
        params = jax.tree.map(lambda leaf, seed=seed: leaf[seed], draws)
        slopes = jax.jacobian(lambda w: NET.apply(w, x))(params)
        sizes = [np.abs(leaf).reshape(len(x), 2, -1).sum(2) for leaf in jax.tree.leaves(slopes)]
        assert rate == pytest.approx(0.05 / np.sum(sizes, axis=0).max(), rel=1e-5)


def test_models_take_the_same_steps_and_measures_see_both():
    models, starts, data, options = network(num_records=2)
    copied = jax.tree.map(jnp.copy, starts["network"].trained)
    both = {**models, "other": models["network"]}
    seen = [Outputs("network"), Outputs("other")]
    descend(both, {**starts, "other": Start(copied, starts["network"].fixed)}, data, options, seen)
    assert seen[0].steps == seen[1].steps == [0, 1, 6]
    np.testing.assert_array_equal(seen[0].outputs, seen[1].outputs)


def test_a_quantity_of_a_record_is_computed_once():
    params, x, y, _, _ = problem()
    together = jax.tree.map(lambda leaf: leaf[None], params)
    seen = []

    class Twice(Measure):
        def record(self, step, models):
            network = models["network"]
            seen.append(network.kernel is network.kernel and network.outputs is network.outputs)

    options = TrainOptions(max_steps=2, together=True)
    measures = [KernelChangeMeasure(("linear",)), Twice()]
    descend(*network_of_seeds(NET, together, x, y, Loss("linear")), options, measures)
    assert seen == [True, True, True]


def test_losses_of_a_measure_end_the_training():
    class Ends(Outputs):
        def record(self, step, models):
            super().record(step, models)
            if step >= 2:
                models["network"].hand_over(losses=jnp.asarray(jnp.nan))

    seen = Ends()
    descent = descend(*network(recorded_steps=(1, 2, 5, 6)), [seen])["network"]
    assert seen.steps == [0, 1, 2]
    assert descent.outcomes() == ["diverged"]


def test_measures_keep_their_records_when_training_stops():
    seen = Outputs()
    answers = itertools.chain([False, False], itertools.repeat(True))
    progress = Progress(should_stop=lambda: next(answers))
    with pytest.raises(Stopped):
        descend(*network(max_steps=10**6), [seen], progress)
    assert seen.steps[0] == 0
    assert 1 <= len(seen.steps) < 10


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("learning_rate", {"learning_rate": "fast"}),
        ("rate_factor", {"rate_factor": 0.0}),
        ("max_steps", {"max_steps": 0}),
        ("num_records", {"num_records": 0}),
        ("key", {"key": jnp.zeros((2, 2))}),
        ("batch_size", {"optimizer": Optimizer("sgd", batch_size=99)}),
    ],
)
def test_wrong_options_are_refused_by_name(field, given):
    with pytest.raises(InvalidInput) as refused:
        descend(*network(**given))
    assert refused.value.field == field
