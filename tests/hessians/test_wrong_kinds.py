"""Requests of a wrong kind for Hessians are refused by name, before anything is compiled."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from ntk_core import (
    InvalidInput,
    ball_sup,
    hessian_density,
    hessian_eigenpairs,
    hessian_norm,
    layer_quantities,
)
from ntk_core.hessians import hessian_block_norms, smallest_eigenvalue_in_ball, vector_hessian_norm

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype(np.float32)
PARAMS = {
    "w": RNG.standard_normal((4, 6)).astype(np.float32),
    "v": RNG.standard_normal((6, 2)).astype(np.float32),
}


def plain(params, x):
    return jnp.tanh(x @ params["w"]) @ params["v"]


CALLS = {
    "norm": lambda **given: hessian_norm(plain, PARAMS, X[0], batched=False, **given),
    "eigenpairs": lambda **given: hessian_eigenpairs(plain, PARAMS, X[0], **given),
    "density": lambda **given: hessian_density(plain, PARAMS, X[0], **given),
    "ball": lambda radius=0.1, **given: ball_sup(plain, PARAMS, X[0], radius, **given),
    "eigenvalue": lambda radius=0.1, **given: smallest_eigenvalue_in_ball(
        plain, PARAMS, X, radius, **given
    ),
}
WRONG = [
    ("norm", "tolerance", ["a", None.__class__, np.nan, -1.0, True]),
    ("norm", "output_index", ["1", 1.5, 2, -3, True]),
    ("norm", "max_matvecs", ["9", 2.5, 0, None]),
    ("norm", "key", [3, "key", [0, 1], jax.random.split(jax.random.key(0))]),
    ("eigenpairs", "num_wanted", ["2", 0, 1.5, None]),
    ("eigenpairs", "num_directions", ["2", -1, 1.5]),
    ("density", "num_probes", ["2", 0, 2.5, None]),
    ("density", "num_steps", ["2", 0, 2.5, None]),
    ("density", "key", [3, np.zeros(2)]),
    ("ball", "radius", ["a", None, np.nan, [], [2.0, 1.0], ["a"], -1.0]),
    ("ball", "num_starts", ["2", 0, 1.5]),
    ("ball", "num_steps", ["2", -1, 1.5]),
    ("eigenvalue", "radius", ["a", None, np.inf]),
    ("eigenvalue", "num_starts", ["2", 0, 1.5]),
]


@pytest.fixture
def _as_for_users() -> Iterator[None]:
    """Call without the type checks of the tests, which users do not have."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("_as_for_users")
@pytest.mark.parametrize(("call", "field", "given"), WRONG)
def test_numbers_of_a_wrong_kind_are_refused(call, field, given):
    for each in given:
        with pytest.raises(InvalidInput) as refused:
            CALLS[call](**{field: each})
        assert refused.value.field == field


HOST = {
    "norm": lambda x: hessian_norm(plain, PARAMS, x, batched=False).value,
    "norms": lambda x: hessian_norm(plain, PARAMS, x[None], batched=True).value,
    "eigenpairs": lambda x: hessian_eigenpairs(plain, PARAMS, x).eigenvalues,
    "density": lambda x: hessian_density(plain, PARAMS, x).nodes,
    "ball": lambda x: ball_sup(plain, PARAMS, x, 0.1).value,
    "blocks": lambda x: hessian_block_norms(plain, PARAMS, x).values,
    "all outputs": lambda x: vector_hessian_norm(plain, PARAMS, x).value,
    "layers": lambda x: layer_quantities(plain, PARAMS, x).bound,
}


@pytest.mark.parametrize("call", HOST)
@pytest.mark.parametrize("around", [jax.jit, jax.grad])
def test_hessians_inside_of_jax_transformations_are_refused(call, around):
    with pytest.raises(InvalidInput, match=r"inside of jax\.jit"):
        around(HOST[call])(jnp.asarray(X[0]))


@pytest.mark.usefixtures("_as_for_users")
def test_raw_and_typed_keys_agree():
    norms = [
        hessian_norm(plain, PARAMS, X[0], batched=False, key=key).value
        for key in (jax.random.key(5), jax.random.PRNGKey(5))
    ]
    assert norms[0] == norms[1]


@pytest.mark.slow
def test_other_rows_and_seeds_remain_beside_nan():
    rows = X.copy()
    rows[1] = np.nan
    found = hessian_norm(plain, PARAMS, rows, batched=True)
    assert np.isfinite(found.value).tolist() == [True, False, True]
    assert found.converged.tolist() == [True, False, True]
    broken = jax.tree.map(lambda leaf: leaf * np.nan, PARAMS)
    seeds = hessian_norm(plain, [broken, PARAMS], X[0], batched=False)
    assert np.isfinite(seeds.value).tolist() == [False, True]
    assert seeds.value[1] == pytest.approx(found.value[0], rel=1e-5)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("jax_debug_nans", True),
        ("jax_numpy_rank_promotion", "raise"),
        ("jax_numpy_dtype_promotion", "strict"),
    ],
)
def test_strict_settings_do_not_change_a_norm(setting, value):
    expected = hessian_norm(plain, PARAMS, X[0], batched=False).value
    before = getattr(jax.config, setting)
    jax.config.update(setting, value)
    try:
        found = hessian_norm(plain, PARAMS, X[0], batched=False).value
    finally:
        jax.config.update(setting, before)
    assert found == pytest.approx(expected, rel=1e-5)
