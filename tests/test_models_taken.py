"""Models as arguments of every public function: accepted, or refused in one sentence."""

import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import ntk_core
from ntk_core import FullyConnected, InvalidInput
from tests.test_public_names import public_names

pytestmark = [pytest.mark.usefixtures("quick_compilation"), pytest.mark.first_cases(1)]
NET = FullyConnected(width=4, num_outputs=1, activation="tanh", use_bias=False)
PARAMS = NET.init(jax.random.key(0), 3)
X, Y = jax.random.normal(jax.random.key(1), (5, 3)), jnp.linspace(-1.0, 1.0, 5)
TRAINED = {"max_steps": 2, "learning_rate": 0.1}


def swept(net: Any, params: Any, x: Any) -> Any:
    run = ntk_core.sweep_widths(
        lambda width, key: (net, params), [2], x, Y[: len(x)], num_seeds=1, **TRAINED
    ).runs[0]
    return run.change, run.hessian_norm


def moved(params: Any) -> Any:
    return jax.tree.map(lambda leaf: 1.1 * leaf if hasattr(leaf, "dtype") else leaf, params)


# Call of each function with any model; `one`: a single input without batch axis.
ANY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "KernelOperator": lambda net, w, x: ntk_core.KernelOperator(net, w, x).product(Y),
    "diagonal_ntk": lambda net, w, x: ntk_core.kernels.diagonal_ntk(net, w, x),
    "empirical_ntk": lambda net, w, x: ntk_core.empirical_ntk(net, w, x),
    "fisher": lambda net, w, x: ntk_core.fisher(net, w, x, loss="square").trace(6).value,
    "gauss_newton": lambda net, w, x: ntk_core.gauss_newton(net, w, x, Y[: len(x)]).trace(6).value,
    "gauss_newton_product": lambda net, w, x: ntk_core.dynamics.gauss_newton_product(
        net, w, x, Y[: len(x)], w
    ),
    "kernel_change_between": lambda net, w, x: (
        ntk_core.kernel_change_between(net, w, w, x, targets=Y).norm0
    ),
    "kernel_velocity": lambda net, w, x: ntk_core.dynamics.kernel_velocity(net, w, x, Y),
    "layers_of": lambda net, w, x: ntk_core.layers_of(net, w, x).multiplications,
    "least_distance": lambda net, w, x: ntk_core.kernels.least_distance(net, w, w, x),
    "linearity_report": lambda net, w, x: (
        ntk_core.linearity_report(net, w, moved(w), x, Y[: len(x)]).kernel_change
    ),
    "linearize": lambda net, w, x: ntk_core.linearize(net, w)(w, x),
    "loss_hessian": lambda net, w, x: ntk_core.loss_hessian(net, w, x, Y[: len(x)]).trace(6).value,
    "loss_hessian_product": lambda net, w, x: ntk_core.dynamics.loss_hessian_product(
        net, w, x, Y[: len(x)], w
    ),
    "infinite_width": lambda net, w, x: ntk_core.infinite_width(net, w, x).ntk,
    "quadratic_model": lambda net, w, x: ntk_core.quadratic_model(net, w)(w, x),
    "smallest_eigenvalue_in_ball": lambda net, w, x: (
        ntk_core.hessians.smallest_eigenvalue_in_ball(
            net, w, x, 1.0, num_starts=1, num_steps=1
        ).value
    ),
    "sweep_widths": swept,
    "train": lambda net, w, x: ntk_core.train(net, w, x, Y, **TRAINED).network.loss,
}
ANY_ONE = {
    "ball_sup": lambda net, w, x: (
        ntk_core.ball_sup(net, w, x, 1.0, num_starts=1, num_steps=1).value
    ),
    "hessian_block_norms": lambda net, w, x: (
        ntk_core.hessians.hessian_block_norms(net, w, x).values
    ),
    "hessian_density": lambda net, w, x: ntk_core.hessian_density(net, w, x).nodes,
    "hessian_eigenpairs": lambda net, w, x: (
        ntk_core.hessian_eigenpairs(net, w, x, num_wanted=1).eigenvalues
    ),
    "hessian_norm": lambda net, w, x: ntk_core.hessian_norm(net, w, x).value,
    "layer_quantities": lambda net, w, x: ntk_core.layer_quantities(net, w, x).bound,
    "path_sup": lambda net, w, x: ntk_core.hessians.path_sup(net, [w], x).value,
    "vector_hessian_norm": lambda net, w, x: ntk_core.hessians.vector_hessian_norm(net, w, x).value,
}
NETWORK: dict[str, Callable[[Any, Any, Any], Any]] = {
    "Mirrored": lambda net, w, x: ntk_core.networks.Mirrored(net),
    "PreActivations": lambda net, w, x: ntk_core.networks.PreActivations(net, "hidden1"),
    "ScaledNetwork": lambda net, w, x: ntk_core.networks.ScaledNetwork(net, 2.0),
    "Subtracted": lambda net, w, x: ntk_core.networks.Subtracted(net),
    "gradient_norm_bound": lambda net, w, x: ntk_core.kernels.gradient_norm_bound(net, x[0]),
    "hessian_norms_by_output": lambda net, w, x: (
        ntk_core.hessians.hessian_norms_by_output(net, [w], x, ("linear",))["linear"].value
    ),
    "infinite_width_nngp": lambda net, w, x: ntk_core.kernels.infinite_width_nngp(net, x),
    "infinite_width_ntk": lambda net, w, x: ntk_core.infinite_width_ntk(net, x),
    "nonlinear_output_hessian": lambda net, w, x: (
        ntk_core.hessians.nonlinear_output_hessian(net, w, x[0]).upper
    ),
    "shallow_hessian_blocks": lambda net, w, x: ntk_core.hessians.shallow_hessian_blocks(
        net, w, x[0]
    ),
    "subtract_initial_output": lambda net, w, x: ntk_core.networks.subtract_initial_output(net, w)(
        w, x
    ),
}
EVERY = {**ANY, **ANY_ONE}


@pytest.fixture(autouse=True)
def without_checks_of_types():
    """Disable the type checks of the mathematics, as for users."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def apply(params: Any, x: Any) -> Any:
    return NET.apply(params, x)


def given(name: str) -> Any:
    """Inputs for this function."""
    return X[0] if name in ANY_ONE else X


def refusal(name: str, net: Any, params: Any, x: Any) -> InvalidInput:
    """Return the function's refusal, checked to be one line."""
    with pytest.raises(InvalidInput) as caught:
        EVERY.get(name, NETWORK.get(name))(net, params, x)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000  # with JAX's own reason in full
    return caught.value


def test_no_public_function_that_takes_a_model_is_forgotten():
    public = {
        name: getattr(importlib.import_module(module), name) for module, name in public_names()
    }
    functions = {
        name: each
        for name, each in public.items()
        if callable(each) and not (isinstance(each, type) and issubclass(each, Exception))
    }
    found = {
        name
        for name in functions
        if {"net", "apply", "model"} & inspect.signature(functions[name]).parameters.keys()
    }
    assert found - {"freeze"} == EVERY.keys() | NETWORK.keys()  # it measures nothing


@pytest.mark.long_after(2)
@pytest.mark.parametrize(
    "name", ["empirical_ntk", "kernel_change_between", "train", "sweep_widths", "hessian_norm"]
)
def test_outputs_of_shape_n_count_as_n_by_1(name):
    def flat(params, x):
        return NET.apply(params, x)[:, 0]

    both = [EVERY[name](function, PARAMS, given(name)) for function in (apply, flat)]
    for one, other in zip(*map(jax.tree.leaves, both), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


WRONG: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "a loss": ("in place of a loss", lambda w, x: jnp.mean(NET.apply(w, x) ** 2)),
    "a mean over the batch": (
        "one row for each",
        lambda w, x: jnp.stack([NET.apply(w, x).mean(0)] * 2),
    ),
    "a fourth axis": (r"outputs \(n, C\)", lambda w, x: NET.apply(w, x)[:, None, None]),
    "two arrays": ("a tuple of 2", lambda w, x: (NET.apply(w, x), x)),
    "nothing": ("NoneType", lambda w, x: None),
    "integers": ("type int32", lambda w, x: jnp.round(NET.apply(w, x)).astype(int)),
    "complex numbers": ("type complex64", lambda w, x: NET.apply(w, x) * 1j),
    "no JAX": ("cannot trace", lambda w, x: np.tanh(np.asarray(NET.apply(w, x)))),
}


@pytest.mark.parametrize(
    ("name", "words"), [(name, list(WRONG)[k % len(WRONG)]) for k, name in enumerate(EVERY)]
)
def test_wrong_outputs_are_refused(name, words):
    """One kind by each function."""
    shown, function = WRONG[words]
    found = refusal(name, function, PARAMS, given(name))
    assert found.field in ("net", "model")
    assert re.search(shown, str(found))


@pytest.mark.parametrize(
    ("name", "net"), [(name, (NET, apply)[k % 2]) for k, name in enumerate(EVERY)]
)
def test_a_missing_or_added_batch_axis_is_named(name, net):
    if name == "hessian_norm":
        assert "shape (1, 5, 3)" in str(refusal(name, net, PARAMS, X[None]))
    elif name in ANY_ONE:
        assert "x[0]" in str(refusal(name, net, PARAMS, X))
    elif name != "layers_of" or net is apply:
        assert "batch axis" in str(refusal(name, net, PARAMS, X[0]))


PARAMETERS: tuple[Any, ...] = (
    3,
    {},
    {"w": 2.0},
    {"w": jnp.ones(3), "s": "tanh"},
    {"w": jnp.ones(3) * 1j},
)


@pytest.mark.parametrize("name", EVERY | NETWORK)
def test_what_is_no_model_parameters_or_inputs_is_refused(name):
    for net in ("relu", None, FullyConnected, (apply, PARAMS), 3.0):
        assert refusal(name, net, PARAMS, given(name)).field in ("net", "apply", "model")
    for x in (
        ("words", ["a", "b"], np.array([object()]), [[1.0], [1.0, 2.0]]) if name in EVERY else ()
    ):
        assert refusal(name, apply if name == "sweep_widths" else NET, PARAMS, x).field in (
            "x",
            "x1",
        )
    for params in PARAMETERS if name in EVERY and name != "sweep_widths" else ():
        assert refusal(name, apply, params, given(name)).field == "params"


@pytest.mark.parametrize("name", NETWORK)
def test_functions_about_layers_refuse_plain_functions(name):
    found = refusal(name, apply, PARAMS, X)
    assert found.field == "net"
    assert "network" in found.allowed


# Library → a module, and its own call on a batch.
MODULES: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "flax.nnx": (lambda nnx: nnx.Linear(3, 2, rngs=nnx.Rngs(0)), lambda model, params: model(X)),
    "flax.linen": (
        lambda linen: linen.Dense(2),
        lambda model, params: model.apply({"params": params}, X),
    ),
    "equinox": (
        lambda equinox: equinox.nn.MLP(3, 2, 4, 1, key=jax.random.key(0)),
        lambda model, params: jax.vmap(model)(X),
    ),
}


@pytest.mark.parametrize("library", MODULES)
def test_the_remedy_for_a_module_splits_it(library):
    """(apply, params) by the code in the error for this module."""
    found = pytest.importorskip(library)
    make, call = MODULES[library]
    model = make(found)
    lines = (
        refusal("empirical_ntk", model, None, X)
        .allowed.removeprefix("(apply, params), made by: ")
        .split("; ")
    )
    known = {"model": model, "jax": jax, "x": X, "ntk_core": ntk_core, "nnx": found, "eqx": found}
    exec("\n".join(lines), known)
    function, params = known["apply"], known["params"]
    assert ntk_core.empirical_ntk(function, params, X).shape == (5, 5, 2, 2)
    np.testing.assert_allclose(function(params, X), call(model, params), rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["KernelOperator", "kernel_change_between", "kernel_velocity", "sweep_widths", "train"]
)
def test_class_labels_for_several_outputs_lead_to_one_hot(name, monkeypatch):
    monkeypatch.setattr(f"{__name__}.Y", jnp.array([0, 1, 0, 1, 1]))
    wide = FullyConnected(width=4, num_outputs=2, use_bias=False)
    found = refusal(name, wide.apply, wide.init(jax.random.key(0), 3), X)
    assert "one_hot" in found.allowed
