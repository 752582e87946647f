"""Every public function that takes arrays stands in a table of calls,
and each call answers every kind of argument.

``tests/test_wrong_kinds.py`` holds the tables of models and of first arguments. This file adds the
other arguments, and fails for a public function that is in no table, or that runs under the strict
settings of its caller.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import jax
import jaxtyping
import numpy as np
import pytest

from ntk_core import (
    InvalidInput,
    KernelOperator,
    Optimizer,
    empirical_ntk,
    fisher,
    gauss_newton,
    hessian_norm,
    infinite_width,
    infinite_width_ntk,
    kernel_change,
    kernel_change_between,
    kernel_regression,
    linearity_report,
    loss_hessian,
    train,
)
from ntk_core.dynamics import (
    ClosedForm,
    addition_error,
    gauss_newton_product,
    loss_hessian_product,
)
from ntk_core.early_time import LinearModel
from ntk_core.hessians import bottleneck_block_norm, bottleneck_zero_step
from ntk_core.kernels import alignment, kernel_distance, leave_one_out
from ntk_core.linearity import checked_own_model, runs_at
from ntk_core.networks import subtract_initial_output
from tests.test_wrong_kinds import (
    ARRAYS,
    KEY,
    MODELS,
    MOVED,
    NET,
    NET_PARAMS,
    OF_ONE_INPUT,
    ONES,
    PARAMS,
    SLOW_ARRAYS,
    TARGETS,
    WRONG_ARRAYS,
    WRONG_FUNCTIONS,
    WRONG_PARAMS,
    Argument,
    K,
    X,
    Y,
    answers,
    of_width,
    plain,
    two_layers,
    wrong_kinds,
)

pytestmark = [
    pytest.mark.first_cases(1),
    pytest.mark.filterwarnings("ignore:invalid value encountered in matmul"),  # infinite arrays
]

PACKAGES = (
    "ntk_core",
    "ntk_core.curvature",
    "ntk_core.dynamics",
    "ntk_core.early_time",
    "ntk_core.hessians",
    "ntk_core.kernels",
    "ntk_core.linearity",
    "ntk_core.networks",
)
OF_ARRAYS = re.compile(r"Array|PyTree|ndarray|_Buffer|Inputs|Rows|NetworkParams|\bKey\b")
# Parts that networks and training call with arrays of their own, and constructors of results.
PARTS = re.compile(
    r"(Layer|Optimizer|PreActivations|ScaledNetwork)\..*|Loss\.(model|of_model)|"
    r"Network\.(body|pre_outputs|in_degree_range|partition)|CurvatureOperator"
)
ELSEWHERE = {"from_torch": "tests/libraries/test_torch_modules.py"}


@pytest.fixture(autouse=True)
def _as_for_users() -> Iterator[None]:
    """Call without the type checks of the tests, which users do not have."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def products(v: Any, others: Any = None) -> Any:
    return KernelOperator(plain, PARAMS, X).product(v, others)


def trained(**given: Any) -> Any:
    return train(plain, PARAMS, X, Y, max_steps=1, **given).network.outputs


def runs(**given: Any) -> Any:
    how: dict[str, Any] = {"model": of_width, "x": X, "y": Y, **given}
    found = runs_at(
        how["model"],
        4,
        how["x"],
        how["y"],
        [0],
        "square",
        0,
        learning_rate="auto",
        loss_threshold=0.1,
        max_steps=1,
        num_records=1,
    )
    return [run.change for run in found]


CURVATURE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "loss_hessian": lambda f, w, x: loss_hessian(f, w, x, Y).norm().value,
    "gauss_newton": lambda f, w, x: gauss_newton(f, w, x, Y).norm().value,
    "infinite_width": lambda f, w, x: infinite_width(f, w, x).ntk,
    "fisher": lambda f, w, x: fisher(f, w, x).norm().value,
}
FLAT = np.ones(30, np.float32)
QUICK: dict[str, Argument] = {
    "k0 of kernel_change": Argument(lambda k: kernel_change(K, k), K, ("k", "k0")),
    "other of kernel_distance": Argument(lambda k: kernel_distance(K, k), K, ("kernel", "other")),
    "y of alignment": Argument(lambda y: alignment(K, y), Y[:, 0], ("y",)),
    "cross of kernel_regression": Argument(
        lambda k: kernel_regression(K, Y, k).outputs, K, ("cross",)
    ),
    "prior of kernel_regression": Argument(
        lambda f: kernel_regression(K, Y[:, 0], K, prior=f).outputs, Y[:, 0], ("prior",)
    ),
    "kernel of leave_one_out": Argument(
        lambda k: leave_one_out(k, Y, K).changes, K, ("kernel", "cross")
    ),
    "targets of leave_one_out": Argument(lambda y: leave_one_out(K, y, K).changes, Y, ("targets",)),
    "cross of leave_one_out": Argument(lambda k: leave_one_out(K, Y, k).changes, K, ("cross",)),
    "ridge of leave_one_out": Argument(
        lambda ridge: leave_one_out(K, Y, K, ridge).changes, 0.1, ("ridge",)
    ),
    "together of addition_error": Argument(
        lambda each: addition_error(each, [Y, Y]), Y, ("together", "parts")
    ),
    "part of addition_error": Argument(
        lambda each: addition_error(Y, [Y, each]), Y, ("parts", "parts[1]")
    ),
    "parts of addition_error": Argument(
        lambda each: addition_error(Y, each), [Y, Y], ("parts", "parts[0]")
    ),
    "targets of ClosedForm": Argument(
        lambda y: ClosedForm(K, Y, y).flow([1.0]), Y, ("targets", "start")
    ),
    "other_kernel of ClosedForm": Argument(
        lambda k: ClosedForm(K, Y, Y, k, Y).flow([1.0]), K, ("other_kernel", "other_start")
    ),
    "other_start of ClosedForm": Argument(
        lambda f: ClosedForm(K, Y, Y, K, f).flow([1.0]), Y, ("other_start", "other_kernel")
    ),
    "weights of LinearModel.outputs": Argument(
        lambda w: LinearModel(two_layers(), X, TARGETS).outputs(w), np.ones(6), ("weights",)
    ),
    "weights of LinearModel.after_batches": Argument(
        lambda w: LinearModel(two_layers(), X, TARGETS).after_batches(w, [np.array([0])]),
        np.ones(6),
        ("weights",),
    ),
    "batches of LinearModel.after_batches": Argument(
        lambda rows: LinearModel(two_layers(), X, TARGETS).after_batches(np.ones(6), rows),
        [[0, 1]],
        ("batches",),
    ),
    "params of Network.apply": Argument(lambda w: NET.apply(w, X), NET_PARAMS, ("params", "x")),
    "params of subtract_initial_output": Argument(
        lambda w: subtract_initial_output(NET, w)(NET_PARAMS, X), NET_PARAMS, ("params", "x")
    ),
}
SLOW: dict[str, Argument] = {
    "x2 of empirical_ntk": Argument(lambda x: empirical_ntk(plain, PARAMS, X, x), X, ("x2", "net")),
    "trainable of empirical_ntk": Argument(
        lambda each: empirical_ntk(plain, PARAMS, X, trainable=each), "w", ("trainable",)
    ),
    "others of KernelOperator.product": Argument(
        lambda x: products(Y, x), X, ("others", "x", "net")
    ),
    "v of KernelOperator.flat_product": Argument(
        lambda v: KernelOperator(plain, PARAMS, X).flat_product(v), Y.ravel(), ("v",)
    ),
    "targets of KernelOperator.solve": Argument(
        lambda y: KernelOperator(plain, PARAMS, X).solve(y).coefficients, Y, ("targets",)
    ),
    "x_test of train": Argument(
        lambda x: trained(x_test=x, y_test=Y), X, ("x_test", "y_test", "net")
    ),
    "y_test of train": Argument(lambda y: trained(x_test=X, y_test=y), Y, ("y_test",)),
    "key of train": Argument(
        lambda key: trained(key=key, optimizer=Optimizer("sgd", batch_size=2)), KEY, ("key",)
    ),
    "key of hessian_norm": Argument(
        lambda key: hessian_norm(plain, PARAMS, X[0], batched=False, key=key).value,
        KEY,
        ("key",),
    ),
    "params1 of kernel_change_between": Argument(
        lambda w: kernel_change_between(plain, PARAMS, {**MOVED, "v": w}, X).change,
        MOVED["v"],
        ("params1", "x"),
    ),
    "targets of kernel_change_between": Argument(
        lambda y: kernel_change_between(plain, PARAMS, MOVED, X, targets=y).change,
        Y,
        ("targets",),
    ),
    "y of linearity_report": Argument(
        lambda y: linearity_report(plain, PARAMS, MOVED, X, y).output_error, Y, ("y",)
    ),
    "leaf of loss_hessian_product": Argument(
        lambda w: loss_hessian_product(plain, PARAMS, X, Y, {**PARAMS, "v": w}),
        PARAMS["v"],
        ("vector",),
    ),
    "leaf of gauss_newton_product": Argument(
        lambda w: gauss_newton_product(plain, PARAMS, X, Y, {**PARAMS, "v": w}),
        PARAMS["v"],
        ("vector",),
    ),
    "targets of loss_hessian": Argument(
        lambda y: loss_hessian(plain, PARAMS, X, y).norm().value, Y, ("y", "params")
    ),
    "targets of fisher": Argument(
        lambda y: fisher(plain, PARAMS, X, y, empirical=True).norm().value, Y, ("y", "params")
    ),
    "leaf of CurvatureOperator.product": Argument(
        lambda w: gauss_newton(plain, PARAMS, X, Y).product({**PARAMS, "v": w}),
        PARAMS["v"],
        ("vector",),
    ),
    "vector of CurvatureOperator.flat_product": Argument(
        lambda v: gauss_newton(plain, PARAMS, X, Y).flat_product(v), FLAT, ("vector",)
    ),
    "key of CurvatureOperator.norm": Argument(
        lambda key: gauss_newton(plain, PARAMS, X, Y).norm(key=key).value,
        KEY,
        ("key",),
    ),
    "key of CurvatureOperator.eigenpairs": Argument(
        lambda key: gauss_newton(plain, PARAMS, X, Y).eigenpairs(1, key=key).eigenvalues,
        KEY,
        ("key",),
    ),
    "key of CurvatureOperator.density": Argument(
        lambda key: gauss_newton(plain, PARAMS, X, Y).density(num_probes=1, key=key).nodes,
        KEY,
        ("key",),
    ),
    "x2 of infinite_width": Argument(
        lambda x: infinite_width(plain, PARAMS, X, x).ntk, X, ("x2", "net")
    ),
    "x2 of infinite_width_ntk": Argument(
        lambda x: infinite_width_ntk(NET, X, x), X, ("x2", "input_shape")
    ),
    "w3 of bottleneck_block_norm": Argument(
        lambda w: bottleneck_block_norm(ONES, w, ONES, 1.0), ONES, ("w1", "w3")
    ),
    "w1 of bottleneck_zero_step": Argument(
        lambda w: bottleneck_zero_step(w, ONES, ONES, ONES, 1.0), ONES, ("w1", "w2", "w3")
    ),
    "w2 of bottleneck_zero_step": Argument(
        lambda w: bottleneck_zero_step(ONES, w, ONES, ONES, 1.0), ONES, ("w2",)
    ),
    "w3 of bottleneck_zero_step": Argument(
        lambda w: bottleneck_zero_step(ONES, ONES, w, ONES, 1.0), ONES, ("w3",)
    ),
    "v of bottleneck_zero_step": Argument(
        lambda v: bottleneck_zero_step(ONES, ONES, ONES, v, 1.0), ONES, ("v",)
    ),
    "x of bottleneck_zero_step": Argument(
        lambda x: bottleneck_zero_step(ONES, ONES, ONES, ONES, x), 1.0, ("x",)
    ),
    "key of checked_own_model": Argument(
        lambda key: checked_own_model(of_width, 4, key, X, 2)[1], KEY, ("key",)
    ),
    "x of checked_own_model": Argument(
        lambda x: checked_own_model(of_width, 4, KEY, x, 2)[1], X, ("x", "model")
    ),
    "x of runs_at": Argument(lambda x: runs(x=x), X, ("x",)),
    "y of runs_at": Argument(lambda y: runs(y=y), Y, ("y", "model")),
}
TABLES = (*MODELS, *CURVATURE, *ARRAYS, *SLOW_ARRAYS, *QUICK, *SLOW)


def functions_of_arrays() -> dict[str, Callable[..., Any]]:
    """Return every public function and method that takes arrays, by name."""
    found: dict[str, Callable[..., Any]] = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isfunction(value):
                found[name] = value
            elif inspect.isclass(value):
                found |= _methods(name, value)
    return {
        name: function
        for name, function in found.items()
        if _takes_arrays(function) and not PARTS.fullmatch(name) and name not in ELSEWHERE
    }


def _methods(name: str, kind: type) -> dict[str, Callable[..., Any]]:
    """Return the methods of a class.

    The constructor of a dataclass, or of a network, takes no arrays.
    """
    found: dict[str, Callable[..., Any]] = {}
    for method, function in vars(kind).items():
        is_constructor = method == "__init__" and not hasattr(kind, "__dataclass_fields__")
        if inspect.isfunction(function) and (is_constructor or not method.startswith("_")):
            found[name if is_constructor else f"{name}.{method}"] = function
    return found


def _takes_arrays(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(OF_ARRAYS.search(str(each.annotation)) for each in parameters)


# Calls of the tables that name a method by itself.
SPELLED = {
    "KernelOperator": "product",
    "KernelOperator.product": "vectors of product",
    "ClosedForm": "kernel of ClosedForm",
    "ClosedForm.flow": "times of flow",
    "ClosedForm.descent": "steps of descent",
    "LinearModel": "inputs of LinearModel",
    "Network.init": "key of init",
}
# Functions free of JAX: its settings do not reach them.
WITHOUT_JAX = re.compile(r"(ClosedForm|LinearModel)(\..*)?|addition_error")
RETURNING_FUNCTIONS = ("linearize", "quadratic_model", "subtract_initial_output")


def test_every_public_function_of_arrays_is_in_a_table() -> None:
    """Add a new public function to a table above: it is then called with every kind of argument."""
    missing = []
    for name in functions_of_arrays():
        key = SPELLED.get(name, name)
        if not any(key == each or each.endswith(f" of {name}") for each in TABLES):
            missing.append(name)
    assert missing == []


def test_every_public_function_of_arrays_sets_the_usual_settings() -> None:
    strict = []
    for name, function in functions_of_arrays().items():
        wrapped = "with_usual_settings" in function.__code__.co_qualname
        if not wrapped and not WITHOUT_JAX.fullmatch(name) and name not in RETURNING_FUNCTIONS:
            strict.append(name)
    assert strict == []


@pytest.mark.first_cases(len(QUICK))  # without a compiled program
@pytest.mark.parametrize("name", QUICK)
def test_other_arguments_of_every_kind(name: str) -> None:
    argument = QUICK[name]
    argument.call(argument.right)
    assert not answers(argument.call, wrong_kinds(argument.right), argument.fields)


@pytest.mark.long_after(1)
@pytest.mark.slow  # each compiles several programs
@pytest.mark.sampled(14)  # all arguments pass one check
@pytest.mark.parametrize("name", SLOW)
def test_other_arguments_of_every_kind_slow(name: str) -> None:
    argument = SLOW[name]
    argument.call(argument.right)
    assert not answers(argument.call, wrong_kinds(argument.right), argument.fields)


@pytest.mark.long
@pytest.mark.sampled(2)  # matrices of losses have one entrance, infinite width has another
@pytest.mark.parametrize("name", CURVATURE)
def test_models_of_every_kind(name: str) -> None:
    call = CURVATURE[name]
    found = answers(lambda x: call(plain, PARAMS, x), WRONG_ARRAYS, ("x", "x1", "net", "params"))
    found |= answers(lambda w: call(plain, w, X), WRONG_PARAMS, ("params", "x", "x1"))
    found |= answers(lambda f: call(f, PARAMS, X), WRONG_FUNCTIONS, ("net", "x", "x1", "y"))
    assert not found


@pytest.mark.parametrize(
    ("given", "others"),
    [
        (X.astype(int), X),  # fractions as whole numbers
        (np.ones((3, 4), np.uint8), np.full((3, 4), 257)),
        (X, X + 1j),
    ],
)
def test_other_inputs_keep_their_values(given: np.ndarray, others: np.ndarray) -> None:
    with pytest.raises(InvalidInput, match="x2: numbers of type"):
        empirical_ntk(plain, PARAMS, given, others)
    whole = others.real.astype(np.uint8).astype(given.dtype)
    assert np.isfinite(empirical_ntk(plain, PARAMS, given, whole)).all()


def called_rightly(name: str) -> list[np.ndarray]:
    """Return the numbers of a call with right arguments."""
    if name in MODELS or name in CURVATURE:
        call = MODELS.get(name) or CURVATURE[name]
        found = call(plain, PARAMS, X[0] if name in OF_ONE_INPUT else X)
    else:
        argument = (ARRAYS | SLOW_ARRAYS | QUICK | SLOW)[name]
        found = argument.call(argument.right)
    leaves = jax.tree.leaves(found)
    return [np.asarray(leaf, float) for leaf in leaves if np.asarray(leaf).dtype.kind in "biuf"]


# All functions have one wrapper, which the test of the usual settings above asks for.
@pytest.mark.long_after(2)
@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", TABLES)
def test_guards_of_transfers_do_not_change_numbers(name: str) -> None:
    expected = called_rightly(name)
    with jax.transfer_guard("disallow"):
        found = called_rightly(name)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


SETTINGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "disable_jit": jax.disable_jit,
    "enable_checks": lambda: jax.enable_checks(True),
    "checking_leaks": jax.checking_leaks,
    "debug_nans": lambda: jax.debug_nans(True),
    "debug_infs": lambda: jax.debug_infs(True),
    "rank_promotion": lambda: jax.numpy_rank_promotion("raise"),
    "dtype_promotion": lambda: jax.numpy_dtype_promotion("strict"),
}


@pytest.mark.long_after(1)
@pytest.mark.slow  # compiles most functions twice
@pytest.mark.sampled(24)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", TABLES)
def test_settings_of_jax_do_not_change_numbers(name: str, setting: str) -> None:
    expected = called_rightly(name)
    with SETTINGS[setting]():
        found = called_rightly(name)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_guards_of_transfers_for_the_whole_process() -> None:
    expected = called_rightly("kernel_change")
    for setting in ("jax_transfer_guard", "jax_transfer_guard_host_to_device"):
        before = getattr(jax.config, setting)
        jax.config.update(setting, "disallow")
        try:
            found = called_rightly("kernel_change")
        finally:
            jax.config.update(setting, before or "allow")
        np.testing.assert_array_equal(found, expected)
