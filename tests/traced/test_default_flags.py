"""Convolutions and reversed scatters, for which XLA aborted (docs/decisions/0005),
compiled as for users.

``python -m tests.traced.test_default_flags`` prints the name and the relative error of each
program.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.flatten_util import ravel_pytree

from ntk_core import InvalidInput, empirical_ntk, hessian_norm, linearize, train
from ntk_core.hessians._space import lifted, restricted
from ntk_core.traced import traced
from ntk_core.traced._overwrites import Plain, overwrites
from tests.plain_derivatives import largest, plain_hessian, plain_kernel

TOP = Path(__file__).resolve().parents[2]
OURS = ("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS", "JAX_COMPILATION_CACHE_DIR")
RNG = np.random.default_rng(0)
NHWC = ("NHWC", "HWIO", "NHWC")


def draw(*shape: int) -> Any:
    return RNG.standard_normal(shape) / max(1, np.prod(shape[:-1])) ** 0.5


def strided(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=NHWC)


def convolutions(p: Any, x: Any) -> Any:
    return (
        jax.nn.relu(strided(jax.nn.relu(strided(x, p["w1"]) + p["b1"]), p["w2"])).mean((1, 2))
        @ p["v"]
    )


def transposed(p: Any, x: Any) -> Any:
    wide = lax.conv_transpose(
        jax.nn.relu(strided(x, p["w1"])), p["w2"], (2, 2), "SAME", dimension_numbers=NHWC
    )
    return jax.nn.relu(wide).mean((1, 2)) @ p["v"]


FILTERS = {"w1": draw(3, 3, 3, 8), "w2": draw(3, 3, 8, 8), "b1": np.zeros(8), "v": draw(8, 1)}
IMAGES = RNG.standard_normal((2, 8, 8, 3))
PARAMS = {"w": draw(3, 5), "v": draw(5, 2)}
X, Y = draw(4, 3), draw(4, 2)


def reversed_after(write: Any) -> Any:
    return lambda p, x: jnp.tanh(lax.rev(write(x @ p["w"]), (1,))) @ p["v"]


def within_a_scan(p: Any, x: Any) -> Any:
    def step(carry: Any, _: Any) -> Any:
        return lax.rev(jnp.zeros_like(carry).at[:].set(carry), (1,)), None

    return jnp.tanh(lax.scan(step, x @ p["w"], None, length=3)[0]) @ p["v"]


plain = reversed_after(lambda a: a)
SCATTERS = {
    "set": reversed_after(lambda a: jnp.zeros(a.shape).at[:, 0:5].set(a)),
    "add": reversed_after(lambda a: jnp.zeros(a.shape).at[...].add(a)),
    "max": reversed_after(lambda a: jnp.full(a.shape, -99.0).at[...].max(a)),
    "multiply": reversed_after(lambda a: jnp.ones(a.shape).at[...].multiply(a)),
    "inside jit": reversed_after(jax.jit(lambda a: jnp.zeros(a.shape).at[:].set(a))),
    "row by row": lambda p, x: jax.vmap(
        reversed_after(lambda a: jnp.zeros((1, 5)).at[:].set(a)), (None, 0)
    )(p, x[:, None])[:, 0],
    "scan": within_a_scan,
}
PROGRAMS: dict[str, tuple[Any, ...]] = {
    "strides": (convolutions, convolutions, FILTERS, IMAGES),
    "transposed": (transposed, transposed, FILTERS, IMAGES),
    **{name: (SCATTERS[name], plain, PARAMS, X) for name in ("set", "scan")},
}


def far(found: Any, expected: Any) -> float:
    return float(np.abs(np.asarray(found) - expected).max() / np.abs(expected).max())


def error_of_models() -> float:
    """Relative error of training and of the linear model."""
    asked = {
        "learning_rate": 0.1,
        "max_steps": 3,
        "num_records": 2,
        "linearized": False,
        "kernels": False,
    }
    moved = jax.tree.map(lambda leaf: 1.1 * leaf, PARAMS)
    ends = [
        ravel_pytree(train(each, PARAMS, X, Y, **asked).params)[0]
        for each in (SCATTERS["set"], plain)
    ]
    lines = [jax.jit(linearize(each, PARAMS))(moved, X) for each in (SCATTERS["set"], plain)]
    return max(far(*ends), far(*lines))


def error_of(apply: Any, oracle: Any, params: Any, x: Any) -> float:
    """Relative error of kernel and Hessian norm."""
    params, x = jax.tree.map(jnp.asarray, (params, x))
    norm = far(
        hessian_norm(apply, params, x[0]).value, largest(plain_hessian(oracle, params, x[0]))
    )
    return max(norm, far(empirical_ntk(apply, params, x), plain_kernel(oracle, params, x)))


def test_directions_are_written_without_a_scatter():
    """XLA aborts if a reverse follows a scatter of a whole array."""
    program = traced(convolutions, FILTERS, jnp.asarray(IMAGES[:1]))

    def direction(params, x):
        small, _ = restricted(program, program.leaves(params), x, lambda f: f[0])
        return lifted(program, small, small.zero, program.leaves(params))

    text = str(jax.make_jaxpr(direction)(FILTERS, IMAGES[0]))
    assert "dynamic_update_slice" in text
    assert "scatter" not in text


@pytest.mark.long
def test_programs_do_not_abort_with_default_flags():
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    command = [sys.executable, "-m", "tests.traced.test_default_flags"]
    done = subprocess.run(
        command, cwd=TOP, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    found = dict(line.split("\t") for line in done.stdout.splitlines())
    assert done.returncode == 0, (list(found), done.stderr[-2000:])
    assert list(found) == [*PROGRAMS, "models"]
    # Single precision, in which XLA aborted; a norm's error is the square of its
    # residual, 3e-4 of the norm.
    assert max(map(float, found.values())) < 1e-3, found


def test_scatters_of_a_whole_array_are_read_as_plain_operations():
    for name, apply in SCATTERS.items():
        assert overwrites(jax.make_jaxpr(apply)(PARAMS, X).jaxpr), name
        assert not overwrites(jax.make_jaxpr(Plain(apply))(PARAMS, X).jaxpr), name
        np.testing.assert_allclose(
            Plain(apply)(PARAMS, X), plain(PARAMS, X), rtol=1e-5, err_msg=name
        )


def test_own_derivatives_that_reverse_a_scatter_are_refused():
    @jax.custom_jvp
    def squared(a):
        return a**2

    @squared.defjvp
    def along(primals, tangents):
        filled = jnp.zeros(primals[0].shape).at[...].set(2 * primals[0])
        return squared(*primals), jax.lax.rev(filled, (1,))[:, ::-1] * tangents[0]

    with pytest.raises(InvalidInput, match="XLA aborts"):
        empirical_ntk(lambda p, x: squared(x @ p["w"]) @ p["v"], PARAMS, X)


if __name__ == "__main__":
    for each, given in PROGRAMS.items():
        print(each, error_of(*given), sep="\t", flush=True)
    print("models", error_of_models(), sep="\t", flush=True)
