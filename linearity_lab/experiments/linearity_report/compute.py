"""Report on two loaded checkpoints; importing this starts JAX."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

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
from ntk_core.errors import InvalidInput
from ntk_core.linearity import linearity_report
from ntk_core.progress import Progress
from ntk_core.traced import Apply, accepted


def same_weights(params0: PyTree, params1: PyTree) -> bool:
    """Whether two checkpoints have equal weights."""
    pairs = zip(jax.tree.leaves(params0), jax.tree.leaves(params1), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


@contextmanager
def named(arguments: Mapping[str, str]) -> Iterator[None]:
    """Rename the fields of errors, here checkpoints as in the command."""
    try:
        yield
    except InvalidInput as error:
        if error.field not in arguments:
            raise
        raise InvalidInput(arguments[error.field], error.given, error.allowed) from None


def num_outputs_of(apply: Apply, params: PyTree, x: np.ndarray) -> int:
    """Return C of outputs (n, C), or 1 of outputs (n,).

    Raises:
        InvalidInput: if the model does not take these inputs.
    """
    return accepted(apply, params, jnp.asarray(x)).num_outputs


def reported_by(
    apply: Apply,
    params0: PyTree,
    params1: PyTree,
    path: Path,
    others: Sequence[PyTree] = (),
    arguments: Mapping[str, str] = MappingProxyType({}),
) -> Computation:
    """Return the computation of a report's point.

    A :class:`LinearityReportSpec` alone has no loaded model and weights.

    Args:
        arguments: names of the checkpoints in errors, by those of ``linearity_report``.
    """

    def compute(
        spec: LinearityReportSpec, data: Dataset, key: str, progress: Progress
    ) -> LinearityReportPoint:
        progress.report(0.0, "report")
        x = jnp.asarray(data.x)
        with their_errors(path), named(arguments):
            found = linearity_report(apply, params0, params1, x, data.y, others=others)
        return LinearityReportPoint.read_off(found)

    return Computation(compute, load_data)
