"""Kernel velocity against central differences of the kernel in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.dynamics import Loss, kernel_velocity
from ntk_core.errors import InvalidInput
from ntk_core.kernels import generic_ntk
from ntk_core.networks.architectures import FullyConnected, merge
from tests.cases import ARCHITECTURES, FAST_COMPILE, SETTINGS_MET, Case, inputs, random_params

STEP = 1e-4  # of central differences: their error is of order 1e-8, that of rounding 1e-16 / 1e-4


def targets(case: Case, n: int):
    num_outputs = jax.eval_shape(case.net.apply, random_params(case), inputs(case, 1)).shape[-1]
    return jnp.eye(num_outputs)[jnp.arange(n) % num_outputs]


# Every architecture under one of its two settings; two thirds are slow tests.
FIRST = SETTINGS_MET[: len(ARCHITECTURES)]
CASES = [
    pytest.param(case, marks=pytest.mark.slow if k % 3 else []) for k, case in enumerate(FIRST)
]


@pytest.mark.sampled(7)  # a grid of architectures and settings
@pytest.mark.first_cases(2)  # each case compiles its oracle
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_velocity_equals_central_difference_of_the_kernel(case, x64):
    """Every architecture, output, parameterization and trained subset."""
    net, params, x = case.net, random_params(case), inputs(case, 3)
    y, loss = targets(case, 3), Loss(net.output)
    trained, fixed = net.partition(params)

    @jax.jit
    def dense(trained):
        slopes = jax.grad(lambda w: loss(net.pre_outputs(merge(w, fixed), x), y))(trained)

        def kernel(time):
            moved = jax.tree.map(lambda w, slope: w - time * slope, trained, slopes)
            return generic_ntk(lambda w, x: net.apply(merge(w, fixed), x), moved, x)

        before, now, after = jax.vmap(kernel)(jnp.array([-STEP, 0.0, STEP]))  # traced once
        return jnp.linalg.norm((after - before) / (2 * STEP)) / jnp.linalg.norm(now)

    found = jax.jit(
        lambda w: kernel_velocity(net, merge(w, fixed), x, y), compiler_options=FAST_COMPILE
    )(trained)
    assert float(found) == pytest.approx(float(dense(trained)), rel=1e-5, abs=1e-9)


@pytest.mark.slow
def test_blocks_of_rows_and_several_draws_agree(x64):
    net = FullyConnected(
        width=5, num_outputs=2, activation="tanh", output="softmax", use_bias=False
    )
    x, y = jax.random.normal(jax.random.key(1), (7, 3)), jnp.eye(2)[jnp.arange(7) % 2]
    params = jax.vmap(lambda key: net.init(key, (3,)))(jax.random.split(jax.random.key(0), 3))
    together = jax.jit(jax.vmap(lambda w: kernel_velocity(net, w, x, y)))(params)
    draws = [jax.tree.map(lambda leaf, index=index: leaf[index], params) for index in range(3)]
    for velocity, one in zip(together, draws, strict=True):
        assert float(velocity) == pytest.approx(float(kernel_velocity(net, one, x, y)))
    linear = net.with_output("linear")
    as_function = kernel_velocity(linear.apply, draws[0], x, y)
    assert float(as_function) == pytest.approx(float(kernel_velocity(linear, draws[0], x, y)))
    for model in (net, net.pre_outputs):
        whole = kernel_velocity(model, draws[0], x, y, Loss("softmax"))
        in_blocks = kernel_velocity(model, draws[0], x, y, Loss("softmax"), memory_limit=1)
        assert float(in_blocks) == pytest.approx(float(whole))


@pytest.mark.slow  # each compiles eight kernels
@pytest.mark.parametrize("scale", [1e-15, 1e15])
def test_velocities_scale_with_the_outputs(scale):
    """‖K̇‖ / ‖K‖ of s·f and s·y is s² times that of f and y; K alone may be beyond float32."""
    x = np.random.default_rng(0).standard_normal((3, 2)).astype(np.float32)
    params = {"w": jnp.ones((2, 4)) / 3, "v": jnp.linspace(-1, 1, 8).reshape(4, 2)}
    y = jnp.ones((3, 2))

    def times(factor):
        def function(params, x):
            return jnp.tanh(x @ params["w"]) @ params["v"] * jnp.float32(factor)

        return function

    expected = float(kernel_velocity(times(1.0), params, x, y))
    found = float(kernel_velocity(times(scale), params, x, y * scale))
    assert found / scale**2 == pytest.approx(expected, rel=1e-4)
    for beyond in (scale**2, 1 / scale**1.9):
        with pytest.raises(InvalidInput, match="a relative speed of the kernel around 1e"):
            kernel_velocity(times(beyond), params, x, y * beyond)
