"""Report on two loaded checkpoints; importing this starts JAX."""

from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from linearity_lab.data import Dataset
from linearity_lab.experiments.linearity_report.point import (
    LinearityReportPoint,
    LinearityReportSpec,
)
from linearity_lab.model_files import their_errors
from linearity_lab.runs import Computation, load_data
from ntk_core.linearity import linearity_report
from ntk_core.progress import Progress
from ntk_core.traced import Apply, accepted


def same_weights(params0: PyTree, params1: PyTree) -> bool:
    """Whether two checkpoints have equal weights."""
    pairs = zip(jax.tree.leaves(params0), jax.tree.leaves(params1), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


def num_outputs_of(apply: Apply, params: PyTree, x: np.ndarray) -> int:
    """Return C of outputs (n, C), or 1 of outputs (n,).

    Raises:
        InvalidInput: if the model does not take these inputs.
    """
    return accepted(apply, params, jnp.asarray(x)).num_outputs


def reported_by(
    apply: Apply, params0: PyTree, params1: PyTree, path: Path, others: Sequence[PyTree] = ()
) -> Computation:
    """Return the computation of a report's point.

    A :class:`LinearityReportSpec` alone has no loaded model and weights.
    """

    def compute(
        spec: LinearityReportSpec, data: Dataset, key: str, progress: Progress
    ) -> LinearityReportPoint:
        progress.report(0.0, "report")
        with their_errors(path):
            return LinearityReportPoint.read_off(
                linearity_report(
                    apply, params0, params1, jnp.asarray(data.x), data.y, others=others
                )
            )

    return Computation(compute, load_data)
