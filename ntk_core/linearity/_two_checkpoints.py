"""Measure how linear a model is between two checkpoints, without training.

It also measures whether several checkpoints add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree

from ntk_core import traced
from ntk_core.dynamics import addition_error
from ntk_core.errors import InvalidInput
from ntk_core.kernels import (
    ScaledNorm,
    has_entries_beyond,
    kernel_change_between,
    kernel_regression,
    moving_of,
    refuse_traced,
    scaled_model,
    unchecked_ntk,
)
from ntk_core.linearity._derivatives import (
    Derivatives,
    Function,
    derivatives,
    first_derivatives,
    gradient_norms,
    with_all_digits,
)
from ntk_core.linearity._report import LayerReport, LinearityReport, ratio
from ntk_core.networks.architectures import Network, merge

MOST_ROWS = 2048  # (input, output) pairs; beyond, kernels are estimated
PROBES = 32
SMALLEST_OUTPUTS = 100  # least numbers of their type; our choice


@traced.with_usual_settings
def linearity_report(
    apply: traced.Model,
    params0: PyTree,
    params1: PyTree,
    x: traced.Inputs,
    y: Float[ArrayLike, "n ..."] | None = None,
    *,
    kernel: Literal["auto", "exact", "estimated"] = "auto",
    memory_limit: float | None = None,
    seed: int = 0,
    trainable: traced.Trainable = None,
    others: Sequence[PyTree] = (),
) -> LinearityReport:
    """Report how linear a model is between two checkpoints.

    With δ = w₁ − w₀: the output error ‖f(w₁) − f(w₀) − J₀δ‖ / ‖f(w₁) − f(w₀)‖ of the linear
    model, the second-order share ‖½ δᵀH(w₀)δ‖ / ‖J₀δ‖, the change of the directional derivative,
    ΔK and the shares of all parameters. Nothing is trained. Only the end points are compared, not
    the path between them.

    With further checkpoints from the same w₀, it also reports how far all of them add: the error E
    of :func:`ntk_core.dynamics.addition_error` for the vectors w_k − w₀.

    >>> before, after = jnp.ones((3, 1)), jnp.zeros((3, 1))
    >>> report = linearity_report(lambda w, x: x @ w, before, after, jnp.ones((4, 3)))
    >>> report.output_error, report.kernel_change
    (0.0, 0.0)

    Args:
        apply: any function apply(params, x) → (n, C) or (n,) that treats each row of x
            separately, or a network.
        params0, params1: the checkpoints, w₀ before training or fine-tuning and w₁ after it.
        x: inputs (n, *input_shape).
        y: targets of the outputs' shape, (n, C) or (n, T, C), for losses.
        kernel: ``exact``, ``estimated`` from 32 random vectors with an interval, or by the number
            of inputs and outputs: exact for n C ≤ 2048.
        memory_limit: bytes for the kernels, 1 GiB by default.
        seed: of the random vectors.
        trainable: the parameters that moved, as for ``empirical_ntk``; all others must be equal
            in both checkpoints.
        others: further checkpoints, each trained from params0 on another task. Checkpoints whose
            weights are uncorrelated with params0 are refused. A single params1 is reported with
            this correlation and a warning: very long training can lose all correlation, too.

    Returns:
        The report; its ``verdict`` is a sentence.

    Raises:
        InvalidInput: if the trees differ (with the leaf and shapes), weights are not finite, or no
            weight changed; if outputs or their derivatives leave the digits of their type; for
            others, also if a checkpoint has another start.

    Source: Liu, Zhu & Belkin 2020, §2; Lee et al. 2019, §2.2; docs/tutorials/own-model.md.
    """
    if kernel not in ("auto", "exact", "estimated"):
        raise InvalidInput("kernel", kernel, "auto, exact or estimated")
    given = _accepted(apply, params0, params1, x, y, trainable)
    net = given.net
    names, w0, w1, function = _differentiated(net, params0, params1)
    with traced.compiling(f"the linearity of {traced.name_of(net)}"):
        has_hessian = _has_symmetric_hessian(given, params0)
        differentiated = derivatives if has_hessian else first_derivatives
        found = _derivatives(differentiated, function, w0, w1, given.inputs)
        gradients = _gradient_norms(function, w0, given.inputs, jax.random.key(seed))

    ends = _ends(found)
    is_exact = kernel == "exact" or (kernel == "auto" and ends.f0.size <= MOST_ROWS)
    change = kernel_change_between(
        net,
        params0,
        params1,
        given.inputs,
        probes=None if is_exact else PROBES,
        memory_limit=memory_limit,
        seed=seed,
    )
    error_of_sum = None
    correlation = None
    if others:
        error_of_sum = _addition_error(given, params0, (params1, *others), trainable, apply)
    else:
        correlation = _chance_correlation(params0, params1)
    losses = {}
    if given.targets is not None:
        losses = _losses(given, params0, ends, is_exact)
    layers = _layers(names, w0, found, gradients, _length(ends.linear))
    return LinearityReport(
        num_inputs=len(given.inputs),
        num_outputs=given.num_outputs,
        num_params=sum(layer.num_params for layer in layers),
        **_ratios(ends),
        kernel_change=change.change,
        kernel_interval=change.interval,
        kernel_distance=change.distance,
        layers=layers,
        addition_error=error_of_sum,
        num_added=1 + len(others) if others else None,
        start_correlation=correlation,
        **losses,
    )


def _derivatives(
    differentiated: Callable[..., Derivatives],
    function: Function,
    w0: list[Array],
    w1: list[Array],
    x: Array,
) -> Derivatives:
    """Return derivatives along δ with all of their digits, in float64."""

    def run(factor: float) -> Derivatives:
        found = traced.quickly(differentiated)(function, w0, w1, x, factor)
        f0, f1, *derived = found.values
        slope, curvature, later = (np.asarray(each, np.float64) for each in derived)
        values = (f0, f1, slope / factor, curvature / factor**2, later / factor)
        parts = [np.asarray(part, np.float64) / factor**2 for part in found.parts]
        return found._replace(values=values, parts=parts)

    first = run(1.0)
    f0, f1 = first.values[:2]
    _refuse_outputs(np.asarray(f0, np.float64), np.asarray(f1, np.float64), f0.dtype)

    def numbers(found: Derivatives) -> list[np.ndarray]:
        return [*map(np.asarray, found.values[2:]), np.asarray(found.parts)]

    return with_all_digits(lambda c: first if c == 1 else run(c), numbers, f0.dtype)[0]


def _refuse_outputs(f0: np.ndarray, f1: np.ndarray, dtype: np.dtype) -> None:
    """Refuse outputs that are not finite, and those near the least number of their type."""
    if not (np.isfinite(f0).all() and np.isfinite(f1).all()):
        allowed = "inputs that both checkpoints can take"
        raise InvalidInput("x", "inputs with outputs that are not finite", allowed)
    largest = max(np.abs(f0).max(), np.abs(f1).max())
    least = SMALLEST_OUTPUTS * traced.least_normal(dtype)
    if largest < least:
        raise InvalidInput(
            "apply",
            f"outputs of at most {largest:.0e} at both checkpoints",
            f"outputs in other units, since {np.dtype(dtype).name} has digits from "
            f"{least / SMALLEST_OUTPUTS:.0e} on",
        )


def _gradient_norms(
    function: Function, w0: list[Array], x: Array, key: Array
) -> Float[np.ndarray, "n C leaves"]:
    """Return the norms of gradients with all of their digits, in float64."""

    def run(factor: float) -> np.ndarray:
        norms = traced.quickly(gradient_norms)(function, w0, x, key, factor)
        sizes = np.asarray(norms.size, np.float64)
        return np.ldexp(sizes, np.asarray(norms.exponent)) / factor

    outputs = jax.eval_shape(function, w0, x[:1])
    found: np.ndarray = with_all_digits(run, lambda found: [found], outputs.dtype)[0]
    return found


class _Ends(NamedTuple):
    """Outputs and derivatives at both checkpoints, in float64, each (n, C).

    Attributes:
        f0, f1: f(w₀) and f(w₁).
        linear: J₀δ.
        curvature: δᵀH(w₀)δ.
        later: J₁δ.
        precision: relative rounding of the outputs as computed.
        least: absolute rounding of the smallest outputs.
    """

    f0: np.ndarray
    f1: np.ndarray
    linear: np.ndarray
    curvature: np.ndarray
    later: np.ndarray
    precision: float
    least: float


def _ends(found: Derivatives) -> _Ends:
    """Return what was computed."""
    f0, f1, linear, curvature, later = (np.asarray(each, np.float64) for each in found.values)
    dtype = found.values[0].dtype
    precision = float(jnp.finfo(dtype).eps)
    return _Ends(f0, f1, linear, curvature, later, precision, traced.least_normal(dtype))


def _ratios(ends: _Ends) -> dict[str, float]:
    """Return the changes and errors of a report that are ratios of norms of outputs."""
    f0, f1, linear, curvature, later, precision, least = ends
    moved = _length(f1 - f0)
    along = _length(linear)  # ‖J₀δ‖
    # Each output is rounded relative to its size, or to the least number of its type.
    rounding = _length(np.maximum(precision * (np.abs(f0) + np.abs(f1)), least))
    return {
        "output_change": ratio(moved, _length(f0)),
        "output_error": ratio(_length(f1 - f0 - linear), moved),
        "second_order_share": ratio(_length(curvature) / 2, along),
        "derivative_change": ratio(_length(later - linear), along),
        "rounding": ratio(rounding, moved),
    }


def _length(array: np.ndarray) -> float:
    return float(np.linalg.norm(array))


def _addition_error(
    given: _Given,
    params0: PyTree,
    checkpoints: Sequence[PyTree],
    trainable: traced.Trainable,
    apply: traced.Model,
) -> float:
    """Return E of all checkpoints, after checking that they fit and share w₀."""
    chosen = traced.restricted(apply, params0, trainable)
    for index, later in enumerate(checkpoints):
        field = "params1" if index == 0 else f"others[{index - 1}]"
        traced.like_params(later, params0, field)
        _check_moved(params0, later, field)
        if trainable is not None:
            _check_constants(chosen, params0, later)
        _check_start(params0, later, field)
    _, w0, _, function = _differentiated(given.net, params0, params0)

    def outputs(weights: list[Array]) -> np.ndarray:
        return np.asarray(function(weights, given.inputs), np.float64)

    at_start = outputs(w0)
    parts = []  # f(w_k) − f(w₀)
    merged = w0  # w₀ + Σ (w_k − w₀)
    for later in checkpoints:
        _, _, w, _ = _differentiated(given.net, params0, later)
        parts.append(outputs(w) - at_start)
        merged = [
            so_far + (after - before) for so_far, after, before in zip(merged, w, w0, strict=True)
        ]
    return addition_error(outputs(merged) - at_start, parts)


LEAST_WEIGHTS = 100  # of matrices: with fewer, chance correlations are large; our choice
STANDARD_DEVIATIONS = 5.0  # of the correlation of independent weights, 1/√p; our choice


def _check_start(params0: PyTree, later: PyTree, field: str) -> None:
    """Refuse weights that are uncorrelated with w₀: another draw, not a training from w₀."""
    correlation = _chance_correlation(params0, later)
    if correlation is not None:
        given = f"weights with correlation {correlation:.2g} to those of w₀"
        allowed = "a checkpoint that was trained from w₀: these two do not share w₀"
        raise InvalidInput(field, given, allowed)


def _chance_correlation(params0: PyTree, later: PyTree) -> float | None:
    """Return the correlation of weights with w₀ if another draw would have as much.

    None if it is larger, or if there are too few weights to decide. Training moves weights away
    from w₀, but a part of w₀ stays. The correlation of independent draws of p weights has standard
    deviation 1/√p. Vectors and leaves of w₀ that are 0 are left out: they often start equal.
    """
    products = 0.0
    squares = 0.0
    other_squares = 0.0
    count = 0
    for before, after in zip(jax.tree.leaves(params0), jax.tree.leaves(later), strict=True):
        if jnp.ndim(before) < 2 or not jnp.issubdtype(jnp.result_type(before), jnp.floating):
            continue
        one = np.asarray(before, np.float64).ravel()
        two = np.asarray(after, np.float64).ravel()
        one = one - one.mean()
        two = two - two.mean()
        if not one.any():
            continue
        products += float(one @ two)
        squares += float(one @ one)
        other_squares += float(two @ two)
        count += one.size
    size = (squares * other_squares) ** 0.5
    if count < LEAST_WEIGHTS or size == 0:
        return None
    correlation = products / size
    return correlation if correlation <= STANDARD_DEVIATIONS / count**0.5 else None


class _Given(NamedTuple):
    """Accepted arguments.

    Attributes:
        net: the model, of the differentiated parameters.
        inputs: rows, (n, …).
        targets: (n, C), or None.
    """

    net: traced.Model
    inputs: Array
    targets: np.ndarray | None
    num_outputs: int


def _accepted(
    apply: traced.Model,
    params0: PyTree,
    params1: PyTree,
    x: traced.Inputs,
    y: ArrayLike | None,
    trainable: traced.Trainable,
) -> _Given:
    """Return the checked arguments of a report; see :func:`linearity_report` for the refusals."""
    chosen = traced.restricted(apply, params0, trainable)
    net, rows, num_outputs = traced.accepted(chosen, params0, x)
    traced.like_params(params1, params0, "params1")
    refuse_traced((params0, params1, x), "x")
    _check_moved(params0, params1)
    if trainable is not None:
        _check_constants(chosen, params0, params1)
    inputs = jnp.asarray(rows)
    # Refuses loops without reverse mode, and functions for one number of rows, by name.
    traced.checked(net, params0, inputs)
    targets = None
    if y is not None:
        found = traced.accepted_targets(y, len(inputs), num_outputs, axes=traced.axes_of(net))
        targets = np.asarray(found, np.float64)
    return _Given(net, inputs, targets, num_outputs)


def _has_symmetric_hessian(given: _Given, params: PyTree) -> bool:
    """Whether second derivatives are symmetric, which custom rules may prevent."""
    mixture = traced.random_weights(len(given.inputs), given.num_outputs)
    try:
        traced.refuse_asymmetric(given.net, params, given.inputs, mixture)
    except (traced.AsymmetricHessian, traced.NoSecondDerivative):
        return False
    return True


def _layers(
    names: Sequence[str],
    w0: Sequence[Array],
    found: Derivatives,
    gradients: Float[np.ndarray, "n C leaves"],
    along: float,
) -> tuple[LayerReport, ...]:
    """Return the shares of all parameters, from norms of gradients and ``along`` = ‖J₀δ‖."""
    traces = np.sum(gradients**2, axis=(0, 1))  # tr K_l of each leaf
    total = float(traces.sum())
    layers = []
    for index, name in enumerate(names):
        moved, size = found.sizes[index]
        layer = LayerReport(
            name=name,
            num_params=int(np.size(w0[index])),
            distance=ratio(_norm(moved), _norm(size)),
            output_share=ratio(float(found.parts[index]), along),
            kernel_share=ratio(float(traces[index]), total),
        )
        layers.append(layer)
    return tuple(layers)


def _norm(scaled: ScaledNorm) -> float:
    """Return a norm in double precision."""
    return float(np.ldexp(np.float64(scaled.size), int(scaled.exponent)))


def _check_moved(params0: PyTree, params1: PyTree, field_of_later: str = "params1") -> None:
    """Refuse weights that are not finite, other integers, and equal weights."""
    moved = False
    later = jax.tree.leaves(params1)
    for (path, before), after in zip(
        jax.tree_util.tree_leaves_with_path(params0), later, strict=True
    ):
        if jnp.issubdtype(jax.dtypes.result_type(before), jax.dtypes.prng_key):
            before, after = (jax.random.key_data(each) for each in (before, after))
        moves = jnp.issubdtype(jnp.result_type(before), jnp.inexact)
        for field, leaf in (("params0", before), (field_of_later, after)):
            if moves and not np.isfinite(leaf).all():
                given = f"{traced.leaf_name(path)} with numbers that are not finite"
                raise InvalidInput(field, given, "a checkpoint with finite weights")
        differs = not np.array_equal(before, after)
        if differs and not moves:
            raise InvalidInput(
                field_of_later,
                f"other integers in {traced.leaf_name(path)}",
                "those of w₀: integers stay",
            )
        moved |= differs
    if not moved:
        raise InvalidInput(
            field_of_later, "the weights of w₀", "another checkpoint: these two are equal"
        )


def _check_constants(net: traced.Model, params0: PyTree, params1: PyTree) -> None:
    """Refuse checkpoints that differ in parameters which ``trainable`` leaves out."""
    paths = jax.tree_util.tree_leaves_with_path(params0)
    moves = traced.moving_leaves(net, params0)
    later = jax.tree.leaves(params1)
    for (path, before), after, is_moving in zip(paths, later, moves, strict=True):
        if is_moving or jnp.issubdtype(jax.dtypes.result_type(before), jax.dtypes.prng_key):
            continue
        if not np.array_equal(before, after):
            name = traced.leaf_name(path)
            given = f"a choice without {name}, which differs in the checkpoints,"
            raise InvalidInput("trainable", given, f"all parameters that moved, also {name}")


def _differentiated(
    net: traced.Model, params0: PyTree, params1: PyTree
) -> tuple[list[str], list[Array], list[Array], Function]:
    """Return (names, w₀, w₁, outputs as a function) of the differentiated parameters."""
    if isinstance(net, Network):
        trained, fixed = net.partition(params0)
        later, _ = net.partition(params1)
        structure = jax.tree.structure(trained)
        paths = jax.tree_util.tree_leaves_with_path(trained)
        names = traced.leaf_names([path for path, _ in paths])

        def outputs(w: list[Array], x: Array) -> Array:
            return net.apply(merge(jax.tree.unflatten(structure, w), fixed), x)

        return names, _in_jax(jax.tree.leaves(trained)), _in_jax(jax.tree.leaves(later)), outputs
    w0, restore = moving_of(net, params0)
    w1, _ = moving_of(net, params1)
    paths = jax.tree_util.tree_leaves_with_path(params0)
    moves = traced.moving_leaves(net, params0)
    every = traced.leaf_names([path for path, _ in paths])
    names = [name for name, is_moving in zip(every, moves, strict=True) if is_moving]
    return names, _in_jax(w0), _in_jax(w1), lambda w, x: net(restore(w), x)


def _in_jax(leaves: Sequence[ArrayLike]) -> list[Array]:
    """Return arrays of JAX's types; NumPy's may be wider."""
    return [jnp.asarray(leaf) for leaf in leaves]


def _losses(given: _Given, params0: PyTree, ends: _Ends, is_exact: bool) -> dict[str, float]:
    """Mean of ½‖f − y‖² of the model, of its linear model, and of kernel regression."""
    y = given.targets
    assert y is not None
    fits = {"loss": ends.f1, "linear_loss": ends.f0 + ends.linear}
    if is_exact:
        kernel = unchecked_ntk(given.net, params0, given.inputs)
        if has_entries_beyond(given.net, params0, given.inputs, kernel):
            # The fit does not depend on the scale of the kernel.
            scaled_net, _ = scaled_model(given.net, params0, given.inputs)
            kernel = unchecked_ntk(scaled_net, params0, given.inputs)
        regression = kernel_regression(np.asarray(kernel), y - ends.f0, np.asarray(kernel))
        fits["regression_loss"] = ends.f0 + regression.outputs
    losses = {}
    for name, fit in fits.items():
        squares = np.sum((fit - y) ** 2, axis=1)  # of each input
        losses[name] = float(np.mean(squares)) / 2
    return losses
