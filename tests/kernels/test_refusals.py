"""Requests that cannot be answered, refused by the name of their field."""

import inspect
from pathlib import Path

import jax
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.kernels import (
    diagonal_ntk,
    empirical_ntk,
    gradient_norm_bound,
    infinite_width_nngp,
    infinite_width_ntk,
    kernel_change_between,
    kernel_regression,
    trace_outputs,
)
from ntk_core.networks.architectures import Bottleneck, DAGNetwork, FullyConnected, Mirrored

X = np.ones((2, 3), np.float32)
NET = FullyConnected(width=4)


def empirical(net=NET, x=X, **settings):
    return empirical_ntk(net, NET.init(jax.random.key(0), 3), x, **settings)


def between(**settings):
    params = NET.init(jax.random.key(0), 3)
    return kernel_change_between(NET, params, params, X, **settings)


def gradients(**settings):
    net = DAGNetwork(**{"width": 12, "activation": "relu", "use_bias": False, **settings})
    return gradient_norm_bound(net, np.ones(3))


def regression(*shapes):
    return inspect.unwrap(kernel_regression)(*map(np.ones, shapes))


REFUSED = [
    *(
        ("memory_limit", lambda limit=limit: empirical(memory_limit=limit))
        for limit in (0, -1.0, float("nan"))
    ),
    ("x1", lambda: empirical(x=np.ones((2, 7), np.float32))),
    (
        "per_layer",
        lambda: empirical(
            lambda w, x: NET.apply(jax.tree.map(jax.numpy.sin, w), x), per_layer=True
        ),
    ),
    ("trace_outputs", lambda: empirical(per_layer=True, trace_outputs=True)),
    ("equal_outputs", lambda: empirical(per_layer=True, equal_outputs=True)),
    ("equal_outputs", lambda: empirical(trace_outputs=True, equal_outputs=True)),
    ("memory_limit", lambda: between(memory_limit=0)),
    ("probes", lambda: between(probes=3)),
    ("kept", lambda: between(probes=8, kept=Path("pairs.jsonl"))),
    ("activation", lambda: gradients(activation="tanh")),
    ("output", lambda: gradients(output="swish")),
    ("parameterization", lambda: gradients(parameterization="standard")),
    ("trained", lambda: gradients(trained="hidden")),
    ("net", lambda: infinite_width_ntk(Bottleneck(), X)),
    ("net", lambda: infinite_width_nngp(Mirrored(NET), X)),
    ("net", lambda: infinite_width_nngp(FullyConnected(symmetric=True), X)),
    (
        "parameterization",
        lambda: infinite_width_ntk(FullyConnected(parameterization="standard"), X),
    ),
    ("output", lambda: infinite_width_ntk(FullyConnected(output="softmax"), X)),
    ("x2", lambda: infinite_width_ntk(NET, X, X[:, :2])),
    (
        "net",
        lambda: diagonal_ntk(
            lambda w, x: (x - x.mean(0)) @ w["w"], {"w": np.ones((3, 2), np.float32)}, X
        ),
    ),
    *(
        ("kernel", lambda shape=shape: trace_outputs(np.ones(shape)))
        for shape in ((2, 3), (2, 2, 1, 2), (4,))
    ),
    ("kernel", lambda: regression((3, 2), (3, 1), (2, 3))),
    ("cross", lambda: regression((3, 3), (3, 1), (2, 2))),
    ("targets", lambda: regression((3, 3), (4, 1), (2, 3))),
]


@pytest.mark.parametrize(("field", "call"), REFUSED)
def test_impossible_requests_are_refused_by_name(field, call):
    with pytest.raises(InvalidInput) as refused:
        call()
    assert refused.value.field == field
