"""Tracing at every call, and programs whose compiled code is reused."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, subjaxprs
from jax.tree_util import PyTreeDef
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput, reason_of
from ntk_core.networks.architectures import Network
from ntk_core.traced._custom_rules import has_rules
from ntk_core.traced._look_ups import with_one_derivative
from ntk_core.traced._malformed_rules import MalformedRule, rules_of
from ntk_core.traced._messages import name_of
from ntk_core.traced._overwrites import overwrites, reverses
from ntk_core.traced._program import Apply, Model, Program, Rows, check_reversible
from ntk_core.traced._row_trees import Packed
from ntk_core.traced._same import ProgramComparison, same
from ntk_core.traced._uses import Avals
from ntk_core.traced._wrappers import inner, unwrapped

BATCHES_KEPT = 64
FUNCTIONS_KEPT = 8  # of one batch
Reference = Callable[[], object]
# Structure, shapes and motion of parameters, shape and type of inputs, the type of floats,
# and whether layers are ignored.
Key = tuple[PyTreeDef, Avals, tuple[bool, ...], tuple[int, ...], np.dtype, str, bool]


class Independence(Enum):
    """Evidence that a function treats each row of x for itself.

    Attributes:
        UNCHECKED: none so far.
        PROVEN: by the equations of its program.
        COMPARED: a batch agrees with its rows at random numbers.
        COMPARED_AS_GIVEN: only at the numbers of a call, since random ones give no finite outputs.
    """

    UNCHECKED = "unchecked"
    PROVEN = "proven"
    COMPARED = "compared"
    COMPARED_AS_GIVEN = "compared as given"


@dataclass(eq=False)
class Batch:
    """A function traced for a batch of one size.

    Attributes:
        key: shapes and types of parameters and inputs.
        closed: the program of (*parameters, x) for the whole batch.
        rules: the program of its derivatives, if it has custom ones.
        program: of one row.
        independence: evidence that rows are independent, which ``_independence`` finds.
        functions: weak references to functions that have both programs, the latest first.
    """

    key: Key
    closed: ClosedJaxpr
    rules: ClosedJaxpr | None
    program: Program
    independence: Independence = Independence.UNCHECKED
    functions: list[Reference] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Rows, at least two."""
        return int(self.closed.jaxpr.invars[-1].aval.shape[0])

    def is_of(self, function: object) -> bool:
        """Whether both programs are those of this function."""
        if inspect.ismethod(function):  # a new object at each access
            return any(each() == function for each in self.functions)
        return any(each() is function for each in self.functions)

    def add_function(self, function: object) -> None:
        """Note that both programs are those of this function."""
        reference = _reference(function)
        if reference is not None:
            alive = [each for each in self.functions if each() is not None]
            self.functions = [reference, *alive][:FUNCTIONS_KEPT]


def _reference(function: object) -> Reference | None:
    """Return a weak reference; None for objects without one, such as built-in functions."""
    if inspect.ismethod(function):
        return weakref.WeakMethod(function)
    try:
        return weakref.ref(function)
    except TypeError:
        return None


class Frozen:
    """A function that does not change, see :func:`freeze`.

    >>> frozen = Frozen(lambda params, x: x @ params)
    >>> frozen(jnp.ones((3, 2)), jnp.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(self, apply: Apply):
        self.apply = apply
        self.batches: dict[tuple[object, ...], Batch] = {}
        self.traces: dict[tuple[object, ...], tuple[ClosedJaxpr, PyTree]] = {}

    def __call__(self, params: PyTree, x: Array) -> Array:
        return self.apply(params, x)

    @property
    def __name__(self) -> str:
        return name_of(self.apply)

    def __repr__(self) -> str:
        return f"Frozen({name_of(self.apply)}, traced for {len(self.batches)} shapes)"


def freeze(apply: Apply) -> Frozen:
    """Trace a function once for repeated measurements.

    Promise that (params, x) ↦ f does not change.

    ``empirical_ntk``, ``hessian_norm`` and others trace a function at every call, to detect
    changes, and reuse compiled code if the program is the same. In a loop that costs some
    milliseconds per call (docs/math/traced-programs.md). A frozen function is traced once per
    shape: later changes have no effect.

    >>> fixed = freeze(lambda params, x: jnp.tanh(x @ params))
    >>> fixed(jnp.ones((3, 2)), jnp.ones((5, 3))).shape
    (5, 2)

    Args:
        apply: any function ``apply(params, x) -> (n, C)``.

    Returns:
        A callable with the same values, traced once per shape.

    Source: docs/math/traced-programs.md.
    """
    return Frozen(apply)


@dataclass(frozen=True)
class RestrictedFunction:
    """A function of which some parameters alone are differentiated; equal for equal functions.

    Attributes:
        moves: whether each leaf of the parameters is differentiated.
        is_plain: whether its layers are ignored, so that Jacobians and vector products are used.
    """

    function: Apply
    moves: tuple[bool, ...]
    is_plain: bool = False

    def __call__(self, params: PyTree, x: Array) -> Array:
        return self.function(params, x)


def moving_leaves(apply: object, params: PyTree) -> tuple[bool, ...]:
    """Whether each leaf of the parameters is differentiated: floats, or the chosen ones of them."""
    leaves = jax.tree.leaves(params)
    floats = tuple(
        hasattr(leaf, "dtype") and bool(jnp.issubdtype(leaf.dtype, jnp.inexact)) for leaf in leaves
    )
    program = inner(apply, Program)
    if program is not None and len(program.moving) == len(leaves):
        return tuple(map(bool, program.moving))
    part = inner(apply, RestrictedFunction)
    if part is None:
        return floats
    return tuple(each and chosen for each, chosen in zip(floats, part.moves, strict=True))


_KEPT: list[Batch] = []  # the latest first


def traced(apply: Apply, params: PyTree, x: Array) -> Program | None:
    """Return the program of one row of ``apply``; see :func:`traced_batch`."""
    if isinstance(apply, Program):
        return apply
    batch = traced_batch(apply, params, x)
    return None if batch is None else batch.program


def traced_batch(apply: Apply, params: PyTree, x: Rows) -> Batch | None:
    """Trace ``apply`` for parameters and a batch of these shapes.

    None if that is impossible: outputs that are not (n, C), leaves that are no arrays, complex
    parameters, or a function created inside another trace.
    """
    leaves, structure = jax.tree.flatten(params)
    try:
        avals = tuple(jax.eval_shape(lambda *each: each, *leaves))
    except TypeError:
        return None
    moving = tuple(
        moves and leaf.size > 0
        for moves, leaf in zip(moving_leaves(apply, params), leaves, strict=True)
    )
    shape = (max(2, len(x)), *x.shape[1:])
    part = inner(apply, RestrictedFunction)
    is_plain = part is not None and part.is_plain
    key = structure, avals, moving, shape, x.dtype, jnp.result_type(float).name, is_plain
    frozen, kinds = unwrapped(apply, Frozen)
    if frozen is not None and (kinds, *key) in frozen.batches:
        return frozen.batches[kinds, *key]
    if any(jnp.issubdtype(aval.dtype, jnp.complexfloating) for aval in avals):
        return None
    if isinstance(apply, Seen) and apply.is_for(avals, shape, x.dtype):
        closed = apply.closed
        rules = apply.rules
    else:
        closed, _ = _traced_rows(apply, structure, avals, shape, x.dtype)
        rules = rules_of(closed).program
    if rules is not None and overwrites(rules.jaxpr) and reverses(rules.jaxpr):
        given = "a derivative that reverses what .at[...].set has filled"
        raise InvalidInput(
            "net", given, "the values in place of .at[...].set: XLA aborts where they are reversed"
        )
    batch = next(
        (
            each
            for each in _KEPT
            if each.key == key and same(each.closed, closed, (each.rules, rules))
        ),
        None,
    )
    function = _innermost(apply)
    if batch is None or not batch.is_of(function):
        # Functions with one program for this batch may differ for a single row, by squeeze().
        single = _single(apply, key, closed)
        if single is None:
            return None
        if batch is None or not ProgramComparison().alike(batch.program.single, single):
            batch = Batch(key, closed, rules, _program(apply, key, single))
        batch.add_function(function)
    _KEPT[:] = [batch, *(each for each in _KEPT if each is not batch)][:BATCHES_KEPT]
    if frozen is not None:
        frozen.batches[kinds, *key] = batch
    return batch


def same_program(one: Apply, two: Apply) -> bool:
    """Whether two accepted functions had the same program when accepted."""
    (left, kinds), (right, others) = (unwrapped(each, Seen) for each in (one, two))
    return kinds == others and left is not None and right is not None and left.computes(right)


def _innermost(apply: object) -> object:
    """Return the function of the user, without wrappers of this package."""
    while True:
        within = apply.apply if isinstance(apply, Frozen) else getattr(apply, "function", None)
        if within is None:
            return apply
        apply = within


def _single(apply: Apply, key: Key, closed: ClosedJaxpr) -> ClosedJaxpr | None:
    """Return the program of a batch of one row; None for outputs other than (1, C).

    Raises:
        InvalidInput: if the function fails for one row, or returns another shape than for
            the batch ``closed``.
    """
    structure, avals, _, shape, dtype, _, _ = key
    try:
        single, _ = trace(apply, structure, avals, (1, *shape[1:]), dtype)
    except InvalidInput:
        raise
    except Exception as error:  # any error of a model on unsuitable rows
        raise InvalidInput(
            "net",
            f"a function for {shape[0]} inputs that fails for one",
            "one for any number of inputs, of which each is a row of x; it reports: "
            f"{reason_of(error)}",
        ) from error
    output, *others = single.out_avals
    expected, *_others = closed.out_avals
    if not others and len(expected.shape) == 2 and output.shape != (1, *expected.shape[1:]):
        raise InvalidInput(
            "net",
            f"outputs {output.shape} for one input, {expected.shape} for {shape[0]}",
            "outputs (n, C) for every number n of inputs, such as by squeeze(-1) in place of "
            "squeeze()",
        )
    if (
        others
        or len(output.shape) != 2
        or any(isinstance(const, jax.core.Tracer) for const in single.consts)
    ):
        return None
    return single


def _program(apply: Apply, key: Key, single: ClosedJaxpr) -> Program:
    """Return the program of a single row, a cached one if equal."""
    structure, avals, moving, shape, dtype, _, is_plain = key
    for batch in _KEPT:
        known = (*batch.key[:3], batch.key[3][1:], *batch.key[4:])
        if (
            known == (*key[:3], shape[1:], *key[4:])
            and not has_rules(single.jaxpr)
            and same(batch.program.single, single, (None, None))
        ):
            return batch.program
    row = jax.ShapeDtypeStruct(shape[1:], dtype)
    program = Program(single, structure, avals, moving, row, is_plain=is_plain)
    packed = inner(apply, Packed)
    program.each_leaf = None if packed is None else packed.layout.each
    return program


def _traced_rows(
    apply: Apply, structure: PyTreeDef, avals: Avals, shape: tuple[int, ...], dtype: np.dtype
) -> tuple[ClosedJaxpr, PyTree]:
    """Trace an accepted function for another number of rows.

    Raises:
        InvalidInput: for a function of one number of rows only, with JAX's reason.
    """
    try:
        return trace(apply, structure, avals, shape, dtype)
    except InvalidInput:
        raise
    except Exception as error:  # any error of a model on unsuitable rows
        raise InvalidInput(
            "net",
            "a function for one number of rows only",
            "one that treats each row for itself, for any number of rows; nodes of a graph belong "
            f"into one row. For {shape[0]} of them the model reports: {reason_of(error)}",
        ) from error


def trace(
    apply: Apply, structure: PyTreeDef, avals: Avals, shape: tuple[int, ...], dtype: np.dtype
) -> tuple[ClosedJaxpr, PyTree]:
    """Return (the program of (*parameters, x), the shapes of its results)."""

    def function(
        leaves: list[Array], x: Array
    ) -> Array:  # a new one each time, since JAX caches traces by identity
        return apply(jax.tree.unflatten(structure, leaves), x)

    with jax.default_matmul_precision("highest"):
        made = jax.make_jaxpr(function, return_shape=True)
        closed, outputs = made(list(avals), jax.ShapeDtypeStruct(shape, dtype))
    _copy_literals(closed.jaxpr)
    consts = [_copied(const) for const in closed.consts]
    return ClosedJaxpr(with_one_derivative(closed.jaxpr), consts), outputs


@dataclass(eq=False)
class Seen:
    """A function at one call; equal if its program is the same, as compiled code needs.

    Attributes:
        closed: its program from the evaluation of output shapes.
        rules: the program of its derivatives, if it has custom ones.
        problem: why it has no second derivatives, or None.
    """

    function: Apply
    closed: ClosedJaxpr
    rules: ClosedJaxpr | None
    problem: MalformedRule | None = None

    def __call__(self, params: PyTree, x: Array) -> Array:
        leaves, structure = jax.tree.flatten(params)
        avals = [jax.typeof(leaf) for leaf in leaves]
        closed = self.closed
        if not self.is_for(avals, x.shape, x.dtype):
            closed, _ = trace(self.function, structure, avals, x.shape, x.dtype)
        return jnp.asarray(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *leaves, x)[0])

    def __hash__(self) -> int:
        try:
            return hash(self.function)
        except TypeError:
            return id(self.function)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Seen) or not (
            self.function is other.function or self.function == other.function
        ):
            return False
        if not self.computes(other):
            return False
        # The next comparison is by identity.
        self.closed = other.closed
        self.rules = other.rules
        return True

    def computes(self, other: Seen) -> bool:
        """Whether the programs are the same."""
        return same(self.closed, other.closed, (self.rules, other.rules))

    def is_for(self, avals: Avals, shape: tuple[int, ...], dtype: np.dtype) -> bool:
        """Whether the program is for parameters and rows of these shapes."""
        own = [(var.aval.shape, var.aval.dtype) for var in self.closed.jaxpr.invars]
        return own == [*((each.shape, each.dtype) for each in avals), (shape, dtype)]


def program_of(net: Apply, params: PyTree, x: Rows) -> ClosedJaxpr | None:
    """Return a program of the model; None if it depends on numbers of another trace."""
    if isinstance(net, Program):
        return net.single
    seen = inner(net, Seen)
    if seen is not None:
        closed = seen.closed
    else:
        leaves, structure = jax.tree.flatten(params)
        avals = jax.eval_shape(lambda *each: each, *leaves)
        closed, _ = trace(net, structure, avals, x.shape, x.dtype)
    depends = any(isinstance(const, jax.core.Tracer) for const in closed.consts)
    return None if depends else closed


def refuse_no_curvature(net: Model) -> None:
    """Refuse an accepted model without second derivatives.

    Raises:
        NoSecondDerivative: with the whole reason.
    """
    seen = inner(net, Seen)
    if seen is not None and seen.problem is not None:
        raise seen.problem


def refuse_loops(net: Model, params: PyTree, x: Rows) -> None:
    """Refuse an accepted model with loops that have no gradient.

    Such a loop, as ``while_loop``, is around parameters.

    Raises:
        InvalidInput: with the remedy.
    """
    closed = None if isinstance(net, Network) else program_of(net, params, x)
    if closed is not None:
        leaves = jax.tree.leaves(params)
        check_reversible(closed, [_moves(leaf) for leaf in leaves])


def _moves(leaf: Any) -> bool:
    """Whether a leaf of the parameters is differentiated."""
    if not hasattr(leaf, "dtype"):
        return False
    return bool(jnp.issubdtype(leaf.dtype, jnp.inexact)) and leaf.size > 0


def _copied(const: Array | np.ndarray) -> Array | np.ndarray:
    """Copy a constant so that it cannot change; JAX keeps references to NumPy arrays."""
    return const if isinstance(const, jax.Array | jax.core.Tracer) else np.array(const)


def _copy_literals(jaxpr: Jaxpr) -> None:
    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            if isinstance(atom, Literal) and isinstance(atom.val, np.ndarray):
                atom.val = np.array(atom.val)
    for called in subjaxprs(jaxpr):
        _copy_literals(called)
