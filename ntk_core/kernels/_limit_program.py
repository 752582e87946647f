"""The infinite width of a traced program.

A rule for each operation (docs/math/infinite_width.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var

from ntk_core.errors import InvalidInput
from ntk_core.kernels._limit_draws import products_of_drawn
from ntk_core.kernels._limit_moments import (
    Atom,
    Change,
    Constant,
    Entries,
    Gaussian,
    Moments,
    Moved,
    Pair,
    Pointwise,
    Shape,
    Sum,
    is_constant,
)
from ntk_core.kernels._limit_values import (
    NEURONS,
    Blocks,
    Drawn,
    Known,
    Random,
    Value,
    Weight,
    added,
    along_positions,
    as_function,
    like,
    ratio,
    refusal,
    reshaped,
    same,
    summed,
)
from ntk_core.networks.architectures import Activation, activation_function
from ntk_core.traced import CALLS, ELEMENTWISE, aval_of, shape_of

CUSTOM = {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}
LINEAR = frozenset({"add", "add_any", "sub", "neg", "mul", "div", "copy", "copy_p"})
CUTS = frozenset({"slice", "split", "dynamic_slice", "gather"})
MOST_RUNS = 8  # of neighbors in a map of positions; our choice
SAME_SLOPE = 1e-4  # relative; slopes of custom rules may be in float32

# An activation that keeps its name, and with it its closed form; in programs of our networks.
ACTIVATION = Primitive("activation")
ACTIVATION.def_abstract_eval(lambda z, **_: z)


def activated(z: Array, activation: Activation) -> Array:
    """Return σ(z) in a program that is only read."""
    found: Array = ACTIVATION.bind(z, activation=activation)
    return found


@dataclass(frozen=True)
class Scale:
    """Standard deviation of the entries of a parameter, and whether it is trained."""

    name: str
    std: float
    is_trained: bool


@dataclass
class Interpreter:
    """Follows a program of one row through infinite width.

    Attributes:
        moments: of all random values.
        scales: of the parameters, by number.
        used: the operation that took each parameter.
    """

    moments: Moments
    scales: dict[int, Scale]
    used: dict[int, str] = field(default_factory=dict)

    def run(self, closed: ClosedJaxpr, arguments: Sequence[Value]) -> list[Value]:
        """Return the results of a program."""
        consts = [_constant(const) for const in closed.consts]
        return self._walk(closed.jaxpr, consts, arguments)

    def _walk(
        self, jaxpr: Jaxpr, consts: Sequence[Value], arguments: Sequence[Value]
    ) -> list[Value]:
        found: dict[Var, Value] = dict(zip(jaxpr.constvars, consts, strict=True))
        found.update(zip(jaxpr.invars, arguments, strict=True))

        def read(atom: Var | Literal) -> Value:
            return _constant(atom.val) if isinstance(atom, Literal) else found[atom]

        for eqn in jaxpr.eqns:
            operands = [read(atom) for atom in eqn.invars]
            results = self._equation(eqn, operands)
            found.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, eqn: JaxprEqn, operands: list[Value]) -> Sequence[Value]:
        name = eqn.primitive.name
        known = [operand for operand in operands if isinstance(operand, Known)]
        if len(known) == len(operands):
            return _evaluated(eqn, known)
        if any(isinstance(operand, Drawn) for operand in operands) and name not in CALLS:
            return self._of_draws(eqn, name, operands)
        if name in CUSTOM:
            _check_slopes(eqn)
        inner = {**CALLS, **CUSTOM}.get(name)
        if inner is not None:
            called = eqn.params[inner]
            if isinstance(called, ClosedJaxpr):
                return self.run(called, operands)
            return self._walk(called, [], operands)
        if any(isinstance(operand, Blocks) for operand in operands):
            return [self._of_blocks(eqn, name, operands)]
        if name == "split":
            return _split(eqn, operands)
        if name in LINEAR:
            linear = self._linear(eqn, name, operands)
            if linear is not None:
                return [linear]
        if name == "convert_element_type" and _is_float(eqn.params["new_dtype"]):
            (operand,) = operands
            if not (isinstance(operand, Random) and _is_choice(eqn)):
                return [operand]
        if name in ELEMENTWISE:
            return [self._elementwise(eqn, name, operands)]
        rule = _RULES.get(name)
        if rule is None:
            raise refusal(name)
        return [rule(self, eqn, operands)]

    def _of_draws(self, eqn: JaxprEqn, name: str, operands: list[Value]) -> Sequence[Value]:
        """An operation on drawn neurons, kept for later; a product with a weight takes its mean."""
        if any(isinstance(operand, Weight) for operand in operands):
            if name == "dot_general":
                return [_product(self, eqn, operands)]
            if name == "add":
                return [self._bias_of_drawn(eqn, operands)]
            raise refusal(name, "of a parameter and neurons of a head")
        return _drawn(eqn, operands)

    def _bias_of_drawn(self, eqn: JaxprEqn, operands: list[Value]) -> Value:
        """Add a bias to pre-activations that were divided into heads."""
        one, two = operands
        drawn, weight = (one, two) if isinstance(one, Drawn) else (two, one)
        assert isinstance(drawn, Drawn)
        assert isinstance(weight, Weight)
        whole = drawn.undivided
        varies = [axis for axis, each in enumerate(weight.varies) if each]
        if whole is None or math.prod(drawn.shape[axis] for axis in varies) != whole.width:
            raise refusal("add", "of a parameter and neurons of a head")
        flat = tuple(NEURONS in axis for axis in whole.axes)
        bias = self._bias(Weight(weight.leaf, whole.shape, flat, weight.factor), whole, "add")
        return _divided(added(whole, bias, "add"), drawn.shape, drawn.num_heads)

    def _of_blocks(self, eqn: JaxprEqn, name: str, operands: list[Value]) -> Value:
        """An operation on branches side by side: on each of them."""
        if name in ("dot_general", "conv_general_dilated"):
            return _RULES[name](self, eqn, operands)
        if name == "concatenate":
            return _concatenate(self, eqn, operands)
        first = next(operand for operand in operands if isinstance(operand, Blocks))
        if name in ("reshape", "squeeze", "expand_dims"):
            return _reshaped_blocks(first, tuple(shape_of(eqn.outvars[0])), name)
        if name == "transpose":
            order = eqn.params["permutation"]
            parts = [self._equation(eqn, [part])[0] for part in first.parts]
            return _side_by_side(parts, order.index(first.axis), name)
        if name == "reduce_sum" and first.axis not in eqn.params["axes"]:
            parts = [self._equation(eqn, [part])[0] for part in first.parts]
            before = [axis for axis in eqn.params["axes"] if axis < first.axis]
            return _side_by_side(parts, first.axis - len(before), name)
        if name not in LINEAR | ELEMENTWISE:
            raise refusal(name, "of concatenated branches")
        results: list[Value] = []
        biases = _biases_of_blocks(self, first, operands, name)
        for number, part in enumerate(first.parts):
            own: list[Value] = []
            for operand in operands:
                if isinstance(operand, Weight):
                    own.append(biases[number])
                elif isinstance(operand, Known):
                    own.append(_uniform(operand, part.shape, name))
                else:
                    assert isinstance(operand, Blocks)
                    own.append(_like_blocks(operand, first, name).parts[number])
            results += self._equation(eqn, own)
        return _side_by_side(results, first.axis, name)

    def take(self, weight: Weight, operation: str) -> tuple[float, float]:
        """Return the factors of a parameter, once per parameter.

        They are (variance of the entries, square of the factor or 0 if frozen).

        Raises:
            NoRule: for a parameter that another operation took.
        """
        scale = self.scales[weight.leaf]
        before = self.used.get(weight.leaf)
        if before is not None:
            raise refusal(operation, f"whose parameter {scale.name} is shared with {before}")
        self.used[weight.leaf] = operation
        square = weight.factor**2
        return square * scale.std**2, square if scale.is_trained else 0.0

    def _linear(self, eqn: JaxprEqn, name: str, operands: list[Value]) -> Value | None:
        """Sums and multiples; None if it is a product of two random values, or their quotient."""
        if name in ("copy", "copy_p"):
            return operands[0]
        if name == "neg":
            return _times(operands[0], -1.0)
        one, two = operands
        if name in ("mul", "div"):
            for value, other in ((one, two), (two, one)):
                if not isinstance(other, Known) or (name == "div" and other is one):
                    continue
                number = other.number()
                if number is None:
                    raise refusal(
                        name, "by numbers that differ between inputs, positions or neurons"
                    )
                if not math.isfinite(number) or (name == "div" and number == 0):
                    raise refusal(name, "by 0, or by a number that is not finite")
                return _times(value, 1 / number if name == "div" else number)
            if isinstance(one, Weight) or isinstance(two, Weight):
                raise refusal(name, "with a parameter, entry by entry")
            return None
        if name == "sub":
            two = _times(two, -1.0)
        if isinstance(two, Random) and not isinstance(one, Random):
            one, two = two, one
        if not isinstance(one, Random):
            raise refusal(name, "of a parameter and a value that no weight multiplied")
        if isinstance(two, Weight):
            return added(one, self._bias(two, one, name), name)
        if isinstance(two, Known):
            number = two.number()
            if number is None:
                raise refusal(name, "of numbers that differ between inputs, positions or neurons")
            if not math.isfinite(number):
                raise refusal(name, "of a number that is not finite")
            return added(
                one,
                Random({Constant(one.sizes): float(number)}, one.axes, one.sizes, one.width),
                name,
            )
        assert isinstance(two, Random)
        return added(one, two, name)

    def _bias(self, weight: Weight, beside: Random, operation: str) -> Random:
        """Return the random value of a bias.

        One number per neuron, and per position if it has that axis.
        """
        scales = self.take(weight, operation)
        return self.bias_with(scales, weight, beside, operation)

    def bias_with(
        self, scales: tuple[float, float], weight: Weight, beside: Random, operation: str
    ) -> Random:
        """Return the random value of a bias with (variance, square of the factor or 0)."""
        variance, square = scales
        own: set[int] = set()  # positions along which entries are independent
        for axis, varies in zip(beside.axes, weight.varies, strict=True):
            if varies:
                own.update(factor for factor in axis if factor != NEURONS)
            elif NEURONS in axis and beside.width > 1:
                name = self.scales[weight.leaf].name
                raise refusal(operation, f"of {name}, which all neurons share")
        equal = self.moments.positions_equal(beside.sizes, own)
        rows = self.moments.rows
        covariance = {
            pair: jnp.broadcast_to(variance * equal, (*rows(pair), *equal.shape)) for pair in Pair
        }
        tangent = jnp.broadcast_to(square * equal, (*rows(Pair.CROSS), *equal.shape))
        atom = Gaussian(beside.sizes, covariance, tangent)
        return Random({atom: 1.0}, beside.axes, beside.sizes, beside.width)

    def _elementwise(self, eqn: JaxprEqn, name: str, operands: list[Value]) -> Random:
        """A function of one Gaussian number, from functions of it."""
        if any(isinstance(operand, Weight) for operand in operands):
            raise refusal(name, "with a parameter, entry by entry")
        randoms = [operand for operand in operands if isinstance(operand, Random)]
        first = randoms[0]
        inside, function = as_function(first, name)
        functions: list[Callable[[Array], Array] | np.ndarray] = []
        for operand in operands:
            if isinstance(operand, Known):
                number = operand.number()
                if number is None:
                    raise refusal(
                        name, "with numbers that differ between inputs, positions or neurons"
                    )
                functions.append(np.asarray(number))
                continue
            assert isinstance(operand, Random)
            if operand is first:
                functions.append(function)
                continue
            other, own = as_function(like(operand, first, name), name)
            factor = ratio(other, inside)
            if factor is None:
                raise refusal(name, "of different pre-activations")
            functions.append(_scaled(own, factor))
        applied = _Applied(eqn, tuple(functions))
        return Random(
            {Pointwise(first.sizes, applied, inside): 1.0}, first.axes, first.sizes, first.width
        )

    def pre_activation(
        self, value: Value, weight: Weight, contracted: Sequence[int], operation: str
    ) -> tuple[dict[Pair, Array], Array, list[int]]:
        """Return (covariances, tangent kernel, kept axes of ``value``) of a product with a weight.

        Positions of the results are the kept axes.
        """
        if not all(
            varies or size == 1 for varies, size in zip(weight.varies, weight.shape, strict=True)
        ):
            raise refusal(operation, "with a parameter whose entries repeat")
        kept = [axis for axis in range(len(value.shape)) if axis not in contracted]
        products, below = self._products(value, contracted, operation)
        variance, square = self.take(weight, operation)
        covariances = {pair: variance * product for pair, product in products.items()}
        tangent = square * products[Pair.CROSS]
        if below is not None:
            tangent = tangent + variance * below
        return covariances, tangent, kept

    def _products(
        self, value: Value, contracted: Sequence[int], operation: str
    ) -> tuple[dict[Pair, Array], Array | None]:
        """Return (sums of E[a a'], sums of tangent kernels or None) over the contracted entries."""
        if isinstance(value, Known):
            known = {
                pair: self._products_of_known(value, contracted, pair)
                for pair in Pair
                if self.moments.known_as(pair) is pair
            }
            return known, None
        if isinstance(value, Random):
            if value.beside is not None and value.beside.axis in contracted:
                return self._products(value.beside, contracted, operation)
            return self._products_of_random(value, contracted, operation)
        if isinstance(value, Drawn):
            return products_of_drawn(value, contracted, self.moments, operation)
        if isinstance(value, Weight):
            raise refusal(operation, "of two parameters")
        if value.axis not in contracted:
            raise refusal(operation, "whose weight mixes positions, and not neurons")
        # Rows of the weight are independent, so branches add.
        found = [self._products(part, contracted, operation) for part in value.parts]
        total = {}
        first, _ = found[0]
        for pair in first:
            of_branches = [products[pair] for products, _ in found]
            total[pair] = jnp.asarray(sum(of_branches))
        below = [each for _, each in found if each is not None]
        return total, jnp.asarray(sum(below)) if below else None

    def _products_of_known(self, value: Known, contracted: Sequence[int], pair: Pair) -> Array:
        rows1 = self._rows(value, Pair.LEFT if pair is Pair.CROSS else pair)
        rows2 = self._rows(value, Pair.RIGHT if pair is Pair.CROSS else pair)
        # Without axes of size 1 the product is one of matrices, which copies no inputs.
        long = [axis for axis, size in enumerate(value.shape) if size > 1]
        rows1, rows2 = (
            rows.reshape(len(rows), *(value.shape[axis] for axis in long))
            for rows in (rows1, rows2)
        )
        all_pairs = self.moments.all_pairs
        count = len(value.shape)
        kept = [axis for axis in range(count) if axis not in contracted]
        first = {axis: 2 + axis for axis in long}
        second = dict(first)
        if all_pairs:
            second |= {axis: 2 + count + axis for axis in long if axis in kept}
        result = [first[axis] for axis in long if axis in kept]
        if all_pairs:
            result += [second[axis] for axis in long if axis in kept]
        other = 1 if pair is Pair.CROSS else 0
        lead = [0, 1] if pair is Pair.CROSS else [0]
        products = jnp.einsum(
            rows1, [0, *first.values()], rows2, [other, *second.values()], [*lead, *result]
        )
        sizes = [value.shape[axis] for axis in kept]
        return products.reshape(*self.moments.rows(pair), *sizes * (2 if all_pairs else 1))

    def _rows(self, value: Known, side: Pair) -> Array:
        array = jnp.asarray(value.left if side is Pair.LEFT else value.right, jnp.float64)
        count = self.moments.rows(side)
        return array if value.depends else jnp.broadcast_to(array, (*count, *array.shape))

    def _products_of_random(
        self, value: Random, contracted: Sequence[int], operation: str
    ) -> tuple[dict[Pair, Array], Array]:
        gone = [factor for axis in contracted for factor in value.axes[axis]]
        if NEURONS not in gone and (value.width > 1 or value.has_neurons):
            raise refusal(operation, "whose weight mixes positions, and not neurons")
        axes = [axis for place, axis in enumerate(value.axes) if place not in contracted]
        # Kept axes in the order of the array; those of size 1 are positions of size 1.
        kept = [factor for axis in axes for factor in axis]
        sizes = tuple(math.prod(map(value.size_of, axis)) for axis in axes)
        moments = self.moments

        def contract(array: Array, pair: Pair) -> Array:
            count = len(value.sizes)
            first = [2 + factor for factor in range(count)]
            second = [axis if axis - 2 in gone else axis + count for axis in first]
            rows = moments.rows(pair)
            lead = list(range(len(rows)))
            result = [first[factor] for factor in kept]
            given = [*lead, *first]
            if moments.all_pairs:
                given += second
                result += [second[factor] for factor in kept]
            wanted = [*lead, *result]
            summed_up = array if given == wanted else jnp.einsum(array, given, wanted)
            positions = (*sizes, *sizes) if moments.all_pairs else sizes
            return value.width * summed_up.reshape(*rows, *positions)

        products = {
            pair: contract(moments.total(value.atoms, pair), pair)
            for pair in Pair
            if moments.known_as(pair) is pair
        }
        tangent = moments.total_tangent(value.atoms)
        return products, contract(tangent, Pair.CROSS)

    def output(self, value: Value) -> tuple[Array, Array]:
        """Return (tangent kernel, covariance) of one output.

        Raises:
            NoRule: for outputs that are no pre-activations.
        """
        if not isinstance(value, Random):
            raise refusal("output", "which no weight multiplied")
        if value.sizes:
            raise refusal("output", "which differs between positions")
        for atom in value.atoms:
            if isinstance(atom, Pointwise):
                raise refusal("output", "which is a nonlinear function of pre-activations")
        atoms = {atom: c for atom, c in value.atoms.items() if not is_constant(atom)}
        moments = self.moments
        return moments.total_tangent(atoms), moments.total(atoms, Pair.CROSS)


class _Applied:
    """An elementwise operation applied to functions of one number."""

    def __init__(self, eqn: JaxprEqn, functions: tuple[Callable[[Array], Array] | np.ndarray, ...]):
        self.eqn = eqn
        self.functions = functions

    def __call__(self, t: Array) -> Array:
        values = [
            jnp.broadcast_to(each(t) if callable(each) else each, t.shape)
            for each in self.functions
        ]
        # Constants take the type of t.
        values = [value.astype(t.dtype) if _is_float(value.dtype) else value for value in values]
        params = dict(self.eqn.params)
        if self.eqn.primitive.name == "convert_element_type" and _is_float(params["new_dtype"]):
            return values[0].astype(t.dtype)
        result = self.eqn.primitive.bind(*values, **params)
        return jnp.asarray(result)

    @property
    def __name__(self) -> str:
        return f"a function ending with {self.eqn.primitive.name}"


def _scaled(function: Callable[[Array], Array], factor: float) -> Callable[[Array], Array]:
    return function if factor == 1 else lambda t: function(factor * t)


def _is_float(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.floating))


def _is_choice(eqn: JaxprEqn) -> bool:
    """Whether an operand is of booleans or integers."""
    return not _is_float(aval_of(eqn.invars[0]).dtype)


def _constant(value: object) -> Known:
    array: Any = value
    if not isinstance(array, jax.Array | np.ndarray):
        array = np.asarray(array)
    if hasattr(array, "dtype") and _is_float(array.dtype):
        array = np.asarray(array, np.float64)  # so that its numbers can be read while compiling
    return Known(array, array, False)


def _times(value: Value, factor: float) -> Value:
    if isinstance(value, Random):
        return value.times(factor)
    if isinstance(value, Weight):
        return Weight(value.leaf, value.shape, value.varies, value.factor * factor)
    assert isinstance(value, Known)
    return Known(value.left * factor, value.right * factor, value.depends)


def _evaluated(eqn: JaxprEqn, operands: list[Known]) -> list[Known]:
    """Evaluate an operation on known arrays, for the rows of x1 and of x2."""

    def apply(*values: Any) -> Any:
        own = [
            jnp.asarray(value, aval_of(atom).dtype)
            for value, atom in zip(values, eqn.invars, strict=True)
        ]
        return _bound(eqn, own)

    depends = any(operand.depends for operand in operands)
    if depends:
        axes = [0 if operand.depends else None for operand in operands]
        each = jax.vmap(apply, axes)
        left = each(*(operand.left for operand in operands))
        right = each(*(operand.right for operand in operands))
    else:
        with jax.ensure_compile_time_eval():
            left = right = apply(*(operand.left for operand in operands))
    if not eqn.primitive.multiple_results:
        left = [left]
        right = [right]
    return [Known(one, two, depends) for one, two in zip(left, right, strict=True)]


def _bound(eqn: JaxprEqn, values: Sequence[Array]) -> Any:
    """Apply the operation of an equation, with its own rules of differentiation."""
    params: Any = eqn.primitive.get_bind_params(eqn.params)
    functions: Sequence[Any] = ()
    if isinstance(params, tuple):  # before JAX 0.10
        functions, params = params
    return eqn.primitive.bind(*functions, *values, **params)


def _check_slopes(eqn: JaxprEqn) -> None:
    """Refuse a custom rule whose derivative is not that of its function, at random numbers."""
    with jax.ensure_compile_time_eval():
        _compare_slopes(eqn)


def _compare_slopes(eqn: JaxprEqn) -> None:
    name = eqn.primitive.name
    floats = [_is_float(aval_of(atom).dtype) for atom in eqn.invars]
    rng = np.random.default_rng(0)
    values = [
        jnp.asarray(
            rng.standard_normal(shape_of(atom)) if is_float else jnp.zeros(shape_of(atom)),
            aval_of(atom).dtype,
        )
        for atom, is_float in zip(eqn.invars, floats, strict=True)
    ]
    called = eqn.params[CUSTOM[name]]

    def by_rule(*moving: Array) -> Array:
        return _mixture(_bound(eqn, _filled(moving)))

    def by_program(*moving: Array) -> Array:
        return _mixture(jax.core.eval_jaxpr(called.jaxpr, called.consts, *_filled(moving)))

    def _filled(moving: Sequence[Array]) -> list[Array]:
        rest = iter(moving)
        return [
            next(rest) if is_float else value
            for value, is_float in zip(values, floats, strict=True)
        ]

    moving = [value for value, is_float in zip(values, floats, strict=True) if is_float]
    places = tuple(range(len(moving)))
    for one, two in zip(
        jax.grad(by_rule, places)(*moving), jax.grad(by_program, places)(*moving), strict=True
    ):
        scale = float(jnp.abs(two).max(initial=1e-30))
        if not float(jnp.abs(one - two).max(initial=0.0)) <= SAME_SLOPE * scale:
            raise refusal(name, "whose derivative is not that of its function")


def _mixture(results: Any) -> Array:
    """Return a random mixture of all results."""
    rng = np.random.default_rng(1)
    total = jnp.zeros(())
    for result in jax.tree.leaves(results):
        total = total + jnp.sum(result * jnp.asarray(rng.standard_normal(result.shape)))
    return total


def _product(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    """A product with a weight: pre-activations of a dense layer."""
    (contract1, contract2), (batch1, batch2) = eqn.params["dimension_numbers"]
    one, two = operands
    is_first = isinstance(one, Weight)
    if is_first and isinstance(two, Weight):
        raise refusal("dot_general", "of two parameters")
    if not is_first and not isinstance(two, Weight):
        if not (isinstance(one, Random) and isinstance(two, Random)):
            raise refusal("dot_general", "of two values that are no weights")
        (scores,) = _drawn(eqn, operands)
        return scores
    weight, value = (one, two) if is_first else (two, one)
    assert isinstance(weight, Weight)
    of_weight, of_value = (contract1, contract2) if is_first else (contract2, contract1)
    batch = batch1 if is_first else batch2
    if any(weight.shape[axis] > 1 for axis in batch):
        raise refusal("dot_general", "with one weight for each position")
    dropped = batch2 if is_first else batch1  # axes of size 1
    covariances, tangent, kept = self.pre_activation(value, weight, of_value, "dot_general")
    free = [axis for axis in range(len(weight.shape)) if axis not in (*of_weight, *batch)]
    wide = [axis for axis in free if weight.shape[axis] > 1]
    are_heads = len(wide) > 1
    if are_heads and (is_first or wide != free):
        raise refusal("dot_general", "with several axes of neurons")
    width = math.prod(weight.shape[axis] for axis in free)
    of_neurons = wide or free[-1:]
    weight_axes: list[tuple[int, ...]]
    weight_axes = [(NEURONS,) if axis in of_neurons else () for axis in free]
    if are_heads:
        weight_axes = [(NEURONS,)]
    # Positions of size 1 have no axis of their own.
    positions = [axis for axis in kept if value.shape[axis] > 1]
    place = {axis: (number,) for number, axis in enumerate(positions)}
    value_axes = [place.get(axis, ()) for axis in kept if axis not in dropped]
    lead = [place.get(axis, ()) for axis in dropped]
    axes = [*lead, *weight_axes, *value_axes] if is_first else [*lead, *value_axes, *weight_axes]
    sizes = tuple(value.shape[axis] for axis in positions)
    moments = self.moments
    shaped = {
        pair: each.reshape(moments.shape(sizes, sizes, pair)) for pair, each in covariances.items()
    }
    atom = Gaussian(sizes, shaped, tangent.reshape(moments.shape(sizes, sizes, Pair.CROSS)))
    result = Random({atom: 1.0}, tuple(axes), sizes, width)
    if are_heads:
        return _divided(result, tuple(shape_of(eqn.outvars[0])), weight.shape[free[0]])
    return result


def _convolution(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    """A convolution: sums over the offsets of the kernel, over pairs of positions."""
    params = eqn.params
    value, weight = operands
    name = "conv_general_dilated"
    if not isinstance(weight, Weight):
        raise refusal(name, "whose kernel is no parameter")
    if params["feature_group_count"] != 1 or params["batch_group_count"] != 1:
        raise refusal(name, "of groups of channels")
    if any(each != 1 for each in params["lhs_dilation"]):
        raise refusal(name, "that is transposed")
    numbers = params["dimension_numbers"]
    _, feature, *spatial = numbers.lhs_spec
    covariances, tangent, kept = self.pre_activation(value, weight, (feature,), name)
    kernel = [weight.shape[axis] for axis in numbers.rhs_spec[2:]]
    place = [kept.index(axis) for axis in spatial]
    sizes = [value.shape[axis] for axis in spatial]
    new = tuple(shape_of(eqn.outvars[0])[axis] for axis in numbers.out_spec[2:])
    all_pairs = self.moments.all_pairs

    kept_sizes = [value.shape[axis] for axis in kept]
    single = [axis for axis in range(len(kept)) if axis not in place]  # the batch, of size 1

    def averaged(array: Array, pair: Pair) -> Array:
        rows = self.moments.rows(pair)
        copies = 2 if all_pairs else 1  # all pairs have the positions twice, one after the other
        starts = [len(rows) + copy * len(kept) for copy in range(copies)]
        lead = list(range(len(rows)))
        of_positions = [start + axis for start in starts for axis in place]
        of_batch = [start + axis for start in starts for axis in single]
        # (rows, positions in the order of the array), the order of padding and strides.
        whole = array.reshape(*rows, *kept_sizes * copies)
        ordered = jnp.transpose(whole, (*lead, *of_positions, *of_batch))
        ordered = ordered.reshape(*rows, *sizes * copies)
        widths = [(0, 0)] * len(rows) + list(params["padding"]) * copies
        if min(min(each) for each in widths) < 0:
            raise refusal(name, "with negative padding")
        padded = jnp.pad(ordered, widths)
        total: Any = 0.0
        for offset in itertools.product(*map(range, kernel)):
            window = _window(offset, new, params["rhs_dilation"], params["window_strides"])
            total = total + padded[(..., *window * copies)]
        return jnp.asarray(total)

    found = {pair: averaged(each, pair) for pair, each in covariances.items()}
    atom = Gaussian(new, found, averaged(tangent, Pair.CROSS))
    axes: list[tuple[int, ...]] = [()] * len(shape_of(eqn.outvars[0]))
    axes[numbers.out_spec[1]] = (NEURONS,)
    for number, axis in enumerate(numbers.out_spec[2:]):
        axes[axis] = (number,)
    width = weight.shape[numbers.rhs_spec[0]]
    return Random({atom: 1.0}, tuple(axes), new, width)


def _window(
    offset: Sequence[int], sizes: Sequence[int], dilations: Sequence[int], strides: Sequence[int]
) -> tuple[slice, ...]:
    """Return the padded positions that an offset of the kernel meets.

    Each output position has one.
    """
    cuts = []
    for o, size, dilation, stride in zip(offset, sizes, dilations, strides, strict=True):
        start = o * dilation
        cuts.append(slice(start, start + (size - 1) * stride + 1, stride))
    return tuple(cuts)


def _reshape(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    """Reshape, squeeze and expand_dims."""
    (value,) = operands
    shape = tuple(shape_of(eqn.outvars[0]))
    name = eqn.primitive.name
    if isinstance(value, Random):
        heads = _heads(value, shape)
        if heads is not None:
            return _divided(value, shape, heads)
        return replace(reshaped(value, shape, name), beside=_beside_reshaped(value, shape, name))
    assert isinstance(value, Weight)
    if _all_vary(value):
        return Weight(value.leaf, shape, tuple(size > 1 for size in shape), value.factor)
    if [size for size in shape if size > 1] != [size for size in value.shape if size > 1]:
        raise refusal(name, "of a parameter that repeats")
    rest = iter(varies for varies, size in zip(value.varies, value.shape, strict=True) if size > 1)
    varies = tuple(size > 1 and next(rest) for size in shape)
    return Weight(value.leaf, shape, varies, value.factor)


def _beside_reshaped(value: Random, shape: Shape, operation: str) -> Blocks | None:
    """Return the parts of a stacked value if the new axis begins with the stacked one."""
    stacked = value.beside
    if stacked is None:
        return None
    total = value.shape[stacked.axis]
    before = math.prod(value.shape[: stacked.axis])
    for axis, size in enumerate(shape):
        if math.prod(shape[:axis]) == before and size % total == 0:
            parts: list[Random | Known] = []
            for part in stacked.parts:
                assert isinstance(part, Random)
                own = (*shape[:axis], size // total, *shape[axis + 1 :])
                parts.append(reshaped(part, own, operation))
            return Blocks(tuple(parts), axis)
    return None


def _all_vary(weight: Weight) -> bool:
    return all(
        varies or size == 1 for varies, size in zip(weight.varies, weight.shape, strict=True)
    )


def _transpose(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    (value,) = operands
    order = eqn.params["permutation"]
    if isinstance(value, Weight):
        shape = tuple(value.shape[axis] for axis in order)
        varies = tuple(value.varies[axis] for axis in order)
        return Weight(value.leaf, shape, varies, value.factor)
    assert isinstance(value, Random)
    axes = tuple(value.axes[axis] for axis in order)
    return Random(value.atoms, axes, value.sizes, value.width)


def _broadcast(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    value = operands[0]
    shape = tuple(eqn.params["shape"])
    to = eqn.params["broadcast_dimensions"]
    if isinstance(value, Weight):
        varies = [False] * len(shape)
        for axis, place in enumerate(to):
            varies[place] = value.varies[axis]
        return Weight(value.leaf, shape, tuple(varies), value.factor)
    assert isinstance(value, Random)
    axes: list[tuple[int, ...]] = [()] * len(shape)
    for axis, place in enumerate(to):
        axes[place] = value.axes[axis]
    new = Random(value.atoms, tuple(axes), value.sizes, value.width)
    if new.shape != shape:
        raise refusal("broadcast_in_dim", "which repeats pre-activations")
    return new


def _sum(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    (value,) = operands
    if not isinstance(value, Random):
        raise refusal("reduce_sum", "of a parameter")
    return summed(value, eqn.params["axes"], "reduce_sum")


def _window_sum(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    """Sums over windows of positions, as average pooling takes them."""
    params = eqn.params
    keys = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
    still = (1, 1, (0, 0), 1, 1)
    touched = [
        axis
        for axis, settings in enumerate(zip(*(params[key] for key in keys), strict=True))
        if tuple(settings) != still
    ]

    def change(array: Array) -> Array:
        chosen = (
            params["window_dimensions"],
            params["window_strides"],
            params["padding"],
            params["base_dilation"],
            params["window_dilation"],
        )
        return jax.lax.reduce_window(array, 0.0, jax.lax.add, *chosen)

    return along_positions(
        _random(eqn, operands[0]), change, eqn.primitive.name, touched, mixes=True
    )


def _slice(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    value = _random(eqn, operands[0])
    starts = eqn.params["start_indices"]
    limits = eqn.params["limit_indices"]
    strides = eqn.params["strides"] or (1,) * len(starts)
    cuts = [slice(*each) for each in zip(starts, limits, strides, strict=True)]
    touched = [
        axis
        for axis, (cut, size) in enumerate(zip(cuts, value.shape, strict=True))
        if cut != slice(0, size, 1)
    ]
    kept = tuple(cut if axis in touched else slice(None) for axis, cut in enumerate(cuts))
    if any(NEURONS in value.axes[axis] for axis in touched):
        # Neurons are copies of each other; which of them meet later matters.
        (part,) = _drawn(eqn, [value])
        return part
    return along_positions(value, _slicing(kept), "slice", touched)


def _pad(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    value = _random(eqn, operands[0])
    filling = operands[1]
    if not isinstance(filling, Known) or filling.number() != 0:
        raise refusal("pad", "with other numbers than 0")
    config = eqn.params["padding_config"]
    widths = [(int(low), int(high), int(between)) for low, high, between in config]
    touched = [axis for axis, width in enumerate(widths) if width != (0, 0, 0)]
    return along_positions(value, _padding(widths), "pad", touched)


def _reverse(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    axes = eqn.params["dimensions"]
    value = _random(eqn, operands[0])
    backwards = slice(None, None, -1)
    cut = tuple(backwards if axis in axes else slice(None) for axis in range(len(value.shape)))
    return along_positions(value, _slicing(cut), "rev", axes)


def _stack(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    """Give each value a new axis of size 1, and concatenate along it."""
    axis = eqn.params["axis"]
    values: list[Random] = []
    for operand in operands:
        value = _random(eqn, operand)
        values.append(value.with_axes((*value.axes[:axis], (), *value.axes[axis:])))
    whole = _joined(eqn, values, axis)
    return replace(whole, beside=Blocks(tuple(values), axis))


def _concatenate(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    """Branches side by side along the neurons, or one after another along positions."""
    axis = eqn.params["dimension"]
    along_neurons = any(
        isinstance(operand, Blocks)
        or (isinstance(operand, Random) and operand.has_neurons_at(axis))
        for operand in operands
    )
    return (
        _side_by_side(operands, axis, "concatenate")
        if along_neurons
        else _joined(eqn, operands, axis)
    )


def _side_by_side(operands: Sequence[Value], axis: int, operation: str) -> Blocks:
    parts: list[Random | Known] = []
    for operand in operands:
        if isinstance(operand, Blocks) and operand.axis == axis:
            parts += operand.parts
        elif isinstance(operand, Known):
            parts.append(operand)
        elif isinstance(operand, Random) and operand.axes[axis] in ((NEURONS,), ()):
            if NEURONS not in operand.axes[axis] and operand.has_neurons:
                raise refusal(operation, "of neurons and positions")
            parts.append(operand)
        elif isinstance(operand, Weight):
            raise refusal(operation, "of a parameter")
        else:
            raise refusal(operation, "of neurons and positions")
    return Blocks(tuple(parts), axis)


def _reshaped_blocks(value: Blocks, shape: Shape, operation: str) -> Blocks:
    """Reshape every branch; the neurons stay on one axis, alone or merged with positions."""
    total = value.shape[value.axis]
    sizes = [part.shape[value.axis] for part in value.parts]
    for axis, size in enumerate(shape):
        if size % total:
            continue
        own = [(*shape[:axis], size // total * each, *shape[axis + 1 :]) for each in sizes]
        parts: list[Random | Known] = []
        for part, new in zip(value.parts, own, strict=True):
            if isinstance(part, Known):
                parts.append(part.reshaped(new))
                continue
            try:
                changed = reshaped(part, new, operation)
            except InvalidInput:
                break
            if NEURONS not in changed.axes[axis]:
                break
            parts.append(changed)
        if len(parts) == len(sizes):
            return Blocks(tuple(parts), axis)
    raise refusal(operation, "which divides the neurons or mixes them with positions")


def _biases_of_blocks(
    self: Interpreter, value: Blocks, operands: Sequence[Value], operation: str
) -> list[Random]:
    """Return the part of a bias that each branch takes; none if no operand is a parameter."""
    weights = [operand for operand in operands if isinstance(operand, Weight)]
    if not weights:
        return []
    if operation not in ("add", "sub"):
        raise refusal(operation, "with a parameter, entry by entry")
    if any(isinstance(part, Known) for part in value.parts):
        raise refusal(operation, "of a parameter and a value that no weight multiplied")
    (weight,) = weights
    scales = self.take(weight, operation)
    biases = []
    for part in value.parts:
        assert isinstance(part, Random)
        own = Weight(weight.leaf, part.shape, weight.varies, weight.factor)
        biases.append(self.bias_with(scales, own, part, operation))
    return biases


def _uniform(value: Known, shape: Shape, operation: str) -> Known:
    """Return a number for every entry of a branch."""
    number = value.number()
    if number is None:
        raise refusal(operation, "by numbers that differ between inputs, positions or neurons")
    array = np.broadcast_to(np.asarray(value.left).ravel()[0], shape)
    return Known(array, array, False)


def _like_blocks(value: Blocks, other: Blocks, operation: str) -> Blocks:
    own = [part.shape for part in value.parts]
    if value.axis != other.axis or own != [part.shape for part in other.parts]:
        raise refusal(operation, "of branches of different widths")
    return value


def _drawn(eqn: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
    """Keep an operation on neurons of a head, to apply it to draws of them."""
    taken: list[Random | Known | Drawn] = []
    for operand in operands:
        if isinstance(operand, Weight | Blocks):
            what = "a parameter" if isinstance(operand, Weight) else "concatenated branches"
            raise refusal(eqn.primitive.name, f"of {what} and neurons of a head")
        taken.append(operand)
    num_heads = max(each.num_heads if isinstance(each, Drawn) else 1 for each in taken)
    name = eqn.primitive.name
    if name in CUTS:  # a part of a division, such as queries among queries, keys and values
        num_heads = 1
    elif name == "reshape":
        num_heads = _divisions(taken[0].shape, tuple(shape_of(eqn.outvars[0]))) or num_heads

    def result(number: int, *values: Array) -> Array:
        own = [
            jnp.asarray(value, _wide(aval_of(atom).dtype))
            for value, atom in zip(values, eqn.invars, strict=True)
        ]
        found = _bound(eqn, own)
        return jnp.asarray(found[number] if eqn.primitive.multiple_results else found)

    results: list[Value] = []
    for number, outvar in enumerate(eqn.outvars):
        shape = tuple(shape_of(outvar))
        results.append(Drawn(shape, tuple(taken), partial(result, number), num_heads))
    return results


def _wide(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float64) if _is_float(dtype) else dtype


def _divided(value: Random, shape: Shape, num_heads: int) -> Drawn:
    """Return pre-activations whose neurons are divided into heads."""
    return Drawn(shape, (value,), lambda array: array.reshape(shape), num_heads, value)


def _heads(value: Random, shape: Shape) -> int | None:
    """Return how many heads a reshape makes of the last axis.

    It is None if that axis is not one of neurons.
    """
    if not value.axes or value.axes[-1] != (NEURONS,):
        return None
    return _divisions(value.shape, shape)


def _divisions(before: Shape, after: Shape) -> int | None:
    """Return into how many parts a reshape divides the last axis; None if it does not."""
    lead = before[:-1]
    rest = [size for size in after[len(lead) :] if size > 1]
    return rest[0] if after[: len(lead)] == lead and len(rest) > 1 else None


def _split(eqn: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
    """Parts along an axis of positions or neurons."""
    value = _random(eqn, operands[0])
    axis = eqn.params["axis"]
    if NEURONS in value.axes[axis]:
        return _drawn(eqn, [value])
    parts: list[Value] = []
    start = 0
    for size in eqn.params["sizes"]:
        cut = (*(slice(None),) * axis, slice(start, start + size))
        parts.append(along_positions(value, _slicing(cut), "split", [axis]))
        start += size
    return parts


def _slicing(cut: tuple[slice, ...]) -> Callable[[Entries], Entries]:
    return lambda array: array[cut]


def _joined(eqn: JaxprEqn, operands: Sequence[Value], axis: int) -> Random:
    """Place values one after another along positions, each with zeros elsewhere, and add them."""
    total = shape_of(eqn.outvars[0])[axis]
    start = 0
    placed: list[Random] = []
    for operand in operands:
        value = _random(eqn, operand)
        size = value.shape[axis]
        widths = [(0, 0, 0)] * len(value.shape)
        widths[axis] = (start, total - start - size, 0)
        placed.append(along_positions(value, _padding(widths), "concatenate", [axis]))
        start += size
    first = placed[0]
    return _merged(first, [like(each, first, "concatenate").atoms for each in placed])


def _merged(like_this: Random, placed: Sequence[Sum]) -> Random:
    """Add values at different positions; all maps of an atom become one, for circular padding.

    Each entry of the result is an entry of the atom if no map has sums, if no value has the atom
    twice, and if all of them have one coefficient.
    """
    maps: dict[Atom, list[tuple[float, Change]]] = {}
    sums: set[Atom] = set()
    for atoms in placed:
        own: set[Atom] = set()
        for atom, c in atoms.items():
            changes: list[Change] = []
            has_sums = False
            while isinstance(atom, Moved):
                changes.insert(0, atom.change)
                has_sums |= atom.mixes
                atom = atom.of
            if has_sums or atom in own:
                sums.add(atom)
            own.add(atom)
            maps.setdefault(atom, []).append((c, partial(_chained, changes)))
    merged: dict[Atom, float] = {}
    for atom, parts in maps.items():
        coefficients = {c for c, _ in parts}
        if atom in sums or len(coefficients) > 1:
            merged[Moved(like_this.sizes, atom, partial(_weighted_sum, parts))] = 1.0
            continue
        entries = [(1.0, change) for _, change in parts]
        change = _Picked(partial(_weighted_sum, entries), atom.sizes)
        merged[Moved(like_this.sizes, atom, change, mixes=False)] = coefficients.pop()
    return like_this.with_atoms(merged)


@dataclass(frozen=True, eq=False)
class _Picked:
    """A map whose results are entries or 0: along one axis after the other, or as one look-up.

    Attributes:
        change: the map.
        sizes: of the positions that it takes.
    """

    change: Change
    sizes: Shape

    @cached_property
    def numbers(self) -> np.ndarray:
        """The number of the entry at each position of the result, from 1; 0 for none."""
        entries = np.arange(1.0, 1 + math.prod(self.sizes)).reshape(self.sizes)
        with jax.ensure_compile_time_eval():
            return np.asarray(self.change(entries, 0)).astype(int)

    @cached_property
    def along_axes(self) -> tuple[np.ndarray, ...] | None:
        """The number of the entry along each axis, from 1 and 0 for none; None if axes mix.

        Padding, slices and reversals treat one axis after the other.
        """
        if self.numbers.ndim != len(self.sizes):
            return None
        present = self.numbers > 0
        places = np.unravel_index(np.maximum(self.numbers - 1, 0), self.sizes)
        found = []
        for axis, place in enumerate(places):
            others = tuple(other for other in range(len(places)) if other != axis)
            found.append(np.where(present, place + 1, 0).max(axis=others, initial=0))
        # If axes do not mix, these numbers alone give back the number of every entry.
        grid = np.meshgrid(*found, indexing="ij")
        is_present = np.all([each > 0 for each in grid], axis=0)
        flat = np.ravel_multi_index([np.maximum(each - 1, 0) for each in grid], self.sizes)
        is_given_back = np.array_equal(np.where(is_present, flat + 1, 0), self.numbers)
        return tuple(found) if is_given_back else None

    def __call__(self, array: Entries, after: int) -> Entries:
        end = array.ndim - after
        first = end - len(self.sizes)
        if self.along_axes is not None:
            for place, numbers in enumerate(self.along_axes):
                array = _picked_along(array, first + place, numbers)
            return array
        before = array.shape[:first]
        behind = array.shape[end:]
        flat = array.reshape(math.prod(before), math.prod(self.sizes), math.prod(behind))
        entries = _picked_along(flat, 1, self.numbers.ravel())
        return entries.reshape(*before, *self.numbers.shape, *behind)


def _picked_along(array: Entries, axis: int, numbers: np.ndarray) -> Entries:
    """Return the entries of these numbers along an axis; 0 for the number 0.

    Few runs of neighbors are slices, which compiled programs read faster than look-ups.
    """
    use: Any = np if isinstance(array, np.ndarray) else jnp
    continued = np.where(numbers[:-1] > 0, numbers[:-1] + 1, 0)
    runs = np.split(numbers, 1 + np.flatnonzero(numbers[1:] != continued))
    if len(runs) > MOST_RUNS:
        entries = use.take(array, np.maximum(numbers - 1, 0), axis=axis)
        shape = [1] * array.ndim
        shape[axis] = len(numbers)
        return use.where(numbers.reshape(shape) > 0, entries, 0) if 0 in numbers else entries
    parts = []
    for run in runs:
        if run[0]:
            cut = (*(slice(None),) * axis, slice(int(run[0]) - 1, int(run[-1])))
            parts.append(array[cut])
        else:
            shape = list(array.shape)
            shape[axis] = len(run)
            parts.append(use.zeros(shape, array.dtype))
    return parts[0] if len(parts) == 1 else use.concatenate(parts, axis)


def _chained(changes: Sequence[Change], array: Entries, after: int) -> Entries:
    for change in changes:
        array = change(array, after)
    return array


def _weighted_sum(parts: Sequence[tuple[float, Change]], array: Entries, after: int) -> Entries:
    total: Any = sum(_times_number(c, change(array, after)) for c, change in parts)
    return total


def _times_number(c: float, array: Entries) -> Entries:
    return array if c == 1 else c * array


def _padding(widths: Sequence[tuple[int, int, int]]) -> Callable[[Entries], Entries]:
    """Return (low, high, between) zeros along each axis, as ``jax.lax.pad``."""

    def padded(array: Entries) -> Entries:
        outside = [(low, high) for low, high, _ in widths]
        is_plain = not any(between for _, _, between in widths)
        if isinstance(array, np.ndarray) and is_plain and min(map(min, outside)) >= 0:
            return np.pad(array, outside)  # without compiling
        return jax.lax.pad(jnp.asarray(array), 0.0, widths)

    return padded


def _random(eqn: JaxprEqn, value: Value) -> Random:
    if not isinstance(value, Random):
        what = (
            "a parameter" if isinstance(value, Weight) else "known numbers beside pre-activations"
        )
        raise refusal(eqn.primitive.name, f"of {what}")
    return value


def _activation(self: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    value = _random(eqn, operands[0])
    activation = eqn.params["activation"]
    inside, function = as_function(value, eqn.primitive.name)
    if function is not same:
        activation = _composed(activation_function(activation), function)
    return value.with_atoms({Pointwise(value.sizes, activation, inside): 1.0})


def _composed(
    outer: Callable[[Array], Array], inner: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    return lambda t: outer(inner(t))


_RULES: dict[str, Callable[[Interpreter, JaxprEqn, list[Value]], Value]] = {
    "activation": _activation,
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "transpose": _transpose,
    "broadcast_in_dim": _broadcast,
    "reduce_sum": _sum,
    "reduce_window_sum": _window_sum,
    "slice": _slice,
    "pad": _pad,
    "rev": _reverse,
    "stack": _stack,
    "concatenate": _concatenate,
}
