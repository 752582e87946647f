"""Layers: the trainable maps, each linear in its weights, z = ⟨W, a⟩ + b.

A layer knows how to draw its parameters and how to apply them, and nothing about the network around it. Every
architecture is a program over such layers.
"""

import abc
import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Shaped

from ntk_core.errors import InvalidInput
from ntk_core.networks.choices import PARAMETERIZATIONS

Params = dict[str, Array]
Shape = tuple[int, ...]
DRAWN_AT_ONCE = (2**12, 2**17)  # 0.1 ms and 3 ms
ASPECT = 8  # from this ratio of features to inputs on, a dense layer is trained in a layout of its own


@dataclass(frozen=True)
class Scaling:
    """How a layer's weights are drawn and multiplied: z = multiplier · ⟨W, a⟩, W ~ N(0, std²).

    =============  =====================  ================  =====================================
    kind           multiplier (weights)   std (weights)     biases (multiplier, std)
    =============  =====================  ================  =====================================
    ``ntk``        gain / √fan_in         1                 (1, 1)
    ``standard``   1                      gain / √fan_in    (1, 1)
    ``lecun``      gain · √(m / fan_in)   1 / √m            (√m, 1/√m)
    =============  =====================  ================  =====================================

    ``lecun`` divides *every* parameter of the NTK parameterization by √m (Liu, Zhu & Belkin 2020, App. A, Eq. 39), so
    that K and the Hessian are multiplied by exactly m; on hidden layers, where fan_in = m, no factor is left in front
    of W.

    Attributes:
        width: the m above; used by ``lecun`` only.
        bias_std: scales the biases at initialization (σ_b of the infinite-width formulas).

    >>> Scaling("ntk").weight(4), Scaling("standard").weight(4)
    ((0.5, 1.0), (1.0, 0.5))
    """

    kind: str = "ntk"
    gain: float = 1.0
    width: int = 1
    bias_std: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in PARAMETERIZATIONS:
            raise InvalidInput("parameterization", self.kind, "one of " + ", ".join(PARAMETERIZATIONS))
        if not (math.isfinite(self.gain) and self.gain > 0):
            raise InvalidInput("gain", self.gain, "a finite number above 0")
        if not (math.isfinite(self.bias_std) and self.bias_std >= 0):
            raise InvalidInput("bias_std", self.bias_std, "a finite number, at least 0")

    def weight(self, fan_in: Any) -> tuple[Any, Any]:
        """(multiplier, standard deviation) of weights with this fan-in: a number, or an array with one per neuron."""
        if self.kind == "ntk":
            return self.gain / fan_in**0.5, 1.0
        if self.kind == "standard":
            return 1.0, self.gain / fan_in**0.5
        return self.gain * (self.width / fan_in) ** 0.5, 1 / math.sqrt(self.width)

    def bias(self) -> tuple[float, float]:
        """(multiplier, standard deviation) of biases."""
        if self.kind == "lecun":
            return math.sqrt(self.width), self.bias_std / math.sqrt(self.width)
        return 1.0, self.bias_std


NTK_SCALING = Scaling()


@dataclass(frozen=True)
class Layer(abc.ABC):
    """A map z = layer(a) that is linear in its parameters.

    Shapes: inputs ``a`` are ``(n, *input_shape)``, pre-activations z are ``(n, *output_shape)``.

    Kernels and Hessians follow from ``apply``, whose program is traced.

    Attributes:
        trainable: a layer that is not trained has no part in the tangent kernel, the Hessian or the training.

    Source: our choice, docs/decisions/0002-kernels-without-jacobians.md; docs/math/kernel_without_jacobians.md.

    >>> layer = Dense(8)
    >>> isinstance(layer, Layer), layer.output_shape((5,))
    (True, (8,))
    """

    trainable: bool = field(default=True, kw_only=True)

    @abc.abstractmethod
    def output_shape(self, input_shape: Shape) -> Shape:
        """Shape of one pre-activation for inputs of ``input_shape``; raises InvalidInput where they do not fit."""

    @abc.abstractmethod
    def init(self, key: Array, input_shape: Shape) -> Params:
        """Draw the parameters."""

    @abc.abstractmethod
    def apply(self, params: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        """z for inputs (n, *input_shape)."""

    @property
    @abc.abstractmethod
    def scaling(self) -> Scaling:
        """How its parameters are drawn and multiplied."""

    def multiplier(self, params: Params, fan_in: int) -> Array | float:
        """The factor in front of the weights: a number, or one per feature, (num_features,)."""
        found: float = self.scaling.weight(fan_in)[0]
        return found

    def bias_multiplier(self) -> float:
        """The factor in front of the biases."""
        return self.scaling.bias()[0]

    def in_degree_range(self, params: Params) -> tuple[int, int]:
        """(smallest, largest) number of edges into one of the layer's neurons."""
        fan_in = math.prod(params["weight"].shape[:-1])
        return fan_in, fan_in

    def trainable_names(self) -> tuple[str, ...]:
        """Names of the parameters that training moves; the others (masks) are fixed structure."""
        return ("weight", "bias")

    def pack(self, params: Params) -> Params:
        """The trained parameters in the layout in which a training step is fastest; as they are, unless overridden.

        The same numbers in another order, so that what is done number by number (an optimizer's update) is the same.
        """
        return params

    def unpack(self, packed: Params) -> Params:
        """The inverse of :meth:`pack`."""
        return packed

    def apply_packed(self, packed: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        """``apply`` on packed parameters."""
        return self.apply(packed, a)


@dataclass(frozen=True)
class Dense(Layer):
    """z = multiplier · a W + b with W of shape (fan_in, num_features); acts on the last axis of (n, fan_in) inputs.

    Attributes:
        signs: draw the weights as ±1 instead of normal (output layers frozen at ±1, Liu et al. §3.1).
        paired: draw half of the features, and the other half equal to it.
        opposed: draw the weights of half of the inputs, and the others opposite to them; above a ``paired`` layer the
            pre-activations then start at zero (Hu, Xiao, Adlam & Pennington 2020, §3).
        zeros: start with weights 0.

    >>> params = Dense(8).init(jax.random.key(0), (5,))
    >>> params["weight"].shape
    (5, 8)
    """

    num_features: int
    use_bias: bool = False
    scaling: Scaling = NTK_SCALING
    signs: bool = False
    paired: bool = False
    opposed: bool = False
    zeros: bool = False

    def output_shape(self, input_shape: Shape) -> Shape:
        if len(input_shape) != 1:
            raise InvalidInput("input_shape", input_shape, "one axis of features")
        return (self.num_features,)

    def init(self, key: Array, input_shape: Shape) -> Params:
        (fan_in,) = input_shape
        if self.zeros:
            return {"weight": jnp.zeros((fan_in, self.num_features))}
        params = draw(self.scaling, key, (fan_in, self.num_features), self.use_bias, self.signs, self.paired)
        if self.opposed:
            half = params["weight"][: fan_in // 2]
            params["weight"] = jnp.concatenate([half, -half])
        return params

    def apply(self, params: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        weight = params["weight"]
        check_inputs(a.shape[-1], weight.shape[0])
        if self.opposed:  # each half on its own, so that opposite terms cancel exactly and not up to rounding
            half = a.shape[-1] // 2
            product = a[..., :half] @ weight[:half] + a[..., half:] @ weight[half:]
        else:
            product = a @ weight
        return add_bias(self.scaling, params, self.multiplier(params, a.shape[-1]) * product)

    def pack(self, params: Params) -> Params:
        # One product for weights and biases, contiguous for few features (docs/math/linearized-training.md).
        fan_in = params["weight"].shape[0]
        if "bias" in params and ASPECT * fan_in <= self.num_features:
            return {"weight": jnp.concatenate([params["weight"], params["bias"][None]])}
        if ASPECT * self.num_features <= fan_in and not self.opposed:
            return {**params, "weight": params["weight"].T}
        return params

    def unpack(self, packed: Params) -> Params:
        weight = packed["weight"]
        if weight.shape[-1] != self.num_features:
            return {**packed, "weight": weight.T}
        if self.use_bias and "bias" not in packed:
            return {"weight": weight[:-1], "bias": weight[-1]}
        return packed

    def apply_packed(self, packed: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        weight, fan_in = packed["weight"], a.shape[-1]
        multiplier = self.multiplier(packed, fan_in)
        if weight.shape[-1] != self.num_features:
            return add_bias(self.scaling, packed, multiplier * jnp.inner(a, weight))
        if self.use_bias and "bias" not in packed:
            ones = jnp.full((*a.shape[:-1], 1), self.bias_multiplier(), a.dtype)
            return jnp.concatenate([multiplier * a, ones], axis=-1) @ weight
        return self.apply(packed, a)


def check_inputs(given: int, drawn_for: int) -> None:
    """Refuse inputs whose size is not the one that the parameters were drawn for."""
    if given != drawn_for:
        raise InvalidInput(
            "input_shape", f"{given} input features", f"{drawn_for}, for which the parameters were drawn"
        )


def draw(
    scaling: Scaling, key: Array, shape: Shape, use_bias: bool, signs: bool = False, paired: bool = False
) -> Params:
    """Weights of ``shape`` (*fan-in axes, num_features) and, where asked for, one bias per feature.

    ``paired`` draws the first half of the features and repeats it.
    """
    weight_key, bias_key = jax.random.split(key)
    *fan_in_axes, num_features = shape
    drawn = num_features // 2 if paired else num_features
    std = scaling.weight(math.prod(fan_in_axes))[1]
    if signs:
        params = {"weight": std * jax.random.rademacher(weight_key, (*fan_in_axes, drawn), jnp.result_type(float))}
    else:
        params = {"weight": normal(weight_key, (*fan_in_axes, drawn), std)}
    if use_bias:
        params["bias"] = normal(bias_key, (drawn,), scaling.bias()[1])
    return {name: jnp.concatenate([each, each], axis=-1) for name, each in params.items()} if paired else params


def normal(key: Array, shape: Shape, std: Any) -> Array:
    """std · ``jax.random.normal(key, shape)``: few numbers are the first of a power of 32, so few programs draw all.

    A program that draws takes 0.2 s to compile, and a sweep has one shape for each layer and width.
    """
    size = math.prod(shape)
    several = next((many for many in DRAWN_AT_ONCE if size <= many), size)
    return _shaped(_normal(key, several), std, shape)


@partial(jax.jit, static_argnums=1)
def _normal(key: Array, size: int) -> Array:
    return jax.random.normal(key, (size,))


@partial(jax.jit, static_argnums=2)
def _shaped(drawn: Array, std: Array | float, shape: Shape) -> Array:
    return std * drawn[: math.prod(shape)].reshape(shape)


def add_bias(scaling: Scaling, params: Params, z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return z + scaling.bias()[0] * params["bias"] if "bias" in params else z
