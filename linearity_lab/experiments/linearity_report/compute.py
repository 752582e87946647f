"""Report on two loaded checkpoints; importing this starts JAX."""

from pathlib import Path

import jax.numpy as jnp
from jaxtyping import PyTree

from linearity_lab.data import Dataset
from linearity_lab.experiments.linearity_report.point import (
    LinearityReportPoint,
    LinearityReportSpec,
)
from linearity_lab.runs import Computation, load_data
from ntk_core.own_models import linearity_report, their_errors
from ntk_core.progress import Progress
from ntk_core.traced import Apply


def reported_by(apply: Apply, params0: PyTree, params1: PyTree, path: Path) -> Computation:
    """Computation of a :class:`LinearityReportSpec`'s point, which needs the loaded model and weights."""

    def compute(
        spec: LinearityReportSpec, data: Dataset, key: str, progress: Progress
    ) -> LinearityReportPoint:
        progress.report(0.0, "report")
        with their_errors(path):
            return LinearityReportPoint.read_off(
                linearity_report(apply, params0, params1, jnp.asarray(data.x), data.y)
            )

    return Computation(compute, load_data)
