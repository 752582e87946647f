"""Random programs, right to 1e-8 or refused by name: 1,000 by ``make programs``, one per step otherwise."""

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
from ntk_core.traced import layers_of, traced
from tests.cases import EXHAUSTIVE
from tests.plain_derivatives import dense_hessian, largest
from tests.traced.random_programs import ACTIVATIONS, REFUSED, STEPS, TIME, WAYS, WIDTH, Chain, Link, chains

X = np.random.default_rng(1).normal(size=(3, TIME, WIDTH))
CHUNKS, OF_EACH = range(20), 50
TOLERANCE = 1e-8


def sample():
    """Two links per program, so that every step occurs twice, every way and activation at least four times."""
    ways, activations, steps = (sorted(each) for each in (WAYS, ACTIVATIONS, {**STEPS, **REFUSED}))
    links = [
        Link(step, ways[k % len(ways)], bool(k % 3), activations[k % len(activations)], bool(k % 2))
        for k, step in enumerate(steps)
    ]
    return [Chain((link, links[k - 17]), ("mean", "last", "flat")[k % 3], k % 10) for k, link in enumerate(links)]


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


# Every eighth is quick.
IN_TIERS = [
    pytest.param(chain, id=chain.links[0].step, marks=pytest.mark.slow if k % 8 else [])
    for k, chain in enumerate(sample())
]


@pytest.mark.parametrize("chain", IN_TIERS)
def test_programs_of_two_steps_are_right_or_refused(chain, x64):
    refused = any(link.step in REFUSED for link in chain.links)
    assert verdict(chain) == ("refused" if refused else "right")


@pytest.mark.slow
@pytest.mark.skipif(not EXHAUSTIVE, reason="make programs runs them")
@pytest.mark.parametrize("chunk", CHUNKS)
def test_random_programs_are_right_or_refused(chunk, x64):
    counts: Counter[str] = Counter()

    @seed(chunk)
    @settings(
        max_examples=OF_EACH,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(chains())
    def draw_and_judge(chain):
        counts[verdict(chain)] += 1

    draw_and_judge()
    assert counts["right"] + counts["refused"] >= OF_EACH


def test_few_steps_need_whole_jacobians(x64):
    """All parameters of the other steps are read by their uses."""
    found = set()
    for step in STEPS:
        chain = Chain((Link(step),))
        params = chain.params(jnp.asarray(X))
        program = traced(chain, params, jnp.asarray(X))
        program.kept["kernel"] = None  # analysis only, without the comparison
        if any(layer.kind == "jacobian" for layer in layers_of(chain, params, jnp.asarray(X)).layers):
            found.add(step)
        del program.kept["kernel"]
    assert found == {"complex", "cond", "low rank", "polynomial", "switch"}
