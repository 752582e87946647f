"""Kernel change and Hessian norm of custom models against width: the figures of the papers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ntk_core import dynamics
from ntk_core.dynamics._history import Outcome
from ntk_core.dynamics.choices import LOSSES
from ntk_core.errors import InvalidInput, check_choice
from ntk_core.fits import PowerLaw, exponent_line, fit_runs
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk, kernel_change, moving_of, real_array, unchecked_ntk
from ntk_core.linearity._contract import OwnModel, checked_own_model
from ntk_core.markup import paragraph, table
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress
from ntk_core.real_numbers import is_finite_number
from ntk_core.traced import (
    Apply,
    Inputs,
    Trainable,
    accepted_targets,
    is_tree,
    num_rows,
    packed_rows,
    same_program,
)
from ntk_core.usual_settings import with_usual_settings

TOLERANCE = 1e-3
MAX_MATVECS = 128


@dataclass(frozen=True)
class OwnRun:
    """One initialization at one width.

    Attributes:
        num_params: p, number of trained parameters.
        steps, change, loss: ΔK(t) = ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F and the mean loss at recorded
            steps.
        hessian_norm: mean over inputs of the spectral norm of the Hessian at w₀ of one output, or
            of the output with the largest norm; almost everywhere for models with kinks (ReLU);
            None if not requested.
        hessian_converged: whether the largest residual is within the tolerance.
        velocity: ‖K̇₀‖_F / ‖K(w₀)‖_F under gradient flow.

    >>> run = OwnRun(30, 0, 60, 0.1, "converged", (0, 1), (0.0, 0.2), (1.0, 0.01))
    >>> run.kernel_change
    0.2
    """

    width: int
    seed: int
    num_params: int
    learning_rate: float
    outcome: Outcome
    steps: tuple[int, ...]
    change: tuple[float, ...]
    loss: tuple[float, ...]
    hessian_norm: float | None = None
    hessian_converged: bool = True
    velocity: float | None = None

    @property
    def kernel_change(self) -> float:
        """ΔK, the largest along training."""
        return max(self.change)


@dataclass(frozen=True)
class OwnSweep:
    """All runs and their power laws, which exclude and count unconverged runs.

    >>> widths = (10, 100, 1000)
    >>> runs = []
    >>> for m in widths:
    ...     records = (0, 1), (0.0, 1 / m), (1.0, 0.01)  # steps, kernel change, loss
    ...     runs.append(OwnRun(m, 0, 2 * m, 0.1, "converged", *records))
    >>> round(OwnSweep(widths, tuple(runs)).kernel_change_law.exponent, 6)
    -1.0
    """

    widths: tuple[int, ...]
    runs: tuple[OwnRun, ...] = field(repr=False)

    @property
    def kernel_change_law(self) -> PowerLaw | None:
        """ΔK ≈ a · m^b with its 95% interval."""
        runs = [(run.width, run) for run in self.runs]
        return fit_runs(runs, lambda run: run.kernel_change, lambda run: run.outcome == "converged")

    @property
    def hessian_law(self) -> PowerLaw | None:
        """‖H(w₀)‖ ≈ a · m^b with its 95% interval."""
        measured = [(run.width, run) for run in self.runs if run.hessian_norm is not None]
        return fit_runs(
            measured, lambda run: run.hessian_norm or 0.0, lambda run: run.hessian_converged
        )

    def _repr_html_(self) -> str:
        rows = []
        for run in self.runs:
            mark = "" if run.hessian_converged else " (not converged)"
            norm = "–" if run.hessian_norm is None else f"{run.hessian_norm:.3g}{mark}"
            numbers = f"{run.kernel_change:.3g}", run.outcome, f"{run.learning_rate:.3g}", norm
            rows.append((f"{run.width:,}", run.seed, *numbers))
        laws = [exponent_line("ΔK", self.kernel_change_law)]
        laws += [exponent_line("‖H‖", self.hessian_law)] if self.hessian_law else []
        head = ("Width", "Seed", "ΔK", "Training", "Learning rate", "‖H‖")
        return table(head, rows) + "".join(map(paragraph, laws))


@with_usual_settings
def sweep_widths(
    model: OwnModel,
    widths: Sequence[int],
    x: Inputs,
    y: ArrayLike,
    *,
    num_seeds: int = 3,
    seed: int = 0,
    loss: str = "square",
    learning_rate: float | Literal["auto"] = "auto",
    max_steps: int = 1000,
    loss_threshold: float = 0.01,
    num_records: int = 10,
    num_inputs: int = 2,
    output_index: int | None = 0,
    report: Callable[[OwnRun], None] | None = None,
    trainable: Trainable = None,
) -> OwnSweep:
    """Train your own model at several widths.

    Measure ΔK during training and ‖H(w₀)‖, with exponents and intervals.

    ``model(width, key)`` returns ``(apply, params)``: any JAX function
    ``apply(params, x) -> (n, C)`` or ``(n,)`` and any tree of arrays. Gradient descent on (1/2n) Σ
    ‖f − y‖², or another loss of f, until ``loss_threshold``.

    >>> import jax, jax.numpy as jnp
    >>> def model(width, key):
    ...     w, v = jax.random.normal(key, (2, width))
    ...     return lambda p, x: jnp.tanh(x * p[0]) @ p[1][:, None] / width**0.5, (w, v)
    >>> x = y = jnp.ones((1, 1))
    >>> found = sweep_widths(model, [64, 128], x, y, num_seeds=1, num_inputs=0)
    >>> [run.outcome for run in found.runs]
    ['converged', 'converged']

    Args:
        model: ``model(width, key) -> (apply, params)``, see ``CONTRACT``.
        widths: rising widths m.
        num_seeds, seed: number of random initializations, and the first seed.
        loss: one of ``ntk_core.dynamics.choices.LOSSES``, such as ``square`` or ``cross-entropy``.
        learning_rate: η, or ``auto`` for a stable rate.
        max_steps, loss_threshold: when training stops.
        num_records: number of steps at which ΔK is measured.
        x: inputs (n, *input_shape), or a tree of arrays with rows as their leading axes.
        y: targets (n, C) or (n,); for cross-entropy one-hot rows, for the logistic loss −1 and 1.
        num_inputs: number of inputs over which ‖H‖ is averaged; 0 for none.
        output_index: a, the output whose Hessian is measured; None for the largest ‖H‖ over all
            outputs.
        report: called with each finished run.
        trainable: the trained parameters of every model, as for ``empirical_ntk``; ΔK and
            ‖H‖ are those of them.

    Returns:
        Runs of all widths and seeds, with exponents.

    Raises:
        InvalidInput: for settings outside their range, or a model that is not as
            above; see ``CONTRACT``.

    Source: Liu, Zhu & Belkin 2020, §2 and Fig. 1.
    """
    inputs, targets = _checked_data(x, y, loss)
    chosen = _checked_widths(widths)
    _check_count("num_seeds", num_seeds, 1)
    _check_count("max_steps", max_steps, 1)
    _check_count("num_records", num_records, 2)
    _check_count("num_inputs", num_inputs, 0)
    num_outputs = targets.shape[1]
    if output_index is not None and not -num_outputs <= output_index < num_outputs:
        raise InvalidInput(
            "output_index",
            output_index,
            f"0 to {num_outputs - 1}, one of the outputs, -1 for the last, or None for all",
        )
    _check_rate(learning_rate)
    runs: list[OwnRun] = []
    for width in chosen:
        runs += runs_at(
            model,
            width,
            inputs,
            targets,
            range(seed, seed + num_seeds),
            loss,
            num_inputs,
            output_index,
            learning_rate=learning_rate,
            loss_threshold=loss_threshold,
            max_steps=max_steps,
            num_records=num_records,
            report=report,
            trainable=trainable,
        )
    return OwnSweep(chosen, tuple(runs))


def _checked_widths(widths: Sequence[int]) -> tuple[int, ...]:
    """Return different widths, ascending."""
    try:
        widths = list(widths)
    except (TypeError, RuntimeError):  # the second for deleted arrays of JAX
        raise InvalidInput("widths", widths, "a list of integers, at least 1") from None
    for width in widths:
        if isinstance(width, bool) or not isinstance(width, int) or width < 1:
            raise InvalidInput("widths", width, "integers, at least 1")
    if not widths:
        raise InvalidInput("widths", "nothing", "at least one integer")
    return tuple(sorted(set(widths)))


def _check_count(name: str, given: object, lowest: int) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or given < lowest:
        raise InvalidInput(name, given, f"an integer, at least {lowest}")


@with_usual_settings
def runs_at(
    model: OwnModel,
    width: int,
    x: Inputs,
    y: ArrayLike,
    seeds: Sequence[int],
    loss: str,
    num_inputs: int,
    output_index: int | None = 0,
    *,
    learning_rate: float | str,
    loss_threshold: float,
    max_steps: int,
    num_records: int,
    report: Callable[[OwnRun], None] | None = None,
    progress: Progress | None = None,
    trainable: Trainable = None,
) -> list[OwnRun]:
    """Return the runs of one width; arguments as in :func:`sweep_widths`."""
    progress = progress or Progress()
    _check_rate(learning_rate)
    inputs, targets = _checked_data(x, y, loss)
    options = dynamics.TrainOptions(
        learning_rate=learning_rate,
        loss_threshold=loss_threshold,
        max_steps=max_steps,
        num_records=num_records,
    )
    program: _Program | None = None
    runs = []
    for index, seed in enumerate(seeds):
        of_run = progress.part(index, len(seeds)).named(f"seed {seed}")
        key = initial_key(seed, width)
        apply, params = checked_own_model(model, width, key, inputs, targets.shape[1], trainable)
        _, packed = packed_rows(apply, inputs)
        rows = jnp.asarray(packed)
        if program is None or not program.serves(apply, params):
            program = _Program(apply, params, dynamics.Loss("linear", loss), rows, targets)
        norm = None
        converged = True
        if num_inputs:
            norm, converged = _mean_norm(program, params, rows[:num_inputs], output_index)
        trained = program.train(params, options, of_run)
        run = OwnRun(width, seed, hessian_norm=norm, hessian_converged=converged, **trained)
        runs.append(run)
        of_run.report(1.0, f"ΔK {run.kernel_change:.3g}, {run.outcome}")
        if report is not None:
            report(run)
    return runs


def _check_rate(rate: object) -> None:
    if rate != "auto" and not (is_finite_number(rate) and rate > 0):
        raise InvalidInput("learning_rate", rate, "auto, or a finite number above 0")


def _mean_norm(
    program: "_Program", params: PyTree, x: Array, output_index: int | None
) -> tuple[float, bool]:
    """Return the mean of ‖H‖ over these rows, and whether all of them converged.

    Without an index ‖H‖ is the largest norm over the outputs.
    """
    found = hessian_norm(
        program.apply,
        params,
        x,
        output_index,
        tolerance=TOLERANCE,
        max_matvecs=MAX_MATVECS,
        batched=True,
        repeated=False,
    )
    norms = found.value  # (n,), or (n, C) of all outputs
    if output_index is None:
        norms = norms.max(axis=1)
    return float(np.mean(norms)), bool(np.all(found.converged))


class _Program:
    """Programs compiled once for all seeds of a width with the same functions."""

    def __init__(self, apply: Apply, params: PyTree, loss: dynamics.Loss, x: Array, y: Array):
        moving, self.restore = moving_of(apply, params)
        self.apply = apply
        self.x = x
        self.y = y
        self._structure: object = jax.tree.structure(params)
        self._has_others = len(moving) < len(jax.tree.leaves(params))
        self.model = dynamics.CallableModel(
            lambda leaves, rows: apply(self.restore(leaves), rows), loss
        )
        self.loss_of = jax.jit(lambda leaves: loss.of_model(apply(self.restore(leaves), x), y))

    def serves(self, apply: Apply, params: PyTree) -> bool:
        """Whether another function with all numbers in ``params`` has the same program."""
        same_numbers = not self._has_others and self._structure == jax.tree.structure(params)
        return same_numbers and same_program(apply, self.apply)

    def train(
        self, params: PyTree, options: dynamics.TrainOptions, progress: Progress
    ) -> dict[str, Any]:
        """Train from w₀ and measure kernels."""
        change = _KernelChange(self, empirical_ntk(self.apply, params, self.x))
        # Copies, since training overwrites them.
        leaves = [jnp.array(leaf) for leaf in moving_of(self.apply, params)[0]]
        start = dynamics.Start(leaves, (), not change.first.any())
        if options.learning_rate == "auto":
            options = options.at_rate(dynamics.auto_learning_rate(change.first, self.model.loss))
        descent = dynamics.descend(
            {"network": self.model},
            {"network": start},
            dynamics.Samples(self.x, self.y),
            options,
            [change],
            progress,
        )["network"]
        velocity = dynamics.kernel_velocity(self.apply, params, self.x, self.y, self.model.loss)
        return {
            **change.result(),
            "learning_rate": float(descent.learning_rate[0]),
            "num_params": sum(leaf.size for leaf in descent.trained),
            "outcome": descent.outcomes()[0],
            "velocity": float(velocity),
        }


class _KernelChange(dynamics.Measure[dict[str, Any]]):
    """Steps, ΔK and losses of a callable, by kernels of its function.

    Attributes:
        first: K(w₀).
    """

    def __init__(self, program: _Program, first: Array):
        self.first = first
        self._program = program
        self._rows: list[tuple[int, float, float]] = []

    def record(self, step: int, models: Mapping[str, dynamics.Descent]) -> None:
        descent = models["network"]
        leaves = descent.trained
        loss = self._program.loss_of(leaves)
        descent.hand_over(losses=loss)
        change = 0.0
        if step:
            kernel = unchecked_ntk(
                self._program.apply, self._program.restore(leaves), self._program.x
            )
            change = float(kernel_change(kernel, self.first))
        self._rows.append((step, change, float(loss)))

    def result(self) -> dict[str, Any]:
        steps, changes, losses = zip(*self._rows, strict=True)
        return {"steps": steps, "change": changes, "loss": losses}


def _checked_data(x: Inputs, y: ArrayLike, loss: str) -> tuple[PyTree, Array]:
    """Return inputs, as an array or a tree of arrays, and targets."""
    check_choice("loss", loss, LOSSES)
    if is_tree(x):
        targets = jnp.asarray(accepted_targets(y, num_rows(x), None))
        for name, arrays in (("x", jax.tree.leaves(x)), ("y", [targets])):
            for array in arrays:
                _check_finite(name, jnp.asarray(array))
        return x, targets.astype(jnp.result_type(float))
    inputs = jnp.asarray(real_array(x, "x"))
    if not jnp.issubdtype(inputs.dtype, jnp.inexact):
        inputs = inputs.astype(jnp.result_type(float))
    if inputs.ndim < 2 or not inputs.size:
        allowed = "shape (n, …) with a batch axis: x[None] for one input, x[:, None] for n numbers"
        raise InvalidInput("x", f"shape {inputs.shape}", allowed)
    targets = jnp.asarray(accepted_targets(y, len(inputs), None))
    for name, array in (("x", inputs), ("y", targets)):
        _check_finite(name, array)
    return inputs, targets.astype(inputs.dtype)


def _check_finite(field: str, array: Array) -> None:
    if not bool(jnp.isfinite(array).all()):
        raise InvalidInput(field, "values NaN or infinite", "finite numbers")
