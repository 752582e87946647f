"""Requests that cannot be answered, refused by the name of their field."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import hessians
from ntk_core.errors import InvalidInput
from ntk_core.hessians import (
    ball_sup,
    hessian_density,
    hessian_norm,
    layer_quantities,
    path_sup,
    shallow_hessian_blocks,
    smallest_eigenvalue_in_ball,
)
from ntk_core.networks.architectures import FullyConnected, ResNet

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

NET = FullyConnected(width=4, num_outputs=3, activation="tanh", trained="first")
CHAIN = {"w": [(6, 4), (5, 6), (5, 2)]}


@functools.cache
def initial(net):
    return jax.jit(net.init, static_argnums=1)(jax.random.key(0), (4,))


def asked(function, change, net=NET, **settings):
    """Call a function of a network, parameters and an input, with some arguments changed."""

    def call():
        given = {"net": net, "params": initial(net), "x": np.ones(4), **settings, **change}
        return function(**{**given, "x": jnp.asarray(given["x"])})

    return call


def of_function(shapes, apply):
    def call():
        params = jax.tree.map(jnp.ones, shapes, is_leaf=lambda each: isinstance(each, tuple))
        return layer_quantities(apply, params, jnp.ones(4))

    return call


def recurrent(p, x):
    return jnp.tanh(jnp.tanh(x @ p["w"]) @ p["w"]) @ p["u"]


def residual(p, x):
    return (jnp.tanh((h := jnp.tanh(x @ p["w"])) @ p["v"]) + h) @ p["u"]


NORM = [
    ("output_index", {"output_index": 3}),
    ("x", {"x": np.ones((2, 5))}),
    ("x", {"x": np.ones((2, 4)), "batched": False}),
    ("x", {"x": np.ones(4), "batched": True}),
    ("x", {"x": np.ones(5)}),
    ("params", {"params": []}),
    ("tolerance", {"tolerance": 1e-12}),
    ("max_matvecs", {"max_matvecs": 0}),
]
BALL = [
    ("radius", {"radius": 0.0}),
    ("num_starts", {"num_starts": 0}),
    ("num_steps", {"num_steps": -1}),
]
NO_CHAIN = [
    ({"w": (4, 4), "u": (4, 1)}, recurrent),
    ({"v": (4, 4), "w": (4, 4), "u": (4, 1)}, residual),
    (CHAIN, lambda p, x: (jnp.tanh(jnp.tanh(x @ p["w"][0].T) @ p["w"][1].T) @ p["w"][2]) ** 2),
    (CHAIN, lambda p, x: jax.nn.softmax(jnp.tanh(x @ p["w"][0].T)) @ p["w"][1].T @ p["w"][2]),
]
REFUSED = [
    *((field, asked(hessian_norm, change)) for field, change in NORM),
    *(
        (field, asked(ball_sup, change, radius=1.0))
        for field, change in [*BALL, ("quantity", {"quantity": "loss"})]
    ),
    *(
        (field, asked(smallest_eigenvalue_in_ball, change, x=np.ones((1, 4)), radius=1.0))
        for field, change in BALL
    ),
    *((field, asked(hessian_density, {field: 0})) for field in ("num_probes", "num_steps")),
    ("bandwidth", lambda: asked(hessian_density, {})().density(np.zeros(1), 0.0)),
    ("path", lambda: path_sup(NET, [], np.ones(4))),
    *(
        (field, asked(shallow_hessian_blocks, {}, replace(NET, **{field: value})))
        for field, value in (("depth", 2), ("trained", "all"), ("output", "tanh"))
    ),
    ("output", asked(layer_quantities, {}, replace(NET, output="softmax"))),
    ("net", asked(layer_quantities, {}, ResNet(width=4, activation="tanh", use_bias=False))),
    *(("net", of_function(*each)) for each in NO_CHAIN),
]


@pytest.mark.long_after(2)
@pytest.mark.parametrize(("field", "call"), REFUSED)
def test_impossible_requests_are_refused_by_name(field, call):
    with pytest.raises(InvalidInput) as refused:
        call()
    assert refused.value.field == field


LAST = FullyConnected(width=4, depth=1, num_outputs=3, activation="tanh")
OF_LAST = {
    "norm": lambda w, a: hessians.hessian_norm(LAST, w, np.ones(2), a).value,
    "eigenpairs": lambda w, a: (
        hessians.hessian_eigenpairs(LAST, w, np.ones(2), a, num_wanted=1).eigenvalues
    ),
    "quantities": lambda w, a: hessians.layer_quantities(LAST, w, np.ones(2), a).bound,
    "blocks": lambda w, a: hessians.hessian_block_norms(LAST, w, np.ones(2), a).values,
}


@pytest.mark.parametrize("name", OF_LAST)
def test_output_minus_one_is_the_last(name):
    params = LAST.init(jax.random.key(0), 2)
    np.testing.assert_array_equal(OF_LAST[name](params, -1), OF_LAST[name](params, 2))
