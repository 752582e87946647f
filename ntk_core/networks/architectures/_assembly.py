"""Assemblies: m copies of a small model, summed by an output layer."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import Float, PyTree, Shaped

from ntk_core.errors import InvalidInput, check_choice, kind_of
from ntk_core.networks.architectures._layered import Listed
from ntk_core.networks.architectures._layers import NTK_SCALING, Layer, Params, Scaling, Shape
from ntk_core.networks.choices import SUB_MODELS
from ntk_core.networks.graphs import CopiesBlock, Step
from ntk_core.networks.kinds import ARCHITECTURES, Kind


class CopiedModel(NamedTuple):
    """The model that an assembly copies.

    ``init(key, num_inputs)`` draws its parameters, ``apply(params, x)`` maps (n, d) to (n,).
    """

    init: Callable[[Array, int], PyTree]
    apply: Callable[[PyTree, Array], Array]


def _neurons(params: PyTree, x: Array) -> Array:
    w, (u,) = params
    return jnp.tanh(x @ w.T / math.sqrt(x.shape[-1])) @ u / math.sqrt(3)


def _tree(params: PyTree, x: Array) -> Array:
    w, (leaves,) = params
    first, left, right = jax.nn.sigmoid(x @ w.T / math.sqrt(x.shape[-1])).T
    ways = (first * left, first * (1 - left), (1 - first) * right, (1 - first) * (1 - right))
    return sum(leaf * way for leaf, way in zip(leaves, ways, strict=True))


def _sines(params: PyTree, x: Array) -> Array:
    w, (b,) = params
    return jnp.sin(x @ w.T / math.sqrt(x.shape[-1]) + b).prod(axis=-1)


def _drawn(name: str) -> Callable[[Array, int], PyTree]:
    size = SUB_MODELS[name]

    def init(key: Array, num_inputs: int) -> PyTree:
        first, second = jax.random.split(key)
        of_inputs = jax.random.normal(first, (size.per_input, num_inputs))
        others = jax.random.normal(second, (1, size.others))
        return of_inputs, others

    return init


MODELS = {
    "neurons": CopiedModel(_drawn("neurons"), _neurons),
    "tree": CopiedModel(_drawn("tree"), _tree),
    "sines": CopiedModel(_drawn("sines"), _sines),
}


@dataclass(frozen=True)
class Copies(Layer):
    """z_i = g(w_i; x): m copies of a model, whose parameters are the columns of one matrix.

    Parameters have no multiplier; in ``lecun`` it is √m.
    """

    num_features: int
    model: CopiedModel
    scaling: Scaling = NTK_SCALING

    def output_shape(self, input_shape: Shape) -> Shape:
        return (self.num_features,)

    def init(self, key: Array, input_shape: Shape) -> Params:
        keys = jax.random.split(key, self.num_features)
        flat = jax.vmap(
            lambda each: ravel_pytree(self.model.init(each, math.prod(input_shape)))[0], out_axes=-1
        )(keys)
        return {"weight": flat / self.scaling.bias()[0]}

    def _values(self, weight: Array, a: Array) -> Array:
        """Apply one copy of g to all inputs."""
        drawn = jax.eval_shape(lambda key: self.model.init(key, a.shape[-1]), jax.random.key(0))
        unravel = ravel_pytree(
            jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, weight.dtype), drawn)
        )[1]
        return self.model.apply(unravel(self.scaling.bias()[0] * weight), a)

    def apply(self, params: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        return jax.vmap(self._values, in_axes=(-1, None), out_axes=-1)(params["weight"], a)


@dataclass(frozen=True)
class Assembly(Listed):
    """Sum of many copies of a small model.

    f = m^(−½) Σ_i v_i g(w_i; x), v ~ N(0, 1), for any g (``hidden1``: the copies; ``output``: v).

    >>> import jax, jax.numpy as jnp
    >>> net = Assembly(width=8, sub_model="sines")
    >>> net.num_params((3,))
    72
    >>> drawn = lambda key, d: jax.random.normal(key, (d,))
    >>> own = Assembly(8, (drawn, lambda w, x: jnp.cos(x @ w)))
    >>> own.apply(own.init(jax.random.key(0), (3,)), jnp.ones((5, 3))).shape
    (5, 1)

    Attributes:
        width: m.
        sub_model: ``"neurons"``, ``"tree"`` or ``"sines"``; or your own pair (init, apply):
            ``init(key, d)`` draws the parameters, any tree of arrays, and ``apply(params, x)`` maps
            inputs (n, d) to (n,).
        num_outputs, output, parameterization, trained, output_signs: as for other networks.

    Source: Liu, Zhu & Belkin 2022, "Transition to linearity of wide neural networks is an emerging
    property of assembling weak models".
    """

    kind: ClassVar[Kind] = ARCHITECTURES["assembly"]

    width: int = 512
    sub_model: str | tuple[Callable[[Array, int], PyTree], Callable[[PyTree, Array], Array]] = (
        "neurons"
    )
    num_outputs: int = 1
    output: str = "linear"
    parameterization: str = "ntk"
    trained: str = "all"
    output_signs: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.sub_model, str):
            check_choice("sub_model", self.sub_model, SUB_MODELS)
        elif not (
            isinstance(self.sub_model, tuple)
            and len(self.sub_model) == 2
            and all(map(callable, self.sub_model))
        ):
            allowed = "one of " + ", ".join(SUB_MODELS) + ", or a pair of functions (init, apply)"
            raise InvalidInput("sub_model", kind_of(self.sub_model), allowed)
        super().__post_init__()

    def _layer(self, step: Step, is_last_hidden: bool) -> Layer:
        if not isinstance(step.block, CopiesBlock):
            return super()._layer(step, is_last_hidden)
        model = (
            MODELS[self.sub_model]
            if isinstance(self.sub_model, str)
            else CopiedModel(*self.sub_model)
        )
        return Copies(self.unit, model, self.hidden_scaling, trainable=self.trained != "last")
