"""Layers: the trainable maps, each linear in its weights, z = ⟨W, a⟩ + b.

A layer knows four things, and nothing about the network around it: how to draw its parameters, how to apply them, how to
contract its part of the tangent kernel from inputs ``a`` and cotangents δ = ∂f/∂z, and (``_restriction.py``) how to move
its weights inside the small space that a Hessian reaches. Every architecture is a program over such layers.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.vocabulary import PARAMETERIZATIONS

Params = dict[str, Array]
Shape = tuple[int, ...]


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

    ``lecun`` divides *every* parameter of the NTK parameterization by √m (Liu, Zhu & Belkin 2020, App. A, Eq. 39), so that
    K and the Hessian are multiplied by exactly m; on hidden layers, where fan_in = m, no factor is left in front of W.

    Attributes:
        width: the m above; used by ``lecun`` only.
        bias_std: scales the biases at initialization (σ_b of the infinite-width formulas).
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

    def weight(self, fan_in: int) -> tuple[float, float]:
        """(multiplier, standard deviation) of weights with this fan-in."""
        if self.kind == "ntk":
            return self.gain / math.sqrt(fan_in), 1.0
        if self.kind == "standard":
            return 1.0, self.gain / math.sqrt(fan_in)
        return self.gain * math.sqrt(self.width / fan_in), 1 / math.sqrt(self.width)

    def bias(self) -> tuple[float, float]:
        """(multiplier, standard deviation) of biases."""
        if self.kind == "lecun":
            return math.sqrt(self.width), self.bias_std / math.sqrt(self.width)
        return 1.0, self.bias_std


@dataclass(frozen=True)
class Layer(abc.ABC):
    """A map z = layer(a) that is linear in its parameters.

    Shapes: inputs ``a`` are (n, *input_shape), pre-activations z are (n, *output_shape), cotangents of the C outputs
    are (C, n, *output_shape).

    Attributes:
        trainable: a layer that is not trained has no part in the tangent kernel, the Hessian or the training.
    """

    trainable: bool = field(default=True, kw_only=True)

    @abc.abstractmethod
    def output_shape(self, input_shape: Shape) -> Shape:
        """Shape of one pre-activation for inputs of ``input_shape``; raises InvalidInput where they do not fit."""

    @abc.abstractmethod
    def init(self, key: Array, input_shape: Shape) -> Params:
        """Draw the parameters."""

    @abc.abstractmethod
    def apply(self, params: Params, a: Array) -> Array:
        """z for inputs (n, *input_shape)."""

    @abc.abstractmethod
    def kernel(self, params: Params, a1: Array, d1: Array, a2: Array, d2: Array) -> Array:
        """This layer's part of the tangent kernel, Σ_w (∂f_c(x_i)/∂w)(∂f_d(x_j)/∂w), as (C, n1, C, n2)."""

    def trainable_names(self) -> tuple[str, ...]:
        """Names of the parameters that training moves; the others (masks) are fixed structure."""
        return ("weight", "bias")


@dataclass(frozen=True)
class Dense(Layer):
    """z = multiplier · a W + b with W of shape (fan_in, features); acts on the last axis of (n, fan_in) inputs.

    Kernel: K[c,i,d,j] = (multiplier² a_i·a_j + bias) δ^c_i·δ^d_j, which needs no gradient of the size of W.

    Attributes:
        signs: draw the weights as ±1 instead of normal (output layers frozen at ±1, Liu et al. §3.1).
    """

    features: int
    use_bias: bool = False
    scaling: Scaling = Scaling()
    signs: bool = False

    def output_shape(self, input_shape: Shape) -> Shape:
        return (self.features,)

    def init(self, key: Array, input_shape: Shape) -> Params:
        (fan_in,) = input_shape
        return _draw(self.scaling, key, (fan_in, self.features), fan_in, self.features, self.use_bias, self.signs)

    def apply(self, params: Params, a: Array) -> Array:
        z = self.scaling.weight(a.shape[-1])[0] * (a @ params["weight"])
        return _add_bias(self.scaling, params, z)

    def kernel(self, params: Params, a1: Array, d1: Array, a2: Array, d2: Array) -> Array:
        return dense_kernel(self.scaling, params, a1, d1, a2, d2)


def dense_kernel(scaling: Scaling, params: Params, a1: Array, d1: Array, a2: Array, d2: Array) -> Array:
    """(multiplier² a·a' + bias) ∘ (δ·δ') for inputs (n, fan_in) and cotangents (C, n, features)."""
    multiplier, _ = scaling.weight(a1.shape[-1])
    factor = multiplier**2 * (a1 @ a2.T)
    if "bias" in params:
        factor = factor + scaling.bias()[0] ** 2
    return jnp.tensordot(d1, d2, axes=(-1, -1)) * factor[:, None, :]


def _draw(
    scaling: Scaling, key: Array, shape: Shape, fan_in: int, features: int, use_bias: bool, signs: bool = False
) -> Params:
    """Weights of ``shape`` and, where asked for, ``features`` biases."""
    weight_key, bias_key = jax.random.split(key)
    _, std = scaling.weight(fan_in)
    draw = jax.random.rademacher(weight_key, shape, jnp.result_type(float)) if signs else jax.random.normal(weight_key, shape)
    params = {"weight": std * draw}
    if use_bias:
        params["bias"] = scaling.bias()[1] * jax.random.normal(bias_key, (features,))
    return params


def _add_bias(scaling: Scaling, params: Params, z: Array) -> Array:
    return z + scaling.bias()[0] * params["bias"] if "bias" in params else z
