"""Programs compiled as for users, in a separate process because XLA may abort it."""

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
from tests.traced.default_flags import CONVOLUTIONS, PARAMS, SCATTERS, X, plain

TOP = Path(__file__).resolve().parents[2]
OURS = ("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS", "JAX_COMPILATION_CACHE_DIR")


def test_directions_are_written_without_a_scatter():
    """XLA aborts if a reverse follows a scatter of a whole array (docs/decisions/0005)."""
    apply, params, x = CONVOLUTIONS["strides"]
    program = traced(apply, params, jnp.asarray(x[:1]))

    def direction(params, x):
        small, _ = restricted(program, program.leaves(params), x, lambda f: f[0])
        return lifted(program, small, small.zero, program.leaves(params))

    text = str(jax.make_jaxpr(direction)(params, x[0]))
    assert "dynamic_update_slice" in text
    assert "scatter" not in text


# Single precision, in which XLA aborted; an estimate's error is the square of its residual, 3e-4 of the norm.
@pytest.mark.slow
@pytest.mark.parametrize("names", [tuple(CONVOLUTIONS), (*SCATTERS, "models")], ids=["convolutions", "scatters"])
def test_programs_do_not_abort_with_default_flags(names):
    command = [sys.executable, "-m", "tests.traced.default_flags", *names]
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, timeout=600, check=False)
    found = dict(line.split("\t") for line in done.stdout.splitlines())
    assert done.returncode == 0, (list(found), done.stderr[-2000:])
    assert tuple(found) == names
    assert max(map(float, found.values())) < 1e-3, found


def test_scatters_of_a_whole_array_are_read_as_plain_operations():
    for name, apply in SCATTERS.items():
        assert overwrites(jax.make_jaxpr(apply)(PARAMS, X).jaxpr), name
        assert not overwrites(jax.make_jaxpr(Plain(apply))(PARAMS, X).jaxpr), name
        np.testing.assert_allclose(Plain(apply)(PARAMS, X), plain(PARAMS, X), rtol=1e-5, err_msg=name)


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
