"""Public functions answer every kind of argument with a right number or an error of this package.

One table of calls and one of arguments: each pair must return, or raise an error that names the
field. Errors of JAX, NumPy and SciPy do not count. Under strict settings of JAX each call must
return the numbers of the plain call.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from ntk_core import (
    DAGNetwork,
    FullyConnected,
    InvalidInput,
    KernelOperator,
    Loss,
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
    sweep_widths,
    train,
)
from ntk_core.dynamics import (
    ClosedForm,
    auto_learning_rate,
    condition_numbers,
    gauss_newton_product,
    kernel_velocity,
    loss_hessian_product,
    one_sample_catapult,
)
from ntk_core.early_time import (
    LinearModel,
    activation_constants,
    deep_features,
    two_layer_features,
)
from ntk_core.fits import fit_power_law
from ntk_core.hessians import (
    bottleneck_block_norm,
    hessian_block_norms,
    hessian_norms_by_output,
    nonlinear_output_hessian,
    path_sup,
    shallow_hessian_blocks,
    smallest_eigenvalue_in_ball,
    vector_hessian_norm,
)
from ntk_core.kernels import (
    alignment,
    diagonal_ntk,
    gradient_norm_bound,
    infinite_width_nngp,
    kernel_distance,
    least_distance,
    trace_outputs,
)

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

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
KEY = jax.random.key(0)
NET_PARAMS = NET.init(KEY, (4,))


def plain(params: Any, x: Any) -> Any:
    return jnp.tanh(x @ params["w"]) @ params["v"]


def moved(params: Any) -> Any:
    """Return another checkpoint of the usual parameters; wrong ones as they are."""
    return MOVED if params is PARAMS else params


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
    "linearity_report": lambda f, w, x: linearity_report(f, w, moved(w), x).kernel_change,
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


@dataclass(frozen=True)
class Argument:
    """One argument of a public function.

    Attributes:
        call: argument ↦ numbers.
        right: a value that is accepted.
        fields: names that a refusal may state.
    """

    call: Callable[[Any], Any]
    right: Any
    fields: tuple[str, ...]


def swept(**given: Any) -> Any:
    how: dict[str, Any] = {"widths": (4, 8), "x": X, "y": Y, **given}
    small: dict[str, Any] = {"num_seeds": 1, "num_inputs": 0, "max_steps": 2, "num_records": 2}
    return sweep_widths(of_width, how["widths"], how["x"], how["y"], **small)


def of_width(width: int, key: Any) -> Any:
    params = jax.random.normal(key, (4, width)), jnp.ones((width, 2))
    return lambda p, x: jnp.tanh(x @ p[0]) @ p[1] / width**0.5, params


def two_layers(**given: Any) -> Any:
    how = {"d": 4, "covariance_ratio": 1.0, "rate_first": 0.1, "rate_second": 0.1, **given}
    return two_layer_features(activation_constants("erf"), **how)


SHALLOW = FullyConnected(width=8, depth=1, activation="tanh", trained="first")
SHALLOW_PARAMS = SHALLOW.init(jax.random.key(0), (4,))
SWISH = FullyConnected(width=8, depth=1, output="swish")
SWISH_PARAMS = SWISH.init(jax.random.key(0), (4,))
GRAPH = DAGNetwork(width=5, activation="relu", use_bias=False)
K4 = np.eye(6, dtype=np.float32).reshape(3, 2, 3, 2).swapaxes(1, 2)  # (n, n, C, C)
ONES = np.ones(4, np.float32)
FALLING = np.array([1.0, 0.5, 0.25, 0.1])
TARGETS = Y[:, 0]
ARRAYS: dict[str, Argument] = {
    "infinite_width_ntk": Argument(lambda x: infinite_width_ntk(NET, x), X, ("x1", "input_shape")),
    "infinite_width_nngp": Argument(
        lambda x: infinite_width_nngp(NET, x), X, ("x1", "input_shape")
    ),
    "kernel_change": Argument(lambda k: kernel_change(k, K), K, ("k", "k0")),
    "kernel_distance": Argument(lambda k: kernel_distance(k, K), K, ("kernel", "other")),
    "alignment": Argument(lambda k: alignment(k, np.ones(3)), K, ("kernel", "y")),
    "trace_outputs": Argument(trace_outputs, K4, ("kernel",)),
    "kernel_regression": Argument(lambda k: kernel_regression(k, Y, k).outputs, K, ("kernel",)),
    "targets of kernel_regression": Argument(
        lambda y: kernel_regression(K, y, K).outputs, Y, ("targets",)
    ),
    "vectors of product": Argument(
        lambda v: KernelOperator(plain, PARAMS, X).product(v), Y, ("v",)
    ),
    "least_distance": Argument(lambda x: least_distance(plain, PARAMS, MOVED, x), X, ("x", "net")),
    "end of least_distance": Argument(
        lambda w: least_distance(plain, PARAMS, {**PARAMS, "v": w}, X), PARAMS["v"], ("end",)
    ),
    "kernel of ClosedForm": Argument(lambda k: ClosedForm(k, Y, 0 * Y).flow([1.0]), K, ("kernel",)),
    "start of ClosedForm": Argument(lambda y: ClosedForm(K, y, Y).flow([1.0]), Y, ("start",)),
    "times of flow": Argument(lambda t: ClosedForm(K, Y, 0 * Y).flow(t), [1.0], ("times",)),
    "steps of descent": Argument(
        lambda t: ClosedForm(K, Y, 0 * Y).descent(t, 0.1), [1.0], ("steps",)
    ),
    "inputs of a network": Argument(lambda x: NET.apply(NET_PARAMS, x), X, ("x", "input_shape")),
    "shape of init": Argument(lambda shape: NET.init(KEY, shape), (4,), ("input_shape",)),
    "key of init": Argument(lambda key: NET.init(key, (4,)), KEY, ("key",)),
    "smallest of condition_numbers": Argument(
        lambda each: condition_numbers(each, FALLING, 10).values,
        FALLING,
        ("smallest", "largest"),
    ),
    "largest of condition_numbers": Argument(
        lambda each: condition_numbers(FALLING, each, 10).values, FALLING, ("largest",)
    ),
    "widths of fit_power_law": Argument(
        lambda each: fit_power_law(each, FALLING), np.arange(1.0, 5), ("widths", "values")
    ),
    "values of fit_power_law": Argument(
        lambda each: fit_power_law([1, 2, 4, 8], each), FALLING, ("values",)
    ),
    "one_sample_catapult": Argument(
        lambda each: one_sample_catapult(each, 0.5, 0.01, 3).u, 0.01, ("u",)
    ),
}
# Those that compile more.
SLOW_ARRAYS: dict[str, Argument] = {
    "targets of train": Argument(
        lambda y: train(plain, PARAMS, X, y, max_steps=1).network.outputs, Y, ("y",)
    ),
    "auto_learning_rate": Argument(
        lambda each: auto_learning_rate(each, Loss("linear")), K4, ("kernel",)
    ),
    "gradient_norm_bound": Argument(lambda each: gradient_norm_bound(GRAPH, each), X[0], ("x",)),
    "w1 of bottleneck_block_norm": Argument(
        lambda each: bottleneck_block_norm(each, ONES, ONES, 1.0), ONES, ("w1", "w3")
    ),
    "v of bottleneck_block_norm": Argument(
        lambda each: bottleneck_block_norm(ONES, ONES, each, 1.0), ONES, ("v",)
    ),
    "x of bottleneck_block_norm": Argument(
        lambda each: bottleneck_block_norm(ONES, ONES, ONES, each), ONES[0], ("x",)
    ),
    "shallow_hessian_blocks": Argument(
        lambda each: shallow_hessian_blocks(SHALLOW, SHALLOW_PARAMS, each), X[0], ("x", "net")
    ),
    "hessian_norms_by_output": Argument(
        lambda each: (
            hessian_norms_by_output(SWISH, [SWISH_PARAMS], each, ("linear",))["linear"].value
        ),
        X,
        ("x", "net"),
    ),
    "nonlinear_output_hessian": Argument(
        lambda each: nonlinear_output_hessian(SWISH, SWISH_PARAMS, each).measured.value,
        X[0],
        ("x", "net"),
    ),
    "smallest_eigenvalue_in_ball": Argument(
        lambda each: smallest_eigenvalue_in_ball(
            plain, PARAMS, each, 0.1, num_starts=1, num_steps=1
        ),
        X,
        ("x", "net"),
    ),
    "radius of smallest_eigenvalue_in_ball": Argument(
        lambda each: smallest_eigenvalue_in_ball(plain, PARAMS, X, each, num_starts=1, num_steps=1),
        0.1,
        ("radius",),
    ),
    "kernel_velocity": Argument(
        lambda each: kernel_velocity(plain, PARAMS, each, Y), X, ("x", "net")
    ),
    "targets of kernel_velocity": Argument(
        lambda each: kernel_velocity(plain, PARAMS, X, each), Y, ("y",)
    ),
    "inputs of sweep_widths": Argument(lambda each: swept(x=each), X, ("x",)),
    "targets of sweep_widths": Argument(lambda each: swept(y=each), Y, ("y", "model")),
    "widths of sweep_widths": Argument(lambda each: swept(widths=each), [4, 8], ("widths",)),
    "inputs of LinearModel": Argument(
        lambda each: LinearModel(two_layers(), each, TARGETS).optimal_weights(), X, ("x", "y")
    ),
    "targets of LinearModel": Argument(
        lambda each: LinearModel(two_layers(), X, each).optimal_weights(), TARGETS, ("y",)
    ),
    "activation_constants": Argument(activation_constants, "tanh", ("activation",)),
    "dimension of two_layer_features": Argument(lambda each: two_layers(d=each), 4, ("d",)),
    "rate of two_layer_features": Argument(
        lambda each: two_layers(rate_first=each), 0.1, ("learning_rate",)
    ),
    "ratio of deep_features": Argument(
        lambda each: deep_features("tanh", 2, 4, each, 0.1, 0.1), 1.0, ("covariance_ratio",)
    ),
}


def deleted(array: np.ndarray) -> jax.Array:
    """Return an array as it is after its donation to a jitted function."""
    found = jnp.array(array)
    found.delete()
    return found


WRONG_ARRAYS: dict[str, Any] = {
    "deleted": deleted(X),
    "no rows": np.zeros((0, 4), np.float32),
    "NaN": np.full((3, 4), np.nan, np.float32),
    "infinite": np.full((3, 4), np.inf, np.float32),
    "integers": np.arange(12).reshape(3, 4),
    "booleans": np.ones((3, 4), bool),
    "a list": X.tolist(),
    "a masked array": np.ma.masked_array(X, X > 0),
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
    "a dictionary without rows": {"a": np.zeros((0, 4), np.float32)},
    "a dictionary of text": {"a": "abc"},
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
    "a masked leaf": {**PARAMS, "v": np.ma.masked_array(PARAMS["v"], PARAMS["v"] > 0)},
    "a Python float": {**PARAMS, "gain": 1.0},
    "integers only": jax.tree.map(lambda leaf: leaf.astype(int), PARAMS),
    "complex": jax.tree.map(lambda leaf: leaf + 1j, PARAMS),
    "a missing leaf": {"w": PARAMS["w"]},
    "leaves of other shapes": {"w": PARAMS["v"], "v": PARAMS["w"]},
    "a typed key beside": {**PARAMS, "key": jax.random.key(0)},
    "a raw key beside": {**PARAMS, "key": jax.random.PRNGKey(0)},
    "objects": np.array([None, None]),
    "an integer beside": {**PARAMS, "count": 1},
    "a boolean beside": {**PARAMS, "is_trained": True},
    "an empty leaf beside": {**PARAMS, "none": np.zeros((0, 3), np.float32)},
    "8-bit floats beside": {**PARAMS, "narrow": jnp.ones(2, jnp.float8_e4m3fn)},
    "a deleted leaf": {**PARAMS, "v": deleted(PARAMS["v"])},
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
    "keys": lambda w, x: jax.random.split(jax.random.key(0), len(x)),
    "constants of NumPy": lambda w, x: np.zeros((len(x), 2), np.float32),
    "8-bit floats": lambda w, x: plain(w, x).astype(jnp.float8_e4m3fn),
    "8-bit floats inside": lambda w, x: plain(w, x.astype(jnp.float8_e4m3fn).astype(jnp.float32)),
    "16-bit floats": lambda w, x: plain(w, x).astype(jnp.bfloat16),
    "three axes": lambda w, x: jnp.stack([plain(w, x)] * 2, 1),
    "four axes": lambda w, x: plain(w, x)[:, None, None],
    "a host function": lambda w, x: jax.pure_callback(
        np.tanh, jax.ShapeDtypeStruct((len(x), 2), np.float32), plain(w, x)
    ),
    "a mean over rows": lambda w, x: plain(w, x) - plain(w, x).mean(0),
}


def answers(
    call: Callable[[Any], object], values: dict[str, Any], fields: tuple[str, ...]
) -> dict[str, str]:
    """Return by kind what is wrong.

    Errors of another library, and refusals that name another field.
    """
    found = {}
    for kind, value in values.items():
        try:
            call(value)
        except InvalidInput as error:
            if error.field not in fields and error.field not in leaves_of(value, fields):
                found[kind] = f"names {error.field}: {error}"
        except Exception as error:
            found[kind] = f"{type(error).__name__}: {str(error)[:160]}"
    return found


def leaves_of(value: Any, fields: tuple[str, ...]) -> list[str]:
    """Return the names of the leaves of a dictionary given for a field, such as ``x.a``."""
    names = value if isinstance(value, dict) else {}
    return [f"{field}.{name}" for field in fields for name in names]


def wrong_kinds(right: Any) -> dict[str, Any]:
    """Return arrays of all wrong kinds, some with the shape of the right one."""
    found = dict(WRONG_ARRAYS)
    if isinstance(right, np.ndarray | np.number):
        array = np.asarray(right)
        found |= {
            "NaN of its shape": np.full_like(array, np.nan),
            "infinite of its shape": np.full_like(array, np.inf),
            "zeros of its shape": np.zeros_like(array),
            "integers of its shape": np.ones_like(array, int),
            "booleans of its shape": np.ones_like(array, bool),
            "complex of its shape": array + 1j,
            "masked of its shape": np.ma.masked_array(array, array > 0),
            "a list of its shape": array.tolist(),
            "objects of its shape": array.astype(object),
            "text of its shape": array.astype(str),
        }
    return found


def rows_of(name: str) -> np.ndarray:
    return X[0] if name in OF_ONE_INPUT else X


@pytest.mark.long_after(2)
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_every_kind(name: str) -> None:
    argument = ARRAYS[name]
    argument.call(argument.right)
    assert not answers(argument.call, wrong_kinds(argument.right), argument.fields)


@pytest.mark.long_after(1)
@pytest.mark.sampled(7)  # all arguments pass one check
@pytest.mark.slow  # each compiles several programs
@pytest.mark.parametrize("name", SLOW_ARRAYS)
def test_arrays_of_every_kind_slow(name: str) -> None:
    argument = SLOW_ARRAYS[name]
    argument.call(argument.right)
    assert not answers(argument.call, wrong_kinds(argument.right), argument.fields)


@pytest.mark.long_after(1)
@pytest.mark.sampled(6)  # all functions have one entrance
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_inputs_of_every_kind(name: str) -> None:
    def call(x: Any) -> object:
        return MODELS[name](plain, PARAMS, x)

    assert not answers(call, WRONG_ARRAYS, ("x", "x1", "net"))


@pytest.mark.long_after(1)
@pytest.mark.sampled(6)  # all functions have one entrance
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_parameters_of_every_kind(name: str) -> None:
    def call(params: Any) -> object:
        return MODELS[name](plain, params, rows_of(name))

    # A model may fail at parameters of other shapes; it then reports the inputs.
    assert not answers(call, WRONG_PARAMS, ("params", "params1", "path", "x", "x1"))


@pytest.mark.long_after(1)
@pytest.mark.sampled(6)  # all functions have one entrance
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_functions_of_every_kind(name: str) -> None:
    def call(function: Any) -> object:
        return MODELS[name](function, PARAMS, rows_of(name))

    # Other numbers of outputs do not fit the targets and vectors.
    fields = ("net", "x", "x1", "y", "v", "targets")
    assert not answers(call, WRONG_FUNCTIONS, fields)


@pytest.mark.long_after(2)
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


BESIDE: dict[str, dict[str, Any]] = {
    "integer": {"count": 1},
    "boolean": {"is_trained": True},
    "empty": {"none": np.zeros((0, 3), np.float32)},
    "containers": {"none": None, "list": [], "tree": {}},
}


@pytest.mark.long_after(2)
@pytest.mark.parametrize("name", ["hessian_norm", "train", "layer_quantities", "extremes"])
@pytest.mark.parametrize("beside", BESIDE)
def test_leaves_that_do_not_move_do_not_count(name: str, beside: str) -> None:
    expected = MODELS[name](plain, PARAMS, rows_of(name))
    found = MODELS[name](plain, {**PARAMS, **BESIDE[beside]}, rows_of(name))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["extremes", "train"])
def test_outputs_of_16_bits_are_near_those_of_32(name: str) -> None:
    expected = MODELS[name](plain, PARAMS, X)
    found = MODELS[name](lambda w, x: plain(w, x).astype(jnp.bfloat16), PARAMS, X)
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("around", [jax.jit, jax.grad, jax.vmap])
@pytest.mark.parametrize("name", ["infinite_width_ntk", "infinite_width_nngp"])
def test_infinite_width_refuses_transformations(name: str, around: Callable[..., Any]) -> None:
    x = X[None] if around is jax.vmap else X
    with pytest.raises(InvalidInput, match=r"inside of jax\.jit"):
        around(lambda rows: jnp.sum(ARRAYS[name].call(rows)))(x)


def test_flow_ends_at_the_targets() -> None:
    found, _ = ClosedForm(K, Y, 0 * Y).flow([np.inf])
    np.testing.assert_allclose(found[0], 0 * Y, atol=1e-12)


def test_networks_under_strict_settings() -> None:
    expected = NET.apply(NET_PARAMS, X)
    with jax.numpy_rank_promotion("raise"), jax.debug_nans(True):
        params = NET.init(jax.random.key(0), (4,))
        # a second compilation, whose sums may round differently
        np.testing.assert_allclose(NET.apply(params, X), expected, rtol=1e-5, atol=2e-7)
