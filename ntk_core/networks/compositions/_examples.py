"""Compositions to start from."""

from functools import cache
from typing import Any

from ntk_core.networks.compositions._composition import Composition, parse_composition

EXAMPLE_TITLES = {
    "fully-connected": "fully connected, two layers",
    "bottleneck": "with a bottleneck of 3 neurons",
    "residual": "residual: a way around each layer",
    "concat": "DenseNet: a way around, side by side",
    "convolution": "convolution, pooling, dense (images)",
    "two-speeds": "layers that grow unequally",
    "transformer": "one block of a transformer (sequences)",
}


def _dense(width: Any = "m", function: str = "tanh", bias: bool = False) -> list[dict[str, Any]]:
    return [{"kind": "dense", "width": width, "bias": bias}, {"kind": "activation", "function": function}]


@cache
def composition_examples() -> dict[str, Composition]:
    """Name → composition, as :data:`EXAMPLE_TITLES` names them.

    Source: our choice, docs/own-data-and-models.md.
    """
    convolution = [{"kind": "convolution", "width": "m"}, {"kind": "activation", "function": "tanh"}]
    found: dict[str, list[dict[str, Any]]] = {
        "fully-connected": [*_dense(), *_dense()],
        "bottleneck": [*_dense(), *_dense(3), *_dense()],
        "residual": [*_dense(), *[{"kind": "residual", "layers": _dense()}] * 2],
        "concat": [*_dense(), {"kind": "concat", "layers": _dense()}, {"kind": "concat", "layers": _dense()}],
        "convolution": [*convolution, {"kind": "global-average"}, *_dense("4m")],
        "two-speeds": [*_dense("4m"), *_dense("0.5m", "softplus", bias=True), {"kind": "scale", "factor": 2.0}],
    }
    normalized = [{"kind": "normalize"}, {"kind": "gain"}]
    tokens = {"kind": "token-dense", "width": "4m"}
    attention = [{"kind": "attention", "num_heads": 4, "head_dim": "m"}, tokens]
    inner = [{"kind": "token-dense", "width": "16m"}, {"kind": "activation", "function": "gelu"}, tokens]
    around = [{"kind": "residual", "layers": [*normalized, *layers]} for layers in (attention, inner)]
    found["transformer"] = [tokens, {"kind": "positions"}, *around, *normalized, {"kind": "global-average"}]
    return {name: parse_composition({"layers": layers}) for name, layers in found.items()}
