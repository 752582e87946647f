"""One convention of derivatives outside a table.

Kernels, Hessians, linear models and reports agree.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.flatten_util import ravel_pytree

from ntk_core import linearity_report, linearize, quadratic_model
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from tests.plain_derivatives import largest, normal, plain_kernel

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

P = normal(t=(5, 3), w=(3, 2), cube=(5, 4, 3))
IDS = np.array([[1, 7], [2, 9], [-9, 0], [4, 3]])


def in_a_scan(p, ids):
    def step(total, index):
        return total + jnp.tanh(p["t"][index]), None

    return lax.scan(step, jnp.zeros((len(ids), 3)), ids.T)[0] @ p["w"]


LOOK_UPS = {
    "rows": lambda p, ids: jnp.tanh(p["t"][ids]).mean(1) @ p["w"],
    "entries": lambda p, ids: jnp.tanh(p["t"][ids, 1]) @ p["w"][:2],
    "pairs": lambda p, ids: jnp.tanh(p["cube"][ids[:, 0], ids[:, 1]]) @ p["w"],
    "activations": lambda p, ids: jnp.sin(jnp.tanh(p["t"])[ids]).mean(1) @ p["w"],
    "scan": in_a_scan,
    "vmap": lambda p, ids: jax.vmap(lambda row: jnp.tanh(p["t"][row]).mean(0) @ p["w"])(ids),
    "clip": lambda p, ids: jnp.tanh(p["t"].at[ids].get(mode="clip")).mean(1) @ p["w"],
    "fill": lambda p, ids: (
        jnp.tanh(p["t"].at[ids].get(mode="fill", fill_value=0.5)).mean(1) @ p["w"]
    ),
}


def fixed_outside(p):
    """Return larger tables, whose entries outside the given ones are constants.

    Those of the nearest place.
    """
    last_row = lax.stop_gradient(p["t"][-1:])
    last_place = lax.stop_gradient(p["cube"][:, -1:])
    return {
        "t": jnp.concatenate([p["t"], jnp.repeat(last_row, 6, 0)]),
        "cube": jnp.concatenate([p["cube"], jnp.repeat(last_place, 8, 1)], 1),
        "w": p["w"],
    }


@pytest.mark.long  # each compiles a report, a Hessian and three models
@pytest.mark.parametrize("name", LOOK_UPS)
def test_linear_models_follow_reverse_mode(name, x64):
    apply = LOOK_UPS[name]
    start = jax.tree.map(jnp.asarray, P)
    moved = jax.tree.map(lambda leaf: leaf + 0.1, start)
    jacobian = jax.jacrev(lambda p: apply(p, IDS))(start)
    step = np.zeros(8)
    for key, leaf in start.items():
        step += np.asarray(jacobian[key]).reshape(8, -1) @ np.asarray(moved[key] - leaf).ravel()
    np.testing.assert_allclose(
        linearize(apply, start)(moved, IDS) - apply(start, IDS), step.reshape(4, 2), atol=1e-12
    )
    np.testing.assert_allclose(
        empirical_ntk(apply, start, IDS),
        plain_kernel(apply, start, jnp.asarray(IDS)),
        rtol=1e-9,
        atol=1e-12,
    )
    change = apply(moved, IDS) - apply(start, IDS)
    error = np.linalg.norm(change - step.reshape(4, 2)) / np.linalg.norm(change)
    assert linearity_report(apply, start, moved, IDS).output_error == pytest.approx(error, rel=1e-6)

    flat, rebuild = ravel_pytree(start)
    seen = (lambda p: p) if name in ("clip", "fill") else fixed_outside
    hessian = jax.hessian(lambda w: apply(seen(rebuild(w)), IDS[:1])[0, 0])(flat)
    found = hessian_norm(apply, start, IDS[0], tolerance=1e-9).value
    assert found == pytest.approx(largest(np.asarray(hessian)), rel=1e-6, abs=1e-12)
    delta = ravel_pytree(moved)[0] - flat
    both = (each(apply, start)(moved, IDS)[0, 0] for each in (quadratic_model, linearize))
    quadratic, linear = map(float, both)
    assert quadratic - linear == pytest.approx(float(delta @ hessian @ delta) / 2, abs=1e-12)
