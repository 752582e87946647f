"""Programs of short trainings: equal numbers up to rounding, whatever their compiler options."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.experiments import ExploreSpec
from linearity_lab.experiments.kernel_change.compute import side_by_side
from linearity_lab.experiments.train_options import levels_of
from linearity_lab.runs import Counted
from ntk_core.dynamics import (
    Levels,
    Loss,
    NetworkModel,
    Optimizer,
    advance,
    compiled,
    short_runs,
    softmax_changes,
    start,
)
from ntk_core.dynamics._short_runs import USUAL, _levels
from ntk_core.networks.architectures import FullyConnected
from ntk_core.progress import Progress
from tests.compiler_flags import AS_FOR_PEOPLE

NUM_STEPS = 40
NET = FullyConnected(width=17, depth=2, num_outputs=2, activation="gelu")
X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
Y = np.eye(2, dtype=np.float32)[[0, 1, 0, 0, 1, 1]]


def _trained(program) -> np.ndarray:
    """Return all weights of a network after some steps."""
    model = NetworkModel(NET, Loss("linear", "square"))
    trained, fixed = NET.partition(NET.init(jax.random.key(0), (3,)))
    state = start(model, Optimizer(), jax.tree.map(jnp.copy, trained), len(X))
    found = program(
        model, Optimizer(), state, fixed, jnp.asarray(X), jnp.asarray(Y), 0.2, NUM_STEPS
    )
    assert int(found.step) == NUM_STEPS
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(found.trained)])


def test_short_runs_differ_from_usual_programs_by_rounding():
    usual = jax.jit(
        advance.__wrapped__,
        static_argnums=(0, 1),
        static_argnames="together",
        donate_argnums=2,
        compiler_options=AS_FOR_PEOPLE,
    )
    expected = _trained(usual)
    assert np.abs(expected).max() > 1
    for level in (0, 1):
        with short_runs(Levels(steps=level)):
            found = _trained(advance)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_linear_model_in_short_runs_equals_the_usual_one():
    """A program that contains another one: only the outer one has options."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((12, 20))
    kernel = (features @ features.T).reshape(6, 2, 6, 2).transpose(0, 2, 1, 3)
    follow = partial(softmax_changes, kernel, np.zeros((6, 2)), Y, 0.01, [0, 3, 50])
    expected = follow()
    assert expected[-1] > 0.1
    with short_runs(Levels(data=0)):
        assert follow() == pytest.approx(expected, rel=1e-12)


def test_each_level_compiles_once():
    traced = []

    @compiled("records")
    def double(x):
        traced.append(_levels.get())
        return 2 * x

    one = jnp.ones(())
    for levels in (USUAL, Levels(records=0), Levels(records=0, steps=1), Levels(records=1), USUAL):
        with short_runs(levels):
            assert double(one) == 2
    assert traced == 3 * [USUAL]


def test_threads_side_by_side_have_the_levels_of_their_caller():
    levels = Levels(1, 0, 0)

    def work(_: Progress) -> Levels:
        return _levels.get()

    with short_runs(levels):
        assert side_by_side([work, work, work], Progress(), 2, lambda _: "") == 3 * [levels]
    assert _levels.get() == USUAL


def test_longer_trainings_are_optimized_more():
    spec = ExploreSpec()

    def levels(width: int) -> Levels:
        return levels_of(spec.training, Counted.of(spec, spec.architecture, width))

    assert levels(30) == Levels(0, 0, 0)
    assert levels(10_000).steps == 1
    three = spec.architecture.model_copy(update={"depth": 3})
    deep = Counted.of(spec, three, 10_000)
    assert levels_of(spec.training, deep) == Levels(steps=None, records=None, data=0)
