"""Infinite width of any function ``apply(params, x)``.

It is read from the traced program (docs/math/infinite_width.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr
from jaxtyping import Float, PyTree

from ntk_core.errors import InvalidInput
from ntk_core.kernels._arrays import in_jax_floats, refuse_not_finite, refuse_traced
from ntk_core.kernels._empirical import rows_of
from ntk_core.kernels._gaussian import NUM_NODES
from ntk_core.kernels._limit_kernels import Kernel, LimitProgram, quadrature_error
from ntk_core.kernels._limit_program import Scale
from ntk_core.kernels._limit_values import Known, Value, Weight
from ntk_core.real_numbers import is_finite_number
from ntk_core.traced import (
    Inputs,
    Model,
    Trainable,
    accepted,
    check_model,
    checked,
    leaf_names,
    like_rows,
    moving_leaves,
    packed_rows,
    restricted,
    trace,
    with_usual_settings,
)

# Our choice.
MAX_QUADRATURE_ERROR = 1e-3
MEAN_ERRORS = 6.0  # standard errors by which the mean of drawn weights may differ from 0


@dataclass(frozen=True)
class WeightScale:
    """Standard deviation of the entries of one parameter.

    Attributes:
        name: path of the parameter, as ``encoder.weight``.
        std: its standard deviation.
        is_stated: stated by ``weight_std``, or measured on the given numbers.
        standard_error: of a measured one for normal entries, std / √(2 · entries); 0 if stated.
        is_trained: whether the tangent kernel contains its derivatives.
    """

    name: str
    std: float
    is_stated: bool
    standard_error: float
    is_trained: bool

    def __str__(self) -> str:
        found = "stated" if self.is_stated else f"measured, ± {self.standard_error:.1g}"
        frozen = "" if self.is_trained else ", frozen"
        return f"{self.name}: {self.std:.4g} ({found}{frozen})"


@dataclass(frozen=True, repr=False)
class InfiniteWidth:
    """Infinite-width kernels of a function, and the scales of its weights.

    Θ(x, x') and Σ(x, x') of one output; ``print`` lists the scales instead of the arrays.

    Attributes:
        ntk: tangent kernel of one output, (n1, n2); kernels between different outputs vanish.
        nngp: covariance of one output of random networks, (n1, n2).
        scales: of the parameters, in the order of the tree.
        quadrature_error: ‖K_N − K_{N/2}‖_∞ / ‖K_N‖_∞ of N quadrature nodes at the first
            inputs; 0 for closed forms.
        sampling_error: norm of the standard errors of ``ntk`` relative to its norm, where
            heads are drawn; else 0.

    >>> apply = lambda w, x: x @ w
    >>> infinite_width(apply, jnp.ones((2, 1)), jnp.array([[3.0, 4.0]]), weight_std={"*": 1.0})
    InfiniteWidth of 1×1 inputs (closed forms); standard deviations:
      params: 1 (stated)

    Source: docs/math/infinite_width.md.
    """

    ntk: Float[Array, "n1 n2"]
    nngp: Float[Array, "n1 n2"]
    scales: tuple[WeightScale, ...]
    quadrature_error: float
    sampling_error: float = 0.0

    def __repr__(self) -> str:
        lines = "\n  ".join(map(str, self.scales))
        shape = "×".join(map(str, self.ntk.shape))
        exact = "closed forms"
        if self.quadrature_error:
            exact = f"quadrature, error {self.quadrature_error:.0e}"
        if self.sampling_error:
            exact = f"draws of heads, standard error {self.sampling_error:.1%}"
        return f"InfiniteWidth of {shape} inputs ({exact}); standard deviations:\n  {lines}"


@with_usual_settings
def infinite_width(
    apply: Model,
    params: PyTree,
    x1: Inputs,
    x2: Inputs | None = None,
    *,
    weight_std: Mapping[str, float] | None = None,
    trainable: Trainable = None,
) -> InfiniteWidth:
    """Return the infinite-width kernels of your own function.

    The program of ``apply`` is followed operation by operation: for a product with weights of m
    rows, factor c and standard deviation s,

        Σ = c² s² m E[a a'],        Θ = c² s² m Θ_a + c² m E[a a'].

    All hidden widths grow while m c² and m c² s² of every weight keep their values. In the NTK
    parameterization (c = 1/√m, s = 1) this is the usual limit. In the standard one
    (c = 1, s = 1/√m) hidden layers contribute m E[a a'], with the given widths m: the kernel of
    networks as wide as this one, without fluctuations.

    There are rules for products with weights (dense, also at each position), convolutions, biases,
    elementwise functions, sums and concatenations of branches, averages over positions, flattening,
    and attention. Any other operation is refused by its name: a parameter used twice, normalization
    over the width, look-ups, products of different pre-activations.

    In attention the number of heads grows at fixed head dimension. Its kernel is a mean over 16,384
    drawn heads, and ``sampling_error`` is its standard error, usually below 1%.

    Args:
        apply: any function ``apply(params, x) -> (n, C)``.
        params: its parameters; their numbers matter only where ``weight_std`` states nothing.
        x1: inputs (n1, *input_shape).
        x2: further inputs, by default ``x1``.
        weight_std: standard deviations at initialization by name, with wildcards:
            ``{"*.w": 1.0, "*.b": 0.1}``. The first pattern that matches counts. Others are measured
            on ``params``: the root mean square of the entries.
        trainable: the parameters that are differentiated, as for ``empirical_ntk``.

    Returns:
        Tangent kernel and covariance of one output, and the scales that were used.

    >>> import jax
    >>> apply = lambda p, x: jax.nn.relu(x @ p["w"] / x.shape[1] ** 0.5) @ p["v"] / 512**0.5
    >>> params = {"v": jnp.ones((512, 1)), "w": jnp.ones((2, 512))}
    >>> limit = infinite_width(apply, params, jnp.array([[3.0, 4.0]]), weight_std={"*": 1.0})
    >>> round(limit.ntk.item(), 4), str(limit.scales[0])
    (12.5, 'v: 1 (stated)')

    Raises:
        InvalidInput: for an operation without a rule, with its name; for a name that matches no
            parameter; for parameters whose mean is not 0 without a stated deviation; for functions
            that quadrature does not resolve; for inputs that are not finite and kernels beyond the
            range of JAX's floats; and as ``empirical_ntk``.

    Source: Jacot, Gabriel & Hongler 2018; Arora et al. 2019; Yang 2019 (programs);
    docs/math/infinite_width.md.
    """
    refuse_traced((params, x1, x2), "params")
    check_model(apply, params)
    scales = _scales(apply, params, weight_std, trainable)
    net, x1 = packed_rows(restricted(apply, params, trainable), x1, "x1")
    net, rows, _ = accepted(net, params, x1, "x1")
    left = rows_of(net, rows)
    right = left if x2 is None else jnp.asarray(like_rows(x2, left, "x2", net)).astype(left.dtype)
    if not len(right):
        raise InvalidInput("x2", f"shape {right.shape}", "shape (n, …) with at least one input")
    refuse_not_finite(left, "x1")
    refuse_not_finite(right, "x2")
    checked(net, params, left)
    with jax.enable_x64(True):
        program = _limit_program(net, params, left, scales)
        sampling_error = 0.0
        needs = program.needs(left, right)
        has_quadrature = needs.quadrature
        if needs.draws:
            kernels, sampling_error, has_quadrature = program.drawn_kernels(left, right)
        else:
            kernels = program.kernels(left, right)
        error = quadrature_error(program, left) if has_quadrature else 0.0
    if not error <= MAX_QUADRATURE_ERROR:
        given = f"a function with elementwise parts of quadrature error {error:.1e}"
        allowed = (
            f"functions that {NUM_NODES} nodes of a quadrature resolve to {MAX_QUADRATURE_ERROR:g}"
        )
        raise InvalidInput("net", given, allowed)
    return InfiniteWidth(
        in_jax_floats(kernels[Kernel.NTK], "x1"),
        in_jax_floats(kernels[Kernel.NNGP], "x1"),
        tuple(scales.values()),
        error,
        sampling_error,
    )


def _limit_program(
    net: Model, params: PyTree, rows: Array, scales: Mapping[int, WeightScale]
) -> LimitProgram:
    """Return the traced program with its weights; other parameters keep their numbers."""
    parameters: list[Value] = []
    for number, leaf in enumerate(jax.tree.leaves(params)):
        array = jnp.asarray(leaf)
        if number in scales:
            varies = tuple(size > 1 for size in array.shape)
            parameters.append(Weight(number, tuple(array.shape), varies))
        else:
            parameters.append(Known(array, array, False))
    own = {
        number: Scale(scale.name, scale.std, scale.is_trained) for number, scale in scales.items()
    }
    return LimitProgram(_program(net, params, rows), tuple(parameters), own)


def _program(net: Model, params: PyTree, rows: Array) -> ClosedJaxpr:
    """Trace the function for one row, in float64 where it allows that."""
    leaves, structure = jax.tree.flatten(params)
    shape = (1, *rows.shape[1:])
    given = [jax.ShapeDtypeStruct(np.shape(leaf), jnp.asarray(leaf).dtype) for leaf in leaves]
    wide = [jax.ShapeDtypeStruct(each.shape, _widened(each.dtype)) for each in given]
    function = net if callable(net) else net.apply
    try:
        closed, _ = trace(function, structure, tuple(wide), shape, _widened(rows.dtype))
    except (TypeError, ValueError, RuntimeError):  # the last is PyTorch's for mixed precisions
        with jax.enable_x64(False):
            closed, _ = trace(function, structure, tuple(given), shape, rows.dtype)
    return closed


def _widened(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float64) if jnp.issubdtype(dtype, jnp.floating) else dtype


def _scales(
    apply: Model, params: PyTree, weight_std: Mapping[str, float] | None, trainable: Trainable
) -> dict[int, WeightScale]:
    """Return the scale of each parameter of floats, stated or measured, by its number."""
    stated = dict(weight_std or {})
    paths = jax.tree_util.tree_leaves_with_path(params)
    names = leaf_names([path for path, _ in paths])
    for pattern, std in stated.items():
        _check_statement(pattern, std, names)
    moves = moving_leaves(restricted(apply, params, trainable), params)
    scales: dict[int, WeightScale] = {}
    for number, (name, (_, leaf), trained) in enumerate(zip(names, paths, moves, strict=True)):
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating) or not jnp.size(leaf):
            continue
        array = np.asarray(leaf)
        own = [std for pattern, std in stated.items() if _matches(name, pattern)]
        if own:
            scales[number] = WeightScale(name, float(own[0]), True, 0.0, trained)
            continue
        std = _measured(name, array.astype(np.float64))
        scales[number] = WeightScale(name, std, False, std / math.sqrt(2 * array.size), trained)
    return scales


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")


def _check_statement(pattern: str, std: float, names: list[str]) -> None:
    if not (is_finite_number(std) and std >= 0):
        raise InvalidInput("weight_std", f"{std!r} for {pattern}", "a finite number, at least 0")
    if not any(_matches(name, pattern) for name in names):
        nearest = next(iter(get_close_matches(pattern, names, 1, cutoff=0.3)), None)
        close = f"{nearest}, the nearest name" if nearest else f"one of {', '.join(names[:8])}"
        given = f"{pattern!r}, which matches no parameter,"
        raise InvalidInput("weight_std", given, close, nearest)


def _measured(name: str, entries: np.ndarray) -> float:
    """Return the root mean square of drawn entries.

    Raises:
        InvalidInput: for entries that are not finite, or whose mean is not 0.
    """
    if not np.isfinite(entries).all():
        raise InvalidInput("params", f"{name} with entries that are not finite", "finite numbers")
    if not entries.size:
        return 0.0
    mean = entries.mean()
    spread = entries.std()
    if entries.size > 1 and abs(mean) > MEAN_ERRORS * spread / math.sqrt(entries.size) and mean:
        given = f"{name} with mean {mean:.3g} and deviation {spread:.3g}"
        raise InvalidInput(
            "params",
            given,
            f'draws around 0, or their deviation stated: weight_std={{"{name}": …}}',
        )
    return float(np.sqrt(np.mean(entries**2)))
