"""The layer quantities of Theorem 3.1 and the bound that they give (docs/math/theorem_bound.md)."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Shaped

from ntk_core.errors import InvalidInput
from ntk_core.hessians._lanczos import lanczos_extreme
from ntk_core.hessians._operator import check_request
from ntk_core.networks.architectures import (
    Bottleneck,
    FullyConnected,
    Network,
    NetworkParams,
    accepted_network,
    activation_function,
)
from ntk_core.traced import accepted_input

NORM_STEPS = 64
NORM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class LayerQuantities:
    """Measured layer quantities of a fully connected network with linear output, at one input.

    With α^(l) the activations of hidden layer l = 1 … L, w^(l) its weights and biases, f the output that is meant;
    arrays have one entry per hidden layer, (L,). ‖T‖_{2,2,1} = sup over unit x, z of Σ_k |Σ_ij T_ijk x_i z_j|.

    Attributes:
        layers: names of the hidden layers.
        b_max: ‖b^(l)‖_∞ with b^(l) = ∂f/∂α^(l).
        b_norm: ‖b^(l)‖_2.
        weight_jacobian: ‖∂α^(l)/∂w^(l)‖, exact.
        input_jacobian: ‖∂α^(l)/∂α^(l-1)‖; 0 for the first layer, whose input is data.
        second_weight: ‖∂²α^(l)/∂(w^(l))²‖_{2,2,1}, exact.
        second_mixed: upper bound of ‖∂²α^(l)/∂w^(l)∂α^(l-1)‖_{2,2,1}; 0 for the first layer.
        second_input: ‖∂²α^(l)/∂(α^(l-1))²‖_{2,2,1}; 0 for the first layer.
        q_inf: Q_∞ = max_l ‖b^(l)‖_∞.
        q_l: Q_L = max_l ‖∂α^(l)/∂w^(l)‖.
        q_221: Q_{2,2,1}, the largest of ``second_weight`` and, over l <= l' < l'', of ``weight_jacobian[l]`` times
            ``second_mixed[l']`` (l < l') and of ``weight_jacobian[l] · weight_jacobian[l'] · second_input[l'']``.
        block_bounds: upper bounds of ‖H_{l,l'}‖, (L + 1, L + 1) with the output layer last; 0 for frozen layers.
        bound: Σ of ``block_bounds`` >= ‖H‖.
    """

    layers: tuple[str, ...]
    b_max: np.ndarray
    b_norm: np.ndarray
    weight_jacobian: np.ndarray
    input_jacobian: np.ndarray
    second_weight: np.ndarray
    second_mixed: np.ndarray
    second_input: np.ndarray
    q_inf: float
    q_l: float
    q_221: float
    block_bounds: np.ndarray
    bound: float


class _Measured(NamedTuple):
    b_max: Array | np.ndarray
    b_norm: Array | np.ndarray
    weight_jacobian: Array | np.ndarray
    input_jacobian: Array | np.ndarray
    second_weight: Array | np.ndarray
    second_mixed: Array | np.ndarray
    second_input: Array | np.ndarray


def layer_quantities(
    net: Network, params: NetworkParams, x: Shaped[Array, "..."], output_index: int = 0
) -> LayerQuantities:
    """Return the layer quantities of the Hessian bound.

    The quantities of Theorem 3.1 for output ``output_index`` at one input ``x``, and its bound with these constants.

    ‖H‖ <= Σ_{l,l'} ‖H_{l,l'}‖ (Lemma E.1), and by the chain rule, for l <= l' <= L,
    ‖H_{l,l'}‖ <= [second derivative of layer l', in its weights if l = l', else mixed] + Σ_{k > l'} ‖b^(k)‖_∞ ·
    ‖∂²α^(k)/∂(α^(k-1))²‖_{2,2,1} · ‖∂α^(k-1)/∂w^(l)‖ · ‖∂α^(k-1)/∂w^(l')‖, while the block with the output layer is the
    output multiplier (m^(-1/2)) times ‖∂α^(L)/∂w^(l)‖. Spectral norms come from Lanczos, with their residual added.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1), jnp.ones(3)
    >>> params = net.init(jax.random.key(0), (3,))
    >>> layer_quantities(net, params, x).layers
    ('hidden1',)

    Args:
        net, params, x, output_index: as for :func:`hessian_norm`; the network is fully connected with a linear output.

    Returns:
        The quantities of each layer and the bound.

    Raises:
        InvalidInput: for a network that is not fully connected, a nonlinear output (see
            ``nonlinear_output_hessian``), and as ``hessian_norm``.

    Source: Liu, Zhu & Belkin 2020, §3.3.1, Theorem 3.1 and App. E–F.
    """
    accepted_network(net, (FullyConnected, Bottleneck))
    if net.output != "linear":
        raise InvalidInput("output", net.output, "linear, as in Theorem 3.1")
    _, x, num_outputs = accepted_input(net, params, x)
    check_request(net, params, num_outputs, output_index)
    names = tuple(net.layer_input_shapes(x.shape))
    with jax.default_matmul_precision("highest"):
        found = _measure(net, names, params, x, output_index)
    measured = _Measured(*(np.asarray(part, dtype=float) for part in found))
    output_multiplier = float(net.layers[names[-1]].multiplier(params[names[-1]], params[names[-1]]["weight"].shape[0]))
    trained = np.array([net.layers[name].trainable for name in names])
    blocks = _block_bounds(measured, output_multiplier) * np.outer(trained, trained)
    return LayerQuantities(
        layers=names[:-1],
        **measured._asdict(),
        q_inf=float(measured.b_max.max()),
        q_l=float(measured.weight_jacobian.max()),
        q_221=_q_221(measured),
        block_bounds=blocks,
        bound=float(blocks.sum()),
    )


def _q_221(measured: _Measured) -> float:
    jacobian, depth = measured.weight_jacobian, len(measured.b_max)
    mixed = [jacobian[low] * measured.second_mixed[high] for high in range(depth) for low in range(high)]
    inner = [jacobian[:high].max() ** 2 * measured.second_input[high] for high in range(1, depth)]
    return float(max([measured.second_weight.max(), *mixed, *inner]))


def _block_bounds(measured: _Measured, output_multiplier: float) -> Float[np.ndarray, "layers layers"]:
    depth = len(measured.b_max)
    # reach[k, l] >= ‖∂α^(k)/∂w^(l)‖: down from k by Jacobians between neighboring layers
    reach = np.zeros((depth, depth))
    for low in range(depth):
        for high in range(low, depth):
            reach[high, low] = measured.weight_jacobian[low] * np.prod(measured.input_jacobian[low + 1 : high + 1])
    blocks = np.zeros((depth + 1, depth + 1))
    for low in range(depth):
        for high in range(low, depth):
            own = measured.second_weight[low] if low == high else measured.second_mixed[high] * reach[high - 1, low]
            above = sum(
                measured.b_max[k] * measured.second_input[k] * reach[k - 1, low] * reach[k - 1, high]
                for k in range(high + 1, depth)
            )
            blocks[low, high] = blocks[high, low] = measured.b_max[high] * own + above
        blocks[low, depth] = blocks[depth, low] = output_multiplier * reach[depth - 1, low]
    return blocks


@partial(jax.jit, static_argnums=(0, 1))
def _measure(
    net: FullyConnected | Bottleneck, names: tuple[str, ...], params: NetworkParams, x: Array, output_index: int | Array
) -> _Measured:
    hidden, output = names[:-1], names[-1]
    a = x.ravel()
    rows, backward = [], []
    sigmas = [activation_function(each.function) for each in net.written_out.layers if each.kind == "activation"]
    for index, name in enumerate(hidden):
        layer, weight = net.layers[name], params[name]["weight"]
        multiplier = layer.multiplier(params[name], weight.shape[0])
        z = layer.apply(params[name], a[None])[0]
        sigma = sigmas[index]
        first, second = jax.vmap(jax.grad(sigma))(z), jax.vmap(jax.grad(jax.grad(sigma)))(z)
        bias = layer.bias_multiplier() if "bias" in params[name] else 0.0
        per_neuron = jnp.sqrt(multiplier**2 * jnp.vdot(a, a) + bias**2)  # ‖∂z_k/∂(w^(l), b^(l))‖, equal for all k
        weight_jacobian = jnp.max(jnp.abs(first)) * per_neuron
        second_weight = jnp.max(jnp.abs(second)) * per_neuron**2
        if index == 0:
            input_jacobian = second_input = second_mixed = jnp.zeros_like(weight_jacobian)
        else:
            scales = jnp.stack([first, jnp.sqrt(jnp.abs(second)), second])
            input_jacobian, root, mixed = multiplier * lax.map(partial(scaled_norm, weight), scales)
            second_input = root**2
            second_mixed = per_neuron * mixed + multiplier * jnp.linalg.norm(first)
        rows.append((weight_jacobian, input_jacobian, second_weight, second_mixed, second_input))
        backward.append((multiplier, weight, first))
        a = sigma(z)
    output_weight = params[output]["weight"]
    b = net.layers[output].multiplier(params[output], output_weight.shape[0]) * output_weight[:, output_index]
    b_all = [b]
    for multiplier, weight, first in reversed(backward[1:]):
        b = multiplier * (weight @ (first * b))
        b_all.insert(0, b)
    columns = [jnp.stack(column) for column in zip(*rows, strict=True)]
    return _Measured(
        jnp.stack([jnp.max(jnp.abs(b)) for b in b_all]), jnp.stack([jnp.linalg.norm(b) for b in b_all]), *columns
    )


def scaled_norm(weight: Float[Array, "rows d"], scale: Float[Array, " d"]) -> Float[Array, ""]:
    """‖W diag(scale)‖ from above: the Ritz value of its Gram operator plus its residual, under the root."""
    start, spare = jax.random.normal(jax.random.key(0), (2, scale.size), scale.dtype)
    found = lanczos_extreme(
        lambda v: scale * (weight.T @ (weight @ (scale * v))),
        start,
        spare,
        max_steps=min(NORM_STEPS, scale.size),
        tolerance=NORM_TOLERANCE,
    )
    return jnp.sqrt(jnp.abs(found.values[0]) + found.residuals[0])
