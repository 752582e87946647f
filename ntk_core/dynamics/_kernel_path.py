"""The tangent kernel of a model, followed while it is trained."""

import math
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array
from jaxtyping import Float, Shaped

from ntk_core.dynamics._history import FloatArray, KernelPath
from ntk_core.dynamics._models import CallableModel, Model, NetworkModel
from ntk_core.dynamics._rates import eigenvalues
from ntk_core.kernels import empirical_ntk, through_output
from ntk_core.networks.architectures import merge

TrainedModel = NetworkModel | CallableModel


class FollowedKernel:
    """Kernels of the net's output φ on ``x`` at each record, compared with the first one."""

    def __init__(self, model: TrainedModel, fixed: Any, x: Array):
        self.model, self.fixed, self.x = model, fixed, x
        self._first: dict[str, FloatArray] = {}
        self._first_pre: FloatArray | None = None
        self._rows: list[dict[str, Any]] = []

    def record(self, trained: Any) -> None:
        """Note the kernel at these parameters."""
        pre_parts = _pre_output_kernels(self.model, trained, self.fixed, self.x)
        output = self.model.net.output if isinstance(self.model, NetworkModel) else "linear"
        parts = pre_parts
        if output != "linear":
            f = pre_outputs(self.model, trained, self.fixed, self.x)
            parts = {name: through_output(output, part, f, f) for name, part in pre_parts.items()}
        now = {name: np.asarray(part, np.float64) for name, part in parts.items()}
        self._first = self._first or now
        first, total = (np.asarray(sum(each.values())) for each in (self._first, now))
        spectrum = eigenvalues(total)
        pre = total if output == "linear" else np.asarray(sum(pre_parts.values()), np.float64)
        self._first_pre = pre if self._first_pre is None else self._first_pre
        pre_spectrum = spectrum if output == "linear" else eigenvalues(pre)
        moved = {name: _share(part - self._first[name], first) for name, part in now.items()}
        self._rows.append({
            "change": _share(total - first, first),
            "smallest": spectrum[-1],
            "largest": spectrum[0],
            "pre_output_smallest": pre_spectrum[-1],
            "pre_output_change": _share(pre - self._first_pre, self._first_pre),
            "layer_change": moved if isinstance(self.model, NetworkModel) else {},
        })  # fmt: skip

    def path(self) -> KernelPath:
        """All records so far."""
        columns: dict[str, Any] = {name: [row[name] for row in self._rows] for name in self._rows[0]}
        layers = columns.pop("layer_change")
        return KernelPath(
            **{name: np.asarray(column) for name, column in columns.items()},
            layer_change={name: np.array([row[name] for row in layers]) for name in layers[0]},
            num_points=len(self.x),
        )


def _share(part: FloatArray, whole: FloatArray) -> float:
    """‖part‖_F / ‖whole‖_F; NaN where there is no kernel at all."""
    norm = float(np.linalg.norm(whole))
    return float(np.linalg.norm(part)) / norm if norm else math.nan


def pre_output_kernel(
    model: TrainedModel, trained: Any, fixed: Any, x1: Shaped[Array, "n1 ..."], x2: Shaped[Array, "n2 ..."]
) -> Float[Array, "n1 n2 C C"]:
    """K of the pre-outputs f, (n1, n2, C, C)."""
    if isinstance(model, NetworkModel):
        return empirical_ntk(model.net.with_output("linear"), merge(trained, fixed), x1, x2)
    return empirical_ntk(model.function, trained, x1, x2)


@partial(jax.jit, static_argnums=0)
def pre_outputs(model: Model, trained: Any, fixed: Any, x: Shaped[Array, "n ..."]) -> Float[Array, "n C"]:
    """f, (n, C)."""
    return model.pre_outputs(trained, fixed, x)


def _pre_output_kernels(model: TrainedModel, trained: Any, fixed: Any, x: Array) -> dict[str, Array]:
    """The layers' parts of K; in one part for a callable."""
    if isinstance(model, NetworkModel):
        return empirical_ntk(model.net.with_output("linear"), merge(trained, fixed), x, per_layer=True)
    return {"": empirical_ntk(model.function, trained, x)}
