"""Layer quantities of Theorem 3.1 and their bound (docs/math/theorem_bound.md)."""

import itertools
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, PyTree

from ntk_core.errors import InvalidInput, kind_of
from ntk_core.hessians._compiled import with_layers
from ntk_core.hessians._each_output import for_each_output
from ntk_core.hessians._lanczos import lanczos_extreme
from ntk_core.hessians._operator import check_request, refuse_asymmetric_output
from ntk_core.hessians._space import matrix_of
from ntk_core.kernels import refuse_traced
from ntk_core.networks.architectures import Network
from ntk_core.traced import (
    Inputs,
    Model,
    Program,
    TracedLayer,
    Use,
    accepted_input,
    traced,
    value_and_slope,
    with_usual_settings,
)

NORM_STEPS = 64
NORM_TOLERANCE = 1e-3
CHAIN = (
    "a chain of dense layers: a network of this package, or a function, with an activation "
    "after each of them"
)


@dataclass(frozen=True, repr=False)
class LayerQuantities:
    """Measured layer quantities of a chain of dense layers with linear output, at one input.

    With α^(l) the activations of hidden layer l = 1 … L, w^(l) its weights and biases, f the chosen
    output; arrays have one entry per hidden layer, (L,). ‖T‖_{2,2,1} = sup over unit x, z of Σ_k
    |Σ_ij T_ijk x_i z_j|.

    Attributes:
        layers: names of the hidden layers; of a function, of their weights.
        b_max: ‖b^(l)‖_∞ with b^(l) = ∂f/∂α^(l).
        b_norm: ‖b^(l)‖_2.
        weight_jacobian: ‖∂α^(l)/∂w^(l)‖, exact.
        input_jacobian: ‖∂α^(l)/∂α^(l-1)‖; 0 for the first layer, whose input is data.
        second_weight: ‖∂²α^(l)/∂(w^(l))²‖_{2,2,1}, exact.
        second_mixed: upper bound of ‖∂²α^(l)/∂w^(l)∂α^(l-1)‖_{2,2,1}; 0 for the first layer.
        second_input: ‖∂²α^(l)/∂(α^(l-1))²‖_{2,2,1}; 0 for the first layer.
        q_inf: Q_∞ = max_l ‖b^(l)‖_∞.
        q_l: Q_L = max_l ‖∂α^(l)/∂w^(l)‖.
        q_221: Q_{2,2,1}, the largest of ``second_weight`` and, over l <= l' < l'', of
            ``weight_jacobian[l]`` times ``second_mixed[l']`` (l < l') and of
            ``weight_jacobian[l] · weight_jacobian[l'] · second_input[l'']``.
        block_bounds: upper bounds of ‖H_{l,l'}‖, (L + 1, L + 1) with the output layer last;
            0 for frozen layers.
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

    def __repr__(self) -> str:
        constants = f"Q_inf {self.q_inf:.4g}, Q_L {self.q_l:.4g}, Q_221 {self.q_221:.4g}"
        return (
            f"LayerQuantities({len(self.layers)} hidden layers; {constants}; bound "
            f"{self.bound:.4g})"
        )


class _Measured(NamedTuple):
    b_max: Array | np.ndarray
    b_norm: Array | np.ndarray
    weight_jacobian: Array | np.ndarray
    input_jacobian: Array | np.ndarray
    second_weight: Array | np.ndarray
    second_mixed: Array | np.ndarray
    second_input: Array | np.ndarray


@overload
def layer_quantities(
    net: Model, params: PyTree, x: Inputs, output_index: int = 0
) -> LayerQuantities: ...
@overload
def layer_quantities(
    net: Model, params: PyTree, x: Inputs, output_index: None
) -> list[LayerQuantities]: ...
@with_usual_settings
def layer_quantities(
    net: Model, params: PyTree, x: Inputs, output_index: int | None = 0
) -> LayerQuantities | list[LayerQuantities]:
    """Return the layer quantities of the Hessian bound.

    The quantities of Theorem 3.1 for output ``output_index`` at one input ``x``, and its bound
    with these constants.

    ‖H‖ <= Σ_{l,l'} ‖H_{l,l'}‖ (Lemma E.1), and by the chain rule, for l <= l' <= L,
    ‖H_{l,l'}‖ <= [second derivative of layer l', in its weights if l = l', else mixed] + Σ_{k > l'}
    ‖b^(k)‖_∞ · ‖∂²α^(k)/∂(α^(k-1))²‖_{2,2,1} · ‖∂α^(k-1)/∂w^(l)‖ · ‖∂α^(k-1)/∂w^(l')‖, and the
    block with the output layer is the output multiplier (m^(-1/2)) times ‖∂α^(L)/∂w^(l)‖. Spectral
    norms come from Lanczos, with their residual added.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1), jnp.ones(3)
    >>> params = net.init(jax.random.key(0), (3,))
    >>> layer_quantities(net, params, x).layers
    ('hidden1',)

    Args:
        net, params, x, output_index: as for :func:`hessian_norm`. The model is a chain of dense
            layers: each activation is a function of one pre-activation z_k = ⟨w_k, α⟩ + b_k alone,
            and the outputs are those of the last layer.

    Returns:
        The quantities of each layer and the bound; for ``output_index=None`` a list with those of
        each output.

    Raises:
        InvalidInput, TracingDisagrees: as ``hessian_norm``; also for models that are no such chain,
            or have a nonlinear output (see ``nonlinear_output_hessian``).

    Source: Liu, Zhu & Belkin 2020, §3.3.1, Theorem 3.1 and App. E–F.
    """
    refuse_traced((params, x), "x")
    if output_index is None:
        return for_each_output(layer_quantities, net, params, x)
    model, one, num_outputs = accepted_input(net, params, x)
    check_request(model, params, num_outputs, output_index)
    program: Model | None
    # Traced with all weights, including frozen layers, without checks.
    if isinstance(model, Network):
        if model.output != "linear":
            raise InvalidInput("output", model.output, "linear, as in Theorem 3.1")
        order = list(model.layer_input_shapes(one.shape))
        params = {name: params[name] for name in order}
        program = traced(model.pre_outputs, params, one[None])
        trained = np.array([model.layers[name].trainable for name in order])
    else:
        program = with_layers(model, params, one)
        order = []
        trained = np.array(True)
        refuse_asymmetric_output(model, params, one, num_outputs, output_index)
    chain = _chain(program) if isinstance(program, Program) else ()
    if not (isinstance(program, Program) and chain):
        raise InvalidInput("net", kind_of(net), CHAIN)
    with jax.default_matmul_precision("highest"):
        found, apart = _measure(program, chain, params, one, output_index)
    if not apart <= 100 * program.epsilon:
        raise InvalidInput("net", kind_of(net), CHAIN)
    measured = _Measured(*(np.asarray(part, dtype=float) for part in found))
    blocks = _block_bounds(measured, abs(chain[-1].uses[0].view.scale)) * np.outer(trained, trained)
    return LayerQuantities(
        layers=tuple(order[:-1] or (layer.name for layer in chain[:-1])),
        **measured._asdict(),
        q_inf=float(measured.b_max.max()),
        q_l=float(measured.weight_jacobian.max()),
        q_221=_q_221(measured),
        block_bounds=blocks,
        bound=float(blocks.sum()),
    )


def _q_221(measured: _Measured) -> float:
    jacobian = measured.weight_jacobian
    depth = len(measured.b_max)
    mixed = [
        jacobian[low] * measured.second_mixed[high] for high in range(depth) for low in range(high)
    ]
    inner = [jacobian[:high].max() ** 2 * measured.second_input[high] for high in range(1, depth)]
    return float(max([measured.second_weight.max(), *mixed, *inner]))


def _block_bounds(
    measured: _Measured, output_multiplier: float
) -> Float[np.ndarray, "layers layers"]:
    depth = len(measured.b_max)
    # reach[k, l] >= ‖∂α^(k)/∂w^(l)‖: down from k by Jacobians between neighboring layers
    reach = np.zeros((depth, depth))
    for low in range(depth):
        for high in range(low, depth):
            reach[high, low] = measured.weight_jacobian[low] * np.prod(
                measured.input_jacobian[low + 1 : high + 1]
            )
    blocks = np.zeros((depth + 1, depth + 1))
    for low in range(depth):
        for high in range(low, depth):
            if low == high:
                own = measured.second_weight[low]
            else:
                own = measured.second_mixed[high] * reach[high - 1, low]
            above = sum(
                measured.b_max[k]
                * measured.second_input[k]
                * reach[k - 1, low]
                * reach[k - 1, high]
                for k in range(high + 1, depth)
            )
            blocks[low, high] = blocks[high, low] = measured.b_max[high] * own + above
        blocks[low, depth] = blocks[depth, low] = output_multiplier * reach[depth - 1, low]
    return blocks


def _chain(program: Program) -> tuple[TracedLayer, ...]:
    """Return all layers in program order; empty unless each is dense and reads the previous one."""
    layers = sorted(program.layers, key=lambda layer: layer.uses[0].site)
    sizes = [layer.sizes for layer in layers]
    joined = all(before[2] == after[1] for before, after in itertools.pairwise(sizes))
    dense = all(layer.is_dense and not layer.uses[0].lengths for layer in layers)
    return tuple(layers) if dense and joined and not program.others and len(layers) > 1 else ()


@partial(jax.jit, static_argnums=(0, 1))
def _measure(
    program: Program,
    chain: tuple[TracedLayer, ...],
    params: PyTree,
    x: Array,
    output_index: int | Array,
) -> tuple[_Measured, Float[Array, ""]]:
    """Return (quantities, distance of the program from a chain)."""
    leaves = program.leaves(params)
    taken, firsts, seconds, distance = _activations(program, chain, leaves, x)
    multipliers = [layer.uses[0].view.scale for layer in chain]
    matrices = [
        multiplier * matrix_of(layer, leaves)
        for multiplier, layer in zip(multipliers, chain, strict=True)
    ]
    rows = []
    for index, (a, first, second) in enumerate(zip(taken, firsts, seconds, strict=True)):
        multiplier = multipliers[index]
        bias = chain[index].bias
        # ‖∂z_k/∂(w^(l), b^(l))‖, equal for all k
        per_neuron = jnp.sqrt(
            multiplier**2 * jnp.vdot(a, a) + (0.0 if bias is None else bias[1] ** 2)
        )
        weight_jacobian = jnp.max(jnp.abs(first)) * per_neuron
        second_weight = jnp.max(jnp.abs(second)) * per_neuron**2
        if index == 0:
            input_jacobian = second_input = second_mixed = jnp.zeros_like(weight_jacobian)
        else:
            scales = jnp.stack([first, jnp.sqrt(jnp.abs(second)), second])
            input_jacobian, root, mixed = lax.map(partial(scaled_norm, matrices[index]), scales)
            second_input = root**2
            second_mixed = per_neuron * mixed + abs(multiplier) * jnp.linalg.norm(first)
        rows.append((weight_jacobian, input_jacobian, second_weight, second_mixed, second_input))
    b_all = [matrices[-1][:, output_index]]
    for matrix, first in zip(matrices[-2:0:-1], firsts[:0:-1], strict=True):
        b_all.insert(0, matrix @ (first * b_all[0]))
    norms = (
        jnp.stack([jnp.max(jnp.abs(b)) for b in b_all]),
        jnp.stack([jnp.linalg.norm(b) for b in b_all]),
    )
    return _Measured(*norms, *(jnp.stack(column) for column in zip(*rows, strict=True))), distance


def _activations(
    program: Program, chain: tuple[TracedLayer, ...], leaves: list[Array], x: Array
) -> tuple[list[Array], list[Array], list[Array], Float[Array, ""]]:
    """Return inputs of hidden layers, slopes of σ at z, and a distance.

    Slopes are σ' and σ''; the distance is that from a chain in a random direction.

    In a chain, shifting each fixed z = ⟨W, a⟩ changes the next layer's input by σ' times the
    shift, elementwise, and the outputs by the last shift only. The distance from this is
    rounding, or of order 1.
    """
    uses = [layer.uses[0] for layer in chain]

    def taken(shifts: list[Array]) -> list[Array]:
        def shifted(use: Use, a: Array, z: Array, shift: Array) -> Array:
            return lax.stop_gradient(z) + shift.reshape(z.shape).astype(z.dtype)

        own = {use.name: shift for use, shift in zip(uses, shifts, strict=True)}
        outputs, seen = program.run(leaves, x, shifted, own, lambda use, level: True)
        return [*(seen[use.name].ravel() for use in uses), outputs]

    unmoved = [jnp.zeros(layer.sizes[2], layer.dtype) for layer in chain]
    ones = [jnp.ones_like(z) for z in unmoved]
    rng = np.random.default_rng(0)
    random = [jnp.asarray(rng.uniform(1, 2, z.shape), z.dtype) for z in unmoved]

    def slopes(shifts: list[Array]) -> tuple[list[Array], list[Array]]:
        return value_and_slope(taken, shifts, ones)

    (values, firsts), (moved, bent) = value_and_slope(slopes, unmoved, random)
    expected = [
        0.0,
        *(d * slope for d, slope in zip(random[:-1], firsts[1:-1], strict=True)),
        random[-1],
    ]
    seconds = [each / along for each, along in zip(bent[1:-1], random[:-1], strict=True)]
    if moved[-1].shape != random[-1].shape:  # the outputs are not those of the last layer
        return values[:-2], firsts[1:-1], seconds, jnp.asarray(jnp.inf)
    apart = [jnp.max(jnp.abs(one - other)) for one, other in zip(moved, expected, strict=True)]
    return values[:-2], firsts[1:-1], seconds, jnp.max(jnp.stack(apart))


def scaled_norm(weight: Float[Array, "rows d"], scale: Float[Array, " d"]) -> Float[Array, ""]:
    """Return an upper bound of ‖W diag(scale)‖.

    Root of the Gram operator's Ritz value plus residual.
    """
    start, spare = jax.random.normal(jax.random.key(0), (2, scale.size), scale.dtype)
    found = lanczos_extreme(
        lambda v: scale * (weight.T @ (weight @ (scale * v))),
        start,
        spare,
        max_steps=min(NORM_STEPS, scale.size),
        tolerance=NORM_TOLERANCE,
    )
    return jnp.sqrt(jnp.abs(found.values[0]) + found.residuals[0])
