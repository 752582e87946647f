"""A choice of parameters, against closures over all others in float64."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ntk_core
from ntk_core.dynamics import gauss_newton_product, kernel_velocity, loss_hessian_product
from ntk_core.errors import InvalidInput
from ntk_core.hessians import (
    hessian_block_norms,
    path_sup,
    smallest_eigenvalue_in_ball,
    vector_hessian_norm,
)
from ntk_core.kernels import diagonal_ntk
from tests.plain_derivatives import normal

D, M, C, N = 3, 6, 2, 4


def model(params, x):
    """A base layer with an adapter of rank 1, and a head."""
    base, lora = params["base"], params["lora"]
    hidden = jnp.tanh(x @ (base["w"] + lora["a"] @ lora["b"]) + base["shift"])
    return jnp.tanh(hidden @ params["middle"]) @ params["head"]["w"]


def chosen(params, name):
    """The same model as a function of one part of its parameters, and that part."""

    def closed(own, x):
        return model({**params, name: own}, x)

    return closed, params[name]


@pytest.fixture
def problem(x64):
    drawn = normal(w=(D, M), shift=(M,), a=(D, 1), b=(1, M), middle=(M, M), head=(M, C), x=(N, D))
    drawn = {name: jnp.asarray(value) for name, value in drawn.items()}
    params = {
        "base": {"w": drawn["w"], "shift": drawn["shift"], "steps": jnp.arange(3)},
        "lora": {"a": drawn["a"], "b": drawn["b"]},
        "middle": drawn["middle"],
        "head": {"w": drawn["head"]},
    }
    return params, drawn["x"], drawn["x"][:, :C] ** 2


@pytest.mark.slow
def test_kernels_of_chosen_parameters(problem):
    params, x, _ = problem
    closed, own = chosen(params, "lora")
    expected = ntk_core.empirical_ntk(closed, own, x)
    predicate = {"trainable": lambda name: name.startswith("lora")}
    flags = {"base": False, "lora": True, "middle": False, "head": {"w": False}}
    for choice in (
        {"trainable": "lora"},
        {"trainable": "lora.*"},
        {"trainable": ["lora.a", "lora.b"]},
        {"trainable": flags},
        predicate,
    ):
        found = ntk_core.empirical_ntk(model, params, x, **choice)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(
        ntk_core.empirical_ntk(model, params, x[:2], x, trainable="lora", trace_outputs=True),
        jnp.einsum("ijaa->ij", expected[:2]) / C,
        rtol=1e-10,
    )


@pytest.mark.long  # several programs, each compiled twice
def test_products_of_chosen_parameters(problem):
    params, x, y = problem
    closed, own = chosen(params, "lora")
    expected = ntk_core.empirical_ntk(closed, own, x)
    diagonal = diagonal_ntk(model, params, x, trainable="lora")
    np.testing.assert_allclose(diagonal, jnp.einsum("iiab->iab", expected), rtol=1e-10)
    product = ntk_core.KernelOperator(model, params, x, trainable="lora").product(y)
    np.testing.assert_allclose(product, jnp.einsum("ijab,jb->ia", expected, y), rtol=1e-9)
    speed = kernel_velocity(model, params, x, y, trainable="lora")
    np.testing.assert_allclose(speed, kernel_velocity(closed, own, x, y), rtol=1e-9)


@pytest.mark.slow  # compiles two kernels and a check
def test_parts_of_chosen_kernels_and_layers(problem):
    params, x, _ = problem
    parts = ntk_core.empirical_ntk(model, params, x, per_layer=True, trainable=["head", "middle"])
    whole = ntk_core.empirical_ntk(model, params, x, per_layer=True)
    assert len(parts) == 2
    for name, part in parts.items():
        np.testing.assert_allclose(part, whole[name], rtol=1e-10)
    found = ntk_core.layers_of(model, params, x, trainable="head")
    assert [layer.num_params for layer in found.layers] == [M * C]


def test_plain_route_of_chosen_parameters(problem):
    params, x, _ = problem

    def without_layers(params, x):
        return jnp.tanh(x @ jnp.sin(params["base"]["w"])) @ params["head"]["w"]

    def closed(own, x):
        return without_layers({**params, "base": {"w": own}}, x)

    found = ntk_core.empirical_ntk(without_layers, params, x, trainable="base.w", memory_limit=2e3)
    expected = ntk_core.empirical_ntk(closed, params["base"]["w"], x)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_change_between_chosen_kernels(problem):
    params, x, _ = problem
    later = jax.tree.map(lambda w: w * 1.1 if w.ndim > 1 else w, params)
    found = ntk_core.kernel_change_between(model, params, later, x, trainable="head")
    before, after = (ntk_core.empirical_ntk(model, w, x, trainable="head") for w in (params, later))
    np.testing.assert_allclose(found.change, ntk_core.kernel_change(after, before), rtol=1e-9)


def test_hessian_norms_of_chosen_parameters(problem):
    params, x, _ = problem
    closed, own = chosen(params, "base")
    choice = {"trainable": ["base.w", "base.shift"]}
    expected = ntk_core.hessian_norm(closed, own, x[0], 1)
    found = ntk_core.hessian_norm(model, [params, params], x[0], 1, **choice)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-7)


@pytest.mark.long  # each quantity compiles several programs
def test_other_hessians_of_chosen_parameters(problem):
    params, x, _ = problem
    closed, own = chosen(params, "base")
    choice: dict[str, Any] = {"trainable": ["base.w", "base.shift"]}
    pairs = ntk_core.hessian_eigenpairs(
        model, params, x[0], 1, num_wanted=2, num_directions=1, **choice
    )
    own_pairs = ntk_core.hessian_eigenpairs(closed, own, x[0], 1, num_wanted=2)
    np.testing.assert_allclose(pairs.eigenvalues, own_pairs.eigenvalues, rtol=1e-7)
    (direction,) = pairs.directions
    assert not np.any(direction["head"]["w"])
    np.testing.assert_array_equal(direction["base"]["steps"], np.arange(3))
    assert np.linalg.norm(direction["base"]["w"]) > 0
    blocks = hessian_block_norms(model, params, x[0], **choice)
    own_blocks = hessian_block_norms(closed, own, x[0])
    np.testing.assert_allclose(blocks.values, own_blocks.values, rtol=1e-6)
    density = ntk_core.hessian_density(model, params, x[0], num_probes=2, num_steps=4, **choice)
    assert density.num_parameters == D * M + M
    vector = vector_hessian_norm(model, params, x[0], **choice)
    np.testing.assert_allclose(
        vector.value, vector_hessian_norm(closed, own, x[0]).value, rtol=1e-3
    )


@pytest.mark.long  # ascents compile several programs for each quantity
@pytest.mark.parametrize("quantity", ["hessian", "kernel"])
def test_balls_of_chosen_parameters(problem, quantity):
    params, x, _ = problem
    name = "head" if quantity == "kernel" else "middle"
    closed, own = chosen(params, name)
    at = x[0] if quantity == "hessian" else x
    few: Any = {"num_starts": 1, "num_steps": 2, "max_further_steps": 2}
    found: Any = ntk_core.ball_sup(model, params, at, 0.5, quantity, trainable=name, **few)
    expected: Any = ntk_core.ball_sup(closed, own, at, 0.5, quantity, **few)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-6)
    moved = {**params, name: jax.tree.map(lambda w: 1.2 * w, params[name])}
    path = path_sup(model, [params, moved], at, quantity, trainable=name)
    own_path = path_sup(closed, [own, moved[name]], at, quantity)
    np.testing.assert_allclose(path.values, own_path.values, rtol=1e-6)
    np.testing.assert_allclose(path.distances, own_path.distances, rtol=1e-9)


@pytest.mark.slow  # descents compile a program of eigenvalues and its gradient
def test_smallest_eigenvalue_of_chosen_parameters(problem):
    params, x, _ = problem
    closed, own = chosen(params, "middle")
    few = {"num_starts": 1, "num_steps": 2}
    found = smallest_eigenvalue_in_ball(model, params, x, 0.2, trainable="middle", **few)
    expected = smallest_eigenvalue_in_ball(closed, own, x, 0.2, **few)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-6)


def test_models_linear_in_chosen_parameters(problem):
    params, x, _ = problem
    closed, own = chosen(params, "lora")
    moved = jax.tree.map(lambda w: 1.3 * w, own)
    for expand in (ntk_core.linearize, ntk_core.quadratic_model):
        found = expand(model, params, trainable="lora")({**params, "lora": moved}, x)
        np.testing.assert_allclose(found, expand(closed, own)(moved, x), rtol=1e-10)


@pytest.mark.slow  # a report compiles its programs twice
def test_report_on_chosen_parameters(problem):
    params, x, y = problem
    closed, own = chosen(params, "lora")
    moved = jax.tree.map(lambda w: 1.3 * w, own)
    later = {**params, "lora": moved}
    found = ntk_core.linearity_report(model, params, later, x, y, trainable="lora")
    expected = ntk_core.linearity_report(closed, own, moved, x, y)
    assert [layer.name for layer in found.layers] == ["lora.a", "lora.b"]
    for name in ("output_error", "second_order_share", "kernel_change", "num_params", "loss"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-8)
    with pytest.raises(InvalidInput, match=r"a choice without lora.a, which differs"):
        ntk_core.linearity_report(model, params, later, x, trainable="lora.b")


@pytest.mark.long  # trains four models
def test_sweeps_of_chosen_parameters(problem):
    _, x, y = problem

    def made(width, key):
        keys = jax.random.split(key)
        params = {
            "w": jax.random.normal(keys[0], (D, width)),
            "v": jax.random.normal(keys[1], (width, C)),
        }
        return lambda p, x: jnp.tanh(x @ p["w"]) @ p["v"] / width**0.5, params

    few = {"num_seeds": 2, "max_steps": 5, "num_inputs": 0, "learning_rate": 0.1}
    found = ntk_core.sweep_widths(made, [8], x, y, trainable="v", **few)
    assert [run.num_params for run in found.runs] == [8 * C] * 2
    assert all(run.kernel_change < 1e-12 for run in found.runs)  # linear in v
    whole = ntk_core.sweep_widths(made, [8], x, y, **few)
    assert all(run.kernel_change > 1e-4 for run in whole.runs)


def test_networks_with_chosen_parameters(x64):
    net = ntk_core.FullyConnected(width=5, depth=2, num_outputs=C, activation="tanh")
    params = net.init(jax.random.key(0), (D,))
    x = jnp.asarray(normal(x=(N, D))["x"])
    parts = ntk_core.empirical_ntk(net, params, x, per_layer=True)
    found = ntk_core.empirical_ntk(net, params, x, trainable="output.*")
    np.testing.assert_allclose(found, parts["output"], rtol=1e-10)


def test_choices_that_match_nothing(problem):
    params, x, _ = problem
    for given, words in (
        ("hed.w", "'hed.w', which matches no parameter, .* use head.w, the nearest name"),
        ("base.steps", "which matches only the constant base.steps"),
        (lambda name: False, "a choice of none of 7 parameters"),
        (jax.tree.map(lambda _: False, params), "a choice of none of 7 parameters"),
        (lambda name: 1, "a function that returns int for base.shift"),
        ({"base": True}, "booleans in a tree like"),
        (3, "int cannot be used; use names such as"),
        ([], "list cannot be used; use names such as"),
    ):
        with pytest.raises(InvalidInput, match=words) as caught:
            ntk_core.empirical_ntk(model, params, x, trainable=given)
        assert caught.value.field == "trainable"


@pytest.mark.long  # trains four models
def test_training_of_chosen_parameters(problem):
    params, x, y = problem
    closed, own = chosen(params, "lora")
    few: Any = {"max_steps": 5, "num_records": 3, "learning_rate": 0.1}
    found = ntk_core.train(model, params, x, y, trainable="lora", **few)
    expected = ntk_core.train(closed, own, x, y, **few)
    np.testing.assert_allclose(found.network.loss, expected.network.loss, rtol=1e-9)
    np.testing.assert_allclose(found.linearized.loss, expected.linearized.loss, rtol=1e-9)
    np.testing.assert_array_equal(found.params["head"]["w"], params["head"]["w"])
    net = ntk_core.FullyConnected(width=5, num_outputs=C, activation="tanh", output="softmax")
    weights = net.init(jax.random.key(0), (D,))
    classes = jax.nn.one_hot(jnp.arange(N) % C, C)
    whole = ntk_core.train(net, weights, x, classes, **few)
    chosen_all = ntk_core.train(net, weights, x, classes, trainable="*", **few)
    np.testing.assert_allclose(chosen_all.network.loss, whole.network.loss, rtol=1e-9)
    np.testing.assert_allclose(chosen_all.network.outputs, whole.network.outputs, rtol=1e-9)


@pytest.mark.slow  # compiles four products
def test_curvature_of_losses_in_chosen_parameters(problem):
    params, x, y = problem
    closed, own = chosen(params, "lora")
    vector = jax.tree.map(jnp.ones_like, params)
    for product in (loss_hessian_product, gauss_newton_product):
        found = product(model, params, x, y, vector, trainable="lora")
        expected = product(closed, own, x, y, vector["lora"])
        np.testing.assert_allclose(found["lora"]["a"], expected["a"], rtol=1e-9)
        assert not np.any(found["head"]["w"])


@pytest.mark.long  # compiles three matrices twice
def test_matrices_of_losses_in_chosen_parameters(problem):
    params, x, y = problem
    closed, own = chosen(params, "lora")
    for matrix in (ntk_core.loss_hessian, ntk_core.gauss_newton, ntk_core.fisher):
        targets = {} if matrix is ntk_core.fisher else {"y": y}
        found = matrix(model, params, x, loss="square", trainable="lora", **targets)
        expected = matrix(closed, own, x, loss="square", **targets)
        assert found.shape == expected.shape == (D + M, D + M)
        np.testing.assert_allclose(found.norm().value, expected.norm().value, rtol=1e-6)
        product = found.product(jax.tree.map(jnp.ones_like, params))
        own_product = expected.product(jax.tree.map(jnp.ones_like, own))
        np.testing.assert_allclose(product["lora"]["b"], own_product["b"], rtol=1e-8)
        assert not np.any(product["head"]["w"])
    net = ntk_core.FullyConnected(width=5, num_outputs=C, activation="tanh", output="softmax")
    weights = net.init(jax.random.key(0), (D,))
    classes = jax.nn.one_hot(jnp.arange(N) % C, C)
    last = ntk_core.loss_hessian(net, weights, x, classes, trainable="output")
    whole = ntk_core.loss_hessian(net, weights, x, classes)
    vector = jax.tree.map(jnp.zeros_like, weights)
    vector["output"]["weight"] = jnp.ones_like(vector["output"]["weight"])
    found = last.product(vector)["output"]["weight"]
    np.testing.assert_allclose(found, whole.product(vector)["output"]["weight"], rtol=1e-9)
