"""A symmetric matrix of a loss in the parameters, by its products.

Norm, eigenpairs, density and trace.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike
from jaxtyping import Float, Key, PyTree

from ntk_core.curvature._trace import MIN_PRODUCTS, TraceEstimate, estimated_trace
from ntk_core.dynamics import Loss
from ntk_core.errors import InvalidInput
from ntk_core.hessians import LeadingEigenpairs, SpectralDensity, SpectralEstimate
from ntk_core.hessians._lanczos import Extreme, lanczos_extreme, lanczos_quadrature
from ntk_core.hessians._norm import MAX_MATVECS, relative_tolerance
from ntk_core.hessians._operator import check_memory
from ntk_core.hessians._range import (
    Entries,
    decimal_of_lost,
    entries_of,
    is_representable,
    largest_size,
    smallest_of,
)
from ntk_core.hessians._requests import check_count, checked_key
from ntk_core.kernels import (
    direction_of,
    has_lost_entries,
    moving_of,
    refuse_rows_without_outputs,
)
from ntk_core.networks.architectures import Network, output_function
from ntk_core.real_numbers import real_array
from ntk_core.traced import (
    Apply,
    ChannelsLast,
    Rows,
    has_convolutions,
    like_params,
    linearized,
    name_of,
    treats_rows_apart,
    wide,
    with_usual_settings,
)

# The parts of a large batch run side by side, and what one of them stores stays in a cache; more
# parts would take longer to compile. Both numbers are our choice.
MIN_PART = 125  # rows
MOST_PARTS = 4
MeanLoss = Callable[[Array, Array], Array]  # (outputs F, targets y), both (n, C) → a scalar
MatVec = Callable[[Array], Array]


@dataclass(frozen=True)
class OwnLoss:
    """A loss that is a function of outputs F = φ(f) and targets; equal for equal functions.

    Attributes:
        output: φ.
        function: (F, y), both (n, C) → the mean loss.
    """

    output: str
    function: MeanLoss

    def __call__(self, f: Array, y: Array) -> Array:
        return self.of_model(self.model(f), y)

    def model(self, f: Array) -> Array:
        """F, (n, C), from pre-outputs f, (n, C)."""
        return output_function(self.output)(f)

    def of_model(self, outputs: Array, y: Array) -> Array:
        """The mean loss of F, (n, C)."""
        return jnp.asarray(self.function(outputs, y))


class Request(NamedTuple):
    """Static part of compiled programs.

    Attributes:
        matrix: ``hessian``, ``gauss-newton``, ``fisher`` or ``empirical-fisher``.
        model: the network, or a function.
        apply: (w, x) → what the loss takes.
        loss: as a function of it.
    """

    matrix: str
    model: Network | Apply
    apply: Apply
    loss: Loss | OwnLoss


class CurvatureOperator:
    """A curvature matrix of a loss as products, without forming it.

    v ↦ A v for a symmetric A (p, p) in the trained parameters: all floating-point
    leaves of a function's.

    Its methods compute spectrum and trace by Lanczos iterations and random vectors. A product
    costs about four (Gauss– Newton, Fisher) or six (Hessian) passes over the data, all n
    inputs in one batch.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x, y = FullyConnected(width=8, depth=1), jnp.ones((3, 5)), jnp.ones((3, 1))
    >>> params = net.init(jax.random.key(0), (5,))
    >>> from ntk_core.curvature import gauss_newton
    >>> matrix = gauss_newton(net, params, x, y)
    >>> matrix.shape, matrix.flat_product(np.ones(matrix.shape[0])).shape
    ((56, 56), (56,))

    Attributes:
        matrix: ``hessian``, ``gauss-newton``, ``fisher`` or ``empirical-fisher``.
        shape: (p, p).
        dtype: of the products.

    Source: Pearlmutter 1994; Schraudolph 2002.
    """

    def __init__(self, request: Request, params: PyTree, x: Rows, y: Rows):
        self._request = request
        self._params = params
        self._x = jnp.asarray(x)
        self._y = jnp.asarray(y)
        self.matrix = request.matrix
        zero = jax.eval_shape(lambda params: _flat(request, params)[0], params)
        self.shape = (zero.size, zero.size)
        self.dtype = np.dtype(zero.dtype)

    def __repr__(self) -> str:
        name = name_of(self._request.model)
        return f"CurvatureOperator({self.matrix} of {name}, {self.shape[0]:,} parameters)"

    @with_usual_settings
    def product(self, vector: PyTree) -> PyTree:
        """Return A v for a tree v like the trained parameters, as such a tree.

        Raises:
            InvalidInput: for a tree of another form.
        """
        like_params(vector, self._tree(jnp.zeros(self.shape[:1], self.dtype)), "vector")
        moving = vector
        if not isinstance(self._request.model, Network):
            moving, _ = moving_of(self._request.model, vector)
        leaves = jax.tree.leaves(moving)
        flat = jnp.concatenate([jnp.ravel(leaf).astype(self.dtype) for leaf in leaves])
        return self._tree(self._images(flat[None])[0])

    @with_usual_settings
    def flat_product(self, vector: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """Return A v for a flat vector, leaves in the order of ``jax.tree.leaves``."""
        flat = real_array(vector, "vector").astype(self.dtype)
        if flat.shape != self.shape[:1]:
            raise InvalidInput("vector", f"shape {flat.shape}", f"shape {self.shape[:1]}")
        return np.asarray(self._images(flat[None])[0])

    @with_usual_settings
    def norm(
        self,
        *,
        tolerance: float | None = None,
        max_matvecs: int = MAX_MATVECS,
        key: Key[Array, ""] | None = None,
    ) -> SpectralEstimate:
        """Return ‖A‖, the largest |λ|, with its residual.

        Args:
            tolerance: stop at residual <= tolerance · value; by default √eps of the dtype.
            max_matvecs: maximum number of products; then ``converged`` is False.
            key: of the random start; a fixed one by default.

        Raises:
            InvalidInput: for numbers out of range, and for curvature that is not finite.
            TooLarge: if the Lanczos basis does not fit into memory.

        Source: Golub & Van Loan 2013, §10.1–10.3 (Lanczos).
        """
        found, relative = self._leading(1, tolerance, max_matvecs, key)
        eigenvalue = float(found.values[0])
        return SpectralEstimate(
            value=abs(eigenvalue),
            eigenvalue=eigenvalue,
            residual=float(found.residuals[0]),
            converged=bool(found.converged),
            num_matvecs=int(found.num_steps),
            tolerance=relative,
        )

    @with_usual_settings
    def eigenpairs(
        self,
        num_wanted: int = 5,
        *,
        tolerance: float | None = None,
        max_matvecs: int = MAX_MATVECS,
        key: Key[Array, ""] | None = None,
    ) -> LeadingEigenpairs:
        """Return the eigenpairs of largest |λ|; ``directions`` are all eigenvectors as trees.

        Args:
            num_wanted: their number.
            tolerance, max_matvecs, key: as for :meth:`norm`.

        Raises:
            InvalidInput, TooLarge: as :meth:`norm`.

        Source: as :meth:`norm`.
        """
        found, _ = self._leading(num_wanted, tolerance, max_matvecs, key)
        directions = [self._tree(vector) for vector in found.vectors]
        return LeadingEigenpairs(
            eigenvalues=np.asarray(found.values),
            residuals=np.asarray(found.residuals),
            converged=bool(found.converged),
            num_matvecs=int(found.num_steps),
            coordinates=jax.tree.map(lambda *leaves: jnp.stack(leaves), *directions),
            directions=directions,
        )

    @with_usual_settings
    def density(
        self,
        *,
        num_probes: int = 8,
        num_steps: int = 32,
        key: Key[Array, ""] | None = None,
    ) -> SpectralDensity:
        """Return the distribution of all p eigenvalues, by stochastic Lanczos quadrature.

        Args:
            num_probes: random vectors.
            num_steps: Lanczos steps from each of them.
            key: of the vectors; a fixed one by default.

        Raises:
            InvalidInput, TooLarge: as :meth:`norm`.

        Source: Golub & Meurant 2010, ch. 6; Ghorbani, Krishnan & Xiao 2019, §2.
        """
        for field, given in (("num_probes", num_probes), ("num_steps", num_steps)):
            check_count(field, given, 1)
        check_memory(moving_of(self._request.model, self._params)[0], num_steps)
        keys = jax.random.split(checked_key(key), num_probes)
        steps = min(num_steps, self.shape[0])
        nodes, weights = _sampled(self._request, steps, *self._arrays, keys)
        self._refuse_out_of_range(nodes)
        return SpectralDensity(np.asarray(nodes), np.asarray(weights), *self.shape)

    @with_usual_settings
    def trace(
        self,
        num_products: int = 48,
        *,
        method: str = "hutch++",
        seed: int = 0,
    ) -> TraceEstimate:
        """Return tr A with a 95% interval.

        tr A = E vᵀA v for random signs v.

        ``hutchinson`` is the mean over ``num_products`` vectors. ``hutch++`` sums the leading part
        exactly with two thirds of the products, which leaves a smaller variance where few
        eigenvalues are large.

        Args:
            num_products: at least 6.
            method: ``hutch++`` or ``hutchinson``.
            seed: of the vectors.

        Raises:
            InvalidInput: for another method or too few products, and for curvature that is not
                finite.

        Source: Hutchinson 1989; Meyer, Musco, Musco & Woodruff 2021.
        """
        check_count("num_products", num_products, MIN_PRODUCTS)
        check_count("seed", seed, 0)
        check_memory(moving_of(self._request.model, self._params)[0], 3 * num_products)
        if method not in ("hutch++", "hutchinson"):
            raise InvalidInput("method", method, "hutch++ or hutchinson")
        found = estimated_trace(
            self._products_in_float64,
            self.shape[0],
            num_products,
            method,
            np.random.default_rng(seed),
        )
        return found

    @property
    def _arrays(self) -> tuple[PyTree, Array, Array]:
        return self._params, self._x, self._y

    @cached_property
    def _unravel(self) -> Callable[[Array], PyTree]:
        moving, _ = moving_of(self._request.model, self._params)
        return ravel_pytree(jax.tree.map(lambda leaf: leaf.astype(wide(leaf.dtype)), moving))[1]

    def _tree(self, flat: Array) -> PyTree:
        moved = self._unravel(flat)
        if isinstance(self._request.model, Network):
            return moved
        return direction_of(self._request.model, self._params, moved)

    def _images(self, vectors: Float[Rows, "k p"]) -> Float[Array, "k p"]:
        found: Array = _images(self._request, *self._arrays, jnp.asarray(vectors, self.dtype))
        if has_lost_entries(found):
            refuse_rows_without_outputs(self._request.model, self._params, self._x)
        return found

    def _products_in_float64(self, vectors: Float[np.ndarray, "k p"]) -> Float[np.ndarray, "k p"]:
        found = np.asarray(self._images(vectors), np.float64)
        self._refuse_out_of_range(found)
        return found

    def _leading(
        self, num_wanted: int, tolerance: float | None, max_matvecs: int, key: Array | None
    ) -> tuple[Extreme, float]:
        check_count("num_wanted", num_wanted, 1)
        check_count("max_matvecs", max_matvecs, num_wanted)
        if num_wanted > self.shape[0]:
            raise InvalidInput("num_wanted", num_wanted, f"an integer from 1 to {self.shape[0]}")
        check_memory(moving_of(self._request.model, self._params)[0], max_matvecs)
        relative = relative_tolerance(tolerance, self.dtype)
        most = min(max_matvecs, self.shape[0])
        keys = checked_key(key)
        found = _extreme(self._request, num_wanted, most, *self._arrays, relative, keys)
        self._refuse_out_of_range(found.values)
        return found, relative

    def _refuse_out_of_range(self, found: ArrayLike) -> None:
        """Refuse eigenvalues or products that are not finite, or vanish only by their size."""
        largest = largest_size(found)
        narrow = jnp.result_type(*jax.tree.leaves(moving_of(self._request.model, self._params)[0]))
        if is_representable(largest, narrow):
            return
        if not math.isfinite(largest):
            refuse_rows_without_outputs(self._request.model, self._params, self._x)
        decimal = decimal_of_lost(largest, self._measured_entries(), narrow)
        if decimal is not None:
            limits = jnp.finfo(narrow)
            raise InvalidInput(
                "net",
                f"a loss whose {self.matrix} has entries around 1e{decimal:.0f}",
                "outputs, targets or parameters in other units, or a wider type; entries in "
                f"{limits.dtype} are from {smallest_of(narrow):.0e} to {float(limits.max):.0e}",
            )
        if not math.isfinite(largest):
            raise InvalidInput(
                "params",
                f"a loss whose {self.matrix} is not finite",
                "parameters and data at which the loss and its derivatives are finite",
            )

    def _measured_entries(self) -> Entries:
        """Measure the entries in 32 bits where the function takes them."""
        in_32_bits = jax.tree.map(_in_32_bits, self._arrays)
        try:
            return _entries(self._request, *in_32_bits)
        except (TypeError, ValueError):
            return _entries(self._request, *self._arrays)


def _in_32_bits(leaf: ArrayLike) -> ArrayLike:
    is_narrow = jnp.result_type(leaf) in (jnp.float16, jnp.bfloat16)
    return jnp.asarray(leaf, jnp.float32) if is_narrow else leaf


def _flat(request: Request, params: PyTree) -> tuple[Array, Callable[[Array], PyTree]]:
    """Return (trained parameters as a flat vector, flat vector → all parameters).

    The flat vector has at least 32 bits.
    """
    moving, restore = moving_of(request.model, params)
    widened = jax.tree.map(lambda leaf: leaf.astype(wide(leaf.dtype)), moving)
    flat, unravel = ravel_pytree(widened)

    def whole(flat: Array) -> PyTree:
        own = jax.tree.map(lambda leaf, like: leaf.astype(like.dtype), unravel(flat), moving)
        return restore(own)

    return flat, whole


def _matvec(request: Request, params: PyTree, x: Array, y: Array) -> MatVec:
    """Return v ↦ A v on flat vectors, linearized once, for use inside a loop."""
    product = _product(request, params, x, y)
    flat, _ = _flat(request, params)
    is_on_cpu = jax.default_backend() == "cpu"
    if not (is_on_cpu and has_convolutions(jax.make_jaxpr(product)(flat).jaxpr)):
        return product
    # Linearized again, so that a loop does not repeat transposes of the arrays at w.
    return linearized(ChannelsLast(product), flat)[1]


def _product(request: Request, params: PyTree, x: Array, y: Array) -> MatVec:
    flat, whole = _flat(request, params)
    loss = request.loss
    apply = request.apply
    if (
        len(x) >= 2 * MIN_PART
        and jax.default_backend() == "cpu"
        and treats_rows_apart(apply, params, x)
    ):
        apply = _in_parts(apply)
    if request.matrix == "hessian":
        slopes = jax.grad(lambda w: loss(apply(whole(w), x), y))
        return linearized(slopes, flat)[1]

    # In F, in which the square loss of a nonlinear output is convex.
    def model(w: Array) -> Array:
        return loss.model(apply(whole(w), x))

    outputs, along = linearized(model, flat)
    _, pull = jax.vjp(model, flat)
    slope = jax.grad(lambda each: loss.of_model(each, y))
    if request.matrix == "empirical-fisher":
        residuals = len(x) * slope(outputs)  # ∂ℓ_i/∂F_i, (n, C)

        def curved(moved: Array) -> Array:
            return residuals * jnp.sum(residuals * moved, -1, keepdims=True) / len(x)

    else:
        curved = jax.linearize(slope, outputs)[1]

    def product(v: Array) -> Array:
        found: Array = pull(curved(along(v)))[0]
        return found

    return product


def _in_parts(apply: Apply) -> Apply:
    """Return the same function of a batch, computed in parts of its rows."""

    def joined(params: PyTree, x: Array) -> Array:
        parts = jnp.array_split(x, min(MOST_PARTS, len(x) // MIN_PART))
        return jnp.concatenate([apply(params, part) for part in parts])

    return joined


@partial(jax.jit, static_argnums=0)
def _images(
    request: Request, params: PyTree, x: Array, y: Array, vectors: Float[Array, "k p"]
) -> Float[Array, "k p"]:
    with jax.default_matmul_precision("highest"):
        found: Array = lax.map(_matvec(request, params, x, y), vectors)
        return found


@partial(jax.jit, static_argnums=0)
def _entries(request: Request, params: PyTree, x: Array, y: Array) -> Entries:
    """Measure the entries of the matrix."""
    moving, _ = moving_of(request.model, params)
    widened = jax.tree.map(lambda leaf: leaf.astype(wide(leaf.dtype)), moving)
    _, unravel = ravel_pytree(widened)
    product = _product(request, params, x, y)

    def on_trees(direction: PyTree) -> PyTree:
        flat, _ = ravel_pytree(direction)
        return unravel(product(flat))

    with jax.default_matmul_precision("highest"):
        return entries_of(on_trees, widened)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _extreme(
    request: Request,
    num_wanted: int,
    max_steps: int,
    params: PyTree,
    x: Array,
    y: Array,
    tolerance: float | Array,
    key: Array,
) -> Extreme:
    size = _flat(request, params)[0]
    start, spare = jax.random.normal(key, (2, *size.shape), size.dtype)
    with jax.default_matmul_precision("highest"):
        return lanczos_extreme(
            _matvec(request, params, x, y),
            start,
            spare,
            max_steps=max_steps,
            tolerance=tolerance,
            num_wanted=num_wanted,
        )


@partial(jax.jit, static_argnums=(0, 1))
def _sampled(
    request: Request, num_steps: int, params: PyTree, x: Array, y: Array, keys: Array
) -> tuple[Array, Array]:
    size = _flat(request, params)[0]
    with jax.default_matmul_precision("highest"):
        matvec = _matvec(request, params, x, y)

        def probe(key: Array) -> tuple[Array, Array]:
            start, spare = jax.random.normal(key, (2, *size.shape), size.dtype)
            return lanczos_quadrature(matvec, start, spare, num_steps=num_steps)

        return lax.map(probe, keys)
