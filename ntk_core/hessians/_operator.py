"""The Hessian of one output for one input.

It is a symmetric operator on flat vectors, of a network or a callable.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import Float, Key, PyTree, Shaped

from ntk_core.errors import InvalidInput, TooLarge
from ntk_core.hessians._lanczos import Extreme, lanczos_extreme
from ntk_core.hessians._requests import is_integer
from ntk_core.hessians._space import (
    Coordinates,
    Scalar,
    SmallSpace,
    dimension,
    lifted,
    projected,
    restricted,
)
from ntk_core.kernels import as_function, direction_of, moving_of, split_inexact
from ntk_core.machine import available_memory
from ntk_core.networks.architectures import Network, output_function
from ntk_core.traced import (
    Apply,
    Model,
    Program,
    linearized,
    program_of_network,
    refuse_asymmetric,
    wide,
)


class Operator(NamedTuple):
    """A symmetric matrix by its products, built inside a compiled function.

    Attributes:
        matvec: v ↦ H v on flat vectors, (d,) → (d,).
        project: orthogonal projection onto valid directions.
        unravel: flat vector → coordinates (restricted) or parameter tree (generic route).
        direction: flat vector → direction as a tree like the (trained) parameters.
        zero: the flat zero vector.
        dimension: of the range of ``project``.
        space: the small space, of a network or a traced program; None on the generic route.
    """

    matvec: Callable[[Array], Array]
    project: Callable[[Array], Array]
    unravel: Callable[[Array], PyTree]
    direction: Callable[[Array], PyTree]
    zero: Array
    dimension: int
    space: SmallSpace | None

    def random(self, key: Key[Array, ""]) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
        """(a random direction to start from, a spare random vector)."""
        start, spare = jax.random.normal(key, (2, *self.zero.shape), self.zero.dtype)
        return self.project(start), spare

    def leading(
        self, key: Array, max_matvecs: int, tolerance: float | Array, num_wanted: int = 1
    ) -> Extreme:
        """Eigenpairs of largest |λ|; see ``lanczos_extreme``."""
        return lanczos_extreme(
            self.matvec,
            *self.random(key),
            max_steps=min(max_matvecs, self.dimension),
            tolerance=tolerance,
            num_wanted=num_wanted,
            project=self.project,
            dimension=self.dimension,
        )


def outputs_of(net: Model) -> Callable[[Array], Array]:
    """Return f (C,) ↦ φ(f) of a network; the identity for functions, which apply their own φ."""
    if not isinstance(net, Network):
        return lambda f: f.astype(wide(f.dtype))
    phi = output_function(net.output)
    return lambda f: phi(f[None])[0]


def output_scalar(net: Model, output_index: int | Array, outputs: tuple[str, ...] = ()) -> Scalar:
    """Return f (C,) ↦ φ_a(f).

    With ``outputs`` a counts the C outputs of each of these φ, one after another.
    """
    phi = outputs_of(net)
    if outputs:
        of_each = [output_function(name) for name in outputs]
        return lambda f: jnp.concatenate([phi(f[None])[0] for phi in of_each])[output_index]
    # Constant outputs may be arrays of NumPy, which traced numbers cannot index.
    return lambda f: jnp.asarray(phi(f))[output_index]


def operator(net: Model, params: PyTree, x: Shaped[Array, "..."], scalar: Scalar) -> Operator:
    """Hessian of scalar(f(w; x)) at ``params``, for one input ``x`` without batch axis.

    On the small space of a network or a traced program; over all parameters of any other callable.
    """
    if isinstance(net, Network | Program):
        return restricted_operator(net, params, x, scalar)
    return generic_operator(net, params, x, scalar)


def restricted_operator(
    net: Network | Program, params: PyTree, x: Shaped[Array, "..."], scalar: Scalar
) -> Operator:
    """:func:`operator` on the small space.

    A product reads each weight matrix twice (tangents forward and backward); the passes at
    w0 are not repeated.
    """
    program = net if isinstance(net, Program) else program_of_network(net, params, x)
    leaves = program.leaves(params)
    with jax.default_matmul_precision("highest"):
        small, product = restricted(program, leaves, x, scalar)
    zero, unravel = ravel_pytree(small.zero)

    def project(coordinates: Coordinates) -> Array:
        return ravel_pytree(projected(small, coordinates))[0]

    def direction(v: Array) -> PyTree:
        tree = program.tree(lifted(program, small, unravel(v), leaves))
        return net.partition(tree)[0] if isinstance(net, Network) else tree

    return Operator(
        lambda v: project(product(unravel(v))),
        lambda v: project(unravel(v)),
        unravel,
        direction,
        zero,
        dimension(small),
        small,
    )


def generic_operator(
    apply: Apply, params: PyTree, x: Shaped[Array, "..."], scalar: Scalar
) -> Operator:
    """:func:`operator` over all parameters, by Hessian-vector products."""
    moving, restore = moving_of(apply, params)
    flat_params, unravel = ravel_pytree([leaf.astype(wide(leaf.dtype)) for leaf in moving])

    def value(flat: Array) -> Array:
        own = [leaf.astype(like.dtype) for leaf, like in zip(unravel(flat), moving, strict=True)]
        return scalar(apply(restore(own), x[None])[0])

    def directions(flat: Array) -> PyTree:
        return direction_of(apply, params, unravel(flat))

    _, tangent = linearized(jax.grad(value), flat_params)
    zero = jnp.zeros_like(flat_params)
    return Operator(tangent, lambda v: v, directions, directions, zero, zero.size, None)


def second_derivatives(
    net: Model, params: PyTree, x: Array, direction: PyTree
) -> Float[Array, " C"]:
    """Return ∂²φ_c(f(w + t·d; x))/∂t² at t = 0 for one input: dᵀ H_c d.

    Uses reverse mode only, for ``custom_vjp`` and out-of-range ids.
    """
    moving, restore = moving_of(net, params)
    apply = as_function(net)

    def outputs(t: Array) -> Float[Array, " C"]:
        moved = jax.tree.map(lambda leaf, by: (leaf + t * by).astype(leaf.dtype), moving, direction)
        found = apply(restore(moved), x[None])[0]
        return found.astype(wide(found.dtype))

    origin = jnp.zeros((), jnp.result_type(float))
    return jax.jacrev(jax.jacrev(outputs))(origin)


def check_request(
    net: Model, params: PyTree, num_outputs: int, output_index: int, max_steps: int = 1
) -> None:
    """Refuse invalid requests before tracing the operator.

    Raises:
        InvalidInput: for an ``output_index`` outside the outputs.
        TooLarge: if the Lanczos basis of the generic route does not fit into memory.
    """
    if not (is_integer(output_index) and -num_outputs <= output_index < num_outputs):
        allowed = f"an integer from 0 to {num_outputs - 1}, or from -1 (the last) to {-num_outputs}"
        raise InvalidInput("output_index", output_index, allowed)
    if not isinstance(net, Network) and not (isinstance(net, Program) and net.layers):
        check_memory(moving_of(net, params)[0], max_steps)


def refuse_asymmetric_output(
    net: Model, params: PyTree, x: Array | np.ndarray, num_outputs: int, output_index: int
) -> None:
    """Refuse a function whose second derivatives of one output are not symmetric at ``params``.

    Raises:
        AsymmetricHessian: for custom derivative rules that are not derivatives.
    """
    weights = np.zeros((1, num_outputs), np.float32)
    weights[0, output_index] = 1
    refuse_asymmetric(net, params, x[None], weights)


def check_memory(params: PyTree, max_steps: int) -> None:
    """Refuse a Lanczos basis of full-size vectors that does not fit into memory.

    Raises:
        TooLarge: with the number of steps that fits.
    """
    vector_bytes = sum(leaf.size * leaf.dtype.itemsize for leaf in split_inexact(params)[0])
    available = available_memory()
    required = vector_bytes * (max_steps + 8)  # the basis, and memory of a Hessian product
    if required > available:
        nearest = max(1, math.floor(available / vector_bytes) - 8)
        raise TooLarge(
            "max_matvecs",
            max_steps,
            required=required,
            limit=available,
            unit="bytes",
            nearest=nearest,
        )
