"""Convolutional programs in a process of their own, compiled as for users: XLA may abort it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from ntk_core.hessians._traced import lifted, restricted
from ntk_core.traced import traced
from tests.traced.convolutions import PROGRAMS

TOP = Path(__file__).resolve().parents[2]
OURS = ("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS", "JAX_COMPILATION_CACHE_DIR")


def errors_of(names):
    command = [sys.executable, "-m", "tests.traced.convolutions", *names]
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, timeout=600, check=False)
    found = dict(line.split("\t") for line in done.stdout.splitlines())
    assert done.returncode == 0, (list(found), done.stderr[-2000:])
    return {name: float(error) for name, error in found.items()}


def test_directions_are_written_without_a_scatter():
    """XLA aborts where a reverse follows a scatter of a whole array (docs/decisions/0005)."""
    apply, params, x = PROGRAMS["strides"]
    program = traced(apply, params, jnp.asarray(x)[None])

    def direction(params, x):
        small, _ = restricted(program, program.leaves(params), x, 0)
        return lifted(program, small, small.zero, program.leaves(params))

    text = str(jax.make_jaxpr(direction)(params, x))
    assert "dynamic_update_slice" in text
    assert "scatter" not in text


# Single precision: it is where XLA aborted, and an estimate's error is the square of its residual, 3e-4 of the norm.
@pytest.mark.slow
def test_strided_convolutions_do_not_abort():
    assert errors_of(["strides"])["strides"] < 1e-3


@pytest.mark.slow
def test_other_convolutions_do_not_abort():
    others = [name for name in PROGRAMS if name != "strides"]
    found = errors_of(others)
    assert list(found) == others
    assert max(found.values()) < 1e-3, found
