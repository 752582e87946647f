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
}


def _dense(width: Any = "m", function: str = "tanh", bias: bool = False) -> list[dict[str, Any]]:
    return [{"kind": "dense", "width": width, "bias": bias}, {"kind": "activation", "function": function}]


@cache
def composition_examples() -> dict[str, Composition]:
    """Name → composition, as :data:`EXAMPLE_TITLES` names them."""
    convolution = [{"kind": "convolution", "width": "m"}, {"kind": "activation", "function": "tanh"}]
    found: dict[str, list[dict[str, Any]]] = {
        "fully-connected": [*_dense(), *_dense()],
        "bottleneck": [*_dense(), *_dense(3), *_dense()],
        "residual": [*_dense(), *[{"kind": "residual", "layers": _dense()}] * 2],
        "concat": [*_dense(), {"kind": "concat", "layers": _dense()}, {"kind": "concat", "layers": _dense()}],
        "convolution": [*convolution, {"kind": "global-average"}, *_dense("4m")],
        "two-speeds": [*_dense("4m"), *_dense("0.5m", "softplus", bias=True), {"kind": "scale", "factor": 2.0}],
    }
    return {name: parse_composition({"layers": layers}) for name, layers in found.items()}
