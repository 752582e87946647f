"""Convolutional programs compiled as for users, in a separate process because XLA may abort it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.hessians._space import lifted, restricted
from ntk_core.kernels import empirical_ntk
from ntk_core.traced import traced
from ntk_core.traced._overwrites import Plain, overwrites
from tests.traced.convolutions import PROGRAMS
from tests.traced.overwriting import PARAMS, plain
from tests.traced.overwriting import PROGRAMS as OVERWRITING
from tests.traced.overwriting import X as WRITTEN

TOP = Path(__file__).resolve().parents[2]
OURS = ("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS", "JAX_COMPILATION_CACHE_DIR")


def errors_of(names, module="tests.traced.convolutions"):
    command = [sys.executable, "-m", module, *names]
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, timeout=600, check=False)
    found = dict(line.split("\t") for line in done.stdout.splitlines())
    assert done.returncode == 0, (list(found), done.stderr[-2000:])
    return {name: float(error) for name, error in found.items()}


def test_directions_are_written_without_a_scatter():
    """XLA aborts if a reverse follows a scatter of a whole array (docs/decisions/0005)."""
    apply, params, x = PROGRAMS["strides"]
    program = traced(apply, params, jnp.asarray(x)[None])

    def direction(params, x):
        small, _ = restricted(program, program.leaves(params), x, lambda f: f[0])
        return lifted(program, small, small.zero, program.leaves(params))

    text = str(jax.make_jaxpr(direction)(params, x))
    assert "dynamic_update_slice" in text
    assert "scatter" not in text


# Single precision, in which XLA aborted; an estimate's error is the square of its residual, 3e-4 of the norm.
@pytest.mark.slow
def test_strided_convolutions_do_not_abort():
    assert errors_of(["strides"])["strides"] < 1e-3


@pytest.mark.slow
def test_other_convolutions_do_not_abort():
    others = [name for name in PROGRAMS if name != "strides"]
    found = errors_of(others)
    assert list(found) == others
    assert max(found.values()) < 1e-3, found


@pytest.mark.slow
def test_reversed_scatters_of_a_whole_array_do_not_abort():
    found = errors_of([], "tests.traced.overwriting")
    assert list(found) == [*OVERWRITING, "training", "linear model"]
    assert max(found.values()) < 1e-3, found


def test_scatters_of_a_whole_array_are_read_as_plain_operations():
    for name, apply in OVERWRITING.items():
        x = WRITTEN[:, None] if name == "row by row" else WRITTEN
        assert overwrites(jax.make_jaxpr(apply)(PARAMS, x).jaxpr), name
        read = jax.make_jaxpr(Plain(apply))(PARAMS, x)
        assert not overwrites(read.jaxpr), name
        found = jnp.reshape(Plain(apply)(PARAMS, x), (4, 2))
        np.testing.assert_allclose(found, plain(PARAMS, WRITTEN), rtol=1e-5)


def test_own_derivatives_that_reverse_a_scatter_are_refused():
    @jax.custom_jvp
    def squared(a):
        return a**2

    @squared.defjvp
    def along(primals, tangents):
        filled = jnp.zeros(primals[0].shape).at[...].set(2 * primals[0])
        return squared(*primals), jax.lax.rev(filled, (1,))[:, ::-1] * tangents[0]

    with pytest.raises(InvalidInput, match="XLA aborts"):
        empirical_ntk(lambda p, x: squared(x @ p["w"]) @ p["v"], PARAMS, WRITTEN)
