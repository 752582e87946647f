"""The small space contains the whole non-zero spectrum, for every architecture and every output."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from ntk_core.hessians._operator import restricted_operator
from ntk_core.networks.architectures import ConvNet, FullyConnected, merge
from tests.cases import ARCHITECTURES, SEQUENCES, Case, inputs, random_params
from tests.plain_derivatives import by_size, full_hessian, small_hessian

OUTPUTS = ("linear", "softmax", "swish", "tanh", "quadratic")
# each architecture with one output, since outputs only change the final scalar
CASES = [
    replace(case, net=replace(case.net, output=OUTPUTS[k % 5]))
    for k, case in enumerate(ARCHITECTURES)
]
# One network has a kink, since all kinds of layers share one activation function.
CASES.append(
    Case("shallow-relu", replace(ARCHITECTURES[0].net, activation="relu", output="swish"), (4,))
)


def drawn(case):
    return random_params(case), inputs(case, 1)[0]


# Each kind of layer, graph and kink; all other cases and most sequences are slow.
FAST = (
    "shallow",
    "bottleneck",
    "resnet",
    "dropped",
    "conv-2d",
    "graph",
    "shallow-relu",
    "attention",
)
IN_TIERS = [
    pytest.param(
        case,
        id=f"{case.name}-{case.net.output}",
        marks=[] if case.name in FAST else pytest.mark.slow,
    )
    for case in (
        *CASES,
        *(
            case
            for case in SEQUENCES
            if case.name in ("attention", "transformer", "transformer-layers")
        ),
    )
]


@pytest.mark.long_after(5)
@pytest.mark.first_cases(4)  # each network compiles its dense Hessian
@pytest.mark.parametrize("case", IN_TIERS)
def test_restricted_hessian_has_the_nonzero_spectrum(case, x64):
    params, x = drawn(case)
    output_index = case.net.num_outputs - 1
    small, bases = small_hessian(case.net, params, x, output_index)
    if case.name == "attention":  # 2 positions, below 8 inputs and 8 features
        assert bases >= {f"hidden{layer}.weight" for layer in (1, 2, 3)}
    np.testing.assert_allclose(small, small.T, atol=1e-12 * np.abs(small).max())
    full, _ = full_hessian(case.net, params, x, output_index)
    eigenvalues, expected = by_size(np.linalg.eigvalsh(small)), by_size(np.linalg.eigvalsh(full))
    shared = min(len(eigenvalues), len(expected))
    norm = np.abs(expected[0])
    assert norm > 0
    # sorted by value: eigenvalues of opposite sign and equal size may swap places under rounding
    np.testing.assert_allclose(
        np.sort(eigenvalues[:shared]), np.sort(expected[:shared]), atol=1e-8 * norm
    )
    assert np.all(np.abs(eigenvalues[shared:]) <= 1e-12 * norm)
    assert np.all(np.abs(expected[shared:]) <= 1e-12 * norm)


SMALL_SPACES = [
    Case(
        "dense",
        FullyConnected(width=7, depth=2, num_outputs=2, activation="tanh", use_bias=True),
        (5,),
    ),
    # 4 positions, fan_in 18, 9 channels: bases of several columns
    Case(
        "convolution",
        ConvNet(width=9, depth=2, num_outputs=2, activation="erf", dimensions=1, use_bias=True),
        (4, 2),
    ),
]


@pytest.mark.parametrize("case", SMALL_SPACES, ids=[case.name for case in SMALL_SPACES])
def test_coordinates_are_an_isometry_into_the_weights(case, x64):
    params, x = drawn(case)

    @jax.jit
    def written_out(params, x):
        hessian = restricted_operator(case.net, params, x, lambda f: f[0])
        assert hessian.space.bases
        direction = hessian.project(jax.random.normal(jax.random.key(2), hessian.zero.shape))
        full, image = hessian.direction(direction), hessian.direction(hessian.matvec(direction))
        return direction, hessian.project(direction), full, image

    def output(trained):
        return case.net.pre_outputs(merge(trained, fixed), x[None])[0, 0]

    direction, again, full, image = written_out(params, x)
    np.testing.assert_allclose(again, direction, atol=1e-14)  # a projection
    assert float(jnp.linalg.norm(ravel_pytree(full)[0])) == pytest.approx(
        float(jnp.linalg.norm(direction)), rel=1e-12
    )
    trained, fixed = case.net.partition(params)
    expected = jax.jit(lambda w, along: jax.jvp(jax.grad(output), (w,), (along,))[1])(trained, full)
    for found, plain in zip(jax.tree.leaves(image), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(found, plain, rtol=1e-10, atol=1e-12)
