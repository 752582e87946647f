"""Random programs, right to 1e-8 or refused by name: 150 in the slow tier, 1,000 by ``make programs``."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from ntk_core.errors import InvalidInput
from ntk_core.hessians._operator import operator
from ntk_core.kernels import empirical_ntk, generic_ntk
from ntk_core.traced import traced
from tests.cases import EXHAUSTIVE
from tests.plain_derivatives import dense_hessian, largest
from tests.traced.random_programs import REFUSED, TIME, WIDTH, chains

X = np.random.default_rng(1).normal(size=(3, TIME, WIDTH))
# These three chunks of the sample draw every step, way and activation.
CHUNKS = range(1, 21) if EXHAUSTIVE else (6, 12, 19)
OF_EACH, QUICK = 50, 6
TOLERANCE = 1e-8


def assert_near(found, expected, chain):
    """Assert equality to the tolerance relative to the largest number, with non-finite numbers in equal places."""
    scale = np.abs(np.where(np.isfinite(expected), expected, 0)).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * max(scale, 1e-3), err_msg=repr(chain))


def norm(hessian):
    if not np.isfinite(hessian).all():
        return np.array(np.nan)
    return largest(hessian)


def rows_of(views, rows):
    """Views of some rows: axis 0 of outputs and inputs, axis 1 of arrays per output."""
    by_output = jax.tree.map(lambda each: each[:, rows], (views.cotangents, views.jacobians))
    first = jax.tree.map(lambda each: each[rows], (views.outputs, views.inputs))
    return type(views)(*first, *by_output)


def verdict(chain):
    """Outcome of a program, ``right`` or ``refused``; an assertion fails for a wrong one."""
    x = jnp.asarray(X)
    params = chain.params(x)
    if any(link.step in REFUSED for link in chain.links):
        try:
            kernel = empirical_ntk(chain, params, x[:2], x[1:])
        except InvalidInput:
            return "refused"
        assert_near(kernel, generic_ntk(chain, params, x[:2], x[1:]), chain)
        return "right"
    program = traced(chain, params, x)

    @jax.jit
    def both(params, x):
        """Results of the structured and of the plain route, compiled once."""
        views = program.views(program.leaves(params), x)
        left, right = (rows_of(views, rows) for rows in (slice(2), slice(1, None)))
        hessian = operator(program if program.layers else chain, params, x[-1], lambda f: f[0])
        products = jax.vmap(lambda v: hessian.matvec(hessian.project(v)))(jnp.eye(hessian.zero.size))
        plain = generic_ntk(chain, params, x)[:2, 1:], dense_hessian(chain, params, x[-1])
        return (program.kernel(program.leaves(params), left, right), products), plain

    (kernel, small), (expected, dense) = jax.device_get(both(params, x))
    assert_near(kernel, expected, chain)
    assert_near(norm(small), norm(dense), chain)
    return "right"


@pytest.mark.slow
@pytest.mark.parametrize("chunk", CHUNKS)
def test_random_programs_are_right_or_refused(chunk, x64):
    counts = judged(chunk, OF_EACH)
    assert counts["right"] + counts["refused"] >= OF_EACH


def test_some_random_programs_are_right_or_refused(x64):
    assert judged(0, QUICK)["right"]


def judged(chunk, number):
    counts: Counter[str] = Counter()

    @seed(chunk)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(chains())
    def draw_and_judge(chain):
        counts[verdict(chain)] += 1

    draw_and_judge()
    print(dict(counts))
    return counts
