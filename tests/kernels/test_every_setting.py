"""Structured kernels against explicit Jacobians under every setting of a network.

The settings are independent: output functions act after the layers, a trained subset keeps the parts of its
layers, and parameterizations act within layers (tests/networks/architectures/test_layers.py). Each law is
checked separately, and every architecture has several settings. The slow tier has every seventh case of the grid;
seven and three are coprime, so every parameterization occurs.
"""

import functools
import itertools
from dataclasses import replace

import jax
import numpy as np
import pytest

from ntk_core.kernels import empirical_ntk, generic_ntk, pre_output_ntk
from ntk_core.networks.architectures import merge, output_function
from tests.cases import (
    ARCHITECTURES,
    FAST_COMPILE,
    OUTPUTS,
    PARAMETERIZATIONS,
    SETTINGS_IN_TIERS,
    TRAINED,
    Case,
    inputs,
    random_params,
)

WITH_SEVERAL_OUTPUTS = [case for case in ARCHITECTURES if case.name in ("deep", "conv-1d", "graph")]


@pytest.mark.parametrize("case", SETTINGS_IN_TIERS, ids=lambda case: case.name)
def test_kernel_equals_jacobians_under_some_settings(case, x64):
    params, x = random_params(case), inputs(case, 3)

    @functools.partial(jax.jit, compiler_options=FAST_COMPILE)
    def both(params):
        trained, fixed = case.net.partition(params)
        oracle = generic_ntk(lambda w, x: case.net.apply(merge(w, fixed), x), trained, x)
        return empirical_ntk(case.net, params, x), oracle

    _compare(*map(np.asarray, both(params)), constant=_is_constant(case.net, case.net.output))


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("case", WITH_SEVERAL_OUTPUTS, ids=lambda case: case.name)
def test_an_output_function_is_a_map_after_the_layers(case, output, x64):
    params, x = random_params(case), inputs(case, 3)

    @functools.partial(jax.jit, compiler_options=FAST_COMPILE)
    def both(params):
        before, f, _ = pre_output_ntk(case.net, params, x)
        slopes = jax.vmap(jax.jacfwd(output_function(output)))(f)
        return empirical_ntk(replace(case.net, output=output), params, x), before, slopes

    kernel, before, slopes = both(params)
    expected = np.einsum("iac,ijcd,jbd->ijab", slopes, before, slopes)
    np.testing.assert_allclose(kernel, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("case", ARCHITECTURES[::4], ids=lambda case: case.name)
def test_a_trained_subset_keeps_the_parts_of_its_layers(case, x64):
    params, x = random_params(case), inputs(case, 3)
    nets = {subset: replace(case.net, trained=subset) for subset in TRAINED}

    @functools.partial(jax.jit, compiler_options=FAST_COMPILE)
    def kernels(params):
        parts = empirical_ntk(nets["all"], params, x, per_layer=True)
        return parts, {subset: empirical_ntk(net, params, x) for subset, net in nets.items()}

    parts, found = kernels(params)
    for subset in TRAINED:
        expected = sum(np.asarray(parts[name]) for name in _trained(case, subset))
        np.testing.assert_allclose(found[subset], expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


CASES = [
    Case(f"{case.name}-{parameterization}", replace(case.net, parameterization=parameterization), case.input_shape)
    for case in ARCHITECTURES
    for parameterization in PARAMETERIZATIONS
]
SETTINGS = list(itertools.product(OUTPUTS, TRAINED))


@functools.cache
def _kernels(case):
    """(output, trained subset) → (structured kernel, Gram matrix of the subset's explicit Jacobians).

    One Jacobian of all parameters per output, by the public call; a subset has some of its columns.
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


def _is_constant(net, output):
    """Whether the output is constant, as the softmax of one number."""
    return output == "softmax" and net.num_outputs == 1


def _compare(structured, oracle, constant):
    """Assert equal, symmetric, positive semidefinite matrices; only rounding for constant outputs."""
    scale = np.abs(oracle).max()
    if constant:
        assert max(scale, np.abs(structured).max()) < 1e-12
        return
    assert scale > 0
    # Float64 sums of at most a few hundred products: 1e-10 leaves five digits for the order of summation.
    np.testing.assert_allclose(structured, oracle, rtol=1e-10, atol=1e-10 * scale)
    num_inputs, _, num_outputs, _ = structured.shape
    matrix = structured.transpose(0, 2, 1, 3).reshape([num_inputs * num_outputs] * 2)
    np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-12 * scale)
    lowest = np.linalg.eigvalsh((matrix + matrix.T) / 2)[0]
    assert lowest >= -1e-12 * scale * len(matrix)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[::7], ids=lambda case: case.name)
def test_kernel_equals_jacobians_for_all_outputs_and_subsets(case, x64):
    for (output, _), (structured, oracle) in _kernels(case).items():
        _compare(structured, oracle, constant=_is_constant(case.net, output))
