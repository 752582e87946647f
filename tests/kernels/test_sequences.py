"""Kernels of networks with attention: structured as from explicit Jacobians, and layer by layer."""

import jax
import numpy as np
import pytest

from ntk_core.kernels import empirical_ntk, generic_ntk
from ntk_core.networks.architectures import merge
from tests.cases import FAST_COMPILE, SEQUENCES, inputs, random_params

QUICK = ("attention", "transformer", "transformer-layers")


@pytest.mark.slow
@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_attention_kernels_by_layer_equal_explicit_jacobians(quick, x64):
    cases = [case for case in SEQUENCES if (case.name in QUICK) == quick]

    def kernels(params):
        found = {}
        for case in cases:
            trained, fixed = case.net.partition(params[case.name])
            x = inputs(case, 3)
            oracle = generic_ntk(lambda w, x, net=case.net, fixed=fixed: net.apply(merge(w, fixed), x), trained, x)
            found[case.name] = empirical_ntk(case.net, params[case.name], x, per_layer=True), oracle
        return found

    params = {case.name: random_params(case) for case in cases}
    kernels_of = jax.jit(kernels, compiler_options=FAST_COMPILE)(params)
    for case in cases:
        by_layer, oracle = kernels_of[case.name]
        assert set(by_layer) == {name for name, layer in case.net.layers.items() if layer.trainable}
        scale = np.abs(oracle).max()
        assert scale > 0
        np.testing.assert_allclose(sum(by_layer.values()), oracle, rtol=1e-10, atol=1e-10 * scale, err_msg=case.name)
