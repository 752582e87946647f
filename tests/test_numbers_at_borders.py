"""NaN, infinities and numbers beyond float64 are refused by name wherever a number is accepted.

A comparison with NaN is false. A check that asks what is wrong, such as ``value < 0``, lets it
pass; these tests give it to every number of a call, a setting, an option and a line of a run file.
"""

import importlib
import inspect
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import jaxtyping
import numpy as np
import pytest

from ntk_core import (
    Adapted,
    Attention,
    Bottleneck,
    ConvNet,
    DAGNetwork,
    DenseNet,
    FullyConnected,
    InvalidInput,
    KernelOperator,
    MixedNet,
    Optimizer,
    ResNet,
    Transformer,
    ball_sup,
    empirical_ntk,
    hessian_eigenpairs,
    hessian_norm,
    infinite_width,
    kernel_change_between,
    kernel_regression,
    linearity_report,
    loss_hessian,
    sweep_widths,
    train,
)
from ntk_core.dynamics import ClosedForm, TrainOptions, kernel_velocity, one_sample_catapult
from ntk_core.early_time import deep_features
from ntk_core.hessians import (
    SpectralDensity,
    hessian_block_norms,
    hessian_norms_by_output,
    nonlinear_output_hessian,
    path_sup,
    smallest_eigenvalue_in_ball,
    vector_hessian_norm,
)
from ntk_core.kernels import leave_one_out
from ntk_core.linearity import runs_at
from ntk_core.networks.architectures import ScaledNetwork
from tests.test_all_arguments import PACKAGES, of_width
from tests.test_wrong_kinds import NET, NET_PARAMS, PARAMS, K, X, Y, plain, two_layers

NO_NUMBERS: dict[str, Any] = {
    "NaN": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "an integer beyond float64": 10**400,
    "NaN of NumPy": np.float32(math.nan),
}


@pytest.fixture(autouse=True)
def _as_for_users() -> Iterator[None]:
    """Call without the type checks of the tests, which users do not have."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


DENSITY = SpectralDensity(np.zeros((1, 1)), np.ones((1, 1)), 1, 1)


def loss_curvature() -> Any:
    return loss_hessian(plain, PARAMS, X, Y)


def swept(**given: Any) -> object:
    return sweep_widths(of_width, [4, 8], X, Y, num_seeds=1, max_steps=1, **given)


def run(**given: Any) -> object:
    options = {"learning_rate": 0.1, "loss_threshold": 0.1, "max_steps": 1, "num_records": 1}
    return runs_at(of_width, 4, X, Y, [0], "square", 1, **{**options, **given})


# Function and its parameter ↦ a call with one number.
CALLS: dict[str, Callable[[Any], object]] = {
    "empirical_ntk.memory_limit": lambda n: empirical_ntk(plain, PARAMS, X, memory_limit=n),
    "KernelOperator.memory_limit": lambda n: KernelOperator(plain, PARAMS, X, memory_limit=n),
    "KernelOperator.extremes.tolerance": lambda n: KernelOperator(plain, PARAMS, X).extremes(
        tolerance=n
    ),
    "KernelOperator.solve.ridge": lambda n: KernelOperator(plain, PARAMS, X).solve(Y, ridge=n),
    "KernelOperator.solve.tolerance": lambda n: KernelOperator(plain, PARAMS, X).solve(
        Y, tolerance=n
    ),
    "CurvatureOperator.norm.tolerance": lambda n: loss_curvature().norm(tolerance=n),
    "CurvatureOperator.eigenpairs.tolerance": lambda n: loss_curvature().eigenpairs(1, tolerance=n),
    "Optimizer.momentum": lambda n: Optimizer("momentum", momentum=n),
    "ball_sup.radius": lambda n: ball_sup(plain, PARAMS, X[0], n),
    "hessian_norm.tolerance": lambda n: hessian_norm(plain, PARAMS, X[0], tolerance=n),
    "hessian_eigenpairs.tolerance": lambda n: hessian_eigenpairs(
        plain, PARAMS, X[0], num_wanted=1, tolerance=n
    ),
    "hessian_block_norms.tolerance": lambda n: hessian_block_norms(
        NET, NET_PARAMS, X[0], tolerance=n
    ),
    "hessian_norms_by_output.tolerance": lambda n: hessian_norms_by_output(
        NET, [NET_PARAMS], X, ("linear",), tolerance=n
    ),
    "nonlinear_output_hessian.tolerance": lambda n: nonlinear_output_hessian(
        NET, NET_PARAMS, X[0], tolerance=n
    ),
    "path_sup.tolerance": lambda n: path_sup(plain, [PARAMS, PARAMS], X[0], tolerance=n),
    "vector_hessian_norm.tolerance": lambda n: vector_hessian_norm(
        plain, PARAMS, X[0], tolerance=n
    ),
    "smallest_eigenvalue_in_ball.radius": lambda n: smallest_eigenvalue_in_ball(
        plain, PARAMS, X, n
    ),
    "infinite_width.weight_std": lambda n: infinite_width(plain, PARAMS, X, weight_std={"w": n}),
    "kernel_change_between.memory_limit": lambda n: kernel_change_between(
        plain, PARAMS, PARAMS, X, memory_limit=n
    ),
    "kernel_velocity.memory_limit": lambda n: kernel_velocity(plain, PARAMS, X, Y, memory_limit=n),
    "linearity_report.memory_limit": lambda n: linearity_report(
        plain, PARAMS, PARAMS, X, memory_limit=n
    ),
    "kernel_regression.ridge": lambda n: kernel_regression(K, Y, K, ridge=n),
    "leave_one_out.ridge": lambda n: leave_one_out(K, Y, Y, ridge=n),
    "sweep_widths.learning_rate": lambda n: swept(learning_rate=n),
    "sweep_widths.loss_threshold": lambda n: swept(loss_threshold=n),
    "runs_at.learning_rate": lambda n: run(learning_rate=n),
    "runs_at.loss_threshold": lambda n: run(loss_threshold=n),
    "train.learning_rate": lambda n: train(plain, PARAMS, X, Y, max_steps=1, learning_rate=n),
    "train.rate_factor": lambda n: train(plain, PARAMS, X, Y, max_steps=1, rate_factor=n),
    "train.loss_threshold": lambda n: train(plain, PARAMS, X, Y, max_steps=1, loss_threshold=n),
    "SpectralDensity.density.bandwidth": lambda n: DENSITY.density(np.zeros(1), n),
    "Adapted.gain": lambda n: Adapted(width=4, gain=n),
    "Adapted.rank_exponent": lambda n: Adapted(width=4, rank_exponent=n),
    "Bottleneck.gain": lambda n: Bottleneck(width=4, gain=n),
    "ConvNet.gain": lambda n: ConvNet(width=4, gain=n),
    "DAGNetwork.gain": lambda n: DAGNetwork(width=4, gain=n),
    "DenseNet.gain": lambda n: DenseNet(width=4, gain=n),
    "DenseNet.drop_probability": lambda n: DenseNet(width=4, drop_probability=n),
    "FullyConnected.gain": lambda n: FullyConnected(width=4, gain=n),
    "MixedNet.gain": lambda n: MixedNet(width=4, gain=n),
    "ResNet.gain": lambda n: ResNet(width=4, gain=n),
    "Transformer.score_exponent": lambda n: Transformer(score_exponent=n),
    "Transformer.mlp_factor": lambda n: Transformer(mlp_factor=n),
    "Attention.score_exponent": lambda n: Attention(num_heads=1, head_dim=4, score_exponent=n),
    "ScaledNetwork.scale": lambda n: ScaledNetwork(NET, n),
    "TrainOptions.rate_factor": lambda n: TrainOptions(rate_factor=n),
    "TrainOptions.loss_threshold": lambda n: TrainOptions(loss_threshold=n),
    "ClosedForm.descent.learning_rate": lambda n: ClosedForm(K, Y, 0 * Y).descent(n, [1]),
    "one_sample_catapult.u": lambda n: one_sample_catapult(n, 1.0, 0.0, 1),
    "one_sample_catapult.v": lambda n: one_sample_catapult(0.1, n, 0.0, 1),
    "one_sample_catapult.w": lambda n: one_sample_catapult(0.1, 1.0, n, 1),
    "deep_features.covariance_ratio": lambda n: deep_features("tanh", 2, 4, n, 0.1, 0.1),
    "deep_features.rate_hidden": lambda n: deep_features("tanh", 2, 4, 1.0, n, 0.1),
    "deep_features.rate_output": lambda n: deep_features("tanh", 2, 4, 1.0, 0.1, n),
    "two_layer_features.covariance_ratio": lambda n: two_layers(covariance_ratio=n),
    "two_layer_features.rate_first": lambda n: two_layers(rate_first=n),
    "two_layer_features.rate_second": lambda n: two_layers(rate_second=n),
}


@pytest.mark.first_cases(20)
@pytest.mark.parametrize("name", CALLS)
def test_numbers_of_a_call_are_numbers(name: str) -> None:
    found = {}
    for kind, value in NO_NUMBERS.items():
        try:
            CALLS[name](value)
        except InvalidInput:
            continue
        except Exception as error:
            found[kind] = f"{type(error).__name__}: {error}"
        else:
            found[kind] = "accepted"
    assert not found


def test_an_unknown_eigenvalue_has_no_stable_rate() -> None:
    assert math.isnan(Optimizer().stable_rate(math.nan, 3, 1.0))
    nothing_moves = Optimizer().stable_rate(0.0, 3, 1.0)
    assert nothing_moves == math.inf


# Classes of results and errors, whose numbers no user gives.
RESULTS = {
    "InfiniteWidth",
    "LayerReport",
    "LinearityReport",
    "OwnRun",
    "SpectralEstimate",
    "TooLarge",
    "TraceEstimate",
}


def test_every_number_of_a_public_call_is_tried() -> None:
    found = {name for name in _numbers_of_calls() if name.partition(".")[0] not in RESULTS}
    unknown = {"Optimizer.stable_rate.largest_eigenvalue", "Optimizer.stable_rate.curvature"}
    assert found - CALLS.keys() == unknown


def _numbers_of_calls() -> Iterator[str]:
    """Yield the parameters of all public functions, methods and classes that are floats."""
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isfunction(value):
                yield from _numbers_of(name, value)
            elif inspect.isclass(value):
                yield from _numbers_of(name, value)
                for method, function in vars(value).items():
                    if inspect.isfunction(function) and not method.startswith("_"):
                        yield from _numbers_of(f"{name}.{method}", function)


def _numbers_of(name: str, function: Callable[..., Any]) -> Iterator[str]:
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return
    for parameter in parameters.values():
        annotation = parameter.annotation
        words = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        kinds = re.split(r" \| ", words.strip("'"))
        if {"float", "float | Sequence[float]", "Mapping[str, float]"} & {*kinds, words}:
            yield f"{name}.{parameter.name}"
