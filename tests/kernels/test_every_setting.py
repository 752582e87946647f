"""Structured kernels against explicit Jacobians for every architecture × output × parameterization × trained subset."""

import functools
import itertools
from dataclasses import replace

import jax
import numpy as np
import pytest

from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import merge
from tests.cases import (
    ARCHITECTURES,
    FAST_COMPILE,
    OUTPUTS,
    PARAMETERIZATIONS,
    TRAINED,
    Case,
    inputs,
    random_params,
)

CASES = [
    Case(f"{case.name}-{parameterization}", replace(case.net, parameterization=parameterization), case.input_shape)
    for case in ARCHITECTURES
    for parameterization in PARAMETERIZATIONS
]
SETTINGS = list(itertools.product(OUTPUTS, TRAINED))


@functools.cache
def _kernels(case):
    """(output, trained subset) → (structured kernel, Gram matrix of the explicit Jacobians of that subset).

    One Jacobian of all parameters per output, of the network as people call it; a subset is a part of its columns.
    """
    params, x = random_params(case), inputs(case, 3)
    trained, fixed = case.net.partition(params)

    def jacobians(trained):
        nets = {output: replace(case.net, output=output) for output in OUTPUTS}
        return {o: jax.jacrev(lambda w, net=net: net.apply(merge(w, fixed), x))(trained) for o, net in nets.items()}

    def structured(params):
        nets = {(o, t): replace(case.net, output=o, trained=t) for o, t in SETTINGS}
        return {setting: empirical_ntk(net, params, x) for setting, net in nets.items()}

    found = jax.jit(structured, compiler_options=FAST_COMPILE)(params)
    by_layer = jax.jit(jacobians, compiler_options=FAST_COMPILE)(trained)
    return {(o, t): (np.asarray(found[o, t]), _gram(by_layer[o], _trained(case, t))) for o, t in SETTINGS}


def _trained(case, subset):
    return [name for name, layer in replace(case.net, trained=subset).layers.items() if layer.trainable]


def _gram(jacobian, names):
    """Σ_w ∂f_a(x_i)/∂w ∂f_b(x_j)/∂w over the parameters of these layers, (n, n, C, C)."""
    columns = [
        np.asarray(leaf).reshape(*leaf.shape[:2], -1) for name in names for leaf in jax.tree.leaves(jacobian[name])
    ]
    rows = np.concatenate(columns, axis=-1)
    return np.einsum("iap,jbp->ijab", rows, rows)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_structured_kernel_is_that_of_explicit_jacobians_for_every_output_and_trained_subset(case, x64):
    for setting, (structured, oracle) in _kernels(case).items():
        scale = np.abs(oracle).max()
        if setting[0] == "softmax" and case.net.num_outputs == 1:  # always 1, so its kernel is nothing but rounding
            assert max(scale, np.abs(structured).max()) < 1e-12
            continue
        assert scale > 0, setting
        # Float64 sums of at most a few hundred products: 1e-10 leaves five digits for the order of summation.
        np.testing.assert_allclose(structured, oracle, rtol=1e-10, atol=1e-10 * scale, err_msg=str(setting))
        num_inputs, _, num_outputs, _ = structured.shape
        matrix = structured.transpose(0, 2, 1, 3).reshape([num_inputs * num_outputs] * 2)
        np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-12 * scale, err_msg=str(setting))
        lowest = np.linalg.eigvalsh((matrix + matrix.T) / 2)[0]
        assert lowest >= -1e-12 * scale * len(matrix), setting
