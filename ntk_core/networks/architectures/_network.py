"""Networks: programs over layers.

A network defines its forward pass once, as ``body(call, x)``, where ``call(name, a)`` applies the
layer of that name to a, or records its input shape (``init``). Kernels and Hessians trace the
forward pass (``ntk_core/traced``).
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh, PartitionSpec
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped

from ntk_core.errors import InvalidInput, kind_of
from ntk_core.markup import Markup
from ntk_core.networks.architectures._activations import output_function
from ntk_core.networks.architectures._layers import Layer, Params, Shape
from ntk_core.usual_settings import with_usual_settings

AXIS = "width"
SPLIT_AT_ONCE = 32  # keys, so that networks of fewer layers share one program
_KEEPS_FIRST_KEYS = "jax_threefry_partitionable"  # JAX's setting


def width_mesh(num_devices: int | None = None) -> Mesh:
    """Return a device mesh that divides widths.

    Divides widths over the first ``num_devices`` devices: m → m / num_devices.

    >>> import ntk_core
    >>> net = ntk_core.FullyConnected(width=64)
    >>> with jax.set_mesh(ntk_core.networks.width_mesh(1)):
    ...     params = net.init(jax.random.key(0), (10,))

    Args:
        num_devices: number of devices; all by default.

    Returns:
        The mesh, for ``jax.set_mesh``.

    Raises:
        InvalidInput: for more devices than there are.

    Source: our choice, docs/decisions/0006-seeds-devices-clusters.md.
    """
    devices = jax.devices()
    count = len(devices) if num_devices is None else num_devices
    if not 1 <= count <= len(devices):
        raise InvalidInput(
            "num_devices",
            num_devices,
            f"an integer from 1 to {len(devices)}, the devices of this process",
        )
    return Mesh(np.asarray(devices[:count]), (AXIS,), axis_types=(AxisType.Auto,))


def num_parts() -> int:
    """Number of devices that currently divide widths; 1 without a mesh."""
    return dict(jax.sharding.get_abstract_mesh().shape).get(AXIS, 1)


def divided(params: PyTree) -> PyTree:
    """Divide the longest axis of each array over all devices, if its length allows.

    Inside ``jax.jit``.
    """
    return jax.tree.map(
        lambda leaf: jax.lax.with_sharding_constraint(leaf, _placement(leaf.shape)), params
    )


def _placement(shape: tuple[int, ...]) -> PartitionSpec:
    """Divide the longest axis; of equal ones the last, which has a layer's features."""
    parts = num_parts()
    longest = max(
        ((size, axis) for axis, size in enumerate(shape) if size % parts == 0), default=(0, -1)
    )[1]
    return PartitionSpec(*(AXIS if axis == longest else None for axis in range(len(shape))))


Call = Callable[[str, Array], Array]
NetworkParams = dict[str, Params]
Given = TypeVar("Given")


@dataclass(frozen=True)
class Network(abc.ABC):
    """Base class of networks built from layers.

    A network (w, x) ↦ φ(f(w; x)) with C outputs, an output function φ, and layers that are
    linear in their weights.

    Subclasses are frozen (hashable, hence static under ``jax.jit``) and state
    ``layers`` and ``body``.

    Source: our choice, docs/decisions/0002-kernels-without-jacobians.md.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(width=8, depth=2, use_bias=False)
    >>> isinstance(net, Network), tuple(net.layers), net.num_params((5,))
    (True, ('hidden1', 'hidden2', 'output'), 112)
    """

    @property
    @abc.abstractmethod
    def layers(self) -> Mapping[str, Layer]:
        """Layers by name, in any order; ``body`` calls each exactly once."""

    @abc.abstractmethod
    def body(self, call: Call, x: Array) -> Array:
        """Pre-outputs f of shape (n, C) for inputs x of shape (n, *input_shape)."""

    @property
    @abc.abstractmethod
    def output(self) -> str:
        """Name of the output function φ, one of ``ntk_core.networks.choices.OUTPUTS``."""

    @with_usual_settings
    def init(self, key: Array, input_shape: Shape | int) -> NetworkParams:
        """Draw all parameters for inputs of shape ``input_shape``.

        It is the shape of one input, without the batch axis; d for (d,).

        Under a :func:`width_mesh` each device draws its part; the numbers are the same.

        Raises:
            InvalidInput: for an unsuitable ``input_shape``, or if ``key`` is no key.
        """
        check_key(key)
        shape = as_shape(input_shape)
        return self._draw(key, shape) if num_parts() == 1 else _drawn_in_parts(self, key, shape)

    def _draw(self, key: Array, input_shape: Shape) -> NetworkParams:
        shapes = self.layer_input_shapes(input_shape)
        keys = _layer_keys(key, len(shapes))
        return {
            name: self.layers[name].init(k, shape)
            for k, (name, shape) in zip(keys, shapes.items(), strict=True)
        }

    @with_usual_settings
    def apply(self, params: NetworkParams, x: Shaped[ArrayLike, "n ..."]) -> Float[Array, "n C"]:
        """Outputs φ(f(w; x)), shape (n, C), for inputs (n, *input_shape).

        Raises:
            InvalidInput: for parameters of another network, and for anything else than an array of
                numbers with at least one row.
        """
        check_params(params, self.layers)
        return output_function(self.output)(self.pre_outputs(params, _checked_inputs(x)))

    def pre_outputs(self, params: NetworkParams, x: Shaped[Array, "n ..."]) -> Float[Array, "n C"]:
        """f(w; x) before the output function, shape (n, C)."""
        layers = self.layers
        # TF32 errors hide differences of linear models. Layers broadcast biases and masks,
        # also where a caller's settings forbid it.
        with (
            jax.default_matmul_precision("highest"),
            jax.numpy_rank_promotion("allow"),
            jax.numpy_dtype_promotion("standard"),
        ):
            return self.body(lambda name, a: layers[name].apply(params[name], a), x)

    def layer_input_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """Shape of one input of each layer, in call order, without computing."""
        shapes: dict[str, Shape] = {}
        layers = self.layers
        input_shape = as_shape(input_shape)

        def call(name: str, a: Array) -> Array:
            if name in shapes:
                raise ValueError(
                    f"layer {name!r} is called twice; give each call a layer of its own"
                )
            shapes[name] = a.shape[1:]
            return jnp.zeros((a.shape[0], *layers[name].output_shape(a.shape[1:])), a.dtype)

        jax.eval_shape(
            lambda x: self.body(call, x),
            jax.ShapeDtypeStruct((1, *input_shape), jnp.result_type(float)),
        )
        return shapes

    def first_layers(self) -> tuple[str, ...]:
        """Names of the layers that read only the input."""
        return (next(iter(self.layers)),)

    def layers_below(self, name: str) -> tuple[str, ...]:
        """This layer and those that its pre-activations depend on.

        By default all listed before it.
        """
        names = list(self.layers)
        return tuple(names[: names.index(name) + 1])

    def read_elementwise(self) -> Mapping[str, str]:
        """Hidden layers z that one other layer alone reads, through a function of each z_k.

        {hidden: reader}.

        The reader is linear in its input and the outputs are linear in its result, equally for all
        inputs. Then δ^c_ik = s_ik v_ck: slopes of the function times weights. Empty by default.
        """
        return {}

    def min_width(self, input_shape: Shape) -> int:
        """Width of the network for inputs of this shape.

        The smallest fan-in outside the first layers.
        """
        first = self.first_layers()
        fan_ins = {}
        for name, shape in self.layer_input_shapes(input_shape).items():
            fan_ins[name] = math.prod(shape)
        later = [fan_in for name, fan_in in fan_ins.items() if name not in first]
        return min(later or fan_ins.values())

    def num_params(self, input_shape: Shape, only_trained: bool = False) -> int:
        """Number p of weights and biases from shapes, including removed edges but not masks."""
        drawn = jax.eval_shape(lambda: self.init(jax.random.key(0), input_shape))
        count = 0
        for name, layer in self.layers.items():
            if only_trained and not layer.trainable:
                continue
            weights = layer.trainable_names()  # all others are masks
            for array_name, array in drawn[name].items():
                if array_name in weights:
                    count += math.prod(array.shape)
        return count

    def in_degree_range(self, params: NetworkParams) -> tuple[int, int]:
        """Return the smallest and largest number of kept edges into a neuron.

        Neurons of the first layers do not count (Zhu et al., Eq. 8).
        """
        first = self.first_layers()
        names = [name for name in self.layers if name not in first] or list(self.layers)
        ranges = [self.layers[name].in_degree_range(params[name]) for name in names]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def html(self, input_shape: Shape | None = None) -> Markup:
        """Return an HTML table of layers, shapes and parameters.

        Args:
            input_shape: of one input; an example by default.

        Raises:
            InvalidInput: for an unsuitable ``input_shape``.
        """
        from ntk_core.networks.architectures._network_display import (
            network_html,  # only notebooks need it
        )

        return network_html(self, input_shape)

    def _repr_html_(self) -> str:
        return self.html()

    def with_output(self, output: str) -> Network:
        """Return the network with another output function and the same parameters."""
        if output == self.output:
            return self
        return replace(self, output=output)  # type: ignore[call-arg]

    def partition(self, params: NetworkParams) -> tuple[NetworkParams, NetworkParams]:
        """Split parameters into (trained, fixed): frozen layers and masks are fixed."""
        trained: NetworkParams = {}
        fixed: NetworkParams = {}
        for name, layer in self.layers.items():
            moves = layer.trainable_names() if layer.trainable else ()
            trained[name] = {k: v for k, v in params[name].items() if k in moves}
            fixed[name] = {k: v for k, v in params[name].items() if k not in moves}
        return trained, fixed


def as_shape(given: int | Sequence[int]) -> Shape:
    """Return a shape from integers, or from a single one."""
    sizes = (given,) if isinstance(given, int | np.integer) else given
    whole = isinstance(sizes, tuple | list) and all(
        isinstance(size, int | np.integer) and size >= 1 for size in sizes
    )
    if not (whole and sizes):
        raise InvalidInput(
            "input_shape", given, "a tuple of positive integers, without the batch axis"
        )
    return tuple(int(size) for size in sizes)


def _layer_keys(key: Array, num_layers: int) -> list[Array]:
    """Return ``jax.random.split(key, num_layers)`` by one program for all networks.

    The keys of a split are its first ones, however many there are, unless JAX is set to its
    earlier generator.
    """
    num_keys = num_layers
    if getattr(jax.config, _KEEPS_FIRST_KEYS):
        num_keys = SPLIT_AT_ONCE * math.ceil(num_layers / SPLIT_AT_ONCE)
    keys = jax.random.split(key, num_keys)
    # One index at a time: iterating over keys compiles a program for each number of them.
    return [keys[index] for index in range(num_layers)]


@partial(jax.jit, static_argnums=(0, 2))
def _drawn_in_parts(net: Network, key: Array, input_shape: Shape) -> NetworkParams:
    return divided(net._draw(key, input_shape))


def accepted_network(net: Given, kind: type = Network) -> Given:
    """Return ``net``, which must be a network of this kind."""
    if not isinstance(net, kind):
        known = "a network of this package, whose layers are known"
        raise InvalidInput(
            "net", kind_of(net), known if kind is Network else f"a network ({kind.__name__})"
        )
    return net


def check_key(key: object) -> None:
    """Refuse anything else than one typed or raw random key.

    Raises:
        InvalidInput: for ``key``.
    """
    if isinstance(key, Array | np.ndarray):
        if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ():
            return
        raw = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0)))
        if key.dtype == raw.dtype and key.shape == raw.shape:
            return
        given: object = f"shape {key.shape} and type {key.dtype}"
    else:
        given = key
    raise InvalidInput("key", given, "one random key, such as jax.random.key(0)")


def check_params(params: object, layers: Mapping[str, Layer]) -> None:
    """Refuse parameters without the layers of a network.

    Raises:
        InvalidInput: for ``params``.
    """
    allowed = "the parameters that net.init(key, input_shape) draws"
    if not isinstance(params, Mapping):
        raise InvalidInput("params", kind_of(params), allowed)
    for name in layers:
        own = params.get(name)
        if not isinstance(own, Mapping):
            given = f"no layer {name}" if own is None else f"{name}, {kind_of(own)}"
            raise InvalidInput("params", given, allowed)
        for part, leaf in own.items():
            is_array = isinstance(leaf, Array | np.ndarray)
            is_held = is_array and not _is_deleted(leaf)
            if not is_held or not (jnp.issubdtype(leaf.dtype, jnp.number) or leaf.dtype == bool):
                kind = "a deleted array" if is_array and not is_held else kind_of(leaf)
                raise InvalidInput("params", f"{name}.{part}, {kind}", allowed)


def _is_deleted(array: Array | np.ndarray) -> bool:
    if not isinstance(array, Array) or isinstance(array, jax.core.Tracer):
        return False
    return bool(array.is_deleted())


def _checked_inputs(x: object) -> Array:
    """Return inputs as an array (n, ...) of numbers.

    Raises:
        InvalidInput: for ``x``.
    """
    allowed = "an array of numbers of shape (n, *input_shape) with at least one row"
    try:
        array = x if isinstance(x, Array) else np.asarray(x)
    except ValueError:
        raise InvalidInput("x", "rows of different lengths", allowed) from None
    if _is_deleted(array):
        raise InvalidInput("x", "a deleted array", allowed)
    is_number = jnp.issubdtype(array.dtype, jnp.number) or array.dtype == bool
    if not is_number or not array.ndim or not len(array):
        raise InvalidInput("x", f"shape {array.shape} and type {array.dtype}", allowed)
    return jnp.asarray(array)


def merge(trained: NetworkParams, fixed: NetworkParams) -> NetworkParams:
    """The inverse of :meth:`Network.partition`."""
    return {name: {**fixed.get(name, {}), **trained.get(name, {})} for name in {**trained, **fixed}}
