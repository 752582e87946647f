"""Messages of long compilations: on stderr, or as a temporary bar in a notebook."""

from __future__ import annotations

import time

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


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(_messages, "PATIENCE_S", 0.0)


@pytest.mark.slow  # waits for long compilations in a new process
def test_only_long_compilations_are_named_on_stderr(capsys):
    empirical_ntk(my_model, PARAMS, X)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Compiling the tangent kernel of my_model, for ")
    hessian_norm(my_model, PARAMS, X[0])
    assert "Compiling products with the Hessian of my_model" in capsys.readouterr().err
    empirical_ntk(my_model, PARAMS, X)
    hessian_norm(my_model, PARAMS, X[0])
    with _messages.compiling("a wait"):
        time.sleep(0.05)
    assert not capsys.readouterr().err, "nothing compiles"


def test_in_a_notebook_a_bar_comes_and_goes(capsys, monkeypatch):
    shown: list[str] = []
    monkeypatch.setattr(_messages, "is_kernel", lambda: True)
    monkeypatch.setattr(_messages, "notebook_place", lambda: shown.append)
    empirical_ntk(lambda p, x: 2 * my_model(p, x), PARAMS, X)
    bar, end = shown
    assert "<progress" in bar
    assert "the tangent kernel of &lt;lambda&gt;" in bar
    assert not end
    assert not capsys.readouterr().err
