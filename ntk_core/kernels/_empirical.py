"""The empirical tangent kernel of a network, without gradients of the size of its weights.

For a layer z = ⟨W, a⟩ the gradient of an output is the outer product of a and δ = ∂f/∂z, so the
kernel is K = Σ_layers (a·a') ∘ (δ·δ'): O(n² C² m) work after one forward and one backward pass
(docs/math/kernel_without_jacobians.md).
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped

from ntk_core.errors import InvalidInput
from ntk_core.kernels._arrays import real_array
from ntk_core.kernels._blocks import checked_limit, in_blocks, rows_within
from ntk_core.kernels._callable import callable_ntk, types_of_function
from ntk_core.kernels._generic import as_function, as_it_is
from ntk_core.kernels._output_pairs import ALL_PAIRS, VIEW_COPIES, OutputPairs, same_output_kernel
from ntk_core.kernels._scale import relative_change
from ntk_core.kernels._scaled_outputs import (
    has_entries_beyond,
    has_lost_entries,
    has_small_entries,
    largest_entry,
    refuse_out_of_range,
    refuse_rows_without_outputs,
)
from ntk_core.kernels._small_outputs import (
    Kernels,
    OutputFactors,
    Types,
    with_small_outputs,
)
from ntk_core.networks.architectures import Network, NetworkParams
from ntk_core.traced import (
    Apply,
    Inputs,
    Model,
    Program,
    Route,
    Rows,
    Trainable,
    Views,
    accepted,
    agree,
    checked,
    checked_array,
    compiling,
    kernels_of,
    like_rows,
    name_of,
    packed_rows,
    program_of_network,
    restricted,
    views_of,
    whole_kernels,
    with_usual_settings,
)

DEFAULT_MEMORY = 4 * 2**30  # an upper estimate: about half of it is used
Kernel = Float[Array, "n1 n2 C C"]
LayerKernels = dict[str, Kernel]


@overload
def empirical_ntk(
    net: Model,
    params: PyTree,
    x1: Inputs,
    x2: Inputs | None = None,
    *,
    per_layer: Literal[False] = False,
    memory_limit: float | None = None,
    trace_outputs: Literal[False] = False,
    trainable: Trainable = None,
    route: Route = "auto",
) -> Kernel: ...


@overload
def empirical_ntk(
    net: Model,
    params: PyTree,
    x1: Inputs,
    x2: Inputs | None = None,
    *,
    per_layer: Literal[False] = False,
    memory_limit: float | None = None,
    trace_outputs: Literal[True],
    trainable: Trainable = None,
    route: Route = "auto",
) -> Float[Array, "n1 n2"]: ...


@overload
def empirical_ntk(
    net: Model,
    params: PyTree,
    x1: Inputs,
    x2: Inputs | None = None,
    *,
    per_layer: Literal[False] = False,
    memory_limit: float | None = None,
    equal_outputs: Literal[True],
    trainable: Trainable = None,
    route: Route = "auto",
) -> Float[Array, "n1 n2 C"]: ...


@overload
def empirical_ntk(
    net: Model,
    params: PyTree,
    x1: Inputs,
    x2: Inputs | None = None,
    *,
    per_layer: Literal[True],
    memory_limit: float | None = None,
    trainable: Trainable = None,
    route: Route = "auto",
) -> LayerKernels: ...


@with_usual_settings
def empirical_ntk(
    net: Model,
    params: PyTree,
    x1: Inputs,
    x2: Inputs | None = None,
    *,
    per_layer: bool = False,
    memory_limit: float | None = None,
    trace_outputs: bool = False,
    equal_outputs: bool = False,
    trainable: Trainable = None,
    route: Route = "auto",
) -> Kernel | LayerKernels | Float[Array, "n1 n2"] | Float[Array, "n1 n2 C"]:
    """Return the tangent kernel of a network or function.

    K[i, j, a, b] = ⟨∇_w φ_a(f(x1_i)), ∇_w φ_b(f(x2_j))⟩, shape (n1, n2, C, C).

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(width=8, depth=1, num_outputs=2, activation="tanh")
    >>> x = jnp.ones((3, 5))
    >>> empirical_ntk(net, net.init(jax.random.key(0), (5,)), x).shape
    (3, 3, 2, 2)

    Args:
        net: a network of this package (structured route: no gradient of the size of the weights),
            or any callable ``apply(params, x)`` with outputs (n, C), (n,) or (n, T, C) that
            treats each row of x separately. Outputs (n, T, C) count as T·C outputs a = t·C + c:
            reshape the kernel to (n1, n2, T, C, T, C). A callable is traced at every call
            (``freeze`` avoids that), searched for layers (``layers_of`` lists them), checked
            against plain derivatives for two rows, and takes the same route. Other parameters use
            Jacobians; a callable without layers uses Jacobians or vector products, whichever
            needs fewer multiplications.
        params: parameters; leaves that are not floating-point numbers are not differentiated.
        x1: inputs (n1, *input_shape), or a tree of arrays (dictionaries, tuples), such as token ids
            with masks. Rows are the leading axis of every leaf; lists are arrays.
        x2: further inputs like ``x1``; by default ``x1``.
        per_layer: return the part of each trained layer, or of each parameter of a callable, by
            name; the parts sum to the kernel.
        memory_limit: bytes between parameters and kernel, 4 GiB by default; beyond, rows are
            processed in blocks of at least one. Contractions need about 100 MiB in addition.
        trace_outputs: return the mean over the outputs, (1/C) Σ_a K[i, j, a, a], of shape (n1, n2).
            The sum is taken inside, at a cost linear in C, without the (n1, n2, C, C) entries.
        equal_outputs: return the kernel of each output with itself, K[i, j, a, a], of shape
            (n1, n2, C), at the same cost.
        trainable: the parameters that are differentiated: names with wildcards such as
            ``"head.*"``, a predicate on names, or a tree of booleans; all by default. All
            others are constants.
        route: ``"auto"``, by layers where there are any, or ``"plain"``, which ignores layers:
            Jacobians or vector products of full size, whichever needs fewer multiplications.

    Returns:
        The kernel, or with ``per_layer`` a dictionary of its parts.

    Raises:
        InvalidInput: for a model, parameters and inputs that do not fit each other, ``per_layer``
            with a callable without layers or with the plain route, a memory limit that is not above
            0, entries beyond the range of their type, or a callable in which rows of x interact,
            with the operation in which they do. That is proven from its program, or else tested
            with x and random rows; docs/math/traced-programs.md lists the limits of this check.
        TracingDisagrees: if a callable's traced kernel differs from plain derivatives.

    Source: Jacot, Gabriel & Hongler 2018; Liu, Zhu & Belkin 2020, §2.
    """
    checked_limit(memory_limit)
    if per_layer and trace_outputs:
        raise InvalidInput("trace_outputs", True, "False with per_layer")
    if equal_outputs and (per_layer or trace_outputs):
        other = "per_layer" if per_layer else "trace_outputs"
        raise InvalidInput("equal_outputs", True, f"False with {other}")
    pairs = ALL_PAIRS
    if trace_outputs:
        pairs = OutputPairs.MEAN
    elif equal_outputs:
        pairs = OutputPairs.EQUAL
    net, x1 = packed_rows(restricted(net, params, trainable, route), x1, "x1")
    with compiling(f"the tangent kernel of {name_of(net)}"):
        kernel, largest = _kernel(net, params, x1, x2, per_layer, memory_limit, pairs)
    refuse_out_of_range(net, params, checked_array(x1, "x1"), kernel, largest)
    if x2 is not None and has_lost_entries(kernel):
        refuse_rows_without_outputs(net, params, like_rows(x2, x1, "x2", net), "x2")
    return kernel


@with_usual_settings
def unchecked_ntk(
    net: Model,
    params: PyTree,
    x1: Inputs,
    x2: Inputs | None = None,
    *,
    per_layer: bool = False,
    memory_limit: float | None = None,
    pairs: OutputPairs = ALL_PAIRS,
) -> Any:
    """Return :func:`empirical_ntk` even if entries overflow, as those of diverging networks do.

    So do parts of layers that :func:`empirical_ntk` refuses: their entries are infinite or NaN.
    """
    with compiling(f"the tangent kernel of {name_of(net)}"):
        given = (net, params, x1, x2, per_layer, memory_limit, pairs)
        return _kernel(*given, may_overflow=True).kernel


class _Found(NamedTuple):
    """A kernel, or its parts, and the largest |entry| if it has been looked at."""

    kernel: Any
    largest: float | None = None


def _kernel(
    net: Model,
    params: PyTree,
    x1: Inputs,
    x2: Inputs | None,
    per_layer: bool,
    memory_limit: float | None,
    pairs: OutputPairs,
    *,
    may_overflow: bool = False,
) -> _Found:
    net, x1, _ = accepted(net, params, x1, "x1")
    left = rows_of(net, x1)
    right = None if x2 is None else _second_rows(net, left, x2)
    program = checked(net, params, left)
    if right is not None and len(right) != len(left):
        checked(net, params, right)
    if program is None or not program.is_structured:
        if per_layer:
            is_plain = program is not None and program.is_plain
            reason = "the plain route" if is_plain else "a callable without layers"
            raise InvalidInput("per_layer", True, f"False for {reason}")
        function = program or as_it_is(as_function(net))
        return _Found(_Plain(function, params, left, right, pairs, memory_limit).known())
    limit = memory_limit or DEFAULT_MEMORY
    how = _Structured(program, program.leaves(params), left, right, pairs, per_layer, limit)
    kernel = how.kernel()
    if _has_tracers((kernel, params, left)):
        return _Found(kernel)
    known = with_small_outputs(how.kernels(Types.of_program(program)), kernel)
    largest = largest_entry(known.kernel)
    found = _Found(known.kernel, largest)
    is_finite = largest < math.inf
    if not is_finite and has_entries_beyond(program, params, left, found.kernel):
        return found
    # (a·a')(δ·δ') is ∞·0 for inputs a around 1e30 of saturated units, whose cotangents δ are 0.
    # Gradients a δ are 0, and outputs are finite.
    if not is_finite and bool(jnp.isfinite(as_function(program)(params, left)).all()):
        if not per_layer:
            # Plain derivatives are their own oracle, so no comparison follows.
            return _Found(_Plain(program, params, left, right, pairs, limit).known())
        if not may_overflow:
            raise InvalidInput(
                "per_layer", True, "False for inputs so large that products of layers overflow"
            )
        return found
    # The layers of a network of this package are stated, so they need no comparison.
    is_compared = not program.stated.layers and (
        "kernel" in program.kept or not has_entries_beyond(program, params, left, found.kernel)
    )
    if is_compared:
        factors = None if known.scale is None else known.scale.factors
        agree(program, params, left, right, found.kernel, factors)
    return found


def _second_rows(net: Model, left: Array, x2: Inputs) -> Array:
    """Return the rows of ``x2``, in the type of those of ``x1``."""
    others = like_rows(x2, left, "x2", net)
    if not len(others):
        raise InvalidInput("x2", f"shape {others.shape}", "shape (n, …) with at least one input")
    return jnp.asarray(others).astype(left.dtype)


def _has_tracers(values: PyTree) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


@dataclass(frozen=True)
class _Plain:
    """The kernel of any function from Jacobians or vector products of full size.

    Attributes:
        left, right: rows x1 and x2.
        limit: bytes between parameters and kernel, or None.
    """

    function: Apply
    params: PyTree
    left: Array
    right: Array | None
    pairs: OutputPairs
    limit: float | None

    def kernel(self, scale: OutputFactors | None = None) -> Array:
        given = (self.function, self.params, self.left, self.right, self.limit, self.pairs)
        return callable_ntk(*given, scale)

    def known(self) -> Array:
        """Return the kernel, computed again where products of small derivatives vanish."""
        kernel = self.kernel()
        if _has_tracers((kernel, self.params, self.left)):
            return kernel
        types = types_of_function(self.function, self.params, self.left)
        kernels = Kernels(self.kernel, types, self.pairs, self.right is None)
        found: Array = with_small_outputs(kernels, kernel).kernel
        return found


@dataclass(frozen=True)
class _Structured:
    """The kernel of a traced program from the inputs and cotangents of its layers.

    Attributes:
        left, right: rows x1 and x2.
        limit: bytes between parameters and kernel.
    """

    program: Program
    leaves: list[Any]
    left: Array
    right: Array | None
    pairs: OutputPairs
    per_layer: bool
    limit: float

    def kernel(self, scale: OutputFactors | None = None) -> Any:
        """Return the kernel, or its parts.

        Outputs are multiplied by the factors of ``scale`` before they are differentiated.
        """
        if self.pairs is not ALL_PAIRS:
            return self._of_equal_outputs(scale)
        seeds = None if scale is None else scale.seeds
        undone = None if scale is None else scale.reciprocals
        size = rows_within(self.limit, VIEW_COPIES * self.program.row_bytes)
        if size >= max(len(self.left), 0 if self.right is None else len(self.right)):
            both = (self.leaves, self.left, self.right)
            return whole_kernels(self.program, self.per_layer, *both, seeds, undone)

        def views(rows: Array) -> Views:
            return views_of(self.program, self.leaves, rows, seeds)

        def contract(one: Views, two: Views | None) -> Any:
            return kernels_of(self.program, self.per_layer, self.leaves, one, two, undone)

        return in_blocks(views, contract, self.left, self.right, size)

    def _of_equal_outputs(self, scale: OutputFactors | None) -> Float[Array, "n1 n2 ..."]:
        given = (self.program, self.leaves, self.left, self.right, self.pairs, self.limit)
        if scale is None:
            return same_output_kernel(*given)
        found = same_output_kernel(*given, scale.factors)
        # The outputs of a mean have one factor.
        is_mean = self.pairs is OutputPairs.MEAN
        undone = scale.reciprocals[0] if is_mean else scale.reciprocals
        return found * undone * undone

    def kernels(self, types: Types) -> Kernels:
        """Return the kernels at all factors of outputs."""
        has_output = self.program.stated.output != "linear"
        return Kernels(self.kernel, types, self.pairs, self.right is None, has_output)


def checked_model(net: Model, params: PyTree, x: Rows) -> Model:
    """Return an accepted model for compiled programs: a function as its checked program.

    Raises:
        InvalidInput, TracingDisagrees: as :func:`empirical_ntk`.
    """
    if isinstance(net, Network):
        return net
    program = checked(net, params, x)
    if program is None:
        return as_it_is(net)
    with compiling(f"the tangent kernel of {name_of(net)}"):
        unchecked_ntk(program, params, x[:2])
    return program


def rows_of(net: Model, x: ArrayLike) -> Array:
    """Convert inputs for a model; networks need floats instead of image bytes."""
    rows = jnp.asarray(x)
    if not isinstance(net, Network) or jnp.issubdtype(rows.dtype, jnp.inexact):
        return rows
    return rows.astype(jnp.result_type(rows, float))


def pre_output_ntk(
    net: Network,
    params: NetworkParams,
    x1: Shaped[Array, "n1 ..."],
    x2: Shaped[Array, "n2 ..."] | None = None,
) -> tuple[Kernel, Float[Array, "n1 C"], Float[Array, "n2 C"]]:
    """(kernel of the pre-outputs f, f(x1), f(x2)): shapes (n1, n2, C, C), (n1, C), (n2, C)."""
    program = program_of_network(net, params, jax.ShapeDtypeStruct(x1.shape[1:], x1.dtype))
    leaves = program.leaves(params)
    views1 = program.views(leaves, x1)
    views2 = views1 if x2 is None else program.views(leaves, x2)
    return program.kernel(leaves, views1, views2), views1.outputs, views2.outputs


@with_usual_settings
def kernel_change(k: Shaped[ArrayLike, "..."], k0: Shaped[ArrayLike, "..."]) -> Float[Array, ""]:
    """Return the relative change between two kernels.

    ΔK = ‖k − k0‖_F / ‖k0‖_F over all axes of two kernels of equal shape, a scalar.

    Includes all (n, n', C, C) entries, since averaging over outputs would hide changes
    between classes. Correct for entries of any finite size, since no square overflows or
    vanishes; NaN if k0 is 0.

    Args:
        k: kernel after the change.
        k0: reference kernel of the same shape.

    Returns:
        A scalar array, of at least 32 bits.

    >>> kernel_change(3 * jnp.ones((2, 2, 1, 1)), jnp.ones((2, 2, 1, 1))).item()
    2.0
    >>> round(kernel_change(jnp.full((1, 1), 3e30), jnp.full((1, 1), 1e30)).item(), 5)
    2.0

    Raises:
        InvalidInput: for kernels of different shapes, or other things than real numbers.

    Source: Liu, Zhu & Belkin 2020, §6.
    """
    now = real_array(k, "k")
    origin = real_array(k0, "k0")
    if now.shape != origin.shape:
        raise InvalidInput("k", f"shape {now.shape}", f"shape {origin.shape}, that of k0")
    both_numpy = isinstance(now, np.ndarray) and isinstance(origin, np.ndarray)
    if both_numpy or has_small_entries(origin):
        # NumPy's float64 may be wider than JAX's floats, and processors read float32 numbers
        # below 1e-38 as 0, so a common scale comes first.
        now = np.asarray(now).astype(np.float64)
        origin = np.asarray(origin).astype(np.float64)
        largest = np.abs(origin).max(initial=0.0)
        if 0 < largest < np.inf:
            now = now / largest
            origin = origin / largest
    return relative_change(jnp.asarray(now), jnp.asarray(origin))
