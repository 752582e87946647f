"""Products of tangent kernels with vectors, for kernels that do not fit into memory."""

import math
from functools import cached_property, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.linalg import LinearOperator, cg

from ntk_core.errors import InvalidInput
from ntk_core.kernels._arrays import in_float64, refuse_traced
from ntk_core.kernels._blocks import checked_limit, even_size, rows_within
from ntk_core.kernels._empirical import rows_of
from ntk_core.kernels._generic import as_function, as_it_is, moving_of
from ntk_core.kernels._outputs import unchecked_diagonal
from ntk_core.kernels._regression import JITTER, check_ridge
from ntk_core.kernels._scaled_outputs import (
    DIGITS,
    SMALL_ENTRY,
    refuse_rows_without_outputs,
    scaled_model,
)
from ntk_core.networks.architectures import Network
from ntk_core.real_numbers import is_finite_number
from ntk_core.traced import (
    Inputs,
    Model,
    Rows,
    Trainable,
    accepted,
    accepted_targets,
    checked,
    derivative_along,
    is_narrow_type,
    like_rows,
    name_of,
    restricted,
    with_usual_settings,
)

LARGE_MEMORY = 2**30  # bytes for everything between parameters and products, by default
CALLABLE_ROWS = 128  # for callables, whose activations are unknown; our choice
Flat = Float[np.ndarray, " rows"]


class KernelExtremes(NamedTuple):
    """Ends of a kernel's spectrum: smallest ≥ λ_min ≥ 0, and largest ≤ λ_max.

    Attributes:
        largest, smallest: Ritz values θ, both in [λ_min, λ_max] up to rounding.
        largest_residual, smallest_residual: ‖K y − θ y‖ of unit vectors y: an
            eigenvalue is within it of θ.
        num_products: products with K.
    """

    largest: float
    largest_residual: float
    smallest: float
    smallest_residual: float
    num_products: int


class KernelSolution(NamedTuple):
    """Result of :meth:`KernelOperator.solve`.

    Attributes:
        coefficients: α, (n, C).
        residual: ‖y − (K + s) α‖ / ‖y‖ of the returned α, by a separate product. Since K is
            positive semidefinite, the error of K α is at most residual · ‖y‖, and that of α at
            most residual · ‖y‖ / s.
        num_products: products with K.
        converged: whether ``residual`` is at most twice the tolerance.
    """

    coefficients: Float[np.ndarray, "n C"]
    residual: float
    num_products: int
    converged: bool


class KernelOperator:
    """Tangent kernel as matrix-vector products, without forming it.

    v ↦ K v = J (Jᵀ v), J[(i, a), w] = ∂φ_a(f(w; x_i))/∂w: one backward and one forward
    derivative, no kernel.

    A product costs about six forward passes, and stores a block of inputs and two
    copies of the weights.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1, num_outputs=2), jnp.ones((3, 5))
    >>> kernel = KernelOperator(net, net.init(jax.random.key(0), (5,)), x)
    >>> kernel.shape, kernel.product(np.ones((3, 2))).shape
    ((6, 6), (3, 2))

    Args:
        net: a network of this package, or any callable ``apply(params, x) -> (n, C)`` that treats
            each row separately.
        params: parameters; leaves that are not floating-point numbers are not differentiated.
        x: inputs (n, *input_shape).
        memory_limit: bytes for intermediate values, 1 GiB by default.
        trainable: the differentiated parameters, as for :func:`empirical_ntk`.

    Attributes:
        shape: (n C, n C).

    Raises:
        InvalidInput: for a memory limit that is not above 0, and for products beyond the
            range of their type.

    Source: Novak, Sohl-Dickstein & Schoenholz 2022, §3; Pearlmutter 1994.
    """

    @with_usual_settings
    def __init__(
        self,
        net: Model,
        params: PyTree,
        x: Inputs,
        *,
        memory_limit: float | None = None,
        trainable: Trainable = None,
    ):
        checked_limit(memory_limit)
        self._name = name_of(net)
        net = restricted(net, params, trainable)
        net, inputs, self.num_outputs = accepted(net, params, x)
        x = rows_of(net, inputs)
        self._inputs_of = net  # for further inputs of a product
        program = checked(net, params, x)
        self._net = net if isinstance(net, Network) else program or as_it_is(net)
        self._params = params
        self._num_samples = len(x)
        size = CALLABLE_ROWS
        if isinstance(net, Network) and program is not None:
            size = rows_within(memory_limit or LARGE_MEMORY, 2 * program.row_bytes)
        self._size = size
        self._rows = _in_equal_blocks(x, size)
        outputs = jax.eval_shape(as_function(self._net), params, x[:1])
        self._dtype = outputs.dtype
        roughest = outputs.dtype if program is None else program.roughest
        self._is_narrow = is_narrow_type(roughest)  # products may then lose digits at any size
        self.shape = (len(x) * self.num_outputs,) * 2

    def __repr__(self) -> str:
        sizes = f"{self._num_samples:,} inputs, {self.num_outputs:,} outputs"
        return f"KernelOperator({self._name}, {sizes})"

    @with_usual_settings
    def product(self, v: Float[ArrayLike, "n C"], others: Inputs | None = None) -> Array:
        """K(x, x) v, (n, C); K(others, x) v, (m, C), at other inputs."""
        vectors = accepted_targets(v, self._num_samples, self.num_outputs, "v")
        rows, count = self._at(others)
        if _has_tracers((self._params, self._rows, rows, vectors)):
            return self._multiplied(self._net, jnp.asarray(vectors, self._dtype), rows, count)
        found, exponent = self._scaled_product(vectors, rows, count)
        product = jnp.ldexp(found, exponent)
        self._refuse_overflow(np.asarray(product), np.asarray(found))
        return product

    def _at(self, others: Inputs | None) -> tuple[Array, int]:
        """Return the rows of a product in equal blocks, and their number."""
        rows = self._rows
        count = self._num_samples
        if others is not None:
            given = like_rows(others, self._rows[0], "others", self._inputs_of)
            if not len(given):
                raise InvalidInput("others", f"shape {given.shape}", "at least one input")
            more = jnp.asarray(given).astype(self._rows.dtype)
            rows = _in_equal_blocks(more, self._size)
            count = len(more)
        return rows, count

    def _scaled_product(self, v: Rows, rows: Array, count: int) -> tuple[Array, int]:
        """Return (P, e) with K v = P · 2^e, also where entries of K and of v overflow or vanish."""
        numbers = np.asarray(v).astype(np.float64)
        largest = float(np.max(np.abs(numbers), initial=0.0))
        exponent = math.frexp(largest)[1] if math.isfinite(largest) else 0
        unit = jnp.asarray(np.ldexp(numbers, -exponent), self._dtype)
        found = self._multiplied(self._net, unit, rows, count)
        size = float(jnp.max(jnp.abs(found)))
        is_inside = SMALL_ENTRY <= size < math.inf and not self._is_narrow
        if is_inside or not (largest > 0 and math.isfinite(largest)):
            return found, exponent
        if not math.isfinite(size):
            self._refuse_rows_without_outputs(rows, count)
        net, power = scaled_model(self._net, self._params, self._rows[0])
        if power:
            found = self._multiplied(net, unit, rows, count)
        return found, exponent + 2 * power

    def _refuse_rows_without_outputs(self, others: Array, count: int) -> None:
        for blocks, number in ((self._rows, self._num_samples), (others, count)):
            rows = blocks.reshape(-1, *blocks.shape[2:])[:number]
            refuse_rows_without_outputs(self._inputs_of, self._params, rows)

    def _multiplied(self, net: Model, v: Array, rows: Array, count: int) -> Array:
        padded = jnp.pad(v, [(0, self._rows.shape[0] * self._rows.shape[1] - len(v)), (0, 0)])
        found = _product(
            net, self._params, self._rows, rows, padded.reshape(*self._rows.shape[:2], -1)
        )
        return found.reshape(-1, self.num_outputs)[:count]

    @with_usual_settings
    def flat_product(self, v: Flat) -> Flat:
        """Return K v of a vector over (i, a), i before a.

        Everything outside the product is in double precision.
        """
        size = self._num_samples * self.num_outputs
        vectors = in_float64(v, "v")
        if vectors.size != size:
            raise InvalidInput("v", f"shape {vectors.shape}", f"shape ({size},)")
        vectors = vectors.reshape(-1, self.num_outputs)
        found, exponent = self._scaled_product(vectors, self._rows, self._num_samples)
        return np.ldexp(np.asarray(found, np.float64), exponent).ravel()

    @cached_property
    def row_traces(self) -> Float[np.ndarray, " n"]:
        """Σ_a K[i, i, a, a] = Σ_a ‖∂φ_a(f(w; x_i))/∂w‖² of every input, exact.

        One row at a time.
        """
        rows = self._rows.reshape(-1, *self._rows.shape[2:])[: self._num_samples]
        found = np.asarray(jnp.einsum("iaa->i", unchecked_diagonal(self._net, self._params, rows)))
        if SMALL_ENTRY <= np.max(found, initial=0.0) < math.inf:
            return found
        net, power = scaled_model(self._net, self._params, self._rows[0])
        if not power:
            return found
        traces = jnp.einsum("iaa->i", unchecked_diagonal(net, self._params, rows))
        return np.ldexp(np.asarray(traces, np.float64), 2 * power)

    @cached_property
    def mean_diagonal(self) -> float:
        """k̄ = tr K / (n C)."""
        return float(np.asarray(self.row_traces, np.float64).sum() / self.shape[0])

    def _refuse_overflow(self, product: Shaped[np.ndarray, "..."], scaled: np.ndarray) -> None:
        """Refuse products that overflow, or whose smaller entries their type reads as 0."""
        overflows = np.isfinite(scaled).all() and not np.isfinite(product).all()
        limits = jnp.finfo(product.dtype)
        digits = 0 if is_narrow_type(product.dtype) else DIGITS
        smallest = 10.0**digits * float(limits.tiny)
        vanishes = np.any(scaled) and np.max(np.abs(product)) < smallest
        if overflows or vanishes:
            raise InvalidInput(
                "net",
                f"a kernel whose products with v {'overflow' if overflows else 'vanish'}",
                f"vectors and outputs in other units, since {product.dtype} represents numbers "
                f"from {float(limits.tiny):.0e} to {float(limits.max):.0e}",
            )

    def _refuse_nonfinite(self, product: Flat) -> None:
        if not np.isfinite(product).all():
            raise InvalidInput(
                "net", "a kernel whose products are not finite", "finite parameters and inputs"
            )

    @with_usual_settings
    def extremes(
        self, *, max_products: int = 100, tolerance: float = 1e-3, seed: int = 0
    ) -> KernelExtremes:
        """λ_max, and a bound on λ_min, by Lanczos iteration with full reorthogonalization.

        λ_max converges in about ten products. The value for λ_min is an upper bound with a
        residual; it decreases with every product and reaches λ_min only after up to n C of them.
        λ_min is 0 if n C exceeds the number of weights. Single precision does not distinguish
        values below about 1e-6 λ_max from 0.

        Args:
            max_products: maximum number of products, and of vectors of length n C in memory.
            tolerance: stop once both residuals are at most this share of their Ritz values.
            seed: of the random start.

        Raises:
            InvalidInput: for a tolerance outside of [0, 1).

        Source: Golub & Van Loan, Matrix Computations (4th ed.), §10.1–10.3.
        """
        refuse_traced((self._params, self._rows), "x")
        _check_tolerance(tolerance)
        steps = min(max_products, self.shape[0])
        dtype = np.dtype(jnp.promote_types(self._dtype, jnp.float32))  # a basis of 16 bits is none
        basis = np.empty((steps, self.shape[0]), dtype)
        w = np.random.default_rng(seed).standard_normal(self.shape[0]).astype(dtype)
        diagonal: list[float] = []
        joins: list[float] = []
        beta = float(np.linalg.norm(w.astype(np.float64)))
        while True:
            step = len(diagonal)
            basis[step] = w / beta
            product = self.flat_product(basis[step])
            self._refuse_nonfinite(product)
            with np.errstate(over="ignore"):
                w = product.astype(dtype)  # the basis' type, to avoid copying the basis
            self._refuse_overflow(w, product)
            diagonal.append(float(basis[step] @ w))
            for _ in range(2):  # twice is enough
                w = w - (basis[: step + 1] @ w) @ basis[: step + 1]
            beta = float(np.linalg.norm(w.astype(np.float64)))
            values, vectors = eigh_tridiagonal(diagonal, joins)
            residuals = beta * np.abs(vectors[-1])
            # The remainder is rounding.
            spent = beta <= 10 * np.finfo(dtype).eps * abs(values[-1])
            done = all(residuals[end] <= tolerance * abs(values[end]) for end in (0, -1))
            if done or spent or step + 1 == steps:
                largest, smallest = ((float(values[end]), float(residuals[end])) for end in (-1, 0))
                return KernelExtremes(*largest, *smallest, step + 1)
            joins.append(beta)

    @with_usual_settings
    def solve(
        self,
        targets: Float[ArrayLike, "n C"],
        *,
        ridge: float = 0.0,
        tolerance: float = 1e-4,
        max_products: int = 1000,
    ) -> KernelSolution:
        """Solve (K + s) α = y by conjugate gradients.

        s = (λ + 1e-6) k̄ as in :func:`kernel_regression`, λ = ``ridge``.

        ``product(α, others)`` then predicts at other inputs. Without a ridge the number of products
        grows as √(λ_max / s).

        Raises:
            InvalidInput: for a ridge below 0, or a tolerance outside of [0, 1).

        Source: Hestenes & Stiefel 1952; Jacot, Gabriel & Hongler 2018, §5.
        """
        check_ridge(ridge)
        _check_tolerance(tolerance)
        y = np.asarray(
            accepted_targets(targets, self._num_samples, self.num_outputs, "targets"), np.float64
        ).ravel()
        if not np.isfinite(y).all():
            raise InvalidInput("targets", "values NaN or infinite", "finite numbers")
        shift = (ridge + JITTER) * self.mean_diagonal
        count = 0

        def shifted(v: Flat) -> Flat:
            nonlocal count
            count += 1
            product = self.flat_product(v)
            self._refuse_nonfinite(product)
            return product + shift * v.ravel()

        if self.mean_diagonal == 0:  # of a kernel of 0, which predicts 0
            return KernelSolution(
                np.zeros((self._num_samples, self.num_outputs)), float(y.any()), 0, not y.any()
            )
        found, _ = cg(
            LinearOperator(self.shape, shifted, dtype=np.float64),
            y,
            rtol=tolerance,
            maxiter=max_products,
        )
        size = float(np.linalg.norm(y))
        residual = float(np.linalg.norm(y - shifted(found))) / size if size else 0.0
        return KernelSolution(
            found.reshape(-1, self.num_outputs), residual, count, residual <= 2 * tolerance
        )


def _has_tracers(values: PyTree) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def _in_equal_blocks(x: Shaped[Array, "n ..."], size: int) -> Shaped[Array, "blocks rows ..."]:
    """Split into equal blocks, the last padded with copies of the last row."""
    size, num_blocks = even_size(len(x), size)
    missing = num_blocks * size - len(x)
    filled = jnp.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1), mode="edge") if missing else x
    return filled.reshape(num_blocks, size, *x.shape[1:])


@partial(jax.jit, static_argnums=0)
def _product(
    net: Model,
    params: PyTree,
    rows: Shaped[Array, "blocks rows ..."],
    others: Shaped[Array, "other_blocks other_rows ..."],
    v: Float[Array, "blocks rows C"],
) -> Float[Array, "other_blocks other_rows C"]:
    moving, restore = moving_of(net, params)
    apply = as_function(net)

    def outputs(w: PyTree, x: Array) -> Array:
        return apply(restore(w), x)

    def add(total: PyTree, block: tuple[Array, Array]) -> tuple[PyTree, None]:
        _, pull = jax.vjp(lambda w: outputs(w, block[0]), moving)
        return jax.tree.map(jnp.add, total, pull(block[1])[0]), None

    with jax.default_matmul_precision("highest"):
        direction, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, moving), (rows, v))
        # Without the barrier, XLA replaces two divisions by 1e-30 with one by 1e-60, which is 0.
        direction = jax.lax.optimization_barrier(direction)
        return jax.lax.map(
            lambda x: derivative_along(lambda w: outputs(w, x), moving)(direction), others
        )


def _check_tolerance(tolerance: object) -> None:
    if not (is_finite_number(tolerance) and 0 <= tolerance < 1):
        raise InvalidInput("tolerance", tolerance, "a number from 0 to below 1")


def num_moving(net: Model, params: PyTree) -> int:
    """Return the number of differentiated parameters."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(moving_of(net, params)[0]))
