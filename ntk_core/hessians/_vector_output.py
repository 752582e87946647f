"""The Hessian of all outputs as a tensor of order three, and its spectral norm."""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Key, PyTree

from ntk_core.hessians._compiled import with_layers
from ntk_core.hessians._norm import MAX_MATVECS, checked_request, hessian_norm
from ntk_core.hessians._operator import operator, outputs_of, second_derivatives
from ntk_core.kernels import moving_of
from ntk_core.traced import (
    Inputs,
    Model,
    Route,
    Trainable,
    accepted_input,
    restricted,
    with_usual_settings,
)

MAX_ROUNDS = 20
GAIN = 1e-3  # stop after a round with a smaller relative gain, as for the tolerance of a norm


@dataclass(frozen=True, repr=False)
class VectorHessianNorm:
    """The spectral norm of the Hessian of a vector output, from below and above.

    Attributes:
        value: Σ_ijc H_ijc v_i v_j u_c at the unit vectors found: a lower bound of ‖H‖,
            at least every ‖H_c‖.
        upper: (Σ_c ‖H_c‖²)^(1/2) >= ‖H‖, with the estimated norms.
        outputs: ‖H_c‖ of each output, (C,).
        weights: u, a unit vector, (C,).
        converged: whether every norm reached its tolerance.
    """

    value: float
    upper: float
    outputs: np.ndarray
    weights: np.ndarray
    converged: bool

    def __repr__(self) -> str:
        verdict = "converged" if self.converged else "not converged"
        return (
            f"VectorHessianNorm(from {self.value:.4g} to {self.upper:.4g}; "
            f"{len(self.outputs)} outputs; {verdict})"
        )


@with_usual_settings
def vector_hessian_norm(
    net: Model,
    params: PyTree,
    x: Inputs,
    *,
    tolerance: float | None = None,
    max_matvecs: int = MAX_MATVECS,
    key: Key[Array, ""] | None = None,
    trainable: Trainable = None,
    route: Route = "auto",
) -> VectorHessianNorm:
    """Return bounds on the Hessian norm of all outputs.

    ‖H‖ = sup Σ_ijc H_ijc v_i w_j u_c over unit v, w, u, of H_ijc = ∂²φ_c(f(w;
    x))/∂w_i∂w_j, for one input.

    For each u the sup over v and w is the norm of the symmetric matrix Σ_c u_c H_c, reached at
    v = ±w. Given v, the best u is (vᵀ H_c v)_c, normalized. Alternating both never lowers the
    value; starts are every single output and a random u, and the best local maximum is returned.
    max_c ‖H_c‖ <= ‖H‖ <= (Σ_c ‖H_c‖²)^(1/2).

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1, num_outputs=2), jnp.ones(3)
    >>> params = net.init(jax.random.key(0), (3,))
    >>> vector_hessian_norm(net, params, x).outputs.shape
    (2,)

    Args:
        net, params, x, tolerance, max_matvecs, key, trainable, route: as for :func:`hessian_norm`.

    Returns:
        Estimate, lower and upper bound.

    Raises:
        InvalidInput, TooLarge, TracingDisagrees: as ``hessian_norm``.

    Source: Zhu, Liu & Belkin 2022, App. C.
    """
    net, x, num_outputs = accepted_input(restricted(net, params, trainable, route), params, x)
    net = with_layers(net, params, x)
    relative, key = checked_request(net, params, x, num_outputs, 0, tolerance, max_matvecs, key)
    alone = []
    for index in range(num_outputs):
        found = hessian_norm(
            net,
            params,
            x,
            index,
            tolerance=tolerance,
            max_matvecs=max_matvecs,
            key=key,
            repeated=False,
        )
        alone.append(found)
    converged = all(found.converged for found in alone)
    # Starts: every single output, and a random mixture of several.
    starts = list(np.eye(num_outputs))
    if num_outputs > 1:
        random = np.asarray(jax.random.normal(jax.random.fold_in(key, 1), (num_outputs,)))
        starts.append(random / np.linalg.norm(random))
    best = 0.0
    weights = starts[0]
    for start in starts:
        ascent = _ascended(net, params, x, start, relative, max_matvecs, key)
        converged = converged and ascent.converged
        if ascent.value > best:
            best = ascent.value
            weights = ascent.weights
    outputs = np.array([found.value for found in alone])
    largest = float(outputs.max())  # NaN if one is
    return VectorHessianNorm(
        value=max(best, largest) if math.isfinite(largest) else math.nan,
        upper=float(np.linalg.norm(outputs)),
        outputs=outputs,
        weights=np.asarray(weights),
        converged=converged,
    )


class _Ascent(NamedTuple):
    """Largest value along one ascent, and the outputs' weights u there."""

    value: float
    weights: np.ndarray
    converged: bool


def _ascended(
    net: Model,
    params: PyTree,
    x: Array,
    start: np.ndarray,
    tolerance: float,
    max_matvecs: int,
    key: Array,
) -> _Ascent:
    """Improve v for fixed u and u for fixed v by turns, until a round gains little."""
    value = 0.0
    u = start
    best = start
    converged = True
    for _ in range(MAX_ROUNDS):
        with jax.default_matmul_precision("highest"):
            norm, bent, is_known = _round(
                net, params, x, jnp.asarray(u, x.dtype), tolerance, max_matvecs, key
            )
        converged = converged and bool(is_known)
        # The value at the best u for this v, in double precision, whose squares do not overflow.
        reached = float(np.linalg.norm(np.asarray(bent, np.float64)))
        before = value
        value = max(value, float(norm), reached)
        if reached > 0:
            u = np.asarray(bent) / reached
        if value > before:
            best = u
        if reached == 0 or value <= before * (1 + GAIN):
            break
    return _Ascent(value, best, converged)


@partial(jax.jit, static_argnums=(0, 5))
def _round(
    net: Model,
    params: PyTree,
    x: Array,
    weights: Float[Array, " C"],
    tolerance: float | Array,
    max_matvecs: int,
    key: Array,
) -> tuple[Float[Array, ""], Float[Array, " C"], Bool[Array, ""]]:
    """(‖Σ_c u_c H_c‖, vᵀ H_c v of every output at its eigenvector v, whether Lanczos converged)."""
    phi = outputs_of(net)
    hessian = operator(net, params, x, lambda f: phi(f) @ weights)
    found = hessian.leading(key, max_matvecs, tolerance)
    bent = second_derivatives(
        net, params, x, moving_of(net, hessian.direction(found.vectors[0]))[0]
    )
    return jnp.abs(found.values[0]), bent, found.converged
