"""Requests that cannot be answered, refused by the name of their field."""

import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import InvalidInput, Optimizer, train
from ntk_core.dynamics import ClosedForm, kernel_velocity, loss_hessian_product
from tests.dynamics.problems import NET, problem

TRAINING = [
    ("learning_rate", {"learning_rate": float("nan")}),
    ("learning_rate", {"learning_rate": "fast"}),
    ("optimizer", {"optimizer": "lbfgs"}),
    ("batch_size", {"optimizer": "sgd"}),
    ("batch_size", {"optimizer": Optimizer("sgd", batch_size=9)}),
    ("loss", {"loss": "hinge"}),
    ("followed", {"followed": (8,)}),
    ("linear_route", {"optimizer": "adam", "linear_route": "kernel"}),
    ("infinite_width", {"optimizer": "adam", "infinite_width": True}),
    ("x_test", {"x_test": np.ones((8, 2)), "y_test": np.ones((8, 2))}),
]
OPTIMIZERS = [
    ("momentum", {"momentum": 1.0}),
    ("batch_size", {"name": "gradient-descent", "batch_size": 3}),
]
LOSSES = [("y", {"y": np.ones((2, 2))}), ("vector", {"vector": {}})]
KERNEL, START = np.ones((2, 2)), np.ones((2, 1))
CLOSED = [
    ("kernel", (np.ones((2, 3)), START, START)),
    ("start", (KERNEL, np.ones((2, 1, 1)), START)),
    ("other_kernel", (KERNEL, START, START, np.ones((3, 3)), np.ones((3, 1)))),
]


def trained(**change):
    params, x, y, _, _ = problem()
    return train(
        **{
            "net": NET,
            "params": params,
            "x": x,
            "y": y,
            "kernels": False,
            "learning_rate": 0.1,
            **change,
        }
    )


def product(**change):
    params, x, y, _, _ = problem()
    return loss_hessian_product(
        **{"net": NET, "params": params, "x": x, "y": y, "vector": params, **change}
    )


def velocity(**change):
    return kernel_velocity(
        lambda w, x: x * w, jnp.ones(()), jnp.ones((1, 1)), jnp.ones((1, 1)), **change
    )


@pytest.mark.parametrize(
    ("field", "call", "given"),
    [
        *((field, trained, change) for field, change in TRAINING),
        *((field, Optimizer, settings) for field, settings in OPTIMIZERS),
        *((field, product, change) for field, change in LOSSES),
        *((field, ClosedForm, arrays) for field, arrays in CLOSED),
        ("memory_limit", velocity, {"memory_limit": 0}),
    ],
)
def test_impossible_requests_are_refused_by_name(field, call, given):
    with pytest.raises(InvalidInput) as refused:
        call(**given) if isinstance(given, dict) else call(*given)
    assert refused.value.field == field
