"""Curvature of losses against dense matrices in float64.

Networks, every loss, several numbers of outputs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from ntk_core import InvalidInput, fisher, gauss_newton, loss_hessian
from ntk_core.curvature import _operator as operators
from ntk_core.dynamics import Loss
from ntk_core.networks.architectures import ConvNet, FullyConnected, Transformer
from ntk_core.traced import treats_rows_apart

N = 4
NETS = {
    "dense": (lambda C, phi: FullyConnected(4, 2, C, activation="tanh", output=phi), (3,)),
    "cnn": (lambda C, phi: ConvNet(2, 1, C, activation="tanh", output=phi), (3, 3, 1)),
    "transformer": (lambda C, phi: Transformer(1, 2, C, num_blocks=1, output=phi), (2, 2)),
}
slow = pytest.mark.slow  # each compiles its own dense Hessian
CASES = [
    pytest.param("dense", "linear", "square", 1, marks=slow),
    ("dense", "softmax", "cross-entropy", 3),
    pytest.param("dense", "softmax", "square", 3, marks=slow),
    pytest.param("dense", "tanh", "square", 2, marks=slow),
    pytest.param("dense", "linear", "logistic", 2, marks=slow),
    pytest.param("cnn", "linear", "square", 2, marks=slow),
    pytest.param("cnn", "softmax", "cross-entropy", 4, marks=slow),
    pytest.param("transformer", "linear", "logistic", 1, marks=slow),
    pytest.param("transformer", "softmax", "cross-entropy", 3, marks=slow),
]


def _targets(kind, num_outputs):
    y = np.eye(max(2, num_outputs))[np.arange(N) % max(2, num_outputs), :num_outputs]
    return jnp.asarray(2 * y - 1 if kind == "logistic" else y)


def _problem(name, output, kind, num_outputs):
    build, shape = NETS[name]
    net = build(num_outputs, output)
    x = jax.random.normal(jax.random.key(1), (N, *shape))
    return net, net.init(jax.random.key(0), shape), x, _targets(kind, num_outputs)


def _dense(net, params, x, y, kind):
    """(Hessian, Gauss–Newton matrix, Fisher information, empirical one) from
    explicit derivatives.
    """
    flat, back = ravel_pytree(params)
    rule, linear = Loss(net.output, kind), net.with_output("linear")

    def model(w, x=x):
        return rule.model(linear.apply(back(w), x))

    @jax.jit
    def all_of(w):
        hessian = jax.hessian(lambda w: rule.of_model(model(w), y))(w)
        jacobian = jax.jacobian(lambda w: model(w).ravel())(w)
        curvature = jax.hessian(lambda F: rule.of_model(F.reshape(y.shape), y))(model(w).ravel())
        gradients = jax.vmap(
            lambda row, one: jax.grad(lambda w: rule.of_model(model(w, row[None]), one[None]))(w)
        )(x, y)
        return hessian, jacobian.T @ curvature @ jacobian, gradients.T @ gradients / N, jacobian

    hessian, newton, empirical, jacobian = all_of(flat)
    outputs = np.asarray(model(flat))
    expected = np.zeros_like(newton)  # E_y ∇ log p ∇ log pᵀ, by the distribution of y
    for i, each in enumerate(np.split(np.asarray(jacobian), N)):
        if kind == "square":
            covariance = np.eye(len(each))
        elif kind == "logistic":
            covariance = np.diag(1 / (4 * np.cosh(outputs[i] / 2) ** 2))
        else:
            p = np.exp(outputs[i]) / np.exp(outputs[i]).sum()
            covariance = np.diag(p) - np.outer(p, p)
        expected += each.T @ covariance @ each / N
    return hessian, newton, expected, empirical


@pytest.mark.long_after(2)
@pytest.mark.sampled(5)  # a grid of networks and losses
@pytest.mark.parametrize(("name", "output", "kind", "num_outputs"), CASES)
def test_products_and_spectra_are_those_of_dense_matrices(name, output, kind, num_outputs, x64):
    net, params, x, y = _problem(name, output, kind, num_outputs)
    operators = (
        loss_hessian(net, params, x, y, kind),
        gauss_newton(net, params, x, y, kind),
        fisher(net, params, x, loss=kind),
        fisher(net, params, x, y, kind, empirical=True),
    )
    rng = np.random.default_rng(0)
    for matrix, operator in zip(_dense(net, params, x, y, kind), operators, strict=True):
        scale = np.abs(matrix).max()
        vector = rng.standard_normal(len(matrix))
        np.testing.assert_allclose(
            operator.flat_product(vector), matrix @ vector, rtol=1e-9, atol=1e-10 * scale
        )
        if operator is operators[0]:  # one iteration to compile
            exact = np.linalg.eigvalsh(matrix)
            norm = operator.norm(tolerance=1e-8)
            assert norm.converged
            assert norm.value == pytest.approx(np.abs(exact).max(), rel=1e-7)


@pytest.mark.slow
def test_eigenpairs_density_and_trace_are_those_of_the_matrix(x64):
    problem = _problem("dense", "softmax", "cross-entropy", 3)
    net, params, x, y = problem
    matrix = np.asarray(_dense(net, params, x, y, "cross-entropy")[0])
    operator = loss_hessian(net, params, x, y)
    exact = np.linalg.eigvalsh(matrix)
    largest = exact[np.argsort(-np.abs(exact))][:3]
    pairs = operator.eigenpairs(3, tolerance=1e-8)
    np.testing.assert_allclose(pairs.eigenvalues, largest, rtol=1e-7)
    vector = ravel_pytree(pairs.directions[0])[0]
    np.testing.assert_allclose(matrix @ vector, largest[0] * vector, atol=1e-7 * abs(largest[0]))
    image = ravel_pytree(operator.product(pairs.directions[0]))[0]
    np.testing.assert_allclose(image, largest[0] * vector, atol=1e-7 * abs(largest[0]))
    # Every eigenvalue of a small matrix: 3 standard errors, and second moments that the
    # nodes give exactly.
    density = operator.density(num_probes=40, num_steps=12)
    for order in (1, 2):
        mean, error = density.moment(order)
        assert abs(mean - np.mean(exact**order)) < 3 * error
    for method in ("hutchinson", "hutch++"):
        found = operator.trace(30, method=method)
        assert abs(found.value - exact.sum()) < 2 * found.interval
    assert operator.trace(3 * len(matrix)).value == pytest.approx(exact.sum())
    newton = gauss_newton(net, params, x, y)
    by_mean, by_sketch = (
        newton.trace(48, method=each).interval for each in ("hutchinson", "hutch++")
    )
    assert by_sketch < 0.1 * by_mean  # of rank at most 8


@pytest.mark.slow  # 60 estimates
def test_intervals_cover_the_trace(x64):
    """95% intervals over 60 seeds: fewer than 50 hits would have a probability below 1e-3."""
    net, params, x, y = _problem("dense", "linear", "square", 1)
    matrix = _dense(net, params, x, y, "square")[0]
    operator = loss_hessian(net, params, x, y)
    hits = 0
    for seed in range(60):
        found = operator.trace(12, method="hutchinson", seed=seed)
        hits += abs(found.value - np.trace(matrix)) <= found.interval
    assert hits >= 50


def _apply(params, x):
    return jnp.tanh(x @ params["w"]) @ params["v"]


PARAMS = {"w": np.linspace(-1, 1, 12).reshape(3, 4), "v": np.ones((4, 2)), "step": np.array(3)}
X, Y = np.random.default_rng(0).standard_normal((5, 3)), np.ones((5, 2))


def hinge(outputs, y):
    return jnp.mean(jnp.sum(jnp.maximum(0.0, 1 - y * outputs), 1))


def squared_hinge(outputs, y):
    return jnp.mean(jnp.sum(jnp.maximum(0.0, 1 - y * outputs) ** 2, 1))


@pytest.mark.slow
def test_own_functions_and_own_losses(x64):
    moving = {name: jnp.asarray(PARAMS[name]) for name in ("v", "w")}
    flat, back = ravel_pytree(moving)
    expected = jax.hessian(lambda w: squared_hinge(_apply(back(w), X), Y))(flat)
    operator = loss_hessian(_apply, PARAMS, X, Y, squared_hinge)
    vector = np.arange(20.0)
    np.testing.assert_allclose(operator.flat_product(vector), expected @ vector, rtol=1e-9)
    assert operator.norm().value == pytest.approx(np.abs(np.linalg.eigvalsh(expected)).max(), 1e-6)
    assert operator.eigenpairs(2).directions[0].keys() == PARAMS.keys()
    assert repr(operator) == "CurvatureOperator(hessian of _apply, 20 parameters)"


def _centered(params, x):
    outputs = _apply(params, x)
    return outputs - outputs.mean(0)


def _shared(params, x):
    """Rows are independent, but the size of the batch divides them."""
    return _apply(params, x) / len(x)


@pytest.mark.parametrize("apply", [_apply, _centered, _shared])
def test_large_batches_in_parts_equal_dense_matrices(apply, monkeypatch, x64):
    monkeypatch.setattr(operators, "MIN_PART", 2)
    x = jnp.concatenate([X, 2 * X, X[:1]])  # 11 rows, in five parts where rows are independent
    y = jnp.concatenate([Y, 1 - Y, Y[:1]])
    assert treats_rows_apart(apply, PARAMS, x) == (apply is _apply)
    flat, back = ravel_pytree({name: jnp.asarray(PARAMS[name]) for name in ("v", "w")})
    vector = np.arange(20.0)
    expected = jax.hessian(lambda w: Loss("linear", "square")(apply(back(w), x), y))(flat)
    found = loss_hessian(apply, PARAMS, x, y, "square").flat_product(vector)
    np.testing.assert_allclose(found, expected @ vector, rtol=1e-9, atol=1e-12)
    jacobian = jax.jacobian(lambda w: apply(back(w), x).ravel())(flat)
    found = gauss_newton(apply, PARAMS, x, y, "square").flat_product(vector)
    np.testing.assert_allclose(found, jacobian.T @ jacobian @ vector / len(x), rtol=1e-9)


QUANTITIES = {
    "norm": lambda matrix: matrix.norm().value,
    "eigenpairs": lambda matrix: matrix.eigenpairs(1).eigenvalues,
    "density": lambda matrix: matrix.density(num_probes=1, num_steps=4).nodes,
    "trace": lambda matrix: matrix.trace(6).value,
}


@pytest.mark.first_cases(1)  # each compiles two products
@pytest.mark.parametrize("scale", [1e-30, 1e25])
@pytest.mark.parametrize("build", [loss_hessian, gauss_newton])
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_curvature_beyond_float32_is_refused(quantity, build, scale):
    """The matrices of f · s and y · s are those of f and y times s², here 1e−60 and 1e50.

    The gradient, a part of the Hessian's products, is infinite at 1e50.
    """
    around = "is not finite" if build is loss_hessian and scale > 1 else "entries around"
    params = {name: np.float32(PARAMS[name]) for name in ("v", "w")}
    x, y = np.float32(X), np.float32(Y * scale)

    def times(params, x):
        return _apply(params, x) * jnp.float32(scale)

    with pytest.raises(InvalidInput, match=around):
        QUANTITIES[quantity](build(times, params, x, y, "square"))


@pytest.mark.slow  # three precisions, each beside float64
@pytest.mark.parametrize(
    ("dtype", "scale"), [(jnp.float32, 1e-12), (jnp.float32, 1e15), (jnp.bfloat16, 1e15)]
)
def test_curvature_within_the_type_scales_with_the_outputs(dtype, scale):
    params = {name: jnp.asarray(PARAMS[name], dtype) for name in ("v", "w")}
    x = jnp.asarray(X, dtype)
    y = jnp.asarray(Y, dtype)
    norms = []
    for factor in (1.0, scale):

        def times(params, x, factor=factor):
            return _apply(params, x) * jnp.asarray(factor, dtype)

        norms.append(loss_hessian(times, params, x, y * factor, "square").norm().value)
    plain, scaled = norms
    assert scaled / scale**2 == pytest.approx(plain, rel=5e-3 if dtype == jnp.float32 else 0.05)


def test_no_curvature_is_no_underflow():
    """A constant function has no curvature at any scale."""
    found = gauss_newton(lambda w, x: 0 * x @ w, np.ones((3, 2), np.float32), X, Y, "square")
    assert found.norm().value == 0


REFUSED = {
    "hinge, whose second derivative is 0": lambda: loss_hessian(_apply, PARAMS, X, Y, hinge),
    "a mean loss, a scalar": lambda: gauss_newton(_apply, PARAMS, X, Y, lambda f, y: (f - y) ** 2),
    "empirical=True": lambda: fisher(_apply, PARAMS, X, loss="square", empirical=True),
    "states a distribution": lambda: fisher(_apply, PARAMS, X, Y, squared_hinge),
    "square": lambda: loss_hessian(_apply, PARAMS, X, Y, "squared"),
    "shape \\(5, 2\\)": lambda: loss_hessian(_apply, PARAMS, X, Y[:, :1]),
    "num_wanted": lambda: gauss_newton(_apply, PARAMS, X, Y).eigenpairs(21),
    "num_products": lambda: gauss_newton(_apply, PARAMS, X, Y).trace(5),
    "method": lambda: gauss_newton(_apply, PARAMS, X, Y).trace(method="exact"),
    "is not finite": lambda: gauss_newton(_apply, PARAMS, np.nan * X, Y).norm(),
    "vector": lambda: gauss_newton(_apply, PARAMS, X, Y).flat_product(np.ones(3)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_requests_are_refused_by_name(message):
    with pytest.raises(InvalidInput, match=message):
        REFUSED[message]()
