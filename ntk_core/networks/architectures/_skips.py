"""Networks whose layers see more than the layer below: residual and densely connected ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._layers import Layer, Shape
from ntk_core.networks.architectures._masked import MaskedDense
from ntk_core.networks.architectures._network import Call
from ntk_core.networks.architectures._settings import MAX_WIDTH, check_count, trains_output
from ntk_core.networks.architectures._stack import OUTPUT_LAYER, Stack, hidden_name
from ntk_core.networks.graphs import check_drop_probability


@dataclass(frozen=True)
class ResNet(Stack):
    """α^(1) = σ(z^(1)), α^(l) = σ(z^(l)) + α^(l-1) for l ≥ 2, then a linear output layer.

    Liu, Zhu & Belkin 2020, App. G.2, Eq. 97, and with ``skip_every=2`` the remark after it: after the first layer,
    every ``skip_every`` layers the activation of as many layers below is added.

    Attributes:
        width: of all hidden layers, one number, since a skip adds what it skips.
        skip_every: number of layers that a skip connection spans.
    """

    depth: int = 3
    skip_every: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.width, tuple):
            raise InvalidInput(
                "width", self.width, f"one integer from 1 to {MAX_WIDTH:,} for all layers of a residual network"
            )
        super().__post_init__()
        check_count("skip_every", self.skip_every, 2)

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        return {**{hidden_name(index): self._dense(index) for index in range(self.depth)}, OUTPUT_LAYER: self._output()}

    def read_elementwise(self) -> Mapping[str, str]:
        return self._last_hidden_layer_read()

    def body(self, call: Call, x: Array) -> Array:
        a = skipped = self.nonlinearity(call(hidden_name(0), x.reshape(x.shape[0], -1)))
        for index in range(1, self.depth):
            a = self.nonlinearity(call(hidden_name(index), a))
            if index % self.skip_every == 0:
                a = skipped = a + skipped
        return call(OUTPUT_LAYER, a)


@dataclass(frozen=True)
class DenseNet(Stack):
    """Every layer, the output included, sees the input and all hidden layers below it, concatenated.

    z_v = in(v)^(-1/2) Σ_{u→v} w_uv α_u with the actual in-degree in(v); with ``drop_probability`` each edge is removed
    at random when the parameters are drawn, and stays removed (:class:`MaskedDense`).

    Source: Zhu, Liu & Belkin 2022, App. A and Fig. 2.

    Attributes:
        drop_probability: of each edge, at least 0 and below 1.
    """

    depth: int = 3
    drop_probability: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_drop_probability(self.drop_probability)
        if self.output_signs and self.drop_probability:
            raise InvalidInput("output_signs", True, "False where edges are dropped")

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        if self.drop_probability == 0:
            hidden = {hidden_name(index): self._dense(index) for index in range(self.depth)}
            return {**hidden, OUTPUT_LAYER: self._output()}
        masked: dict[str, Layer] = {
            hidden_name(index): MaskedDense(
                width, self.drop_probability, self.biases[index], self.hidden_scaling, trainable=self._trains(index)
            )
            for index, width in enumerate(self.widths)
        }
        masked[OUTPUT_LAYER] = MaskedDense(
            self.num_outputs,
            self.drop_probability,
            scaling=self.output_scaling,
            trainable=trains_output(self.trained),
        )
        return masked

    def body(self, call: Call, x: Array) -> Array:
        seen = x.reshape(x.shape[0], -1)
        for index in range(self.depth):
            seen = jnp.concatenate([seen, self.nonlinearity(call(hidden_name(index), seen))], axis=-1)
        return call(OUTPUT_LAYER, seen)

    def min_width(self, input_shape: Shape) -> int:
        """Smallest expected in-degree outside the first layer (Zhu et al., Eq. 8); ``in_degree_range`` counts it."""
        shapes = self.layer_input_shapes(input_shape)
        return max(
            1, round((1 - self.drop_probability) * shapes[hidden_name(1) if self.depth > 1 else OUTPUT_LAYER][0])
        )
