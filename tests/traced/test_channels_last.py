"""Convolutions with channels last: values and second derivatives of the original ones."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import ntk_core
from ntk_core.traced import ChannelsLast
from tests.plain_derivatives import normal

IMAGES = (("NHWC", "HWIO", "NHWC"), (2, 7, 6, 3), (3, 2, 3, 4))
CASES: dict[str, Any] = {
    "same": (*IMAGES, {"window_strides": (1, 1), "padding": "SAME"}),
    "strides": (*IMAGES, {"window_strides": (2, 3), "padding": "VALID"}),
    "dilation": (*IMAGES, {"window_strides": (1, 1), "padding": "SAME", "rhs_dilation": (2, 1)}),
    "channels-first": (
        ("NCHW", "OIHW", "NCHW"),
        (2, 3, 7, 6),
        (4, 3, 3, 2),
        {"window_strides": (1, 2), "padding": ((1, 0), (2, 1))},
    ),
    "groups": (
        ("NHWC", "HWIO", "NHWC"),
        (2, 7, 6, 6),
        (3, 2, 3, 4),
        {"window_strides": (1, 1), "padding": "SAME", "feature_group_count": 2},
    ),
    "transposed": (
        *IMAGES,
        {"window_strides": (1, 1), "padding": ((1, 1), (0, 1)), "lhs_dilation": (2, 2)},
    ),
    "sequence": (
        ("NWC", "WIO", "NWC"),
        (2, 9, 3),
        (4, 3, 5),
        {"window_strides": (1,), "padding": ((-1, 2),)},
    ),
}


@pytest.mark.long_after(4)
@pytest.mark.first_cases(3)  # each compiles a convolution and its derivatives twice
@pytest.mark.parametrize("name", CASES)
def test_convolutions_and_their_derivatives_keep_their_values(name, x64):
    layout, rows, kernel, settings = CASES[name]
    drawn = normal(x=rows, w=kernel)

    @jax.jit
    def apply(w, x):
        z = jax.lax.conv_general_dilated(x, w, dimension_numbers=layout, **settings)
        return jnp.tanh(z)

    def gradient(w, x):
        return jax.grad(lambda w, x: jnp.sum(apply(w, x) ** 2), (0, 1))(w, x)

    for function in (apply, gradient):
        found = ChannelsLast(function)
        expected = function(drawn["w"], drawn["x"])
        jax.tree.map(
            lambda one, other: np.testing.assert_allclose(one, other, atol=1e-12),
            found(drawn["w"], drawn["x"]),
            expected,
        )
        text = str(jax.make_jaxpr(found)(drawn["w"], drawn["x"]))
        layouts = set(re.findall(r"lhs_spec=([^)]*\))", text))
        assert layouts == {str((0, len(rows) - 1, *range(1, len(rows) - 1)))}


@pytest.mark.slow
def test_curvature_of_convolutions_is_that_of_plain_derivatives(x64):
    drawn = normal(x=(3, 5, 5, 2), k=(3, 3, 2, 3), v=(75, 2), y=(3, 2), vector=(204,))
    params = {"k": drawn["k"], "v": drawn["v"]}

    def apply(p, x):
        z = jax.lax.conv_general_dilated(x, p["k"], (1, 1), "SAME", dimension_numbers=IMAGES[0])
        return jnp.tanh(z).reshape(len(x), -1) @ p["v"]

    flat, back = ravel_pytree(params)

    def loss(w):
        return 0.5 * jnp.mean(jnp.sum((apply(back(w), drawn["x"]) - drawn["y"]) ** 2, axis=1))

    _, expected = jax.jvp(jax.grad(loss), (flat,), (drawn["vector"],))
    hessian = ntk_core.loss_hessian(apply, params, drawn["x"], drawn["y"], "square")
    np.testing.assert_allclose(hessian.flat_product(drawn["vector"]), expected, rtol=1e-9)
