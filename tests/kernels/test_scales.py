"""Kernels and reports of outputs of any scale, against the same function in float64."""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from jax import Array
from jaxtyping import PyTree

from ntk_core import (
    InvalidInput,
    KernelOperator,
    empirical_ntk,
    gauss_newton,
    infinite_width_ntk,
    kernel_change,
    kernel_change_between,
    kernel_regression,
    linearity_report,
    linearize,
    quadratic_model,
    train,
)
from ntk_core.dynamics import Loss, Samples, Start, TrainOptions, descend
from ntk_core.dynamics._measures import KernelPathMeasure
from ntk_core.dynamics._models import NetworkModel
from ntk_core.kernels import alignment, generic_ntk, kernel_distance
from ntk_core.networks import FullyConnected
from tests import test_wrong_kinds as wrong_kinds

# NumPy reports that JAX casts a literal of 1e30 to a narrower type when it folds constants.
pytestmark = [
    pytest.mark.filterwarnings("ignore:overflow encountered in cast"),
    pytest.mark.first_cases(1),
]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 4)).astype(np.float32)
Y = RNG.standard_normal((5, 2)).astype(np.float32)
PARAMS = {
    "w": RNG.standard_normal((4, 6)).astype(np.float32),
    "v": RNG.standard_normal((6, 2)).astype(np.float32),
}
MOVED = {name: 1.05 * leaf for name, leaf in PARAMS.items()}


def plain(params: PyTree, x: Array) -> Array:
    return jnp.tanh(x @ params["w"]) @ params["v"]


def exact_change() -> float:
    with jax.enable_x64(True):
        x = jnp.asarray(X, jnp.float64)
        trees = [
            jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), each)
            for each in (PARAMS, MOVED)
        ]
        first, last = (np.asarray(generic_ntk(plain, each, x)) for each in trees)
    return float(np.linalg.norm(last - first) / np.linalg.norm(first))


@pytest.mark.parametrize("scale", [1e-37, 1e-30, 1e-19, 1.0, 1e12, 1e30, 1e36])
def test_kernel_change_does_not_depend_on_scale(scale: float) -> None:
    found = kernel_change_between(lambda w, x: plain(w, x) * scale, PARAMS, MOVED, X)
    assert found.change == pytest.approx(exact_change(), rel=1e-4)  # float32 sums
    assert 0 < found.norm0 < np.inf


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_report_does_not_depend_on_scale(scale: float) -> None:
    expected = linearity_report(plain, PARAMS, MOVED, X, Y)
    found = linearity_report(
        lambda w, x: plain(w, x) * scale, PARAMS, MOVED, X, Y * np.float32(scale)
    )
    for name in ("output_error", "second_order_share", "derivative_change", "kernel_change"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-3)
    for ours, theirs in zip(found.layers, expected.layers, strict=True):
        assert ours.kernel_share == pytest.approx(theirs.kernel_share, rel=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_kernel_beyond_its_type_is_refused(scale: float) -> None:
    with pytest.raises(InvalidInput, match="kernel entries around"):
        empirical_ntk(lambda w, x: plain(w, x) * scale, PARAMS, X)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        (np.float32, 1e-40),
        (np.float32, 1e-30),
        (np.float32, 3e38),
        (np.float16, 6e4),
        (jnp.bfloat16, 1e30),
    ],
)
def test_change_of_given_kernels_at_every_scale(dtype: type, scale: float) -> None:
    first = jnp.asarray(np.full((300, 300), scale), dtype)
    last = jnp.asarray(np.full((300, 300), 0.75 * scale), dtype)
    before, after = (np.asarray(each).astype(np.float64) for each in (first, last))
    expected = np.linalg.norm(after - before) / np.linalg.norm(before)
    assert float(kernel_change(last, first)) == pytest.approx(expected, rel=1e-5)
    assert kernel_distance(first, last) == pytest.approx(0, abs=1e-5)
    assert alignment(first, np.ones(300)) == pytest.approx(1, rel=1e-5)


SATURATED = [(np.float32, 1e15), (np.float32, 1e19), (np.float32, 1e30), (jnp.bfloat16, 1e30)]


@pytest.mark.parametrize(("dtype", "scale"), SATURATED)
def test_inputs_that_saturate_a_network_leave_the_last_layer(dtype: type, scale: float) -> None:
    x = jnp.asarray(X, dtype) * jnp.asarray(scale, dtype)
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), PARAMS)
    signs = np.sign(np.asarray(x, np.float64) @ np.asarray(params["w"], np.float64))
    expected = np.einsum("ih,jh,ab->ijab", signs, signs, np.eye(2))
    np.testing.assert_allclose(empirical_ntk(plain, params, x), expected, atol=1e-6)
    moved = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), MOVED)
    found = kernel_change_between(plain, params, moved, x)
    assert found.change == pytest.approx(0, abs=1e-6)
    assert found.norm0 == pytest.approx(np.linalg.norm(expected), rel=1e-6)


def test_rounding_of_saturated_units_is_no_fault() -> None:
    """1 − tanh² of units at 1 − 1e-7 has no digits, and its part of the kernel is a millionth."""
    x1 = np.ones((3, 4), np.uint8)
    x2 = np.full((3, 4), 44, np.uint8)
    found = empirical_ntk(plain, wrong_kinds.PARAMS, x1, x2)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), wrong_kinds.PARAMS)
        expected = generic_ntk(plain, wide, jnp.asarray(x1, float), jnp.asarray(x2, float))
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_parts_of_saturated_networks_are_refused() -> None:
    with pytest.raises(InvalidInput, match="products of layers overflow"):
        empirical_ntk(plain, PARAMS, X * np.float32(1e30), per_layer=True)


def test_a_training_whose_parts_overflow_keeps_its_records() -> None:
    net = FullyConnected(width=8, depth=1, activation="tanh")
    params = net.init(jax.random.key(0), X.shape[1:])
    x = X * np.float32(1e30)
    models = {"network": NetworkModel(net, Loss("linear"))}
    start = {"network": Start(*net.partition(params))}
    data = Samples(jnp.asarray(x), jnp.ones((len(x), 1)))
    options = TrainOptions(max_steps=1, num_records=2, learning_rate=1e-3)
    measure = KernelPathMeasure("network", data.x)
    descend(models, start, data, options, [measure])
    assert np.isnan(measure.result().change).all(), "known to be unknown, not refused"


def test_report_of_saturated_networks_is_linear() -> None:
    found = linearity_report(plain, PARAMS, MOVED, X * np.float32(1e30))
    assert found.output_error == pytest.approx(0, abs=1e-4)
    assert found.kernel_change == pytest.approx(0, abs=1e-6)


NARROW = [
    (np.float16, 1e-3),
    (np.float16, 1e3),
    (np.float16, 1.0),
    (jnp.bfloat16, 1e-30),
    (jnp.bfloat16, 1e30),
    (jnp.bfloat16, 1.0),
]


def narrowed(dtype: type, scale: float) -> tuple[Callable, PyTree, PyTree, Array]:
    """Return a function with outputs of this size, and parameters and inputs of 16 bits."""
    params, moved, x = (
        jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), each) for each in (PARAMS, MOVED, X)
    )

    def apply(w: PyTree, rows: Array) -> Array:
        return plain(w, rows) * jnp.asarray(scale, dtype)

    return apply, params, moved, x


def widened(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), tree)


def test_derivatives_of_few_digits_are_refused() -> None:
    """Weights of the last layer near the least number of float16, beside usual ones."""
    shapes = {"w": (6, 16), "b": (16,), "u": (16, 16), "v": (16, 2)}
    rng = np.random.default_rng(0)
    params = {}
    for name, shape in shapes.items():
        size = 1e-6 if name == "v" else 1.0
        leaf = size * rng.standard_normal(shape) / shape[0] ** 0.5
        params[name] = jnp.asarray(leaf, jnp.float16)
    x = jnp.asarray(rng.standard_normal((5, 6)), jnp.float16)

    def network(w: PyTree, rows: Array) -> Array:
        hidden = jnp.tanh(rows @ w["w"] + w["b"])
        return jnp.tanh(hidden @ w["u"]) @ w["v"]

    with pytest.raises(InvalidInput, match="float16 has all digits from"):
        empirical_ntk(network, params, x)


@pytest.mark.long_after(2)
@pytest.mark.sampled(4)  # small and large outputs of both types
@pytest.mark.parametrize(("dtype", "scale"), NARROW)
def test_probes_of_narrow_types_equal_wide_kernels(dtype: type, scale: float) -> None:
    """The sketch of 32 probes spans all 10 outputs, so that nothing is estimated."""
    apply, params, moved, x = narrowed(dtype, scale)
    found = kernel_change_between(apply, params, moved, x, probes=32)
    with jax.enable_x64(True):
        first, last = (
            np.asarray(generic_ntk(plain, widened(each), widened(x))) for each in (params, moved)
        )
    exact = np.linalg.norm(last - first) / np.linalg.norm(first)
    tolerance = 8 * float(jnp.finfo(dtype).eps)
    assert found.change == pytest.approx(exact, abs=tolerance)
    size = scale**2 * np.linalg.norm(first)
    assert found.norm0 == pytest.approx(size, rel=tolerance)


@pytest.mark.long_after(2)
@pytest.mark.sampled(6)  # every other one: both kernels and types, small and large outputs
@pytest.mark.parametrize(("dtype", "scale"), NARROW)
@pytest.mark.parametrize("kernel", ["exact", "estimated"])
def test_reports_of_narrow_types_equal_wide_ones(dtype: type, scale: float, kernel: str) -> None:
    apply, params, moved, x = narrowed(dtype, scale)
    found = linearity_report(apply, params, moved, x, kernel=kernel)
    with jax.enable_x64(True):
        expected = linearity_report(plain, widened(params), widened(moved), widened(x))
    tolerance = 8 * float(jnp.finfo(dtype).eps)
    for name in ("kernel_change", "output_change", "output_error", "second_order_share"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=tolerance), name
    for ours, theirs in zip(found.layers, expected.layers, strict=True):
        assert ours.kernel_share == pytest.approx(theirs.kernel_share, abs=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(np.float16, 0.1), (np.float16, 10.0), (jnp.bfloat16, 1e-12), (jnp.bfloat16, 1e12)],
)
def test_curvature_of_narrow_types_equals_wide_one(dtype: type, scale: float) -> None:
    apply, params, _, x = narrowed(dtype, scale)
    y = jnp.asarray(Y * scale, dtype)
    operator = gauss_newton(apply, params, x, y)
    with jax.enable_x64(True):
        wide = gauss_newton(plain, widened(params), widened(x), jnp.asarray(Y, jnp.float64))
        expected = wide.norm().value, wide.trace().value
    tolerance = 16 * float(jnp.finfo(dtype).eps)
    found = operator.norm().value, operator.trace().value
    np.testing.assert_allclose(found, scale**2 * np.array(expected), rtol=tolerance)


def test_constants_of_a_product_do_not_hide_its_kernel() -> None:
    def around(params: PyTree, x: Array) -> Array:
        # The parameter of the second product has the constant 1e19, its cotangent 1e-19.
        return (plain(params, x) * 1e19).reshape(len(x), 1, 2)[:, 0] * 1e-19

    expected = empirical_ntk(plain, PARAMS, X, per_layer=True)
    found = empirical_ntk(around, PARAMS, X, per_layer=True)
    for name, part in expected.items():
        np.testing.assert_allclose(found[name], part, rtol=1e-5, atol=1e-5)


def exact_product(vectors: np.ndarray) -> np.ndarray:
    """Return K v in float64."""
    with jax.enable_x64(True):
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), PARAMS)
        kernel = np.asarray(generic_ntk(plain, params, jnp.asarray(X, jnp.float64)))
    return np.einsum("ijab,jb->ia", kernel, vectors)


@pytest.mark.parametrize(
    ("outputs", "vectors"),
    [(1.0, 1e-30), (1.0, 1e30), (1e-30, 1e30), (1e30, 1e-30), (1e-15, 1.0), (1e15, 1.0)],
)
def test_products_at_every_scale(outputs: float, vectors: float) -> None:
    kernel = KernelOperator(lambda w, x: plain(w, x) * outputs, PARAMS, X)
    v = Y * np.float32(vectors)
    expected = exact_product(v.astype(np.float64)) * outputs**2
    np.testing.assert_allclose(np.asarray(kernel.product(v), np.float64), expected, rtol=1e-4)
    np.testing.assert_allclose(kernel.flat_product(v.ravel()), expected.ravel(), rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e-19, 1e19, 1e30])
def test_products_beyond_their_type_are_refused(scale: float) -> None:
    kernel = KernelOperator(lambda w, x: plain(w, x) * scale, PARAMS, X)
    with pytest.raises(InvalidInput, match="products with v"):
        kernel.product(Y)
    with pytest.raises(InvalidInput, match="products with v"):
        kernel.extremes()


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_products_of_parameters_in_other_units_are_refused(scale: float) -> None:
    params = {name: leaf * np.float32(scale) for name, leaf in PARAMS.items()}

    def stretched(w: PyTree, x: Array) -> Array:
        return plain(jax.tree.map(lambda leaf: leaf / scale, w), x)

    with pytest.raises(InvalidInput, match="products with v"):
        KernelOperator(stretched, params, X).product(Y)


@pytest.mark.long
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_solutions_and_estimates_do_not_depend_on_scale(scale: float) -> None:
    def scaled(w: PyTree, x: Array) -> Array:
        return plain(w, x) * scale

    expected = KernelOperator(plain, PARAMS, X).solve(Y).coefficients
    found = KernelOperator(scaled, PARAMS, X).solve(Y)
    assert found.converged
    np.testing.assert_allclose(found.coefficients * scale**2, expected, rtol=1e-2, atol=1e-4)
    estimate = kernel_change_between(scaled, PARAMS, MOVED, X, probes=16)
    assert estimate.change == pytest.approx(exact_change(), abs=estimate.interval + 1e-5)
    assert np.isfinite(estimate.norm0)
    assert estimate.norm0 > 0


@jax.custom_vjp
def activation(z: Array) -> Array:
    return jnp.tanh(z)


activation.defvjp(
    lambda z: (jnp.tanh(z), z),
    lambda z, cotangent: (cotangent * (1 - jnp.tanh(z) ** 2),),
)


def ruled(params: PyTree, x: Array) -> Array:
    return activation(x @ params["w"]) @ params["v"]


@pytest.mark.parametrize("model", [linearize, quadratic_model])
def test_models_of_a_custom_vjp_equal_plain_ones(model: Callable) -> None:
    found = model(ruled, PARAMS)(MOVED, X)
    np.testing.assert_allclose(found, model(plain, PARAMS)(MOVED, X), rtol=1e-5, atol=1e-6)


def test_report_of_a_custom_vjp_equals_the_plain_one() -> None:
    found, expected = (linearity_report(each, PARAMS, MOVED, X) for each in (ruled, plain))
    assert found.output_error == pytest.approx(expected.output_error, rel=1e-3)
    assert found.second_order_share == pytest.approx(expected.second_order_share, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["gradient-descent", "momentum", "adam"])
def test_training_of_a_custom_vjp_equals_the_plain_one(optimizer: str) -> None:
    paths = [
        train(each, PARAMS, X, Y, optimizer=optimizer, learning_rate=0.01, max_steps=3)
        for each in (ruled, plain)
    ]
    for name in ("network", "linearized"):
        found, expected = (getattr(path, name).outputs for path in paths)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


WRONG = {
    "no rows": np.zeros((0, 4)),
    "complex": X + 1j,
    "objects": np.full((5, 4), None),
    "text": "abc",
    "ragged": [[1], [1, 2]],
    "a dictionary": {"a": 1},
    "nothing": None,
    "a key": jax.random.key(0),
    "keys": jax.random.split(jax.random.key(0), 5),
    "a number": 3.0,
}
NET = FullyConnected(width=8)
CALLS = {
    "empirical_ntk": lambda x: empirical_ntk(plain, PARAMS, x),
    "kernel_change_between": lambda x: kernel_change_between(plain, PARAMS, MOVED, x),
    "linearity_report": lambda x: linearity_report(plain, PARAMS, MOVED, x),
    "train": lambda x: train(plain, PARAMS, x, Y, max_steps=1),
    "targets of train": lambda y: train(plain, PARAMS, X, y, max_steps=1),
    "infinite_width_ntk": lambda x: infinite_width_ntk(NET, x),
    "KernelOperator": lambda x: KernelOperator(plain, PARAMS, x),
    "product": lambda v: KernelOperator(plain, PARAMS, X).product(v),
    "kernel_regression": lambda k: kernel_regression(k, k, k),
    "kernel_change": lambda k: kernel_change(X, k),
}


@pytest.fixture
def _as_for_users() -> Iterator[None]:
    """Call without the type checks of the tests, which users do not have."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.sampled(33)  # a grid of functions and kinds
@pytest.mark.usefixtures("_as_for_users")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", WRONG)
def test_arrays_of_a_wrong_kind_are_refused(call: str, kind: str) -> None:
    with pytest.raises(InvalidInput):
        CALLS[call](WRONG[kind])


@pytest.mark.parametrize(
    "call",
    ["empirical_ntk", "kernel_change_between", "linearity_report", "train", "KernelOperator"],
)
def test_functions_for_one_number_of_rows_are_refused(call: str) -> None:
    mixing = np.full((5, 5), 0.2, np.float32)

    def graph(params: PyTree, x: Array) -> Array:
        return plain(params, mixing @ x)

    calls = {
        "empirical_ntk": lambda: empirical_ntk(graph, PARAMS, X),
        "kernel_change_between": lambda: kernel_change_between(graph, PARAMS, MOVED, X),
        "linearity_report": lambda: linearity_report(graph, PARAMS, MOVED, X),
        "train": lambda: train(graph, PARAMS, X, Y, max_steps=1),
        "KernelOperator": lambda: KernelOperator(graph, PARAMS, X),
    }
    with pytest.raises(InvalidInput):
        calls[call]()


@pytest.mark.parametrize(
    "call", ["kernel_change_between", "linearity_report", "train", "infinite_width_ntk"]
)
def test_host_functions_refuse_compilation_around_them(call: str) -> None:
    with pytest.raises(InvalidInput, match=r"inside of jax\.jit"):
        jax.jit(CALLS[call])(X)
