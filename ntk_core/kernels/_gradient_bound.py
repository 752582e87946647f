"""Lower bound of gradients at w₀, which implies PL* there."""

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Shaped

from ntk_core.errors import InvalidInput
from ntk_core.kernels._arrays import in_float64
from ntk_core.networks.architectures import DAGNetwork, accepted_network
from ntk_core.networks.graphs import INPUT, OUTPUT
from ntk_core.usual_settings import with_usual_settings

# (r, E[σ(g)²]) with σ(c z) = c^r σ(z) for c > 0 and g ~ N(0, 1).
HOMOGENEOUS = {
    "relu": (1, 0.5),
    "leaky_relu": (1, (1 + 0.01**2) / 2),
    "identity": (1, 1.0),
    "quadratic": (2, 0.75),
}


@with_usual_settings
def gradient_norm_bound(net: DAGNetwork, x: Shaped[ArrayLike, "..."]) -> float:
    """Return a lower bound of the expected gradient norm.

    A lower bound of E_{w₀} ‖∇_w f_k(w₀; x)‖² for any output k, hence of E λ_min(K(w₀)) for
    a single input ``x``.

    ‖∇f_k‖² is at least the output layer's part, the mean of α_u² over the inputs u of the
    output. With σ(c z) = c^r σ(z), c_σ = E[σ(g)²] and z_v ~ N(0, mean of α_u²) given the values
    below, Jensen's inequality gives q_v = c_σ (mean of q_u over the edges into v)^r as a lower
    bound of E[α_v²], from q = x_i² at the input. With removed edges the smallest q of the
    sources replaces their mean.

    This follows the proof of Proposition 4.4 along the graph's edges. It is never below
    the proposition's bound min_l c_σ^{1 + r + … + r^(l-1)} δ^{2 r^l}, δ = min |x_i|, a
    minimum over layers.

    >>> import jax.numpy as jnp
    >>> net = DAGNetwork(width=5, activation="identity", use_bias=False)
    >>> gradient_norm_bound(net, jnp.ones(3))  # input → a → b, all into the output
    1.0

    Args:
        net: a network on a graph, with homogeneous activations.
        x: one input without batch axis.

    Returns:
        The lower bound.

    Raises:
        InvalidInput: for activations that are not homogeneous, nonlinear outputs, another
            parameterization than ``"ntk"``, fixed skips or shared weights, an output layer
            that is not trained.

    Source: Zhu, Liu & Belkin 2022, Assumptions 4.1 and 4.2, Proposition 4.4, App. G.
    """
    _check(accepted_network(net, DAGNetwork))
    flat = in_float64(x, "x").ravel()
    if not flat.size:
        raise InvalidInput("x", "no numbers", "one input")
    mean_square = {INPUT: float(np.mean(flat**2))}
    sizes = {INPUT: flat.size, **net.sizes}
    for name in net.depths:
        edges = net.graph.parents[name]
        squares = [mean_square[edge.source] for edge in edges]
        weights = [sizes[edge.source] for edge in edges]
        removed = any(edge.drop_probability for edge in edges)
        variance = min(squares) if removed else float(np.average(squares, weights=weights))
        if name == OUTPUT:
            return variance
        degree, second_moment = HOMOGENEOUS[str(net.graph.group[name].activation or net.activation)]
        variance = net.gain**2 * variance + (1.0 if net.use_bias else 0.0)
        mean_square[name] = second_moment * variance**degree
    raise AssertionError("a graph without output")  # Graph refuses it


def _check(net: DAGNetwork) -> None:
    for field, given, allowed in (
        ("output", net.output, "linear"),
        ("parameterization", net.parameterization, "ntk"),
    ):
        if given != allowed:
            raise InvalidInput(field, given, allowed)
    if net.trained not in ("all", "last"):
        raise InvalidInput(
            "trained", net.trained, "all or last: the bound is that of the output layer"
        )
    for edge in net.edges:
        if edge.kind != "dense":
            raise InvalidInput(
                f"edges.{edge.source}-{edge.target}.kind", edge.kind, "dense edges only"
            )
    for group in net.groups:
        name = group.activation or net.activation
        if name not in HOMOGENEOUS:
            field = f"groups.{group.name}.activation" if group.activation else "activation"
            raise InvalidInput(field, name, "a homogeneous function: " + ", ".join(HOMOGENEOUS))
