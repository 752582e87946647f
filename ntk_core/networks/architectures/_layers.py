"""Layers: the trainable maps, each linear in its weights, z = ⟨W, a⟩ + b.

A layer draws and applies its parameters, independently of its network. Every architecture is a
program over such layers.
"""

import abc
import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Shaped

from ntk_core.errors import InvalidInput, check_choice
from ntk_core.networks.architectures._activations import check_drop_probability
from ntk_core.networks.choices import PARAMETERIZATIONS
from ntk_core.real_numbers import is_finite_number

Params = dict[str, Array]
Number = Array | float
Shape = tuple[int, ...]
Parts = tuple[tuple[int | None, float], ...]
DRAWN_AT_ONCE = (2**12, 2**17, 2**20)  # 0.1, 3 and 24 ms
ASPECT = 8  # above this ratio of features to inputs a dense layer trains in a packed layout


@dataclass(frozen=True)
class Scaling:
    """Scaling of a layer's weights: z = multiplier · ⟨W, a⟩, W ~ N(0, std²).

    =============  =====================  ================  =====================================
    kind           multiplier (weights)   std (weights)     biases (multiplier, std)
    =============  =====================  ================  =====================================
    ``ntk``        gain / √fan_in         1                 (1, 1)
    ``standard``   1                      gain / √fan_in    (1, 1)
    ``lecun``      gain · √(m / fan_in)   1 / √m            (√m, 1/√m)
    =============  =====================  ================  =====================================

    ``lecun`` divides *every* parameter of the NTK parameterization by √m (Liu, Zhu & Belkin 2020,
    App. A, Eq. 39), so K and the Hessian are multiplied by exactly m; on hidden layers, where
    fan_in = m, the factor of W is 1.

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
        check_choice("parameterization", self.kind, PARAMETERIZATIONS)
        if not (is_finite_number(self.gain) and self.gain > 0):
            raise InvalidInput("gain", self.gain, "a finite number above 0")
        if not (is_finite_number(self.bias_std) and self.bias_std >= 0):
            raise InvalidInput("bias_std", self.bias_std, "a finite number, at least 0")

    def weight(self, fan_in: Number) -> tuple[Number, Number]:
        """(multiplier, standard deviation) of weights with this fan-in.

        A number, or one per neuron.
        """
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
        trainable: frozen layers contribute nothing to the tangent kernel, the Hessian or training.

    Source: our choice, docs/decisions/0002-kernels-without-jacobians.md;
    docs/math/kernel_without_jacobians.md.

    >>> layer = Dense(8)
    >>> isinstance(layer, Layer), layer.output_shape((5,))
    (True, (8,))
    """

    trainable: bool = field(default=True, kw_only=True)

    @abc.abstractmethod
    def output_shape(self, input_shape: Shape) -> Shape:
        """Shape of one pre-activation; raises InvalidInput for unsuitable inputs."""

    @abc.abstractmethod
    def init(self, key: Array, input_shape: Shape) -> Params:
        """Draw the parameters."""

    @abc.abstractmethod
    def apply(self, params: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        """z for inputs (n, *input_shape)."""

    @property
    @abc.abstractmethod
    def scaling(self) -> Scaling:
        """Scaling of its parameters."""

    def multiplier(self, params: Params, fan_in: int) -> Number:
        """Factor of the weights: a number, or one per feature, (num_features,)."""
        return self.scaling.weight(fan_in)[0]

    def biased(self, params: Params, z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Add the biases, if any."""
        return z + self.scaling.bias()[0] * params["bias"] if "bias" in params else z

    def in_degree_range(self, params: Params) -> tuple[int, int]:
        """(smallest, largest) number of edges into one of the layer's neurons."""
        fan_in = math.prod(params["weight"].shape[:-1])
        return fan_in, fan_in

    def trainable_names(self) -> tuple[str, ...]:
        """Names of trained parameters; the others (masks) are fixed structure."""
        return ("weight", "bias")

    def pack(self, params: Params) -> Params:
        """Return the trained parameters in the fastest layout for training; unchanged by default.

        Only the order of numbers changes, so elementwise operations such as optimizer
        updates are the same.
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
    """z = multiplier · a W + b with W of shape (fan_in, num_features).

    Acts on the last axis of (n, fan_in) inputs.

    Attributes:
        signs: draw the weights as ±1 instead of normal (output layers frozen at ±1, Liu et al.
            §3.1).
        paired: draw half of the features and repeat them.
        opposed: draw the weights of half of the inputs and repeat their negatives; above a
            ``paired`` layer the pre-activations then start at zero (Hu, Xiao, Adlam &
            Pennington 2020, §3).
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
        params = draw(
            self.scaling, key, (fan_in, self.num_features), self.use_bias, self.signs, self.paired
        )
        if self.opposed:
            half = params["weight"][: fan_in // 2]
            params["weight"] = jnp.concatenate([half, -half])
        return params

    def apply(self, params: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        weight = params["weight"]
        check_inputs(a.shape[-1], weight.shape[0])
        if self.opposed:  # each half separately, so that opposite terms cancel exactly
            half = a.shape[-1] // 2
            product = a[..., :half] @ weight[:half] + a[..., half:] @ weight[half:]
        else:
            product = a @ weight
        return self.biased(params, self.multiplier(params, a.shape[-1]) * product)

    def pack(self, params: Params) -> Params:
        # One product for weights and biases, contiguous for few features
        # (docs/math/linearized-training.md).
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
        weight = packed["weight"]
        fan_in = a.shape[-1]
        multiplier = self.multiplier(packed, fan_in)
        if weight.shape[-1] != self.num_features:
            return self.biased(packed, multiplier * jnp.inner(a, weight))
        if self.use_bias and "bias" not in packed:
            ones = jnp.full((*a.shape[:-1], 1), self.scaling.bias()[0], a.dtype)
            return jnp.concatenate([multiplier * a, ones], axis=-1) @ weight
        return self.apply(packed, a)


def check_inputs(given: int, drawn_for: int) -> None:
    """Refuse inputs of a size other than that of the parameters."""
    if given != drawn_for:
        raise InvalidInput(
            "input_shape",
            f"{given} input features",
            f"{drawn_for}, for which the parameters were drawn",
        )


def draw(
    scaling: Scaling,
    key: Array,
    shape: Shape,
    use_bias: bool,
    signs: bool = False,
    paired: bool = False,
) -> Params:
    """Draw weights of ``shape`` (*fan-in axes, num_features).

    ``use_bias`` adds one bias per feature.

    ``paired`` draws the first half of the features and repeats it.
    """
    weight_key, bias_key = jax.random.split(key)
    *fan_in_axes, num_features = shape
    drawn = num_features // 2 if paired else num_features
    std = scaling.weight(math.prod(fan_in_axes))[1]
    if signs:
        params = {
            "weight": std
            * jax.random.rademacher(weight_key, (*fan_in_axes, drawn), jnp.result_type(float))
        }
    else:
        params = {"weight": normal(weight_key, (*fan_in_axes, drawn), std)}
    if use_bias:
        params["bias"] = normal(bias_key, (drawn,), scaling.bias()[1])
    return (
        {name: jnp.concatenate([each, each], axis=-1) for name, each in params.items()}
        if paired
        else params
    )


def normal(key: Array, shape: Shape, std: Number) -> Array:
    """Draw std · N(0, 1) of this shape as the first numbers of a few fixed sizes.

    A sweep has one shape per layer and width, and each drawing program takes 0.2 s to compile.
    For the same reason NumPy scales and shapes the numbers where they lie in its memory.
    """
    size = math.prod(shape)
    several = next((many for many in DRAWN_AT_ONCE if size <= many), size)
    drawn = _normal(key, several)
    is_traced = any(isinstance(each, jax.core.Tracer) for each in (drawn, std))
    if is_traced or jax.default_backend() != "cpu":
        return _shaped(drawn, std, shape)
    numbers = np.asarray(drawn)
    return jnp.asarray(_scaled(numbers, numbers.dtype.type(std), shape))


def compile_draws() -> None:
    """Compile the programs that draw normal weights of usual sizes."""
    for size in DRAWN_AT_ONCE:
        _normal(jax.random.key(0), size)


@partial(jax.jit, static_argnums=1)
def _normal(key: Array, size: int) -> Array:
    return jax.random.normal(key, (size,))


def _scaled(drawn: Any, std: Any, shape: Shape) -> Any:
    """Return std times the first numbers, in this shape."""
    return std * drawn[: math.prod(shape)].reshape(shape)


_shaped = jax.jit(_scaled, static_argnums=2)


@dataclass(frozen=True)
class MaskedDense(Layer):
    """z_v = in(v)^(-1/2) Σ_{u→v} W_uv a_u + b_v, over the kept edges; in(v) is their number.

    Each edge is removed with its drop probability at initialization, permanently. The mask and the
    in-degrees are stored as ``params["mask"]`` (uint8) and ``params["in_degree"]`` (int32) and
    never trained. Weights of removed edges are 0 with zero gradient; the layer costs as much as a
    dense one. A neuron that would lose all edges keeps one, drawn uniformly, since an in-degree of
    zero has no scaling.

    Source: Zhu, Liu & Belkin 2022, Eq. 2 and App. A.

    Attributes:
        drop_probability: of every edge; or a tuple of (number of inputs, drop probability) for
            consecutive segments of the inputs, with None for one segment that takes the rest.

    >>> import jax
    >>> params = MaskedDense(8, drop_probability=0.5).init(jax.random.key(0), (5,))
    >>> params["mask"].shape, bool((params["in_degree"] >= 1).all())
    ((5, 8), True)
    """

    num_features: int
    drop_probability: float | Parts = 0.0
    use_bias: bool = False
    scaling: Scaling = NTK_SCALING

    def __post_init__(self) -> None:
        for _, probability in self._parts():
            check_drop_probability(probability)

    def _parts(self) -> Parts:
        return (
            self.drop_probability
            if isinstance(self.drop_probability, tuple)
            else ((None, self.drop_probability),)
        )

    def output_shape(self, input_shape: Shape) -> Shape:
        if len(input_shape) != 1:
            raise InvalidInput("input_shape", input_shape, "one axis of features")
        return (self.num_features,)

    def init(self, key: Array, input_shape: Shape) -> Params:
        (fan_in,) = input_shape
        mask_key, spare_key, weight_key, bias_key = jax.random.split(key, 4)
        rest = fan_in - sum(size or 0 for size, _ in self._parts())
        drop = jnp.concatenate(
            [jnp.full(rest if size is None else size, p) for size, p in self._parts()]
        )
        kept = jax.random.uniform(mask_key, (fan_in, self.num_features)) >= drop[:, None]
        spare = jnp.arange(fan_in)[:, None] == jax.random.randint(
            spare_key, (self.num_features,), 0, fan_in
        )
        mask = jnp.where(kept.any(axis=0), kept, spare).astype(jnp.uint8)
        degrees = in_degrees(mask)
        _, std = self.scaling.weight(degrees.astype(jnp.result_type(float)))
        weight = mask * std * jax.random.normal(weight_key, mask.shape)
        params = {"weight": weight, "mask": mask, "in_degree": degrees}
        if self.use_bias:
            params["bias"] = self.scaling.bias()[1] * jax.random.normal(
                bias_key, (self.num_features,)
            )
        return params

    def multiplier(self, params: Params, fan_in: int) -> Array | float:
        return self.scaling.weight(params["in_degree"].astype(jnp.result_type(float)))[0]

    def apply(self, params: Params, a: Array) -> Array:
        check_inputs(a.shape[-1], params["mask"].shape[0])
        z = self.multiplier(params, a.shape[-1]) * (
            a @ _on_kept_edges(params["weight"], params["mask"])
        )
        return self.biased(params, z)

    def in_degree_range(self, params: Params) -> tuple[int, int]:
        degrees = params["in_degree"]
        return int(degrees.min()), int(degrees.max())


def in_degrees(mask: Array) -> Array:
    """Number of edges into each neuron, (num_features,), as integers, which have no derivative."""
    return jnp.sum(mask, axis=0, dtype=jnp.int32)


@jax.custom_jvp
def _on_kept_edges(weight: Array, mask: Array) -> Array:
    """Return the weights, already 0 on removed edges; masks their derivatives only."""
    return weight


@_on_kept_edges.defjvp
def _change_on_kept_edges(
    primals: tuple[Array, Array], tangents: tuple[Array, object]
) -> tuple[Array, Array]:
    # So that second derivatives are masked as well.
    return _on_kept_edges(*primals), primals[1] * tangents[0]
