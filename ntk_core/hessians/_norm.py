"""Spectral norms and leading eigenpairs of Hessians of model outputs."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Key, PyTree

from ntk_core.errors import InvalidInput, kind_of
from ntk_core.hessians._compiled import (
    MANY_WEIGHTS,
    compiled_product,
    compiled_stretches,
    drawn_start,
    is_repeated,
    num_weights,
    program_of,
    with_layers,
)
from ntk_core.hessians._each_output import EigenpairOptions, for_each_output
from ntk_core.hessians._host_lanczos import Leading, leading, leading_in_stretches
from ntk_core.hessians._inputs import accepted_rows
from ntk_core.hessians._lanczos import Extreme
from ntk_core.hessians._operator import (
    check_request,
    operator,
    output_scalar,
    refuse_asymmetric_output,
)
from ntk_core.hessians._range import decimal_beyond, refuse_out_of_range
from ntk_core.hessians._requests import check_count, checked_key
from ntk_core.hessians._space import dimension_in
from ntk_core.kernels import refuse_rows_without_outputs
from ntk_core.markup import table
from ntk_core.networks.architectures import Network
from ntk_core.real_numbers import is_finite_number
from ntk_core.traced import (
    Inputs,
    Model,
    Program,
    Route,
    Trainable,
    accepted_input,
    compiling,
    name_of,
    restricted,
    traced,
    with_usual_settings,
)

MAX_MATVECS = 128


Measured = Any  # a number, or an array with axes for several seeds and inputs


@dataclass(frozen=True, repr=False)
class SpectralEstimate:
    """A spectral norm with its certificate.

    Attributes:
        value: ‖H‖ = |λ|, the estimate; at most the true norm up to rounding.
        eigenvalue: λ with its sign.
        residual: ‖H y − λ y‖ for the unit vector y found: an eigenvalue is within this distance of
            λ.
        converged: whether residual <= tolerance · value was reached within the allowed products,
            and the Ritz value θ at the other end of the spectrum, with residual ρ, allows no larger
            one: |θ| + ρ <= (1 + tolerance) · value.
        num_matvecs: products with H.
        tolerance: the requested relative residual.

    For several inputs or seeds all but ``tolerance`` are arrays of one shape.

    Source: Golub & Van Loan 2013, §10.1–10.3 (Lanczos); docs/math/hessian_in_a_small_space.md.

    >>> found = SpectralEstimate(2.0, -2.0, 1e-6, True, 8, 1e-4)
    >>> found.residual <= found.tolerance * found.value
    True
    """

    value: Measured
    eigenvalue: Measured
    residual: Measured
    converged: Measured
    num_matvecs: Measured
    tolerance: float

    def __repr__(self) -> str:
        """One norm with its residual, or the range of many."""
        values = np.asarray(self.value)
        if not values.ndim:
            verdict = "converged" if self.converged else "not converged"
            return (
                f"SpectralEstimate({values:.6g}; residual {self.residual:.1e}; "
                f"{verdict} in {self.num_matvecs} products)"
            )
        shape = "×".join(map(str, values.shape))
        converged = f"{np.count_nonzero(self.converged)} of {values.size} converged"
        finite = values[np.isfinite(values)]  # norms out of range are NaN
        between = f" from {finite.min():.4g} to {finite.max():.4g}" if finite.size else ""
        return f"SpectralEstimate({shape} norms{between}; {converged})"

    def _repr_html_(self) -> str:
        parts = (self.value, self.residual, self.converged, self.num_matvecs)
        rows = []
        for value, residual, converged, count in zip(*map(np.ravel, parts), strict=True):
            verdict = "yes" if converged else "no"
            rows.append((f"{value:.6g}", f"{residual:.1e}", verdict, count))
        return table(("‖H‖", "Residual", "Converged", "Products"), rows)


@dataclass(frozen=True, repr=False)
class LeadingEigenpairs:
    """The k eigenvalues of largest absolute value.

    Attributes:
        eigenvalues: signed, by falling absolute value, (k,).
        residuals: ‖H y − λ y‖ of each, (k,).
        converged: whether every residual is at most tolerance · |λ_1|, and no end of the spectrum
            with its residual exceeds |λ_k| + tolerance · |λ_1|.
        num_matvecs: products with H.
        coordinates: unit eigenvectors in the coordinates of the small space, a tree with a leading
            axis k; on the generic route a tree like ``params``.
        directions: the first ``num_directions`` eigenvectors at the full size of the
            weights, as a list of trees.
    """

    eigenvalues: np.ndarray
    residuals: np.ndarray
    converged: bool
    num_matvecs: int
    coordinates: PyTree
    directions: list[PyTree]

    def __repr__(self) -> str:
        """Eigenvalues and residuals, without the vectors."""
        values = ", ".join(f"{value:.6g}" for value in self.eigenvalues)
        largest = max(self.residuals, default=0.0)
        verdict = "converged" if self.converged else "not converged"
        return (
            f"LeadingEigenpairs({values}; residuals up to {largest:.1e}; {verdict} in "
            f"{self.num_matvecs} products)"
        )


@with_usual_settings
def hessian_norm(
    net: Model,
    params: PyTree,
    x: Inputs,
    output_index: int | None = 0,
    *,
    batched: bool | None = None,
    tolerance: float | None = None,
    max_matvecs: int = MAX_MATVECS,
    key: Key[Array, ""] | None = None,
    repeated: bool | None = None,
    trainable: Trainable = None,
    route: Route = "auto",
) -> SpectralEstimate:
    """Return the spectral norm of the Hessian of one output.

    ‖∂²φ_a(f(w; x))/∂w²‖: spectral norm of the p × p Hessian of one **model output** (not of
    a loss) for an input.

    With a kinked σ such as ReLU it is the Hessian almost everywhere: not 0 if two or more layers
    are trained, but without the curvature within a layer, which is in the kinks.

    Networks take the exact restricted route, on a space of dimension Σ (fan_in + fan_out) instead
    of Σ fan_in · fan_out. So does any callable ``apply(params, x) -> (n, C)`` with layers (see
    ``layers_of``; one product is compared with a plain one before the first result). Others take
    Hessian-vector products over all parameters.

    Of 133,440 converged results for networks with 1 to 3 hidden layers, compared with dense float64
    ones, 4 were outside of their tolerance, at most 0.02% at any width and tolerance, by up to 4.0%
    (docs/math/hessian_in_a_small_space.md).

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(width=1, depth=1, activation="identity", use_bias=False)
    >>> params = net.init(jax.random.key(0), (1,))  # f = v w x, so H = [[0, x], [x, 0]]
    >>> round(hessian_norm(net, params, jnp.array([3.0])).value, 4)
    3.0
    >>> hessian_norm(net, params, jnp.array([[3.0], [2.0]])).value.round(4).tolist()
    [3.0, 2.0]

    Args:
        net: a network, or any callable.
        params: its parameters, or a list of them, one per seed.
        x: one input, or a batch (n, *input_shape).
        output_index: a, which of the C outputs, −1 for the last, None for the norms of all outputs;
            a = t·C + c for a callable with outputs (n, T, C).
        batched: whether ``x`` is a batch; by default as the model accepts. If it accepts both, a
            leading axis of 1 is a batch of one.
        tolerance: stop at residual <= tolerance · value; by default √eps of the dtype. The error of
            an isolated eigenvalue is of the order of the square of its residual.
        max_matvecs: maximum number of products; then ``converged`` is False.
        key: of the random start; a fixed one by default, for reproducible results.
        repeated: whether to compile optimized parts of the iteration: two seconds once, a
            third of the time of each narrow norm. By default from the fourth call of these
            shapes, and for 256 or more norms in one call. Both routes agree far within the
            residual, not bit for bit.
        trainable: the parameters w of this Hessian, as for ``empirical_ntk``; all
            others are constants.
        route: ``"auto"``, in the small space of the layers where there are any, or ``"plain"``:
            products over all parameters.

    Returns:
        Scalars for one input, arrays (n,) for a batch; with a leading axis num_seeds for a
        list of parameters, and a last axis C for all outputs. Norms are computed sequentially,
        in the memory of one.

    Raises:
        InvalidInput: for incompatible model, parameters and ``x``, an ``output_index`` or tolerance
            out of range, an ambiguous ``x`` without ``batched``, a callable that mixes rows of a
            batch, with the operation, or one whose custom derivative rules make its second
            derivatives asymmetric (straight-through estimators, reversed gradients).
        TooLarge: generic route only, if the Lanczos basis does not fit into memory.
        TracingDisagrees: if a callable's traced product differs from plain derivatives.

    Source: Liu, Zhu & Belkin 2020, §2 and §3.
    """
    with compiling(f"products with the Hessian of {name_of(net)}"):
        net, seeds, rows, num_outputs, lead = accepted_rows(
            net, params, x, batched, trainable, route
        )
        net = with_layers(net, seeds[0], rows[0])
        indices = [output_index] if output_index is not None else list(range(num_outputs))
        lead = lead if output_index is not None else (*lead, num_outputs)
        relative, key = checked_request(
            net, seeds[0], rows[0], num_outputs, indices[0], tolerance, max_matvecs, key
        )
        optimized = False
        if isinstance(net, Network | Program) and num_weights(seeds[0]) <= MANY_WEIGHTS:
            optimized = bool(repeated)
            if repeated is None:
                optimized = is_repeated(
                    net, seeds[0], rows[0], len(seeds) * len(rows) * len(indices)
                )
        each: list[Leading] = []
        places = list(itertools.product(seeds, rows, indices))
        for one, at, index in places:
            refuse_asymmetric_output(net, one, at, num_outputs, index)
            found = _norm(net, one, at, index, relative, max_matvecs, key, optimized=optimized)
            each.append(found)
        if not all(math.isfinite(found.value) for found in each):
            refuse_rows_without_outputs(net, seeds[0], np.stack(rows))
        each = _within_range(net, places, each)
    if not lead:
        (alone,) = each
        return SpectralEstimate(abs(alone.value), *alone, relative)
    return _estimate(each, lead, relative)


@with_usual_settings
def hessian_norms_by_output(
    net: Network,
    params: Sequence[PyTree],
    x: ArrayLike,
    outputs: Sequence[str],
    output_index: int = 0,
    *,
    tolerance: float | None = None,
    max_matvecs: int = MAX_MATVECS,
) -> dict[str, SpectralEstimate]:
    """Return :func:`hessian_norm` of a network with each of several output functions φ.

    ‖∂²φ_a(f(w; x))/∂w²‖ for each φ. One program serves all of them, which compiles in a third
    of the time of three.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(width=4, depth=1, num_outputs=2)
    >>> params = [net.init(jax.random.key(seed), (3,)) for seed in (0, 1)]
    >>> norms = hessian_norms_by_output(net, params, jnp.ones((5, 3)), ("linear", "softmax"))
    >>> norms["softmax"].value.shape
    (2, 5)

    Args:
        net: a network; its own output function is not used.
        params: its parameters, one tree per seed.
        x: inputs, (n, *input_shape).
        outputs: names of φ.
        output_index, tolerance, max_matvecs: as for :func:`hessian_norm`.

    Returns:
        By output the estimates of all seeds and inputs, arrays (num_seeds, n).

    Raises:
        InvalidInput: as :func:`hessian_norm`; for an unknown output.

    Source: Liu, Zhu & Belkin 2020, §2 and §3.
    """
    is_network = isinstance(net, Network)
    if not is_network:
        allowed = "a network; a function has one output function, see hessian_norm"
        raise InvalidInput("net", kind_of(net), allowed)
    are_names = isinstance(outputs, Sequence) and not isinstance(outputs, str)
    if not are_names:
        raise InvalidInput("outputs", outputs, "a list of names of output functions")
    names = tuple(outputs)
    plain = net.with_output("linear")
    _, seeds, rows, num_outputs, lead = accepted_rows(plain, list(params), x, True)
    relative, key = checked_request(
        plain, seeds[0], rows[0], num_outputs, output_index, tolerance, max_matvecs, None
    )
    found = {}
    for number, name in enumerate(names):
        with_output = net.with_output(name)
        index = number * num_outputs + output_index % num_outputs
        places = list(itertools.product(seeds, rows, [output_index]))
        each = []
        for one, at, _ in places:
            norm = _norm(
                plain, one, at, index, relative, max_matvecs, key, optimized=False, outputs=names
            )
            each.append(norm)
        found[name] = _estimate(_within_range(with_output, places, each), lead, relative)
    return found


@overload
def hessian_eigenpairs(
    net: Model,
    params: PyTree,
    x: Inputs,
    output_index: int = 0,
    **options: Unpack[EigenpairOptions],
) -> LeadingEigenpairs: ...
@overload
def hessian_eigenpairs(
    net: Model,
    params: PyTree,
    x: Inputs,
    output_index: None,
    **options: Unpack[EigenpairOptions],
) -> list[LeadingEigenpairs]: ...
@with_usual_settings
def hessian_eigenpairs(
    net: Model,
    params: PyTree,
    x: Inputs,
    output_index: int | None = 0,
    *,
    num_wanted: int = 5,
    num_directions: int = 0,
    tolerance: float | None = None,
    max_matvecs: int = MAX_MATVECS,
    key: Key[Array, ""] | None = None,
    trainable: Trainable = None,
    route: Route = "auto",
) -> LeadingEigenpairs | list[LeadingEigenpairs]:
    """Return the leading eigenpairs of the Hessian of one output.

    The ``num_wanted`` eigenpairs H y = λ y of largest |λ| of the Hessian of one model
    output for one input.

    Arguments as for :func:`hessian_norm`. Eigenvectors are in the small space, about 10⁵ numbers
    for a network of 2·10⁸ weights; ``num_directions`` of them are also returned at full size.

    Of 8,800 converged results for networks with 1 to 3 hidden layers, compared with dense float64
    ones, none was outside of its tolerance (docs/math/hessian_in_a_small_space.md).

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1), jnp.ones(3)
    >>> params = net.init(jax.random.key(0), (3,))
    >>> hessian_eigenpairs(net, params, x, num_wanted=2).eigenvalues.shape
    (2,)

    Args:
        net, params, x, output_index, tolerance, max_matvecs, key: as for :func:`hessian_norm`.
        num_wanted: number of eigenpairs.
        num_directions: number of eigenvectors at full size; parameters that are
            constants have zeros.
        trainable: the differentiated parameters, as for ``empirical_ntk``.
        route: as for :func:`hessian_norm`.

    Returns:
        The eigenpairs in order of decreasing |λ|, with residuals; for ``output_index=None`` a list
        with those of each output.

    Raises:
        InvalidInput, TooLarge: as :func:`hessian_norm`; also for numbers out of range.

    Source: Golub & Van Loan 2013, §10.1–10.3 (Lanczos); docs/math/hessian_in_a_small_space.md.
    """
    check_count("num_directions", num_directions, 0)
    if output_index is None:
        return for_each_output(
            hessian_eigenpairs,
            net,
            params,
            x,
            num_wanted=num_wanted,
            num_directions=num_directions,
            tolerance=tolerance,
            max_matvecs=max_matvecs,
            key=key,
            trainable=trainable,
            route=route,
        )
    net, one, num_outputs = accepted_input(restricted(net, params, trainable, route), params, x)
    net = with_layers(net, params, one)
    relative, key = checked_request(
        net, params, one, num_outputs, output_index, tolerance, max_matvecs, key, num_wanted
    )
    refuse_asymmetric_output(net, params, one, num_outputs, output_index)
    with jax.default_matmul_precision("highest"):
        found = _leading(net, params, one, output_index, num_wanted, relative, max_matvecs, key)
    refuse_out_of_range(net, params, one, output_index, found.values)
    coordinates = []
    directions = []
    for number, vector in enumerate(found.vectors):
        at_full_size = number < num_directions
        small, full = _written_out(net, params, one, output_index, vector, at_full_size)
        coordinates.append(small)
        if at_full_size:
            directions.append(full)
    return LeadingEigenpairs(
        eigenvalues=np.asarray(found.values),
        residuals=np.asarray(found.residuals),
        converged=bool(found.converged),
        num_matvecs=int(found.num_steps),
        coordinates=jax.tree.map(lambda *leaves: jnp.stack(leaves), *coordinates),
        directions=directions,
    )


def _estimate(each: Sequence[Leading], lead: tuple[int, ...], tolerance: float) -> SpectralEstimate:
    """Return several norms as arrays of shape ``lead``."""
    eigenvalues = np.array([found.value for found in each]).reshape(lead)
    return SpectralEstimate(
        value=np.abs(eigenvalues),
        eigenvalue=eigenvalues,
        residual=np.array([found.residual for found in each]).reshape(lead),
        converged=np.array([found.converged for found in each]).reshape(lead),
        num_matvecs=np.array([found.num_matvecs for found in each]).reshape(lead),
        tolerance=tolerance,
    )


def _within_range(
    net: Model, places: list[tuple[PyTree, Any, int]], norms: list[Leading]
) -> list[Leading]:
    """Replace norms that overflow or vanish by NaN, not converged; refuse them if no other remains.

    Args:
        places: parameters, input and output of each norm.

    Raises:
        InvalidInput: with the size of the second derivatives.
    """
    kept = []
    for (one, at, index), norm in zip(places, norms, strict=True):
        if decimal_beyond(net, one, at, index, norm.value) is None:
            kept.append(norm)
        else:
            kept.append(Leading(math.nan, math.nan, False, norm.num_matvecs))
    if all(math.isnan(norm.value) for norm in kept):
        one, at, index = places[0]
        refuse_out_of_range(net, one, at, index, norms[0].value)
    return kept


def relative_tolerance(tolerance: float | None, dtype: DTypeLike) -> float:
    """Return √eps of the dtype by default; refuse a tolerance below its rounding."""
    eps = float(jnp.finfo(dtype).eps)
    if tolerance is None:
        return eps**0.5
    if not (is_finite_number(tolerance) and 16 * eps <= tolerance < 1):
        raise InvalidInput(
            "tolerance",
            tolerance,
            f"a number from {16 * eps:.1e} (in {jnp.dtype(dtype).name}) to 1",
        )
    return float(tolerance)


def checked_request(
    net: Model,
    params: PyTree,
    x: Array,
    num_outputs: int,
    output_index: int,
    tolerance: float | None,
    max_matvecs: int,
    key: Array | None,
    num_wanted: int = 1,
) -> tuple[float, Array]:
    """Return (relative tolerance, key) of a valid request, see :func:`hessian_norm`."""
    check_count("num_wanted", num_wanted, 1)
    check_count("max_matvecs", max_matvecs, num_wanted)
    check_request(net, params, num_outputs, output_index, max_matvecs)
    program = None if isinstance(net, Network) else traced(net, params, x[None])
    dtype = jnp.result_type(*jax.tree.leaves(params)) if program is None else program.roughest
    return relative_tolerance(tolerance, dtype), checked_key(key)


@partial(jax.jit, static_argnums=(0, 4, 6))
def _leading(
    net: Model,
    params: PyTree,
    x: Array,
    output_index: int | Array,
    num_wanted: int,
    tolerance: float | Array,
    max_matvecs: int,
    key: Array,
) -> Extreme:
    hessian = operator(net, params, x, output_scalar(net, output_index))
    if num_wanted > hessian.dimension:
        raise InvalidInput("num_wanted", num_wanted, f"an integer from 1 to {hessian.dimension}")
    return hessian.leading(key, max_matvecs, tolerance, num_wanted)


def _norm(
    net: Model,
    params: PyTree,
    x: Array | np.ndarray,
    output_index: int,
    tolerance: float,
    max_matvecs: int,
    key: Array,
    *,
    optimized: bool,
    outputs: tuple[str, ...] = (),
) -> Leading:
    """Compute in the small space by compiled products or stretches.

    Else over all parameters in a loop. ``outputs``, of a network only, as for
    :func:`output_scalar`.
    """
    with jax.default_matmul_precision("highest"):
        if not isinstance(net, Network | Program):
            found = _leading(net, params, x, output_index, 1, tolerance, max_matvecs, key)
            return Leading(
                value=float(found.values[0]),
                residual=float(found.residuals[0]),
                converged=bool(found.converged),
                num_matvecs=int(found.num_steps),
            )
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        if optimized:
            advance, state = compiled_stretches(net, params, x, output_index, rng, max_matvecs)
            dimension = program_of(net, params, x).dimension
            return leading_in_stretches(advance, state, max_matvecs, tolerance, dimension)
        product, zero, bases = compiled_product(net, params, x, output_index, outputs)
        start = drawn_start(rng, zero)
        dimension = dimension_in(zero.size, bases)
        return leading(product, start, max_matvecs, tolerance, dimension)


@partial(jax.jit, static_argnums=(0, 5))
def _written_out(
    net: Model, params: PyTree, x: Array, output_index: int | Array, flat: Array, at_full_size: bool
) -> tuple[PyTree, PyTree]:
    """Return (a flat vector in coordinates, the same at the size of the weights if requested)."""
    hessian = operator(net, params, x, output_scalar(net, output_index))
    direction = hessian.direction(flat) if at_full_size else None
    return hessian.unravel(flat), direction
