"""Messages of long compilations: on stderr, or as a temporary bar in a notebook."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import empirical_ntk, hessian_norm
from ntk_core.traced import _messages

PARAMS = {"w": jnp.ones((3, 8)) / 3, "v": jnp.ones((8, 2)) / 8}
X = np.arange(12.0).reshape(4, 3) / 12


def my_model(p, x):
    a = jnp.tanh(x @ p["w"])
    for step in range(12):
        a = jnp.sin(a + step) * jnp.cos(a)
    return a @ p["v"]


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(_messages, "PATIENCE_S", 0.0)


def test_a_long_compilation_is_named_on_stderr(impatient, capsys):
    empirical_ntk(my_model, PARAMS, X)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Compiling the tangent kernel of my_model, for ")
    hessian_norm(my_model, PARAMS, X[0])
    assert "Compiling products with the Hessian of my_model" in capsys.readouterr().err
    empirical_ntk(my_model, PARAMS, X)
    hessian_norm(my_model, PARAMS, X[0])
    assert not capsys.readouterr().err, "nothing compiles"


def test_short_compilations_and_long_computations_say_nothing(impatient, capsys, monkeypatch):
    with _messages.compiling("a wait"):
        time.sleep(0.05)
    monkeypatch.setattr(_messages, "PATIENCE_S", 60.0)
    with _messages.compiling("a sum"):
        jax.jit(lambda a: a + 41)(1.0)
    assert not capsys.readouterr().err


def test_warm_calls_start_no_thread(impatient, monkeypatch):
    # Not computed by other tests, since the fourth call of a program compiles again.
    def model(p, x):
        return 2 * my_model(p, x)

    hessian_norm(model, PARAMS, X[0])
    monkeypatch.setattr(_messages.threading, "Timer", None)
    hessian_norm(model, PARAMS, X[0])


def test_in_a_notebook_a_bar_comes_and_goes(impatient, capsys, monkeypatch):
    shown: list[str] = []
    monkeypatch.setattr(_messages, "is_kernel", lambda: True)
    monkeypatch.setattr(_messages, "notebook_place", lambda: shown.append)
    empirical_ntk(lambda p, x: 2 * my_model(p, x), PARAMS, X)
    bar, end = shown
    assert "<progress" in bar
    assert "the tangent kernel of &lt;lambda&gt;" in bar
    assert not end
    assert not capsys.readouterr().err
