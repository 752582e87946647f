"""Training from w₀ to a loss threshold, with kernels of several outputs along the path."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped
from numpy.typing import NDArray

from ntk_core.dynamics._descent import Descent, Optimizer, descend, over_seeds, record_steps
from ntk_core.dynamics._history import FloatArray, KernelPath
from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import CallableModel, Model, NetworkModel
from ntk_core.dynamics._rates import auto_learning_rate, eigenvalues, streamed_rate
from ntk_core.errors import InvalidInput, kind_of
from ntk_core.kernels import (
    KernelOperator,
    changes_from_first,
    kernel_change,
    kernel_derivative,
    moving_of,
    pre_output_ntk,
    relative_norm,
    unchecked_ntk,
)
from ntk_core.networks.architectures import Network, NetworkParams, merge, output_function
from ntk_core.progress import Progress
from ntk_core.traced import (
    Apply,
    Inputs,
    Trainable,
    accepted,
    accepted_targets,
    restricted,
    through_output,
    with_usual_settings,
)

Kernels = dict[str, Array]
MOST_FOLLOWED = 4


def followed_rows(num_points: int) -> slice:
    """Return at most four evenly spaced training points, whose outputs are recorded."""
    return slice(0, num_points, -(-num_points // MOST_FOLLOWED))


class KernelTraining:
    """Simultaneous gradient descent of one network for each seed, with ΔK of its outputs at the recorded steps.

    Outputs that share their parameters share one kernel of the pre-outputs.

    Args:
        params: w₀ of all seeds, with a leading axis.
        observed: output nonlinearities φ whose kernels are recorded.
        learning_rate, loss_threshold, max_steps, num_records: as in ``linearity_lab.settings.training.TrainingSpec``.
        watch: called at w₀ and at every record with w_t and the kernels of the observed outputs, of all seeds.
        streamed_bytes: store the weights of every record of one seed instead of kernels; :meth:`streamed` then computes
            ΔK within this number of bytes. None to store kernels.

    Attributes:
        kernel: of the pre-outputs at w₀, (S, n, n, C, C); None if streamed.
    """

    def __init__(
        self,
        net: Network,
        params: NetworkParams,
        x: ArrayLike,
        y: ArrayLike,
        loss: Loss,
        observed: tuple[str, ...],
        *,
        learning_rate: float | Literal["auto"],
        loss_threshold: float,
        max_steps: int,
        num_records: int,
        watch: Callable[[NetworkParams, Kernels], None] = lambda params, kernels: None,
        streamed_bytes: float | None = None,
    ):
        self._streamed_bytes, self._weights = streamed_bytes, list[NetworkParams]()
        self.loss, self.observed, self._net, self._watch = loss, observed, net, watch
        self._x, self._y = jnp.asarray(x, jnp.result_type(float)), jnp.asarray(y)
        self._records = record_steps(max_steps, num_records)
        self._kernel, first = self._measured(params)
        self._first = first.kernels
        self._rates, dead = map(list, zip(*self._at_start(params, learning_rate), strict=True))
        rates = jnp.asarray(self._rates, jnp.result_type(float))
        trained, fixed = net.partition(params)
        self._descent = Descent(
            NetworkModel(net, loss), Optimizer(), trained, fixed, self._x, self._y, rates,
            threshold=loss_threshold, together=True, dead=dead,
        )  # fmt: skip
        self._rows: list[list[_Row]] = [[] for _ in self._rates]
        self._note(first, np.zeros((len(self._rates), len(observed))), params)

    @property
    def kernel(self) -> Array:
        """The kernel at w₀ of all seeds, unless it is streamed."""
        assert self._kernel is not None
        return self._kernel

    def _at_start(
        self, params: NetworkParams, rate: float | Literal["auto"]
    ) -> list[tuple[float, bool]]:
        """Return (η, whether the kernel is 0) of each seed."""
        if self._streamed_bytes is None:
            held = np.asarray(self._kernel)
            return [
                (auto_learning_rate(k, self.loss) if rate == "auto" else float(rate), not k.any())
                for k in held
            ]
        net, limit = self._net.with_output("linear"), self._streamed_bytes
        kernels = [
            KernelOperator(net, one, self._x, memory_limit=limit) for one in _each_seed(params)
        ]
        return [
            (streamed_rate(k, self.loss) if rate == "auto" else float(rate), not k.row_traces.any())
            for k in kernels
        ]

    def train(self, progress: Progress | None = None) -> None:
        """Train until every seed is done, see :func:`descend`."""
        descend([self._descent], lambda step: self._record(), self._records, progress)

    def streamed(
        self,
        probes: int | None,
        seed: int,
        kept: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Compute ΔK at the recorded steps without storing kernels, see :func:`changes_from_first`.

        ``kept``: a directory for pairs.
        """
        (rows,) = self._rows
        finite = [index for index, row in enumerate(rows) if index and math.isfinite(row.loss)]
        path = [self._weights[index] for index in (0, *finite)]
        rows[1:] = [row._replace(changes=[math.nan] * len(self.observed)) for row in rows[1:]]
        if not finite:
            return
        found = changes_from_first(
            self._net,
            path,
            self._x,
            outputs=self.observed,
            memory_limit=self._streamed_bytes,
            probes=probes,
            seed=seed,
            kept=None if probes else kept,
            progress=progress,
        )
        for index, at in zip(finite, found, strict=True):
            rows[index] = rows[index]._replace(
                changes=[c.change for c in at], errors=[c.error for c in at]
            )

    def errors(self, seed: int, output: str) -> tuple[float, ...]:
        """Return standard errors of ΔK at the recorded steps; 0 if exact."""
        at = self.observed.index(output)
        return tuple(row.errors[at] if row.errors else 0.0 for row in self._rows[seed])

    def recorded(self, seed: int, output: str) -> dict[str, Any]:
        """Return the record of one seed (its index in the batch) under one observed output.

        ``learning_rate`` (infinite if automatic with a zero kernel), ``outcome``, ``steps``, ``change`` (ΔK), ``loss``.
        """
        steps, changes, losses, *_ = zip(*self._rows[seed], strict=True)
        return {
            "learning_rate": self._rates[seed],
            "outcome": self._descent.outcomes()[seed],
            "steps": steps,
            "change": tuple(change[self.observed.index(output)] for change in changes),
            "loss": losses,
        }

    def followed_outputs(self, seed: int, output: str) -> tuple[tuple[float, ...], ...]:
        """Return φ(f(x_i)) of the followed points at the recorded steps, (R, F), for each point's class."""
        at = self.observed.index(output)
        # The shortest digits that read back as the same number.
        return tuple(
            tuple(float(str(value)) for value in row.followed[at]) for row in self._rows[seed]
        )

    def _record(self) -> None:
        params = merge(self._descent.state.trained, self._descent.fixed)
        _, found = self._measured(params)
        changes = [_change(found.kernels[output], self._first[output]) for output in found.kernels]
        unknown = np.zeros((len(self._rates), len(self.observed)))  # computed later if streamed
        self._note(found, np.transpose(np.asarray(changes, float)) if changes else unknown, params)

    def _measured(self, params: NetworkParams) -> tuple[Array | None, _Measured]:
        """Return the kernel of the pre-outputs, and measures under the outputs."""
        f, kernel = _pre_outputs_and_kernel(
            self._net, self._streamed_bytes is None, params, self._x
        )
        found = _seen(self.observed, self.loss, f, kernel, self._y)
        self._watch(params, found.kernels)
        return kernel, found

    def _note(self, found: _Measured, changes: NDArray[np.float64], params: NetworkParams) -> None:
        columns = [
            changes.tolist(),
            np.asarray(found.loss, float).tolist(),
            np.asarray(found.followed),
        ]
        for rows, step, *measured in zip(self._rows, self._descent.steps, *columns, strict=True):
            if not rows or rows[-1].step < step:
                rows.append(_Row(int(step), *measured))
                if self._streamed_bytes is not None:
                    self._weights += _each_seed(params)
        self._descent.note(found.loss)


class _Row(NamedTuple):
    """Record of one seed at one step."""

    step: int
    changes: list[float]
    loss: float
    followed: np.ndarray
    errors: Sequence[float] = ()


class _Measured(NamedTuple):
    """Kernel under each observed output, loss, and outputs at the followed points, (outputs, F)."""

    kernels: Kernels
    loss: Array
    followed: Array


def _each_seed(params: NetworkParams) -> list[NetworkParams]:
    """Copy the weights of every seed, since training overwrites its inputs."""
    num_seeds = len(jax.tree.leaves(params)[0])
    return [
        jax.tree.map(lambda leaf, index=index: jnp.copy(leaf[index]), params)
        for index in range(num_seeds)
    ]


@partial(jax.jit, static_argnums=(0, 1))
def _pre_outputs_and_kernel(
    net: Network, held: bool, params: NetworkParams, x: Array
) -> tuple[Array, Array | None]:
    def one(params: NetworkParams) -> tuple[Array, Array | None]:
        if not held:
            return net.pre_outputs(params, x), None
        kernel, f, _ = pre_output_ntk(net, params, x)
        return f, kernel

    return over_seeds(one, params)


# These two programs do not depend on the width.
@partial(jax.jit, static_argnums=(0, 1))
def _seen(
    observed: tuple[str, ...], loss: Loss, f: Array, kernel: Array | None, y: Array
) -> _Measured:
    def one(f: Array, kernel: Array | None) -> _Measured:
        kernels = (
            {}
            if kernel is None
            else {each: through_output(each, kernel, f, f) for each in observed}
        )
        rows = followed_rows(len(y))
        own = jnp.argmax(y[rows], axis=-1)[:, None]
        followed = jnp.stack(
            [
                jnp.take_along_axis(output_function(output)(f[rows]), own, axis=-1)[:, 0]
                for output in observed
            ]
        )
        return _Measured(kernels, loss(f, y), followed)

    return over_seeds(one, f, kernel)


@jax.jit
def _change(now: Array, first: Array) -> Array:
    return over_seeds(kernel_change, now, first)


TrainedModel = NetworkModel | CallableModel


class FollowedKernel:
    """Kernels of output φ on ``x`` at each record, compared with the first."""

    def __init__(self, model: TrainedModel, fixed: PyTree, x: Array):
        self.model, self.fixed, self.x = model, fixed, x
        self._first: dict[str, FloatArray] = {}
        self._first_pre: FloatArray | None = None
        self._num_rows = 0
        self._precision = 0.0
        self._rows, self._layers = list[dict[str, float]](), list[dict[str, float]]()

    def record(self, trained: PyTree) -> None:
        """Record the kernel at these parameters."""
        output, (net, params) = "linear", self.model.traced(trained, self.fixed)
        if isinstance(self.model, NetworkModel):
            output, pre_parts = (
                self.model.net.output,
                unchecked_ntk(net, params, self.x, per_layer=True),
            )
        else:
            pre_parts = {"": unchecked_ntk(net, params, self.x)}
        parts = pre_parts
        if output != "linear":
            f = pre_outputs(self.model, trained, self.fixed, self.x)
            parts = {name: through_output(output, part, f, f) for name, part in pre_parts.items()}
        self._precision = max(float(jnp.finfo(part.dtype).eps) for part in parts.values())
        now = {name: np.asarray(part, np.float64) for name, part in parts.items()}
        self._first = self._first or now
        first, total = (np.asarray(sum(each.values())) for each in (self._first, now))
        spectrum = eigenvalues(total)
        self._num_rows = len(spectrum)
        pre = total if output == "linear" else np.asarray(sum(pre_parts.values()), np.float64)
        self._first_pre = pre if self._first_pre is None else self._first_pre
        pre_spectrum = spectrum if output == "linear" else eigenvalues(pre)
        self._layers.append(
            {name: _share(part - self._first[name], first) for name, part in now.items()}
        )
        self._rows.append({
            "change": _share(total - first, first),
            "smallest": spectrum[-1],
            "largest": spectrum[0],
            "pre_output_smallest": pre_spectrum[-1],
            "pre_output_change": _share(pre - self._first_pre, self._first_pre),
        })  # fmt: skip

    def path(self) -> KernelPath:
        """All records so far."""
        layers = self._layers if isinstance(self.model, NetworkModel) else [{}]
        return KernelPath(
            **{name: np.asarray([row[name] for row in self._rows]) for name in self._rows[0]},
            layer_change={name: np.array([row[name] for row in layers]) for name in layers[0]},
            num_points=len(self.x),
            num_rows=self._num_rows,
            precision=self._precision,
        )


def _share(part: FloatArray, whole: FloatArray) -> float:
    """Return ‖part‖_F / ‖whole‖_F; NaN if the whole is 0."""
    norm = float(np.linalg.norm(whole))
    return float(np.linalg.norm(part)) / norm if norm else math.nan


@partial(jax.jit, static_argnums=0)
def pre_outputs(
    model: Model, trained: PyTree, fixed: PyTree, x: Shaped[Array, "n ..."]
) -> Float[Array, "n C"]:
    """f, (n, C)."""
    return model.pre_outputs(trained, fixed, x)


@with_usual_settings
def kernel_velocity(
    net: Network | Apply,
    params: PyTree,
    x: Inputs,
    y: Shaped[ArrayLike, "n C"],
    loss: Callable[[Array, Array], Array] | None = None,
    *,
    memory_limit: float | None = None,
    trainable: Trainable = None,
) -> Float[Array, ""]:
    """Return the relative speed of the kernel at initialization.

    ‖K̇₀‖_F / ‖K₀‖_F, a scalar: the kernel's relative speed under gradient flow of the mean loss at ``params``.

    K̇₀ = d/dt K(w_t) at t = 0 with dw/dt = −∇L is the derivative of the kernel of φ(f) along −∇L. A step of gradient
    descent is η units of this time. ``jax.vmap`` over ``params`` computes several draws in one batch.

    >>> w, ones = jnp.array(3.0), jnp.ones((1, 1))
    >>> kernel_velocity(lambda w, x: w**2 * x, w, ones, ones).item()  # ∇L = (9 − 1)·6, K = 4 w²: 8 w ∇L / 4 w²
    32.0

    Args:
        net: a network of this package, or any callable ``apply(params, x) -> (n, C)`` (by Jacobians).
        params: w₀.
        x: inputs (n, *input_shape).
        y: targets (n, C).
        loss: mean loss of (f, y) with the pre-outputs f of a network, or the outputs of a callable; by default
            that of ``Loss``: cross-entropy for softmax, ½‖φ(f) − y‖² for any other output.
        memory_limit: bytes between parameters and kernel, 4 GiB by default; beyond, rows are processed in blocks.
        trainable: the parameters that move, as for ``empirical_ntk``.

    Returns:
        A scalar array.

    Raises:
        InvalidInput: for a memory limit that is not above 0.

    Source: Dyer & Gur-Ari 2020; Huang & Yau 2020; docs/math/kernel-velocity.md.
    """
    if trainable is not None and isinstance(net, Network) and net.output != "linear":
        raise InvalidInput("trainable", kind_of(trainable), "None with an output other than linear")
    net, rows, num_outputs = accepted(restricted(net, params, trainable), params, x)
    inputs, targets = jnp.asarray(rows), jnp.asarray(accepted_targets(y, len(rows), num_outputs))
    mean_loss = loss or Loss(net.output if isinstance(net, Network) else "linear")
    moving, restore = moving_of(net, params)
    outputs = net.pre_outputs if isinstance(net, Network) else net

    with jax.default_matmul_precision("highest"):
        slopes = jax.grad(lambda w: mean_loss(outputs(restore(w), inputs), targets))(moving)
    downhill = restore(jax.tree.map(jnp.negative, slopes))
    kernel, speed = kernel_derivative(net, params, downhill, inputs, memory_limit=memory_limit)
    return relative_norm(speed, kernel)
