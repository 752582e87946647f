"""Shared test cases: small networks, outputs, parameterizations, trained subsets."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.networks.architectures import (
    Attention,
    Bottleneck,
    Composed,
    ConvNet,
    DAGNetwork,
    DenseNet,
    Edge,
    FullyConnected,
    Group,
    Mirrored,
    MixedNet,
    Network,
    NetworkParams,
    ResNet,
    ScaledNetwork,
    Subtracted,
    Transformer,
)
from ntk_core.networks.graphs import parse_composition


@dataclass(frozen=True)
class Case:
    """A network and the shape of one of its inputs."""

    name: str
    net: Network
    input_shape: tuple[int, ...]


_GRAPH = {
    "groups": (Group("a", 6), Group("b", 3, "erf"), Group("c", 5)),
    "edges": (
        Edge("input", "a"),
        Edge("input", "b", 0.5),
        Edge("a", "c", 0.4),
        Edge("b", "c"),
        Edge("a", "output"),
        Edge("c", "output", 0.2),
    ),
}

_TANH = {"kind": "activation", "function": "tanh"}
_COMPOSITION = parse_composition(
    {
        "layers": [
            {"kind": "convolution", "width": "m", "bias": True},
            _TANH,
            {
                "kind": "concat",
                "layers": [{"kind": "convolution"}, _TANH, {"kind": "scale", "factor": 0.5}],
            },
            {"kind": "average-pool", "size": 2},
            {"kind": "dense", "width": 5},
            _TANH,
            {
                "kind": "residual",
                "layers": [
                    {"kind": "dense", "width": "2m", "bias": True},
                    _TANH,
                    {"kind": "dense", "width": 5},
                ],
            },
        ]
    }
)

# Liu, Zhu & Belkin 2020, Eq. 31.
_EQ_31 = {"bottleneck_width": 1, "bottleneck_activation": "identity", "use_bias": False}
ARCHITECTURES = [
    Case("shallow", FullyConnected(6, 1, 2, "tanh"), (4,)),
    Case("deep", FullyConnected((5, 4, 6), 3, 3, "gelu", use_bias=(True, False, True)), (2, 2)),
    Case("symmetric", FullyConnected(6, 1, 2, "erf", symmetric=True, use_bias=False), (3,)),
    Case("bottleneck", Bottleneck(6, 3, 2, "softplus", bottleneck_width=2, use_bias=False), (4,)),
    Case("liu-eq31", Bottleneck(8, 3, 1, "quadratic", **_EQ_31), (1,)),
    Case("resnet", ResNet(5, 3, 2, "swish"), (4,)),
    Case("resnet-every-two", ResNet(5, 5, 2, "tanh", skip_every=2, use_bias=False), (4,)),
    Case("densenet", DenseNet((4, 5, 3), 3, 2, "sigmoid"), (3,)),
    Case("dropped", DenseNet(5, 3, 2, "tanh", drop_probability=0.5), (4,)),
    Case("conv-1d", ConvNet(4, 2, 2, "erf", dimensions=1, padding="zero"), (5, 2)),
    Case(
        "conv-2d",
        ConvNet((3, 4), 2, 2, "tanh", readout="global-average", use_bias=False),
        (4, 3, 2),
    ),
    Case(
        "conv-pooled",
        ConvNet(4, 1, 2, "gelu", pool_size=2, symmetric=True, use_bias=False),
        (4, 4, 1),
    ),
    Case("mixed", MixedNet(4, 3, 2, "tanh", num_conv=1), (3, 3, 2)),
    Case(
        "graph",
        DAGNetwork(width=7, num_outputs=2, activation="tanh", use_bias=True, **_GRAPH),
        (4,),
    ),
    Case("composed", Composed(_COMPOSITION, width=3, num_outputs=2), (4, 4, 2)),
]


def _varied(case: Case, **settings) -> Case:
    suffix = "-".join(str(value) for value in settings.values())
    return Case(f"{case.name}-{suffix}", replace(case.net, **settings), case.input_shape)


OUTPUTS = ("linear", "softmax", "swish", "sigmoid", "leaky_softplus")
PARAMETERIZATIONS = ("standard", "lecun", "ntk")
TRAINED = ("first", "hidden", "last", "all")
# Each architecture under two settings; cycles of 5, 3 and 4 combine every two choices somewhere.
SETTINGS_MET = [
    _varied(
        case,
        output=OUTPUTS[k % 5],
        parameterization=PARAMETERIZATIONS[k % 3],
        trained=TRAINED[k % 4],
    )
    for start in (0, len(ARCHITECTURES))
    for k, case in enumerate(ARCHITECTURES, start=start)
]
SETTINGS_IN_TIERS = [
    pytest.param(case, marks=[] if k < len(ARCHITECTURES) else pytest.mark.slow)
    for k, case in enumerate(SETTINGS_MET)
]
ACTIVATIONS = [
    _varied(ARCHITECTURES[0], activation=name)
    for name in (
        "relu",
        "leaky_relu",
        "erf",
        "sigmoid",
        "softplus",
        "swish",
        "gelu",
        "quadratic",
        "identity",
    )
]
SIGNS = [
    _varied(ARCHITECTURES[0], output_signs=True, trained="hidden"),
    _varied(ARCHITECTURES[5], gain=1.5),
]
MIRRORED = [
    Case(f"mirrored-{case.name}", Mirrored(case.net), case.input_shape)
    for case in ARCHITECTURES[1::6]
]
SUBTRACTED = [
    Case(f"minus-start-{case.name}", Subtracted(case.net), case.input_shape)
    for case in ARCHITECTURES[1::12]
]
SCALED = [Case("scaled-mirrored", ScaledNetwork(MIRRORED[0].net, 2.5), MIRRORED[0].input_shape)]
VARIANTS = SIGNS + MIRRORED + SUBTRACTED + SCALED

# Sequences of T positions, in separate lists that tests compile into one program.
_MIXED = parse_composition(
    {
        "layers": [
            {"kind": "token-dense", "width": "2m", "bias": True},
            {"kind": "fixed-positions"},
            {
                "kind": "residual",
                "layers": [{"kind": "attention", "num_heads": "m", "head_dim": 2}, _TANH],
            },
            {
                "kind": "concat",
                "layers": [
                    {"kind": "gain"},
                    {"kind": "attention", "num_heads": 1, "head_dim": "m"},
                ],
            },
            {"kind": "positions"},
            {"kind": "normalize"},
            {"kind": "token-dense", "width": 4},
        ]
    }
)
_BARE = {
    "normalization": "none",
    "positions": "none",
    "token_readout": "first",
    "parameterization": "standard",
}
_PLAIN = {
    "normalization": "plain",
    "positions": "fixed",
    "parameterization": "lecun",
    "output": "swish",
}
SEQUENCES = [
    Case("attention", Attention(2, 4, 2), (2, 8)),
    Case(
        "attention-causal",
        Attention(2, 3, 2, score_exponent=1.0, causal=True, output="softmax"),
        (3, 2),
    ),
    Case(
        "attention-lecun",
        Attention(1, 3, 2, score_exponent=0.75, parameterization="lecun", trained="first"),
        (3, 2),
    ),
    Case(
        "transformer", Transformer(2, 2, 2, num_blocks=1, mlp_factor=1.5, activation="gelu"), (3, 2)
    ),
    Case(
        "transformer-bare",
        Transformer(1, 3, 2, num_blocks=2, mlp_width=3, activation="tanh", **_BARE),
        (3, 2),
    ),
    Case(
        "transformer-plain",
        Transformer(2, 2, 1, num_blocks=1, mlp_width=3, activation="tanh", **_PLAIN),
        (3, 2),
    ),
    Case("transformer-layers", Composed(_MIXED, width=3, num_outputs=2), (3, 2)),
]


def random_layer(
    layer: Any, input_shape: tuple[int, ...], rng: np.random.Generator
) -> dict[str, jax.Array]:
    """Normal parameters of a layer, by NumPy to avoid compilation,
    and masks with at least one edge per neuron.
    """
    shapes = jax.eval_shape(lambda key: layer.init(key, input_shape), jax.random.key(0))
    params = {}
    for name, array in shapes.items():
        if name == "mask":
            mask = rng.random(array.shape) < 0.6
            mask[0] |= ~mask.any(axis=0)
            params[name] = mask.astype(array.dtype)
        elif name == "in_degree":
            continue
        else:
            std = (
                layer.scaling.bias()[1]
                if name == "bias"
                else layer.scaling.weight(math.prod(array.shape[:-1]))[1]
            )
            params[name] = std * rng.standard_normal(array.shape).astype(array.dtype)
    if "mask" in params:  # removed edges have weight 0
        params["weight"] = params["weight"] * params["mask"]
        params["in_degree"] = params["mask"].sum(axis=0, dtype=np.int32)
    return jax.tree.map(jnp.asarray, params)


def random_params(case: Case, seed: int = 0) -> NetworkParams:
    """Draw the parameters of all layers of a case."""
    rng = np.random.default_rng(seed)
    shapes = case.net.layer_input_shapes(case.input_shape)
    return {name: random_layer(case.net.layers[name], shape, rng) for name, shape in shapes.items()}


def inputs(case: Case, num_rows: int, seed: int = 1) -> jax.Array:
    """Normal inputs, (num_rows, *input_shape)."""
    return jnp.asarray(
        np.random.default_rng(seed).standard_normal((num_rows, *case.input_shape)), float
    )


# Compilation takes most of the tests' time, and none measures speed.
FAST_COMPILE = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
