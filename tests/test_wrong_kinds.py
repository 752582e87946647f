"""Public functions answer every kind of argument with a right number or an error of this package.

One table of calls and one of arguments: each pair must return, or raise an error that names the field. Errors of JAX,
NumPy and SciPy do not count. Under strict settings of JAX each call must return the numbers of the plain call.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from ntk_core import (
    FullyConnected,
    InvalidInput,
    KernelOperator,
    TracingDisagrees,
    ball_sup,
    empirical_ntk,
    hessian_density,
    hessian_eigenpairs,
    hessian_norm,
    infinite_width_ntk,
    kernel_change,
    kernel_change_between,
    kernel_regression,
    layer_quantities,
    layers_of,
    linearity_report,
    linearize,
    quadratic_model,
    train,
)
from ntk_core.dynamics import (
    ClosedForm,
    gauss_newton_product,
    loss_hessian_product,
)
from ntk_core.hessians import hessian_block_norms, path_sup, vector_hessian_norm
from ntk_core.kernels import (
    alignment,
    diagonal_ntk,
    infinite_width_nngp,
    kernel_distance,
    least_distance,
    trace_outputs,
)

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

OURS = (InvalidInput, TracingDisagrees)  # TooLarge is an InvalidInput
RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype(np.float32)
Y = RNG.standard_normal((3, 2)).astype(np.float32)
PARAMS = {
    "w": RNG.standard_normal((4, 5)).astype(np.float32),
    "v": RNG.standard_normal((5, 2)).astype(np.float32),
}
MOVED = {name: 1.05 * leaf for name, leaf in PARAMS.items()}
K = np.eye(3, dtype=np.float32)
NET = FullyConnected(width=4, depth=1, activation="tanh")
NET_PARAMS = NET.init(jax.random.key(0), (4,))


def plain(params: Any, x: Any) -> Any:
    return jnp.tanh(x @ params["w"]) @ params["v"]


@pytest.fixture(autouse=True)
def _as_for_users() -> Iterator[None]:
    """Call without the type checks of the tests, which users do not have."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


# (function, parameters, inputs) ↦ numbers. Those of one input measure the first row of a batch.
MODELS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "empirical_ntk": lambda f, w, x: empirical_ntk(f, w, x),
    "diagonal_ntk": lambda f, w, x: diagonal_ntk(f, w, x),
    "product": lambda f, w, x: KernelOperator(f, w, x).product(Y),
    "extremes": lambda f, w, x: KernelOperator(f, w, x).extremes().largest,
    "solve": lambda f, w, x: KernelOperator(f, w, x).solve(Y).coefficients,
    "kernel_change_between": lambda f, w, x: kernel_change_between(f, w, w, x).change,
    "linearity_report": lambda f, w, x: linearity_report(f, w, w, x).kernel_change,
    "layers_of": lambda f, w, x: len(layers_of(f, w, x).layers),
    "linearize": lambda f, w, x: linearize(f, w)(w, x),
    "quadratic_model": lambda f, w, x: quadratic_model(f, w)(w, x),
    "train": lambda f, w, x: train(f, w, x, Y, max_steps=2).network.outputs,
    "loss_hessian_product": lambda f, w, x: loss_hessian_product(f, w, x, Y, w),
    "gauss_newton_product": lambda f, w, x: gauss_newton_product(f, w, x, Y, w),
    "hessian_norms": lambda f, w, x: hessian_norm(f, w, x, batched=True).value,
    "hessian_norm": lambda f, w, x: hessian_norm(f, w, x, batched=False).value,
    "hessian_eigenpairs": lambda f, w, x: hessian_eigenpairs(f, w, x, num_wanted=1).eigenvalues,
    "hessian_density": lambda f, w, x: hessian_density(f, w, x, num_probes=1).nodes,
    "hessian_block_norms": lambda f, w, x: hessian_block_norms(f, w, x).values,
    "vector_hessian_norm": lambda f, w, x: vector_hessian_norm(f, w, x).value,
    "ball_sup": lambda f, w, x: ball_sup(f, w, x, 0.1, num_starts=1, num_steps=1).value,
    "path_sup": lambda f, w, x: path_sup(f, [w, w], x).values,
    "layer_quantities": lambda f, w, x: layer_quantities(f, w, x).bound,
}
OF_ONE_INPUT = {
    "hessian_norm",
    "hessian_eigenpairs",
    "hessian_density",
    "hessian_block_norms",
    "vector_hessian_norm",
    "ball_sup",
    "path_sup",
    "layer_quantities",
}
# An array ↦ numbers.
ARRAYS: dict[str, Callable[[Any], Any]] = {
    "infinite_width_ntk": lambda x: infinite_width_ntk(NET, x),
    "infinite_width_nngp": lambda x: infinite_width_nngp(NET, x),
    "kernel_change": lambda k: kernel_change(k, K),
    "kernel_distance": lambda k: kernel_distance(k, K),
    "alignment": lambda k: alignment(k, np.ones(3)),
    "trace_outputs": lambda k: trace_outputs(k),
    "kernel_regression": lambda k: kernel_regression(k, Y, k).outputs,
    "targets of kernel_regression": lambda y: kernel_regression(K, y, K).outputs,
    "targets of train": lambda y: train(plain, PARAMS, X, y, max_steps=1).network.outputs,
    "vectors of product": lambda v: KernelOperator(plain, PARAMS, X).product(v),
    "least_distance": lambda y: least_distance(NET, NET_PARAMS, X, y),
    "kernel of ClosedForm": lambda k: ClosedForm(k, Y, 0 * Y).flow([1.0]),
    "start of ClosedForm": lambda y: ClosedForm(K, y, Y).flow([1.0]),
    "times of flow": lambda t: ClosedForm(K, Y, 0 * Y).flow(t),
    "steps of descent": lambda t: ClosedForm(K, Y, 0 * Y).descent(t, 0.1),
    "inputs of a network": lambda x: NET.apply(NET_PARAMS, x),
    "shape of init": lambda shape: NET.init(jax.random.key(0), shape),
    "key of init": lambda key: NET.init(key, (4,)),
}
WRONG_ARRAYS: dict[str, Any] = {
    "no rows": np.zeros((0, 4), np.float32),
    "NaN": np.full((3, 4), np.nan, np.float32),
    "infinite": np.full((3, 4), np.inf, np.float32),
    "integers": np.arange(12).reshape(3, 4),
    "booleans": np.ones((3, 4), bool),
    "a list": X.tolist(),
    "a ragged list": [[1.0], [1.0, 2.0]],
    "text": "abc",
    "an array of text": np.full((3, 4), "a"),
    "nothing": None,
    "objects": np.full((3, 4), None),
    "a number": 3.0,
    "0-d": np.float32(3),
    "one column too many": np.ones((3, 5), np.float32),
    "four axes": np.ones((3, 4, 2, 2), np.float32),
    "complex": X + 1j,
    "a dictionary": {"a": 1},
    "a typed key": jax.random.key(0),
    "a raw key": jax.random.PRNGKey(0),
    "infinite times": [np.inf],
    "negative times": [-1.0],
}
WRONG_PARAMS: dict[str, Any] = {
    "no leaf": {},
    "nothing": None,
    "a number": 3.0,
    "text": "abc",
    "a leaf of text": {**PARAMS, "v": "abc"},
    "a Python float": {**PARAMS, "gain": 1.0},
    "integers only": jax.tree.map(lambda leaf: leaf.astype(int), PARAMS),
    "complex": jax.tree.map(lambda leaf: leaf + 1j, PARAMS),
    "a missing leaf": {"w": PARAMS["w"]},
    "leaves of other shapes": {"w": PARAMS["v"], "v": PARAMS["w"]},
    "a typed key beside": {**PARAMS, "key": jax.random.key(0)},
    "a raw key beside": {**PARAMS, "key": jax.random.PRNGKey(0)},
    "objects": np.array([None, None]),
}


def one_number_of_rows(params: Any, x: Any) -> Any:
    return plain(params, np.full((3, 3), 1 / 3, np.float32) @ x)


def loop(params: Any, x: Any) -> Any:
    """A loop without reverse mode, whose number of steps depends on the parameters."""
    steps = jnp.abs(params["w"]).max().astype(int)
    return jax.lax.while_loop(
        lambda state: state[0] < steps,
        lambda state: (state[0] + 1, jnp.tanh(state[1])),
        (0, plain(params, x)),
    )[1]


WRONG_FUNCTIONS: dict[str, Any] = {
    "nothing": None,
    "text": "abc",
    "a class": FullyConnected,
    "one number of rows": one_number_of_rows,
    "a loop without reverse mode": loop,
    "a loss": lambda w, x: jnp.sum(plain(w, x)),
    "a tuple": lambda w, x: (plain(w, x), x),
    "integers": lambda w, x: plain(w, x).astype(int),
    "NumPy inside": lambda w, x: np.tanh(np.asarray(x) @ np.asarray(w["w"])),
    "a condition on values": lambda w, x: plain(w, x) if w["w"][0, 0] > 0 else x,
    "no outputs": lambda w, x: jnp.zeros((len(x), 0)),
    "one argument": lambda w: w,
    "a mean over rows": lambda w, x: plain(w, x) - plain(w, x).mean(0),
}


def raw_error(call: Callable[[], object]) -> str:
    """Return the error of another library, or nothing."""
    try:
        call()
    except OURS:
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:160]}"
    return ""


def rows_of(name: str) -> np.ndarray:
    return X[0] if name in OF_ONE_INPUT else X


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_every_kind(name: str) -> None:
    raw = {kind: raw_error(lambda x=x: ARRAYS[name](x)) for kind, x in WRONG_ARRAYS.items()}
    assert not {kind: error for kind, error in raw.items() if error}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_inputs_of_every_kind(name: str) -> None:
    raw = {}
    for kind, x in WRONG_ARRAYS.items():
        raw[kind] = raw_error(lambda x=x: MODELS[name](plain, PARAMS, x))
    assert not {kind: error for kind, error in raw.items() if error}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_parameters_of_every_kind(name: str) -> None:
    raw = {}
    for kind, params in WRONG_PARAMS.items():
        raw[kind] = raw_error(lambda w=params: MODELS[name](plain, w, rows_of(name)))
    assert not {kind: error for kind, error in raw.items() if error}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_functions_of_every_kind(name: str) -> None:
    raw = {}
    for kind, function in WRONG_FUNCTIONS.items():
        raw[kind] = raw_error(lambda f=function: MODELS[name](f, PARAMS, rows_of(name)))
    assert not {kind: error for kind, error in raw.items() if error}


@pytest.mark.parametrize("name", ["empirical_ntk", "linearize", "hessian_norm", "train"])
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("jax_debug_nans", True),
        ("jax_numpy_rank_promotion", "raise"),
        ("jax_numpy_dtype_promotion", "strict"),
    ],
)
def test_strict_settings_do_not_change_numbers(name: str, setting: str, value: object) -> None:
    expected = MODELS[name](plain, PARAMS, rows_of(name))
    before = getattr(jax.config, setting)
    jax.config.update(setting, value)
    try:
        found = MODELS[name](plain, PARAMS, rows_of(name))
    finally:
        jax.config.update(setting, before)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["empirical_ntk", "linearize", "hessian_norm"])
def test_double_precision_toggled_between_calls(name: str) -> None:
    expected = MODELS[name](plain, PARAMS, rows_of(name))
    with jax.enable_x64(True):
        inside = MODELS[name](plain, PARAMS, rows_of(name))
    after = MODELS[name](plain, PARAMS, rows_of(name))
    np.testing.assert_allclose(inside, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after, expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["empirical_ntk", "linearize", "hessian_norm"])
def test_recomputed_functions_give_the_same_numbers(name: str) -> None:
    expected = MODELS[name](plain, PARAMS, rows_of(name))
    found = MODELS[name](jax.checkpoint(plain), PARAMS, rows_of(name))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("around", [jax.jit, jax.grad, jax.vmap])
@pytest.mark.parametrize("name", ["infinite_width_ntk", "infinite_width_nngp"])
def test_infinite_width_refuses_transformations(name: str, around: Callable[..., Any]) -> None:
    x = X[None] if around is jax.vmap else X
    with pytest.raises(InvalidInput, match=r"inside of jax\.jit"):
        around(lambda rows: jnp.sum(ARRAYS[name](rows)))(x)


def test_flow_ends_at_the_targets() -> None:
    found, _ = ClosedForm(K, Y, 0 * Y).flow([np.inf])
    np.testing.assert_allclose(found[0], 0 * Y, atol=1e-12)


def test_networks_under_strict_settings() -> None:
    expected = NET.apply(NET_PARAMS, X)
    with jax.numpy_rank_promotion("raise"), jax.debug_nans(True):
        params = NET.init(jax.random.key(0), (4,))
        np.testing.assert_array_equal(NET.apply(params, X), expected)
