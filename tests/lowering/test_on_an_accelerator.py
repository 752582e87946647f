"""Accelerators in single precision against a CPU in double; ``pytest -m gpu`` on such a machine."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from ntk_core.dynamics import Loss, NetworkModel, Optimizer, advance, start
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import KernelOperator, empirical_ntk, kernel_change_between
from ntk_core.networks.architectures import merge
from tests.cases import ARCHITECTURES, inputs, random_params

pytestmark = pytest.mark.gpu
# Of float32 in sums of some hundred terms; TF32 and bfloat16 are off by 1e-3 and more.
ROUNDING = 1e-5


def trained(net, params, x, y):
    """Weights after 20 steps of gradient descent."""
    moving, fixed = net.partition(jax.tree.map(jax.numpy.array, params))
    model = NetworkModel(net, Loss("linear"))
    state = advance(
        model, Optimizer(), start(model, Optimizer(), moving, len(x)), fixed, x, y, 0.05, 20
    )
    return merge(state.trained, fixed)


def found(net, params, x):
    """Kernel, its change between two weights, a product with it, a Hessian norm,
    weights after training.
    """
    y = np.ones((len(x), np.shape(net.apply(params, x))[1]), x.dtype)
    after = trained(net, params, x, y)
    return {
        "kernel": empirical_ntk(net, params, x),
        "change": kernel_change_between(
            net, params, jax.tree.map(lambda w: w * 1.01, params), x
        ).change,
        "product": KernelOperator(net, params, x).product(y),
        "Hessian norm": hessian_norm(net, params, x[0], tolerance=1e-4).value,
        "weights": jax.tree.leaves(after),
    }


@pytest.mark.parametrize("case", ARCHITECTURES[::3], ids=lambda case: case.name)
def test_numbers_are_those_of_a_cpu_in_double_precision(case):
    params, x = random_params(case), inputs(case, 5)
    single = found(case.net, params, x)
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        wider = [
            jax.tree.map(
                lambda w: np.asarray(w, np.float64) if np.asarray(w).dtype == np.float32 else w,
                each,
            )
            for each in (params, np.asarray(x))
        ]
        double = found(case.net, *jax.tree.map(jax.numpy.asarray, wider))
    for name, value in double.items():
        pairs = zip(jax.tree.leaves(single[name]), jax.tree.leaves(value), strict=True)
        for one, other in pairs:
            scale = np.abs(np.asarray(other)).max()
            assert np.abs(np.asarray(one) - np.asarray(other)).max() <= 10 * ROUNDING * max(
                scale, 1e-3
            ), name
