"""HTML of a network for notebooks: settings, layers, shapes and parameters."""

import math
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING

import jax

from ntk_core.errors import InvalidInput
from ntk_core.markup import Markup, paragraph, shortened, table
from ntk_core.networks.architectures._layers import Layer, Shape

if TYPE_CHECKING:
    from ntk_core.networks.architectures._network import Network

# Example inputs by default: numbers, an image, a sequence.
EXAMPLES: tuple[Shape, ...] = ((10,), (28, 28, 1), (16, 8))
_LONGEST = 40


def network_html(net: "Network", input_shape: Shape | None) -> Markup:
    """Show the layers for one input of this shape, or of the first suitable one of ``EXAMPLES``."""
    chosen = [shortened(f"{name}={value}", _LONGEST) for name, value in _chosen(net)]
    title = paragraph(", ".join(chosen), title=type(net).__name__)
    for shape in EXAMPLES if input_shape is None else (tuple(input_shape),):
        try:
            shapes = net.layer_input_shapes(shape)
            drawn = jax.eval_shape(lambda key, shape=shape: net.init(key, shape), jax.random.key(0))
        except InvalidInput:
            if input_shape is not None:
                raise
            continue
        rows = [_row(name, net.layers[name], below, drawn[name]) for name, below in shapes.items()]
        count = f"{net.num_params(shape):,} parameters"
        trained = net.num_params(shape, only_trained=True)
        moved = "" if trained == net.num_params(shape) else f", {trained:,} of them trained"
        example = (
            "" if input_shape else ", for example; net.html(input_shape) shows them for another"
        )
        words = f"{count}{moved}, for one input of shape {shape}{example}."
        return Markup(
            title + table(("Layer", "Kind", "From", "To", "Parameters"), rows) + paragraph(words)
        )
    return Markup(title)


def _chosen(net: "Network") -> Iterator[tuple[str, str]]:
    """Names and values of the fields that are not at their defaults."""
    for each in fields(net):
        value = getattr(net, each.name)
        if each.repr and (each.default is MISSING or value != each.default):
            yield (
                each.name,
                type(value).__name__ if hasattr(value, "layer_input_shapes") else repr(value),
            )


def _row(
    name: str, layer: Layer, below: Shape, params: dict[str, jax.ShapeDtypeStruct]
) -> tuple[str, ...]:
    count = sum(
        math.prod(each.shape) for array, each in params.items() if array in layer.trainable_names()
    )
    kind = type(layer).__name__ + ("" if layer.trainable else ", frozen")
    return name, kind, _sizes(below), _sizes(layer.output_shape(below)), f"{count:,}"


def _sizes(shape: Shape) -> str:
    return " × ".join(f"{size:,}" for size in shape)
