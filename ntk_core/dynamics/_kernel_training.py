"""Networks trained from w₀ to a loss threshold, with the kernels of several outputs measured on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray

from ntk_core.dynamics._descent import Descent, over_seeds, record_steps, stretches
from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import NetworkModel
from ntk_core.dynamics._optimizers import Optimizer
from ntk_core.dynamics._rates import auto_learning_rate
from ntk_core.kernels import kernel_change, pre_output_ntk, through_output
from ntk_core.networks.architectures import Network, NetworkParams, merge, output_function

Kernels = dict[str, Array]
MOST_FOLLOWED = 4


def followed_rows(num_points: int) -> slice:
    """Rows of the training points whose outputs are recorded: at most four, evenly spread."""
    return slice(0, num_points, -(-num_points // MOST_FOLLOWED))


class KernelTraining:
    """Gradient descent of one network for each seed, side by side, and ΔK of its outputs at the recorded steps.

    Outputs that share their parameters share one kernel of the pre-outputs.

    Args:
        params: w₀ of all seeds, with a leading axis.
        x, y: inputs (n, *input_shape) and targets (n, C).
        loss: what is minimized.
        observed: output nonlinearities φ whose kernels are followed.
        learning_rate, loss_threshold, max_steps, num_records: as in ``ntk_core.dynamics.spec.TrainingSpec``.
        watch: called at w₀ and at every record with w_t and the kernels of the observed outputs, of all seeds.

    Attributes:
        kernel: of the pre-outputs at w₀, (S, n, n, C, C).
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
    ):
        self.loss, self.observed, self._net, self._watch = loss, observed, net, watch
        self._x, self._y = jnp.asarray(x), jnp.asarray(y)
        self._records = record_steps(max_steps, num_records)
        self.kernel, first = self._measured(params)
        self._first = first.kernels
        self._rates = [
            auto_learning_rate(kernel, loss) if learning_rate == "auto" else float(learning_rate)
            for kernel in np.asarray(self.kernel)
        ]
        rates = jnp.asarray(self._rates, jnp.result_type(float))
        trained, fixed = net.partition(params)
        self._descent = Descent(
            NetworkModel(net, loss), Optimizer(), trained, fixed, self._x, self._y, rates,
            threshold=loss_threshold, together=True, dead=[not kernel.any() for kernel in np.asarray(self.kernel)],
        )  # fmt: skip
        self._rows: list[list[_Row]] = [[] for _ in self._rates]
        self._note(first, np.zeros((len(self._rates), len(observed))))

    def stretches(self) -> Iterator[int]:
        """Train until every seed is done; yields the step reached, several times a second."""
        return stretches([self._descent], lambda step: self._record(), self._records)

    def recorded(self, seed: int, output: str) -> dict[str, Any]:
        """What was recorded of one seed (its place in the batch) through one of the observed outputs.

        ``learning_rate`` (infinite where it is automatic and the kernel 0), ``outcome``, ``steps``, ``change`` (ΔK) and
        ``loss`` there, by these names.
        """
        steps, changes, losses, _ = zip(*self._rows[seed], strict=True)
        return {
            "learning_rate": self._rates[seed],
            "outcome": self._descent.outcomes()[seed],
            "steps": steps,
            "change": tuple(change[self.observed.index(output)] for change in changes),
            "loss": losses,
        }

    def followed_outputs(self, seed: int, output: str) -> tuple[tuple[float, ...], ...]:
        """φ(f(x_i)) of the followed training points at the recorded steps, (R, F); of the point's own class."""
        at = self.observed.index(output)
        # All digits that its type has, and no more: the shortest numbers that read back as the same.
        return tuple(tuple(float(str(value)) for value in row.followed[at]) for row in self._rows[seed])

    def _record(self) -> None:
        params = merge(self._descent.state.trained, self._descent.fixed)
        _, found = self._measured(params)
        changes = [_change(found.kernels[output], self._first[output]) for output in self.observed]
        self._note(found, np.transpose(np.asarray(changes, float)))

    def _measured(self, params: NetworkParams) -> tuple[Array, _Measured]:
        """The kernel of the pre-outputs, and what is seen through the outputs."""
        f, kernel = _pre_outputs_and_kernel(self._net, params, self._x)
        found = _seen(self.observed, self.loss, f, kernel, self._y)
        self._watch(params, found.kernels)
        return kernel, found

    def _note(self, found: _Measured, changes: NDArray[np.float64]) -> None:
        columns = [changes.tolist(), np.asarray(found.loss, float).tolist(), np.asarray(found.followed)]
        for rows, step, *measured in zip(self._rows, self._descent.steps, *columns, strict=True):
            if not rows or rows[-1].step < step:
                rows.append(_Row(int(step), *measured))
        self._descent.note(found.loss)


class _Row(NamedTuple):
    """What is recorded of one seed at one step."""

    step: int
    changes: list[float]
    loss: float
    followed: np.ndarray


class _Measured(NamedTuple):
    """The kernel under each observed output, the loss, and the outputs at the followed points, (outputs, F)."""

    kernels: Kernels
    loss: Array
    followed: Array


@partial(jax.jit, static_argnums=0)
def _pre_outputs_and_kernel(net: Network, params: NetworkParams, x: Array) -> tuple[Array, Array]:
    def one(params: NetworkParams) -> tuple[Array, Array]:
        kernel, f, _ = pre_output_ntk(net, params, x)
        return f, kernel

    return over_seeds(one, params)


# What is seen through outputs has no width, so these two programs serve the networks of all widths.
@partial(jax.jit, static_argnums=(0, 1))
def _seen(observed: tuple[str, ...], loss: Loss, f: Array, kernel: Array, y: Array) -> _Measured:
    def one(f: Array, kernel: Array) -> _Measured:
        kernels = {output: through_output(output, kernel, f, f) for output in observed}
        rows = followed_rows(len(y))
        own = jnp.argmax(y[rows], axis=-1)[:, None]
        followed = jnp.stack(
            [jnp.take_along_axis(output_function(output)(f[rows]), own, axis=-1)[:, 0] for output in observed]
        )
        return _Measured(kernels, loss(f, y), followed)

    return over_seeds(one, f, kernel)


@jax.jit
def _change(now: Array, first: Array) -> Array:
    return over_seeds(kernel_change, now, first)
