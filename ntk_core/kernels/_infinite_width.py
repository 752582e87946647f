"""The tangent kernel of infinitely wide networks, ours and any other (docs/math/infinite_width.md).

Programs of both are read by one interpreter (``_limit_program.py``). A network of ours has its
known scales, keeps the names of its activations, and its program is compiled and kept.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped

from ntk_core.errors import InvalidInput, kind_of
from ntk_core.kernels._arrays import in_float64, in_jax_floats, refuse_not_finite
from ntk_core.kernels._gaussian import NUM_NODES
from ntk_core.kernels._infinite_heads import infinite_heads_ntk
from ntk_core.kernels._infinite_of_function import MAX_QUADRATURE_ERROR, infinite_width
from ntk_core.kernels._limit_kernels import Kernel, LimitProgram
from ntk_core.kernels._limit_kernels import quadrature_error as error_of_quadrature
from ntk_core.kernels._limit_program import Scale, activated
from ntk_core.kernels._limit_values import Value, Weight
from ntk_core.networks.architectures import Attention, Chain, Network, NetworkParams, Paired, Stack
from ntk_core.networks.choices import KINKED
from ntk_core.networks.kinds import ARCHITECTURES
from ntk_core.traced import Apply, Inputs, Model, Trainable, with_usual_settings

SOME_WIDTH = 8  # of programs, whose limit has none


@overload
def infinite_width_ntk(
    net: Network, x1: Shaped[ArrayLike, "n1 ..."], x2: Shaped[ArrayLike, "n2 ..."] | None = None
) -> Float[Array, "n1 n2"]: ...


@overload
def infinite_width_ntk(
    net: Apply,
    params: PyTree,
    x1: Inputs,
    x2: Inputs | None = None,
    *,
    weight_std: Mapping[str, float] | None = None,
    trainable: Trainable = None,
) -> Float[Array, "n1 n2"]: ...


@with_usual_settings
def infinite_width_ntk(net: Model, *arguments: Any, **settings: Any) -> Float[Array, "n1 n2"]:
    """Return the tangent kernel in the limit of infinite width.

    lim_{m→∞} of the tangent kernel of one output, shape (n1, n2); kernels between
    different outputs vanish.

    ``infinite_width_ntk(net, x1, x2)`` takes a network: :class:`FullyConnected`,
    :class:`ResNet` and convolutional networks with linear output in the NTK parameterization.
    ``infinite_width_ntk(apply, params, x1, x2)`` takes your own function and reads the limit
    from its program; :func:`infinite_width` states its settings, and the scales of the
    weights that it found.

    ReLU, leaky ReLU and erf in closed form; other activations by quadrature in float64, to about
    1e-8 while pre-activations have variances of order one. For an activation given as a function
    the error is measured (``kernels.quadrature_error``) and refused above 1e-3.

    For :class:`Attention` the number of heads grows at a fixed head dimension. The kernel is a mean
    over 16,384 sampled heads, to about 1%; ``infinite_heads_ntk`` returns its standard error.

    Args:
        net: a network; its width is irrelevant. Or a function ``apply(params, x)``.
        arguments: inputs ``x1`` (n1, *input_shape) and ``x2``, by default ``x1``; before them the
            parameters of a function.
        settings: of a function, as for :func:`infinite_width`.

    Returns:
        The kernel of one output, shape (n1, n2).

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(depth=1, activation="relu", use_bias=False)
    >>> # α² and the arc-cosine kernels are |x|²/2d each
    >>> infinite_width_ntk(net, jnp.array([[3.0, 4.0]])).item()
    12.5

    Raises:
        InvalidInput: for a network without such a limit (a bottleneck, a nonlinear output), another
            parameterization, an architecture that is not covered, an activation that quadrature
            does not resolve, inputs that are not finite, kernels beyond the range of JAX's floats,
            or inside of ``jax.jit``, ``jax.grad`` and ``jax.vmap``: it computes on the host in
            float64. For a function as :func:`infinite_width`.

    Source: Jacot, Gabriel & Hongler 2018; Arora et al. 2019 (convolutions).
    """
    if _is_function(net, arguments, settings):
        return infinite_width(net, *arguments, **settings).ntk
    return _network_ntk(net, *arguments, **settings)


def _is_function(net: Model, arguments: tuple[Any, ...], settings: Mapping[str, Any]) -> bool:
    """Whether a function was given with its parameters."""
    has_params = len(arguments) > 1 or "params" in settings
    return callable(net) and not isinstance(net, Network | type) and has_params


def _network_ntk(
    net: Any, x1: Shaped[ArrayLike, "n1 ..."], x2: Shaped[ArrayLike, "n2 ..."] | None = None
) -> Float[Array, "n1 n2"]:
    return _limit(Kernel.NTK, net.net if isinstance(net, Paired) else net, x1, x2)


@overload
def infinite_width_nngp(
    net: Network, x1: Shaped[ArrayLike, "n1 ..."], x2: Shaped[ArrayLike, "n2 ..."] | None = None
) -> Float[Array, "n1 n2"]: ...


@overload
def infinite_width_nngp(
    net: Apply,
    params: PyTree,
    x1: Inputs,
    x2: Inputs | None = None,
    *,
    weight_std: Mapping[str, float] | None = None,
) -> Float[Array, "n1 n2"]: ...


@with_usual_settings
def infinite_width_nngp(net: Model, *arguments: Any, **settings: Any) -> Float[Array, "n1 n2"]:
    """Return the covariance of random networks in the limit of infinite width.

    lim_{m→∞} E[f(x1; w0) f(x2; w0)] of one output, shape (n1, n2): the kernel of the Gaussian
    process (NNGP) of initial outputs. Different outputs are independent. Architectures, functions
    and accuracy are those of :func:`infinite_width_ntk`; frozen layers count too.

    Args:
        net: a network; its width is irrelevant. Or a function ``apply(params, x)``.
        arguments: inputs ``x1`` (n1, *input_shape) and ``x2``, by default ``x1``; before them the
            parameters of a function.
        settings: of a function, as for :func:`infinite_width`.

    Returns:
        The covariance of one output, shape (n1, n2).

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(depth=1, activation="relu", use_bias=False)
    >>> infinite_width_nngp(net, jnp.array([[3.0, 4.0]])).item()  # |x|²/2d
    6.25

    Raises:
        InvalidInput: as :func:`infinite_width_ntk`, and for networks whose initial output is
            0 and for attention.

    Source: Lee et al. 2018; Matthews et al. 2018; Novak et al. 2019 (convolutions).
    """
    if _is_function(net, arguments, settings):
        return infinite_width(net, *arguments, **settings).nngp
    return _network_nngp(net, *arguments, **settings)


def _network_nngp(
    net: Any, x1: Shaped[ArrayLike, "n1 ..."], x2: Shaped[ArrayLike, "n2 ..."] | None = None
) -> Float[Array, "n1 n2"]:
    starts_at_zero = isinstance(net, Paired) or (isinstance(net, Chain) and net.symmetric)
    if starts_at_zero or isinstance(net, Attention):
        allowed = (
            "a network with random initial outputs, without attention; other covariances are "
            "not derived"
        )
        raise InvalidInput("net", kind_of(net), allowed)
    return _limit(Kernel.NNGP, net, x1, x2)


def _limit(
    wanted: Kernel,
    inner: Network,
    x1: Shaped[ArrayLike, "n1 ..."],
    x2: Shaped[ArrayLike, "n2 ..."] | None,
) -> Float[Array, "n1 n2"]:
    _refuse_without_limit(inner)
    left = _finite_rows(x1, "x1")
    right = left if x2 is None else _finite_rows(x2, "x2")
    inner.layer_input_shapes(left.shape[1:])
    if right.shape[1:] != left.shape[1:]:
        raise InvalidInput("x2", right.shape, f"rows of shape {left.shape[1:]}, as in x1")
    if isinstance(inner, Attention):
        of_heads = infinite_heads_ntk(inner, left, right).value
        return in_jax_floats(of_heads, "x1")
    assert isinstance(inner, Stack)
    _check_quadrature(inner, left)
    with jax.enable_x64(True):
        program = _limit_program(inner, left.shape[1:])
        rows = jax.device_put(left)
        others = rows if right is left else jax.device_put(right)
        found = program.kernels(rows, others, wanted=(wanted,))[wanted]
    return in_jax_floats(found, "x1")


def _refuse_without_limit(inner: Network) -> None:
    """Refuse networks whose kernel has no limit, or none that is derived."""
    if not (isinstance(inner, Stack | Attention) and inner.kind.has_infinite_width):
        known = [
            kind.network.rpartition(":")[2]
            for kind in ARCHITECTURES.values()
            if kind.has_infinite_width
        ]
        allowed = (
            f"a network: {', '.join(known)}, Mirrored or Subtracted or not; other limits are not "
            "derived. Functions take their parameters: (apply, params, x)"
        )
        raise InvalidInput("net", kind_of(inner), allowed)
    if inner.parameterization != "ntk":
        raise InvalidInput(
            "parameterization",
            inner.parameterization,
            "ntk: the kernels of the others grow with the width",
        )
    if inner.output != "linear":
        raise InvalidInput(
            "output",
            inner.output,
            "linear: with another output the kernel does not become constant",
        )


def _finite_rows(x: ArrayLike, field: str) -> Float[np.ndarray, "n ..."]:
    """Return inputs in float64; refuse none, and numbers that are not finite."""
    rows = in_float64(x, field)
    if not rows.ndim or not len(rows):
        raise InvalidInput(field, f"shape {rows.shape}", "shape (n, …) with at least one input")
    refuse_not_finite(rows, field)
    return rows


@with_usual_settings
def quadrature_error(net: Stack, x: Shaped[ArrayLike, "n ..."]) -> float:
    """Return ‖K_N − K_{N/2}‖_∞ / ‖K_N‖_∞ at the first inputs, N quadrature nodes.

    0 for closed forms.

    Source: our choice; docs/math/infinite_width.md.
    """
    with jax.enable_x64(True):
        rows = jnp.asarray(np.asarray(x, np.float64))
        program = _limit_program(net, rows.shape[1:])
        needs = program.needs(rows, rows)
        return error_of_quadrature(program, rows) if needs.quadrature else 0.0


def _check_quadrature(net: Stack, x: Shaped[np.ndarray, "n ..."]) -> None:
    """Refuse functions unresolved by quadrature.

    Named ones are resolved at variances of order one.
    """
    if len(x) and not all(
        isinstance(each, str) and each not in KINKED for each in net.written_out.functions()
    ):
        error = quadrature_error(net, x)
        if not error <= MAX_QUADRATURE_ERROR:
            allowed = (
                f"a function whose kernel {NUM_NODES} nodes of a quadrature resolve to "
                f"{MAX_QUADRATURE_ERROR:g}"
            )
            raise InvalidInput(
                "activation", f"{kind_of(net.activation)}, with an error of {error:.1e}", allowed
            )


def _limit_program(net: Stack, input_shape: tuple[int, ...]) -> LimitProgram:
    """Return the program of a network, which networks of all widths share."""
    if isinstance(net, Chain):
        net = replace(net, symmetric=False)
    same_limit = replace(net, width=SOME_WIDTH, num_outputs=1, output_signs=False)
    return _traced(same_limit, input_shape)


@lru_cache(maxsize=64)
def _traced(net: Stack, input_shape: tuple[int, ...]) -> LimitProgram:
    """Trace a network, so that its activations keep their names."""
    layers = net.layers
    shapes = net.layer_input_shapes(input_shape)

    def init() -> NetworkParams:
        key = jax.random.key(0)
        return {name: layers[name].init(key, shape) for name, shape in shapes.items()}

    def apply(params: NetworkParams, x: Array) -> Array:
        return net.forward(
            lambda name, a: layers[name].apply(params[name], a),
            lambda function, z: activated(z, function),
            x,
        )

    params = jax.eval_shape(init)  # computes and compiles nothing
    program = jax.make_jaxpr(apply)(params, jax.ShapeDtypeStruct((1, *input_shape), jnp.float64))
    weights: list[Value] = []
    scales: dict[int, Scale] = {}
    for number, (path, leaf) in enumerate(jax.tree_util.tree_leaves_with_path(params)):
        layer, kind = (entry.key for entry in path)
        bias_std = layers[layer].scaling.bias()[1]
        std = bias_std if kind == "bias" else 1.0  # in the NTK parameterization
        scales[number] = Scale(f"{layer}.{kind}", std, layers[layer].trainable)
        weights.append(Weight(number, leaf.shape, tuple(size > 1 for size in leaf.shape)))
    return LimitProgram(program, tuple(weights), scales, is_kept=True)
