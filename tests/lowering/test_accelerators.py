"""Every hot path, lowered for accelerators on a machine without one.

Required and forbidden operations.

The tests check the programs given to XLA: types, precisions, host calls, reused buffers.
Compilation and speed on an accelerator need such a machine (``benchmarks/growth.py``,
tests marked ``gpu``).
"""

from __future__ import annotations

import re
from functools import partial

import jax
import jax.numpy as jnp
import pytest

from linearity_lab.experiments.kernel_change.compute import _velocities
from linearity_lab.experiments.learning_rate.compute import _kernel_matrices
from ntk_core.dynamics import Loss, NetworkModel, Optimizer, advance, start
from ntk_core.dynamics._descent import _pre_outputs_and_kernel, _through_outputs
from ntk_core.dynamics._kernel_change import _change
from ntk_core.dynamics._measures import _measure_in_weights
from ntk_core.dynamics._models import (
    KernelAndStart,
    KernelModel,
    Origin,
    QuadraticModel,
    TangentModel,
)
from ntk_core.early_time._training import _outputs
from ntk_core.hessians._ball import _kernel_ascent
from ntk_core.hessians._compiled import _compiled
from ntk_core.hessians._norm import _leading
from ntk_core.kernels import diagonal_ntk
from ntk_core.kernels._between import _row_sums
from ntk_core.kernels._products import _product
from ntk_core.networks.architectures import ConvNet, DenseNet, FullyConnected, Transformer
from ntk_core.traced import kernels_of, program_of_network, views_of, whole_kernels

pytestmark = pytest.mark.slow  # all tests need every program, lowered twice
PLATFORMS = ("cuda", "tpu")
# Sizes of no other test, so that programs traced for a CPU are not reused here, nor the reverse.
N, C, D, WIDTH = 11, 3, 7, 23
CALLS_OUT = ("callback", "infeed", "outfeed", "stablehlo.send", "stablehlo.recv")


def shapes_of(net, input_shape=(D,), seeds=()):
    """Parameters without values, since only their shapes matter."""
    drawn = jax.eval_shape(lambda key: net.init(key, input_shape), jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.zeros((*seeds, *leaf.shape), leaf.dtype), drawn)


def floats(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def programs():
    """Name → the traced program of a hot path."""
    net = FullyConnected(width=WIDTH, depth=2, num_outputs=C, activation="tanh", use_bias=True)
    params, x, y, kernel = shapes_of(net), floats(N, D), floats(N, C), floats(N, N, C, C)
    trained, fixed = net.partition(params)
    model, loss = NetworkModel(net, Loss("softmax")), Loss("softmax")

    def state_of(model, trained):
        return jax.eval_shape(lambda w: start(model, Optimizer(), w, N), trained)

    def training(model, trained, fixed):
        return partial(
            advance.trace, model, Optimizer(), state_of(model, trained), fixed, x, y, floats(), 9
        )

    def structured(net, input_shape):
        params = shapes_of(net, input_shape)
        program = program_of_network(net, params, floats(*input_shape))
        return whole_kernels.trace(
            program, False, program.leaves(params), floats(N, *input_shape), None
        )

    program = program_of_network(net, params, floats(D))
    leaves = program.leaves(params)
    views = jax.eval_shape(partial(views_of, program), leaves, x)
    origin, one = Origin(trained, fixed), shapes_of(net, seeds=(1,))
    with jax.default_matmul_precision("highest"):  # as in all their callers
        ball = _kernel_ascent.trace(net, params, x, kernel, True)
        eigenpairs = _leading.trace(net, params, floats(D), 0, 1, 0.1, 9, jax.random.key(0))
        linearized, image = _compiled("gpu")
        product, zero, _ = jax.eval_shape(linearized, net, (), params, floats(D), 0)
        hessian, hessian_product = (
            linearized.trace(net, (), params, floats(D), 0),
            image.trace(product, params, zero),
        )
    others = {
        "kernel of a convolution": (
            ConvNet(width=5, depth=1, num_outputs=C, activation="tanh", use_bias=False),
            (4, 4, 3),
        ),
        "kernel of masked layers": (
            DenseNet(WIDTH, 2, C, drop_probability=0.5, use_bias=False),
            (D,),
        ),
        "kernel of a transformer": (Transformer(2, 5, C, num_blocks=1), (4, D)),
    }
    return {
        "kernel": whole_kernels.trace(program, False, leaves, x, None),
        **{name: structured(*each) for name, each in others.items()},
        "views of a block": views_of.trace(program, leaves, x),
        "kernel of two blocks": kernels_of.trace(program, False, leaves, views, views),
        "sums of a pair of blocks": _row_sums.trace(kernel, kernel, floats(N), (y, y)),
        "kernel at a record": _pre_outputs_and_kernel.trace(net, True, one, x),
        "kernel seen through outputs": _through_outputs.trace(
            ("linear", "softmax"), True, floats(1, N, C), floats(1, *kernel.shape)
        ),
        "kernel change at a record": _change.trace(
            floats(1, *kernel.shape), floats(1, *kernel.shape)
        ),
        "kernel change at a rate": _kernel_matrices.trace(model, *net.partition(one), x),
        "kernel change in a ball": ball,
        "kernel velocity": _velocities.trace(net, loss, one, x, y),
        "kernel times vectors": _product.trace(
            net, params, floats(2, N, D), floats(2, N, D), floats(2, N, C)
        ),
        "diagonal of a kernel": jax.jit(partial(diagonal_ntk, net)).trace(params, x),
        "eigenpairs of a Hessian": eigenpairs,
        "Hessian at the weights": hessian,
        "product with a Hessian": hessian_product,
        "step of training": training(model, trained, fixed)(),
        "step of training, seeds together": advance.trace(
            model,
            Optimizer(),
            *jax.tree.map(lambda leaf: floats(2, *leaf.shape), (state_of(model, trained), fixed)),
            x,
            y,
            floats(2),
            9,
            floats(2),
            together=True,
        ),
        "step of the linear model": training(TangentModel(model), trained, origin)(),
        "step of the quadratic model": training(QuadraticModel(model), trained, origin)(),
        "step through the kernel": training(
            KernelModel(loss), floats(N, C), KernelAndStart(kernel, y)
        )(),
        "record a network": _measure_in_weights.trace(model, trained, fixed, origin, x, y, x),
        "early in training": _outputs.trace(net, params, x),
    }


@pytest.fixture(scope="module")
def lowered():
    """(name, platform) → text, traced as for an accelerator,
    where one call replaces a CPU's stretches.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "default_backend", lambda: "gpu")
        return {
            (name, platform): traced.lower(lowering_platforms=(platform,)).as_text()
            for name, traced in programs().items()
            for platform in PLATFORMS
        }


def products(text):
    """Lines with matrix products and convolutions."""
    return [line for line in text.splitlines() if re.search(r"stablehlo\.(dot|convolution)", line)]


@pytest.mark.long
def test_programs_are_those_of_an_accelerator_and_lower_for_each(lowered):
    assert len(lowered) >= 2 * 18
    assert all("stablehlo" in text for text in lowered.values())
    kernel = lowered["kernel", "cuda"]
    assert "stablehlo.while" not in kernel  # a CPU splits long rows into stretches


def test_nothing_is_in_double_precision_by_accident(lowered):
    assert [name for name, text in lowered.items() if re.search(r"\bf64\b|xf64", text)] == []


def test_every_product_asks_for_full_single_precision(lowered):
    """No TF32 on a GPU and no bfloat16 on a TPU,
    whose rounding would exceed a kernel change of 1e-3.
    """
    assert sum(len(products(text)) for text in lowered.values()) > 200
    lower = [
        (*of, line.strip())
        for of, text in lowered.items()
        for line in products(text)
        if line.count("HIGHEST") != 2
    ]
    assert lower == []


def test_no_program_calls_the_host(lowered):
    assert [
        (name, call) for name, text in lowered.items() for call in CALLS_OUT if call in text
    ] == []


def test_training_reuses_the_buffers_that_it_is_given(lowered):
    steps = [(name, text) for name, text in lowered.items() if name[0].startswith("step")]
    assert len(steps) == 2 * 5
    for name, text in steps:
        (main,) = re.findall(r"func\.func public @main\((.*?)\) ->", text, re.DOTALL)
        reused = re.findall(
            r"tensor<([^>]*)>\s*\{[^}]*(?:tf\.aliasing_output|jax\.buffer_donor)", main
        )
        # Weights and biases of both hidden layers and the weights above, or the coefficients alone.
        assert len([shape for shape in reused if "x" in shape]) >= (
            1 if "kernel" in name[0] else 5
        ), name
