"""Proof that a program treats rows of a batch separately.

It follows the row axis through the equations.

The proof is incomplete: an operation that has no rule or mixes rows ends it with its name.
docs/math/traced-programs.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from ntk_core.traced._custom_rules import has_rule, rule_of_jax
from ntk_core.traced._row_axes import (
    CALLS,
    ELEMENTWISE,
    NOTHING,
    REDUCTIONS,
    RUNNING,
    Alike,
    Known,
    Proof,
    RowsAlong,
    Unproven,
    alike_along,
)
from ntk_core.traced._views import shape_of
from ntk_core.traced._walk import walk

Carry = list[Known]  # of a loop


def operation_between_rows(closed: ClosedJaxpr, proof: Proof) -> str | None:
    """Return the first operation that may mix rows.

    It is None if each output row is proven to depend only on its input row.

    Args:
        closed: a program of (*parameters, x) for a batch of at least two rows.
        proof: records what becomes known about its arrays.
    """
    *params, _ = closed.jaxpr.invars
    try:
        (output,) = _walk(closed.jaxpr, [*[NOTHING] * len(params), RowsAlong(0)], proof)
    except Unproven as unproven:
        return str(unproven)
    return None if output == RowsAlong(0) else "the output"


def _walk(jaxpr: Jaxpr, inputs: Sequence[Known], proof: Proof) -> list[Known]:
    for var, each in zip(jaxpr.invars, inputs, strict=True):
        proof.record(var, each)
    for var in jaxpr.constvars:
        proof.record(var, NOTHING)

    def equation(place: int, eqn: JaxprEqn, operands: list[Known]) -> Sequence[Known]:
        results = _equation(eqn, operands, proof)
        for var, result in zip(eqn.outvars, results, strict=True):
            proof.record(var, result)
        return results

    constants = [NOTHING] * len(jaxpr.constvars)
    return walk(jaxpr, constants, inputs, _alike_along_all, equation)


def _alike_along_all(literal: Literal) -> Known:
    return Alike(frozenset(range(len(shape_of(literal)))))


def _equation(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Sequence[Known]:
    name = eqn.primitive.name
    if name in CALLS and (not has_rule(eqn) or rule_of_jax(eqn) is not None):
        inner = eqn.params[CALLS[name]]
        return _walk(getattr(inner, "jaxpr", inner), operands, proof)
    if name in LOOPS:
        return LOOPS[name](eqn, operands, proof)
    rule = RULES.get(name)
    if all(isinstance(each, Alike) for each in operands):
        return [_without_rows(eqn, operands)] * len(eqn.outvars)
    found = rule(eqn, operands, proof) if rule is not None else None
    if found is None:
        raise Unproven(name)
    return [found] * len(eqn.outvars)


def _without_rows(eqn: JaxprEqn, operands: list[Known]) -> Known:
    """Return axes along which a result without rows is known to be constant."""
    name = eqn.primitive.name
    if name in ELEMENTWISE:
        rank = len(shape_of(eqn.outvars[0]))
        return Alike(
            frozenset(
                axis for axis in range(rank) if all(map(alike_along(axis), eqn.invars, operands))
            )
        )
    if name == "broadcast_in_dim":
        shape = eqn.params["shape"]
        places = eqn.params["broadcast_dimensions"]
        old, *_ = operands
        operand, *_ = eqn.invars
        kept = {new for at, new in enumerate(places) if not alike_along(at)(operand, old)}
        return Alike(frozenset(range(len(shape))) - kept)
    if name == "iota":
        return Alike(frozenset(range(len(eqn.params["shape"]))) - {eqn.params["dimension"]})
    return NOTHING


def _only(operands: Sequence[Known], eqn: JaxprEqn) -> RowsAlong | None:
    """Return the rows of equal-shaped operands if they agree.

    All others must be equal for every row.
    """
    rows = {each for each in operands if isinstance(each, RowsAlong)}
    if len(rows) != 1:
        return None
    (only,) = rows
    others = [
        (atom, each)
        for atom, each in zip(eqn.invars, operands, strict=True)
        if isinstance(each, Alike)
    ]
    return only if all(alike_along(only.axis)(*each) for each in others) else None


def _first(operands: Sequence[Known]) -> RowsAlong | None:
    """Return the rows of the first operand if the others have none."""
    first, *others = operands
    return (
        first
        if isinstance(first, RowsAlong) and all(isinstance(each, Alike) for each in others)
        else None
    )


def _bitcast(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    """Types of one width; others join or divide entries."""
    same_rank = len(shape_of(eqn.invars[0])) == len(shape_of(eqn.outvars[0]))
    return _only(operands, eqn) if same_rank else None


def _elementwise(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    return _only(operands, eqn)


def _kept_along(key: str) -> Callable[..., Known | None]:
    """Rule for operations along one axis other than the rows."""

    def rule(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
        rows = _only(operands, eqn)
        rank = len(shape_of(eqn.invars[0]))
        return rows if rows is not None and rows.axis != eqn.params[key] % rank else None

    return rule


def _largest(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    """Rule of ``top_k``; versions of JAX without an axis are not followed."""
    if "axis" not in eqn.params:
        return None
    return _kept_along("axis")(eqn, operands, proof)


def _reduced(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _first(operands)
    axes = eqn.params["axes"]
    if rows is None or rows.axis in axes:
        return None
    return rows._replace(axis=rows.axis - sum(axis < rows.axis for axis in axes))


def _broadcast(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _first(operands)
    return (
        None if rows is None else rows._replace(axis=eqn.params["broadcast_dimensions"][rows.axis])
    )


def _reshaped(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _first(operands)
    shape = shape_of(eqn.invars[0])
    size = proof.size
    if rows is None or eqn.params.get("dimensions") is not None:
        return None
    before = math.prod(shape[: rows.axis]) * rows.outer
    before_out = 1
    for axis, length in enumerate(eqn.params["new_sizes"]):
        after = before_out * length
        if before % before_out == 0 and after % (before * size) == 0 and after >= before * size:
            return RowsAlong(axis, before // before_out, after // (before * size))
        before_out = after
    return None


def _transposed(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _first(operands)
    return (
        None
        if rows is None
        else rows._replace(axis=list(eqn.params["permutation"]).index(rows.axis))
    )


def _squeezed(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _first(operands)
    gone = eqn.params["dimensions"]
    if rows is None or rows.axis in gone:
        return None
    return rows._replace(axis=rows.axis - sum(axis < rows.axis for axis in gone))


def _sliced(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    """Accept slices that keep all rows."""
    rows = _first(operands)
    shape = shape_of(eqn.invars[0])
    if rows is None:
        return None
    strides = eqn.params.get("strides")
    sizes = shape_of(eqn.outvars[0])
    whole = sizes[rows.axis] == shape[rows.axis] and (strides is None or strides[rows.axis] == 1)
    return rows if whole else None


def _padded(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _first(operands)
    return (
        rows
        if rows is not None and tuple(eqn.params["padding_config"][rows.axis]) == (0, 0, 0)
        else None
    )


def _reversed(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _first(operands)
    return rows if rows is not None and rows.axis not in eqn.params["dimensions"] else None


def _stacked(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _only(operands, eqn)
    return (
        None if rows is None else rows._replace(axis=rows.axis + (eqn.params["axis"] <= rows.axis))
    )


def _unstacked(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _first(operands)
    axis = eqn.params["axis"]
    return (
        None
        if rows is None or rows.axis == axis
        else rows._replace(axis=rows.axis - (axis < rows.axis))
    )


def _tiled(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _first(operands)
    return None if rows is None else rows._replace(outer=rows.outer * eqn.params["reps"][rows.axis])


def _updated(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    """Accept updates of all rows at a common place."""
    operand, update, *starts = operands
    whole, part, *_ = eqn.invars
    rows = next((each for each in (operand, update) if isinstance(each, RowsAlong)), None)
    if rows is None or not all(isinstance(each, Alike) for each in starts):
        return None
    pair = ((whole, operand), (part, update))
    agree = all(known == rows or alike_along(rows.axis)(atom, known) for atom, known in pair)
    return rows if agree and shape_of(whole)[rows.axis] == shape_of(part)[rows.axis] else None


def _multiplied(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    contracting, batch = eqn.params["dimension_numbers"]
    ranks = [len(shape_of(atom)) for atom in eqn.invars]
    found: set[RowsAlong] = set()
    for at, known in enumerate(operands):
        if isinstance(known, Alike):
            continue
        if known.axis in contracting[at]:
            return None
        if known.axis in batch[at]:
            place = list(batch[at]).index(known.axis)
            other = operands[1 - at]
            axis = batch[1 - at][place]
            if other != known._replace(axis=axis) and not alike_along(axis)(
                eqn.invars[1 - at], other
            ):
                return None
            found.add(known._replace(axis=place))
        else:
            if isinstance(operands[1 - at], RowsAlong):
                return None
            free = [axis for axis in range(ranks[at]) if axis not in (*contracting[at], *batch[at])]
            own = len(batch[0]) + (ranks[0] - len(batch[0]) - len(contracting[0]) if at else 0)
            found.add(known._replace(axis=own + free.index(known.axis)))
    return found.pop() if len(found) == 1 else None


def _convolved(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _first(operands)
    numbers = eqn.params["dimension_numbers"]
    if rows is None or rows.axis != numbers.lhs_spec[0] or eqn.params["batch_group_count"] != 1:
        return None
    return rows._replace(axis=numbers.out_spec[0])


def _gathered(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    """Accept look-ups that keep rows apart.

    Each row looks up own indices in a shared table or own row, or shared indices.
    """
    table, indices = operands
    numbers = eqn.params["dimension_numbers"]
    shape = shape_of(eqn.invars[0])
    rank = len(shape_of(eqn.outvars[0]))
    # In the order of the axes of the indices.
    own = [axis for axis in range(rank) if axis not in numbers.offset_dims]
    found: set[RowsAlong] = set()
    batching = dict(
        zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True)
    )
    if isinstance(indices, RowsAlong):
        if indices.axis >= len(own):
            return None
        own_table = isinstance(table, Alike) and indices.axis in batching
        if own_table and not alike_along(batching[indices.axis])(eqn.invars[0], table):
            return None
        found.add(indices._replace(axis=own[indices.axis]))
    if isinstance(table, RowsAlong):
        if table.axis in numbers.operand_batching_dims:
            place = next(at for at, axis in batching.items() if axis == table.axis)
            if isinstance(indices, Alike) and not alike_along(place)(eqn.invars[1], indices):
                return None
            found.add(table._replace(axis=own[place]))
        else:
            left_out = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
            kept = [axis for axis in range(len(shape)) if axis not in left_out]
            if table.axis not in kept or eqn.params["slice_sizes"][table.axis] != shape[table.axis]:
                return None
            if table.axis in numbers.start_index_map:
                return None
            found.add(table._replace(axis=numbers.offset_dims[kept.index(table.axis)]))
    return found.pop() if len(found) == 1 else None


def _windowed(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _first(operands)
    if (
        rows is None
        or eqn.params["window_dimensions"][rows.axis] != 1
        or eqn.params["window_strides"][rows.axis] != 1
    ):
        return None
    return rows if tuple(eqn.params["padding"][rows.axis]) == (0, 0) else None


def _transformed(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Known | None:
    rows = _first(operands)
    rank = len(shape_of(eqn.invars[0]))
    return rows if rows is not None and rows.axis < rank - len(eqn.params["fft_lengths"]) else None


RULES: dict[str, Callable[[JaxprEqn, list[Known], Proof], Known | None]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(REDUCTIONS, _reduced),
    **dict.fromkeys(RUNNING, _kept_along("axis")),
    "bitcast_convert_type": _bitcast,
    "broadcast_in_dim": _broadcast,
    "concatenate": _kept_along("dimension"),
    "conv_general_dilated": _convolved,
    "dot_general": _multiplied,
    "dynamic_slice": _sliced,
    "dynamic_update_slice": _updated,
    "fft": _transformed,
    "gather": _gathered,
    "pad": _padded,
    **dict.fromkeys(("reduce_window_sum", "reduce_window_max", "reduce_window_min"), _windowed),
    "reshape": _reshaped,
    "rev": _reversed,
    "slice": _sliced,
    "sort": _kept_along("dimension"),
    "split": _kept_along("axis"),
    "squeeze": _squeezed,
    "stack": _stacked,
    "tile": _tiled,
    "top_k": _largest,
    "transpose": _transposed,
    "unstack": _unstacked,
}


def _joined(one: Known, two: Known, atom: Var | Literal) -> Known:
    """Join two descriptions of an array: rows, if the other is equal for every row."""
    if one == two:
        return one
    if isinstance(one, Alike) and isinstance(two, Alike):
        return Alike(one.axes & two.axes)
    rows, other = (one, two) if isinstance(one, RowsAlong) else (two, one)
    if isinstance(rows, RowsAlong) and alike_along(rows.axis)(atom, other):
        return rows
    raise Unproven("a loop")


def _fixed(body: Callable[[Carry], Sequence[Known]], carry: Carry, atoms: Sequence[Var]) -> Carry:
    """Return the description of a carry after any number of steps.

    It only changes from alike to rows.
    """
    while True:
        found = [
            _joined(old, new, atom)
            for old, new, atom in zip(carry, body(carry), atoms, strict=True)
        ]
        if found == carry:
            return found
        carry = found


def _guessed(known: Known, atom: Var | Literal, proof: Proof) -> Known:
    """Interpret equal entries as rows, such as the initial zeros of a loop."""
    if isinstance(known, RowsAlong):
        return known
    axes = (
        axis
        for axis, length in enumerate(shape_of(atom))
        if length == proof.size and alike_along(axis)(atom, known)
    )
    axis = next(axes, None)
    return known if axis is None else RowsAlong(axis)


def _either(
    run: Callable[[Carry], Carry], carry: Carry, atoms: Sequence[Var], proof: Proof
) -> Carry:
    """Return the first initial carry for which the proof succeeds."""
    guessed = [_guessed(known, atom, proof) for known, atom in zip(carry, atoms, strict=True)]
    try:
        return run(guessed)
    except Unproven:
        return run(carry)


def _scanned(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Sequence[Known]:
    num_consts = eqn.params["num_consts"]
    num_carry = eqn.params["num_carry"]
    consts = operands[:num_consts]
    carry = operands[num_consts:][:num_carry]
    xs = operands[num_consts + num_carry :]
    if any(isinstance(each, RowsAlong) and each.axis == 0 for each in xs):
        raise Unproven("scan")
    inside = [_moved(each, -1) for each in xs]
    inner = eqn.params["jaxpr"].jaxpr
    atoms = inner.invars[num_consts:][:num_carry]

    def after(carry: list[Known]) -> list[Known]:
        return _fixed(
            lambda now: _walk(inner, [*consts, *now, *inside], proof)[:num_carry], carry, atoms
        )

    carry = _either(after, list(carry), atoms, proof)
    outputs = _walk(inner, [*consts, *carry, *inside], proof)
    return [*carry, *(_moved(each, 1) for each in outputs[num_carry:])]


def _moved(known: Known, by: int) -> Known:
    if isinstance(known, RowsAlong):
        return known._replace(axis=known.axis + by)
    return Alike(frozenset(axis + by for axis in known.axes if axis + by >= 0))


def _chosen(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Sequence[Known]:
    index, *rest = operands
    if isinstance(index, RowsAlong):
        raise Unproven("cond")
    found, *others = (_walk(branch.jaxpr, rest, proof) for branch in eqn.params["branches"])
    for other in others:
        found = [_joined(*each) for each in zip(found, other, eqn.outvars, strict=True)]
    return found


def _repeated(eqn: JaxprEqn, operands: list[Known], proof: Proof) -> Sequence[Known]:
    asked = eqn.params["cond_nconsts"]
    done = eqn.params["body_nconsts"]
    body = eqn.params["body_jaxpr"].jaxpr
    condition = eqn.params["cond_jaxpr"].jaxpr
    consts = operands[asked:][:done]
    atoms = body.invars[done:]

    def after(carry: list[Known]) -> list[Known]:
        return _fixed(lambda now: _walk(body, [*consts, *now], proof), carry, atoms)

    carry = _either(after, operands[asked + done :], atoms, proof)
    (goes_on,) = _walk(condition, [*operands[:asked], *carry], proof)
    if isinstance(goes_on, RowsAlong):
        raise Unproven("while")
    return carry


LOOPS: dict[str, Callable[[JaxprEqn, list[Known], Proof], Sequence[Known]]] = {
    "scan": _scanned,
    "cond": _chosen,
    "while": _repeated,
}
