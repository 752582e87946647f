"""Hessians in closed form, and the contribution of a nonlinear output."""

from dataclasses import dataclass
from functools import partial
from typing import Unpack, overload

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Shaped

from ntk_core.errors import InvalidInput
from ntk_core.hessians._each_output import LanczosOptions, for_each_output
from ntk_core.hessians._norm import MAX_MATVECS, SpectralEstimate, checked_request, hessian_norm
from ntk_core.hessians._operator import check_request, operator, output_scalar
from ntk_core.kernels import pre_output_ntk, real_array
from ntk_core.networks.architectures import (
    FullyConnected,
    Network,
    NetworkParams,
    accepted_network,
    activation_function,
)
from ntk_core.traced import accepted_input
from ntk_core.usual_settings import with_usual_settings


@with_usual_settings
def shallow_hessian_blocks(
    net: FullyConnected,
    params: NetworkParams,
    x: Shaped[Array, "..."],
    output_index: int | None = 0,
) -> Float[Array, "*neurons_outputs"]:
    """Return the Hessian spectrum of a shallow network.

    Signed norms v_i σ''(z_i) (c²‖x‖² + β²) c_v of the neurons' blocks, (m,): the spectrum
    of a shallow Hessian.

    With one hidden layer and only that layer trained, neurons do not interact: H is block diagonal,
    and each block is a multiple of the outer product of that neuron's input. For scalar x, v = ±1
    and no bias it is diagonal, H_ii = v_i σ''(w_i x) x²/√m. ‖H‖ is the largest absolute value. c, β
    and c_v are the multipliers of weights, biases (0 without) and output weights.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1, activation="tanh", trained="first"), jnp.ones(3)
    >>> params = net.init(jax.random.key(0), (3,))
    >>> shallow_hessian_blocks(net, params, x).shape
    (8,)

    Args:
        net: one hidden layer, ``trained="first"``, linear output.
        params, x, output_index: as for :func:`hessian_norm`.

    Returns:
        One signed norm per neuron, (m,); for ``output_index=None`` with a last axis C.

    Raises:
        InvalidInput: unless the network has one hidden layer, ``trained="first"`` and a
            linear output; for ReLU.

    Source: Liu, Zhu & Belkin 2020, §3.1.
    """
    accepted_network(net, FullyConnected)
    for field, given, needed in (
        ("depth", net.depth, 1),
        ("trained", net.trained, "first"),
        ("output", net.output, "linear"),
    ):
        if given != needed:
            raise InvalidInput(field, given, f"{needed} for the closed form of §3.1")
    _, x, num_outputs = accepted_input(net, params, x)
    if output_index is not None:
        check_request(net, params, num_outputs, output_index)
    hidden, output = tuple(net.layer_input_shapes(x.shape))
    layer = net.layers[hidden]
    head = net.layers[output]
    sigma = activation_function(net.activation)
    a = x.ravel()
    with jax.default_matmul_precision("highest"):
        z = layer.apply(params[hidden], a[None])[0]
        second = jax.vmap(jax.grad(jax.grad(sigma)))(z)
        bias = layer.scaling.bias()[0] if "bias" in params[hidden] else 0.0
        size = layer.multiplier(params[hidden], a.size) ** 2 * jnp.vdot(a, a) + bias**2
        weights = params[output]["weight"]  # (m, C)
        curvatures = head.multiplier(params[output], len(weights)) * weights * second[:, None]
        blocks = curvatures * size
        return blocks if output_index is None else blocks[:, output_index]


@with_usual_settings
def bottleneck_block_norm(
    w1: Float[Array, "*batch m"],
    w3: Float[Array, "*batch m"],
    v: Float[Array, "*batch m"],
    x: Float[ArrayLike, "..."],
) -> Float[Array, "*batch"]:
    """Return the exact block norm of the bottleneck example.

    ‖∂²f/∂w2²‖ = |m^(-1/2) Σ_i v_i w_{3,i}²| · ‖α⁽¹⁾‖²/m of the bottleneck network of
    Theorem 4.1, exactly.

    f = m^(-1/2) vᵀ σ(w3 · m^(-1/2) w2ᵀ σ(w1 x)) with σ(z) = z²/2 and a bottleneck of one
    linear neuron, all of w1, w2, w3, v of shape (..., m) and scalar x; leading axes are kept.
    For wide networks it tends to |N(0, 3)| · ¾ x⁴ and does not vanish, which is why this
    network does not become linear.

    >>> ones = jnp.ones(4)
    >>> bottleneck_block_norm(ones, ones, ones, 1.0).item()  # |½ Σ 1| · ‖α‖²/4, α = ½
    0.5

    Args:
        w1, w3, v: weights of shape (..., m).
        x: the scalar input.

    Returns:
        Block norms of shape (...).

    Raises:
        InvalidInput: for arrays of other shapes, and values that are no real numbers.

    Source: Liu, Zhu & Belkin 2020, Theorem 4.1 and App. H.
    """
    w1, w3, v, x = _checked_bottleneck(w1=w1, w3=w3, v=v, x=x)
    m = w1.shape[-1]
    first = 0.5 * (w1 * x) ** 2
    curvature = jnp.sum(v * w3**2, axis=-1) / m**0.5
    return jnp.abs(curvature) * jnp.sum(first**2, axis=-1) / m


@with_usual_settings
def bottleneck_zero_step(
    w1: Float[Array, "*batch m"],
    w2: Float[Array, "*batch m"],
    w3: Float[Array, "*batch m"],
    v: Float[Array, "*batch m"],
    x: Float[ArrayLike, "..."],
) -> tuple[Float[Array, "*batch m"], Float[Array, "*batch m"]]:
    """Return the step to a zero of the bottleneck's Hessian.

    The network of :func:`bottleneck_block_norm` is f = s h²/2 with s = m^(-1/2) Σ_i v_i w_{3,i}²
    and h = m^(-1/2) w2ᵀ α⁽¹⁾, so its Hessian is 0 where s = h = 0. The shortest changes of v and w2
    that reach s = 0 and h = 0 have the lengths |s| √m / ‖w3²‖ and |h| √m / ‖α⁽¹⁾‖, two independent
    |N(0, 1)| at every width.

    >>> one = jnp.ones(4)
    >>> bottleneck_zero_step(one, one, one, one, 1.0)[1].tolist()
    [-1.0, -1.0, -1.0, -1.0]

    Args:
        w1, w2, w3, v: weights of shape (..., m).
        x: the scalar input.

    Returns:
        (change of w2, change of v), both of shape (..., m).

    Raises:
        InvalidInput: for arrays of other shapes, and values that are no real numbers.

    Source: Liu, Zhu & Belkin 2020, Theorem 4.1; derived in docs/math/bottleneck-ball.md.
    """
    w1, w2, w3, v, x = _checked_bottleneck(w1=w1, w2=w2, w3=w3, v=v, x=x)
    m = w1.shape[-1]
    first = 0.5 * (w1 * x) ** 2
    squares = w3**2
    curvature = jnp.sum(v * squares, axis=-1, keepdims=True) / m**0.5  # s
    narrow = jnp.sum(w2 * first, axis=-1, keepdims=True) / m**0.5  # h
    to_zero_curvature = -curvature * m**0.5 * squares / jnp.sum(squares**2, axis=-1, keepdims=True)
    to_zero_neuron = -narrow * m**0.5 * first / jnp.sum(first**2, axis=-1, keepdims=True)
    return to_zero_neuron, to_zero_curvature


def _checked_bottleneck(**given: ArrayLike) -> list[Array]:
    """Return weights of the shape of w1, and a scalar x, as arrays.

    Raises:
        InvalidInput: for other shapes, and values that are no real numbers.
    """
    found = {name: jnp.asarray(real_array(each, name)) for name, each in given.items()}
    shape = found["w1"].shape
    if not shape or not shape[-1]:
        raise InvalidInput("w1", f"shape {shape}", "shape (..., m) with at least one neuron")
    for name, array in found.items():
        expected = () if name == "x" else shape
        if array.shape != expected:
            raise InvalidInput(name, f"shape {array.shape}", f"shape {expected}")
    return list(found.values())


@dataclass(frozen=True)
class NonlinearOutputHessian:
    """Hessian of an output φ_a(f), split as H̃ = Gᵀ Φ'' G + Σ_b (∂φ_a/∂f_b) H_b with G = ∂f/∂w.

    Attributes:
        measured: ‖H̃‖.
        gradient_part: ‖Gᵀ Φ'' G‖, which for one output is |φ''(f)| ‖∇f‖²: of order 1 at any width.
        linear_part: ‖Σ_b (∂φ_a/∂f_b) H_b‖, which for one output is |φ'(f)| ‖H‖:
            vanishes with the width.
        lower: ``gradient_part`` - ``linear_part`` <= ‖H̃‖, at least 0.
        upper: their sum >= ‖H̃‖.
    """

    measured: SpectralEstimate
    gradient_part: float
    linear_part: float
    lower: float
    upper: float


@overload
def nonlinear_output_hessian(
    net: Network,
    params: NetworkParams,
    x: Array,
    output_index: int = 0,
    **options: Unpack[LanczosOptions],
) -> NonlinearOutputHessian: ...
@overload
def nonlinear_output_hessian(
    net: Network,
    params: NetworkParams,
    x: Array,
    output_index: None,
    **options: Unpack[LanczosOptions],
) -> list[NonlinearOutputHessian]: ...
@with_usual_settings
def nonlinear_output_hessian(
    net: Network,
    params: NetworkParams,
    x: Array,
    output_index: int | None = 0,
    *,
    tolerance: float | None = None,
    max_matvecs: int = MAX_MATVECS,
    key: Array | None = None,
) -> NonlinearOutputHessian | list[NonlinearOutputHessian]:
    """Return both parts of the Hessian with a nonlinear output.

    Both parts and the measured norm; arguments as ``hessian_norm``.

    ``linear_part`` comes from Lanczos within its tolerance. Softmax couples the outputs, so
    Φ'' = ∂²φ_a/∂f² is a full C × C matrix; ‖Gᵀ Φ'' G‖ = ‖K^½ Φ'' K^½‖ with the kernel K = G
    Gᵀ of the pre-outputs.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1, output="swish"), jnp.ones(3)
    >>> params = net.init(jax.random.key(0), (3,))
    >>> found = nonlinear_output_hessian(net, params, x)
    >>> bool(found.lower <= found.measured.value <= found.upper)
    True

    Args:
        net, params, x, output_index, tolerance, max_matvecs, key: as for :func:`hessian_norm`.

    Returns:
        Norms of both parts and of their sum; for ``output_index=None`` a list with those of each
        output.

    Raises:
        InvalidInput: as :func:`hessian_norm`.

    Source: Liu, Zhu & Belkin 2020, §4, Eq. 28–29.
    """
    accepted_network(net)
    if output_index is None:
        return for_each_output(
            nonlinear_output_hessian,
            net,
            params,
            x,
            tolerance=tolerance,
            max_matvecs=max_matvecs,
            key=key,
        )
    measured = hessian_norm(
        net, params, x, output_index, tolerance=tolerance, max_matvecs=max_matvecs, key=key
    )
    gradient_part, linear_part, _ = nonlinear_output_parts(
        net, params, x, output_index, tolerance=tolerance, max_matvecs=max_matvecs, key=key
    )
    return NonlinearOutputHessian(
        measured,
        gradient_part,
        linear_part,
        gradient_part - linear_part,
        gradient_part + linear_part,
    )


def nonlinear_output_parts(
    net: Network,
    params: NetworkParams,
    x: Array,
    output_index: int = 0,
    *,
    tolerance: float | None = None,
    max_matvecs: int = MAX_MATVECS,
    key: Array | None = None,
) -> tuple[float, float, bool]:
    """Return both parts of :func:`nonlinear_output_hessian`, and whether the second converged."""
    _, x, num_outputs = accepted_input(accepted_network(net), params, x)
    relative, key = checked_request(
        net, params, x, num_outputs, output_index, tolerance, max_matvecs, key
    )
    with jax.default_matmul_precision("highest"):
        gradient, linear, converged = _parts(
            net, params, x, output_index, relative, max_matvecs, key
        )
    return float(gradient), float(linear), bool(converged)


@partial(jax.jit, static_argnums=(0, 5))
def _parts(
    net: Network,
    params: NetworkParams,
    x: Array,
    output_index: int | Array,
    tolerance: float | Array,
    max_matvecs: int,
    key: Array,
) -> tuple[Float[Array, ""], Float[Array, ""], Bool[Array, ""]]:
    output = output_scalar(net, output_index)
    kernel, f, _ = pre_output_ntk(net, params, x[None])
    values, vectors = jnp.linalg.eigh(kernel[0, 0])
    root = vectors * jnp.sqrt(jnp.maximum(values, 0)) @ vectors.T  # of the kernel, (C, C)
    curvature = jax.hessian(output)(f[0])
    eigenvalues = jnp.linalg.eigvalsh(root @ curvature @ root)
    gradient_part = jnp.max(jnp.abs(eigenvalues))
    weights = jax.grad(output)(f[0])
    hessian = operator(net, params, x, lambda f: jnp.vdot(weights, f))
    found = hessian.leading(key, max_matvecs, tolerance)
    return gradient_part, jnp.abs(found.values[0]), found.converged
