"""Refusals keep the cause in full: all lines of another library's message, however long."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ntk_core.errors import InvalidInput, RowsMix, reason_of
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from tests.plain_derivatives import normal

P = normal(w=(3, 4), v=(4, 2))
X = np.random.default_rng(1).standard_normal((4, 3))
LINES = ["the first line", "", "   a second one, " + "which is long, " * 20 + "ends here"]


def fails(p, x):
    raise ValueError("\n".join(LINES))


def fails_for_one(p, x):
    if len(x) == 1:
        fails(p, x)
    return jnp.tanh(x @ p["w"]) @ p["v"]


def branches(p, x):
    if (x @ p["w"]).sum() > 0:  # jax.numpy has no such branch
        return x @ p["w"]
    return x


@pytest.mark.parametrize("apply", [fails, fails_for_one])
@pytest.mark.parametrize("measure", [empirical_ntk, lambda f, p, x: hessian_norm(f, p, x[0])])
def test_messages_of_models_are_kept_to_their_last_line(apply, measure):
    with pytest.raises(InvalidInput, match=r"the first line a second one, .* ends here"):
        measure(apply, P, X)


def test_messages_of_jax_are_kept_to_their_last_line():
    with pytest.raises(jax.errors.TracerBoolConversionError) as raw:
        jax.make_jaxpr(branches)(P, X)
    with pytest.raises(InvalidInput) as refused:
        empirical_ntk(branches, P, X)
    # Addresses of source lines differ between two traces; the last line is advice.
    assert str(raw.value).split()[-1] in str(refused.value)
    assert len(reason_of(raw.value).splitlines()) == 1


def test_the_operation_between_rows_is_named_in_full():
    def loop(p, x):
        return lax.fori_loop(0, len(x), lambda _, a: 0.9 * a, jnp.tanh(x @ p["w"])) @ p["v"]

    with pytest.raises(RowsMix, match="the size of the batch mixes the rows of x cannot be used"):
        empirical_ntk(loop, P, X)
