"""Compute points sequentially in this process, and report the progress of their parts."""

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from linearity_lab.memory import accelerator_bytes
from linearity_lab.runs._estimate import check_size, devices_for
from linearity_lab.runs._experiment import Computation, fingerprint
from linearity_lab.runs._spec import SeededSpec, Spec
from linearity_lab.runs._table import experiment_of
from linearity_lab.runs._values import PointValue, Provenance
from linearity_lab.runs.compiled_code import release_compiled
from linearity_lab.runs.events import (
    Cause,
    PointFailed,
    PointFinished,
    PointProgress,
    PointStarted,
)
from ntk_core._version import __version__
from ntk_core.errors import InvalidInput, failure
from ntk_core.progress import Progress

_OUT_OF_MEMORY_CODE = "RESOURCE_EXHAUSTED:"  # an absl status code
# Events of points with ``fraction`` of the point; ``run`` converts it to the fraction of the run.
Report = PointStarted | PointProgress | PointFinished | PointFailed


class SiteFailure(Exception):
    """Failure of this process or the cluster, which ends the run; ``str`` is one sentence."""


class ThisProcess:
    """This process; imports JAX and loads data on first use.

    Attributes:
        provenance: provenance of the points computed here; None before the first one.
    """

    def __init__(self, spec: Spec, computation: Computation | None = None):
        self._spec = spec
        self._is_given = computation is not None
        self._data: Any = None
        self.provenance: Provenance | None = None
        computation = computation or experiment_of(spec).computation()
        self._computation = (
            on_own_data(computation) if getattr(spec, "draws_data", False) else computation
        )

    def compute(self, keys: Sequence[str], hear: Callable[[Report | None], None]) -> None:
        """Compute these points and pass their reports to ``hear``, whose exceptions end the work.

        Raises:
            SiteFailure: if no point can be computed.
            Stopped: if ``hear`` raises it.
        """
        try:
            self._data = self._computation.load(self._spec) if self._data is None else self._data
            if accelerator_bytes() and not self._is_given:
                check_size(self._spec, scheduler="")  # unknown before JAX has started
            parts = {key: 1 if self._is_given else devices_for(self._spec, key) for key in keys}
        except InvalidInput as error:
            raise SiteFailure(str(error)) from None
        self.provenance = self._provenance()
        for key in keys:
            hear(PointStarted(key=key))
            began = time.monotonic()
            try:
                point = self._point(key, parts[key], hear)
            except (MemoryError, RuntimeError) as error:
                hear(PointFailed(key=key, reason=sentence(error), cause=cause_of(error)))
            else:
                made = {"provenance": self.provenance, "runtime_s": time.monotonic() - began}
                hear(PointFinished(key=key, point=point.model_copy(update=made)))

    def _point(
        self, key: str, num_devices: int, hear: Callable[[Report | None], None]
    ) -> PointValue:
        """Compute one point."""
        release_compiled()  # a process computes many runs
        last = PointProgress(key=key, fraction=0.0, message="")

        def report(fraction: float, message: str) -> None:
            nonlocal last
            last = PointProgress(key=key, fraction=fraction, message=message)
            with undivided():
                hear(last)

        def show(point: object) -> None:
            with undivided():
                hear(last.model_copy(update={"point": point}))

        with _divided_over(num_devices) as undivided:
            progress = Progress(report, show)
            return self._computation.compute(self._spec, self._data, key, progress)

    def _provenance(self) -> Provenance:
        import jax
        import jax.numpy as jnp

        device = jax.devices()[0]
        return Provenance(
            versions={
                "linearity-lab": __version__,
                **{name: metadata.version(name) for name in ("jax", "jaxlib", "numpy")},
            },
            platform=f"Python {platform.python_version()} on {platform.system()} "
            f"{platform.machine()}",
            device=f"{device.platform}: {device.device_kind}",
            dtype=self._spec.float_type or str(jnp.result_type(float)),
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            data_sha256=fingerprint(self._data),
        )


def on_own_data(computation: Computation) -> Computation:
    """Return a computation that loads data per seed and joins the runs of all seeds in one point.

    Other fields of the point than ``of_each_seed`` are those of the first seed.
    """

    def load(spec: SeededSpec) -> list[object]:
        return [computation.load(each) for each in spec.each_seed()]

    def compute(spec: SeededSpec, data: list[object], key: str, progress: Progress) -> PointValue:
        points: list[PointValue] = []
        for index, (each, of_seed) in enumerate(zip(spec.each_seed(), data, strict=True)):

            def so_far(point: object) -> PointValue:
                """Return the finished seeds and the partial point of the current one."""
                assert isinstance(point, PointValue)
                return _joined([*points, point])

            of_one = progress.part(index, len(data)).showing(so_far)
            points.append(computation.compute(each, of_seed, key, of_one))
        return _joined(points)

    return Computation(compute, load)


def _joined(points: Sequence[PointValue]) -> PointValue:
    """Return one point with the runs of all seeds."""
    first = points[0]
    together = {}
    for of in first.of_each_seed:
        together[of] = tuple(run for point in points for run in getattr(point, of))
    return first.model_copy(update=together)


@contextmanager
def _divided_over(num_devices: int) -> Iterator[Callable[[], AbstractContextManager[object]]]:
    """Divide widths over this many devices; within, the given context undoes it for other code."""
    if num_devices == 1:
        yield nullcontext
        return
    import jax

    from ntk_core.networks.architectures import width_mesh

    outside = jax.sharding.get_mesh()
    with jax.set_mesh(width_mesh(num_devices)):
        yield lambda: jax.set_mesh(outside)


def cause_of(error: BaseException) -> Cause:
    """Return the kind of an error inside a computation."""
    if isinstance(error, MemoryError):
        return Cause.OVER_MEMORY
    # XLA has one exception class for all failures. Its message begins with a status code.
    if str(error).lstrip().startswith(_OUT_OF_MEMORY_CODE):
        return Cause.OVER_MEMORY
    if isinstance(error, InvalidInput):
        return Cause.INVALID_INPUT
    return Cause.ERROR


def sentence(error: BaseException) -> str:
    """Return one line that describes an error inside a computation."""
    match cause_of(error):
        case Cause.OVER_MEMORY:
            return "the computation ran out of memory; choose smaller widths or fewer seeds"
        case Cause.INVALID_INPUT:
            return str(error)
        case _:
            return f"the computation failed ({failure(error)})"
