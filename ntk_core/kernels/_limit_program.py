"""The infinite width of a traced program.

A rule for each operation (docs/math/infinite_width.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var

from ntk_core.kernels._limit_branches import like_blocks, reshaped_blocks, side_by_side, uniform
from ntk_core.kernels._limit_draws import products_of_drawn
from ntk_core.kernels._limit_functions import (
    CUSTOM,
    Applied,
    check_slopes,
    composed,
    constant,
    evaluated,
    is_choice,
    is_float_type,
    scaled,
)
from ntk_core.kernels._limit_heads import divided, kept_for_draws
from ntk_core.kernels._limit_moments import (
    Constant,
    Gaussian,
    Moments,
    Pair,
    Pointwise,
    is_constant,
)
from ntk_core.kernels._limit_positions import POSITION_RULES, as_random, concatenate, split
from ntk_core.kernels._limit_values import (
    NEURONS,
    Blocks,
    Drawn,
    Known,
    Random,
    Value,
    Weight,
    added,
    as_function,
    like,
    ratio,
    refusal,
    same,
)
from ntk_core.networks.architectures import Activation, activation_function
from ntk_core.traced import CALLS, ELEMENTWISE, shape_of

LINEAR = frozenset({"add", "add_any", "sub", "neg", "mul", "div", "copy", "copy_p"})

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
        consts = [constant(const) for const in closed.consts]
        return self._walk(closed.jaxpr, consts, arguments)

    def _walk(
        self, jaxpr: Jaxpr, consts: Sequence[Value], arguments: Sequence[Value]
    ) -> list[Value]:
        found: dict[Var, Value] = dict(zip(jaxpr.constvars, consts, strict=True))
        found.update(zip(jaxpr.invars, arguments, strict=True))

        def read(atom: Var | Literal) -> Value:
            return constant(atom.val) if isinstance(atom, Literal) else found[atom]

        for eqn in jaxpr.eqns:
            operands = [read(atom) for atom in eqn.invars]
            results = self._equation(eqn, operands)
            found.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, eqn: JaxprEqn, operands: list[Value]) -> Sequence[Value]:
        name = eqn.primitive.name
        known = [operand for operand in operands if isinstance(operand, Known)]
        if len(known) == len(operands):
            return evaluated(eqn, known)
        if any(isinstance(operand, Drawn) for operand in operands) and name not in CALLS:
            return self._of_draws(eqn, name, operands)
        if name in CUSTOM:
            check_slopes(eqn)
        inner = {**CALLS, **CUSTOM}.get(name)
        if inner is not None:
            called = eqn.params[inner]
            if isinstance(called, ClosedJaxpr):
                return self.run(called, operands)
            return self._walk(called, [], operands)
        if any(isinstance(operand, Blocks) for operand in operands):
            return [self._of_blocks(eqn, name, operands)]
        if name == "split":
            return split(eqn, operands)
        if name in LINEAR:
            linear = self._linear(eqn, name, operands)
            if linear is not None:
                return [linear]
        if name == "convert_element_type" and is_float_type(eqn.params["new_dtype"]):
            (operand,) = operands
            if not (isinstance(operand, Random) and is_choice(eqn)):
                return [operand]
        if name in ELEMENTWISE:
            return [self._elementwise(eqn, name, operands)]
        if name in _PRODUCTS:
            return [_PRODUCTS[name](self, eqn, operands)]
        rule = _RULES.get(name)
        if rule is None:
            raise refusal(name)
        return [rule(eqn, operands)]

    def _of_draws(self, eqn: JaxprEqn, name: str, operands: list[Value]) -> Sequence[Value]:
        """An operation on drawn neurons, kept for later; a product with a weight takes its mean."""
        if any(isinstance(operand, Weight) for operand in operands):
            if name == "dot_general":
                return [_product(self, eqn, operands)]
            if name == "add":
                return [self._bias_of_drawn(eqn, operands)]
            raise refusal(name, "of a parameter and neurons of a head")
        return kept_for_draws(eqn, operands)

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
        return divided(added(whole, bias, "add"), drawn.shape, drawn.num_heads)

    def _of_blocks(self, eqn: JaxprEqn, name: str, operands: list[Value]) -> Value:
        """An operation on branches side by side: on each of them."""
        if name in ("dot_general", "conv_general_dilated"):
            return _PRODUCTS[name](self, eqn, operands)
        if name == "concatenate":
            return concatenate(eqn, operands)
        first = next(operand for operand in operands if isinstance(operand, Blocks))
        if name in ("reshape", "squeeze", "expand_dims"):
            return reshaped_blocks(first, tuple(shape_of(eqn.outvars[0])), name)
        if name == "transpose":
            order = eqn.params["permutation"]
            parts = [self._equation(eqn, [part])[0] for part in first.parts]
            return side_by_side(parts, order.index(first.axis), name)
        if name == "reduce_sum" and first.axis not in eqn.params["axes"]:
            parts = [self._equation(eqn, [part])[0] for part in first.parts]
            before = [axis for axis in eqn.params["axes"] if axis < first.axis]
            return side_by_side(parts, first.axis - len(before), name)
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
                    own.append(uniform(operand, part.shape, name))
                else:
                    assert isinstance(operand, Blocks)
                    own.append(like_blocks(operand, first, name).parts[number])
            results += self._equation(eqn, own)
        return side_by_side(results, first.axis, name)

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
            functions.append(scaled(own, factor))
        applied = Applied(eqn, tuple(functions))
        return Random(
            {Pointwise(first.sizes, applied, inside): 1.0}, first.axes, first.sizes, first.width
        )

    def pre_activation(
        self, value: Value, weight: Weight, contracted: Sequence[int], operation: str
    ) -> tuple[dict[Pair, Array], Array, list[int]]:
        """Return (covariances, tangent kernel, kept axes of ``value``) of a product with a weight.

        Positions of the results are the kept axes.
        """
        if not weight.all_vary:
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


def _times(value: Value, factor: float) -> Value:
    if isinstance(value, Random):
        return value.times(factor)
    if isinstance(value, Weight):
        return Weight(value.leaf, value.shape, value.varies, value.factor * factor)
    assert isinstance(value, Known)
    return Known(value.left * factor, value.right * factor, value.depends)


def _product(interpreter: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
    """A product with a weight: pre-activations of a dense layer."""
    (contract1, contract2), (batch1, batch2) = eqn.params["dimension_numbers"]
    one, two = operands
    is_first = isinstance(one, Weight)
    if is_first and isinstance(two, Weight):
        raise refusal("dot_general", "of two parameters")
    if not is_first and not isinstance(two, Weight):
        if not (isinstance(one, Random) and isinstance(two, Random)):
            raise refusal("dot_general", "of two values that are no weights")
        (scores,) = kept_for_draws(eqn, operands)
        return scores
    weight, value = (one, two) if is_first else (two, one)
    assert isinstance(weight, Weight)
    of_weight, of_value = (contract1, contract2) if is_first else (contract2, contract1)
    batch = batch1 if is_first else batch2
    if any(weight.shape[axis] > 1 for axis in batch):
        raise refusal("dot_general", "with one weight for each position")
    dropped = batch2 if is_first else batch1  # axes of size 1
    covariances, tangent, kept = interpreter.pre_activation(value, weight, of_value, "dot_general")
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
    moments = interpreter.moments
    shaped = {
        pair: each.reshape(moments.shape(sizes, sizes, pair)) for pair, each in covariances.items()
    }
    atom = Gaussian(sizes, shaped, tangent.reshape(moments.shape(sizes, sizes, Pair.CROSS)))
    result = Random({atom: 1.0}, tuple(axes), sizes, width)
    if are_heads:
        return divided(result, tuple(shape_of(eqn.outvars[0])), weight.shape[free[0]])
    return result


def _convolution(interpreter: Interpreter, eqn: JaxprEqn, operands: list[Value]) -> Value:
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
    covariances, tangent, kept = interpreter.pre_activation(value, weight, (feature,), name)
    kernel = [weight.shape[axis] for axis in numbers.rhs_spec[2:]]
    place = [kept.index(axis) for axis in spatial]
    sizes = [value.shape[axis] for axis in spatial]
    new = tuple(shape_of(eqn.outvars[0])[axis] for axis in numbers.out_spec[2:])
    all_pairs = interpreter.moments.all_pairs

    kept_sizes = [value.shape[axis] for axis in kept]
    single = [axis for axis in range(len(kept)) if axis not in place]  # the batch, of size 1

    def averaged(array: Array, pair: Pair) -> Array:
        rows = interpreter.moments.rows(pair)
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


def _biases_of_blocks(
    interpreter: Interpreter, value: Blocks, operands: Sequence[Value], operation: str
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
    scales = interpreter.take(weight, operation)
    biases = []
    for part in value.parts:
        assert isinstance(part, Random)
        own = Weight(weight.leaf, part.shape, weight.varies, weight.factor)
        biases.append(interpreter.bias_with(scales, own, part, operation))
    return biases


def _activation(eqn: JaxprEqn, operands: list[Value]) -> Value:
    value = as_random(eqn, operands[0])
    activation = eqn.params["activation"]
    inside, function = as_function(value, eqn.primitive.name)
    if function is not same:
        activation = composed(activation_function(activation), function)
    return value.with_atoms({Pointwise(value.sizes, activation, inside): 1.0})


# Operation → its rule, for products with a weight.
_PRODUCTS: dict[str, Callable[[Interpreter, JaxprEqn, list[Value]], Value]] = {
    "dot_general": _product,
    "conv_general_dilated": _convolution,
}
_RULES = {**POSITION_RULES, "activation": _activation}
