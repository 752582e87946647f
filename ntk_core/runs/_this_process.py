"""Points computed in this process, one after the other."""

import platform
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from ntk_core._version import __version__
from ntk_core.errors import InvalidInput
from ntk_core.runs._estimate import accelerator_bytes, check_size, devices_for
from ntk_core.runs._progress import one_after_another, relayed
from ntk_core.runs._sites import Report, SiteFailure, sentence
from ntk_core.runs._spec import Spec
from ntk_core.runs._table import Computation, Growth, Progress, experiment_of, fingerprint
from ntk_core.runs._values import PointValue, Provenance
from ntk_core.runs.compiled_code import release_compiled
from ntk_core.runs.events import PointFailed, PointFinished, PointProgress, PointStarted


class ThisProcess:
    """This process; JAX starts and the data are loaded when they are first needed."""

    def __init__(self, spec: Spec, computation: Computation | None = None):
        self._spec, self._is_given, self._data = spec, computation is not None, None
        computation = computation or experiment_of(spec).computation()
        self._computation = on_own_data(computation) if getattr(spec, "draws_data", False) else computation

    def reports(self, keys: Sequence[str]) -> Generator[Report | None, None, None]:
        """As :meth:`ntk_core.runs._sites.Site.reports`."""
        try:
            self._data = self._computation.load(self._spec) if self._data is None else self._data
            if accelerator_bytes() and not self._is_given:
                check_size(self._spec, scheduler="")  # unknown before JAX has started
            parts = {key: 1 if self._is_given else devices_for(self._spec, key) for key in keys}
        except InvalidInput as error:
            raise SiteFailure(str(error)) from None
        provenance = self._provenance()
        for key in keys:
            yield PointStarted(key=key)
            began = time.monotonic()
            try:
                point = yield from self._advances(key, parts[key])
            except (MemoryError, RuntimeError) as error:
                yield PointFailed(key=key, reason=sentence(error))
            else:
                made = {"provenance": provenance, "runtime_s": time.monotonic() - began}
                yield PointFinished(key=key, point=point.model_copy(update=made))

    def _advances(self, key: str, num_devices: int) -> Generator[PointProgress, None, PointValue]:
        """Yield the progress of a computation; return the point."""
        release_compiled()  # a process lives through many runs
        work = self._computation.compute(self._spec, self._data, key)
        while True:
            try:
                with _divided_over(num_devices):  # not across a yield: what others do meanwhile is theirs
                    fraction, message, *growing = next(work)
            except StopIteration as stop:
                return stop.value
            point = growing[0] if growing else None
            yield PointProgress(key=key, fraction=fraction, message=message, point=point)

    def _provenance(self) -> Provenance:
        import jax
        import jax.numpy as jnp

        device = jax.devices()[0]
        return Provenance(
            versions={
                "linearity-lab": __version__,
                **{name: metadata.version(name) for name in ("jax", "jaxlib", "numpy")},
            },
            platform=f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
            device=f"{device.platform}: {device.device_kind}",
            dtype=self._spec.float_type or str(jnp.result_type(float)),
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            data_sha256=fingerprint(self._data),
        )


def on_own_data(computation: Computation) -> Computation:
    """A computation whose data are those of every seed, and whose point has the runs of all seeds.

    What a point states beside its runs (``of_each_seed``) is that of the first seed.
    """

    def load(spec: Any) -> list[Any]:
        return [computation.load(each) for each in spec.each_seed()]

    def compute(spec: Any, data: list[Any], key: str) -> Generator[Progress | Growth, None, PointValue]:
        works = one_after_another([computation.compute(*one, key) for one in zip(spec.each_seed(), data, strict=True)])
        # A point of one seed is not drawn as it grows.
        points: list[PointValue] = yield from relayed(works, lambda report: (report[0], report[1]))
        together = {
            name: tuple(run for each in points for run in getattr(each, name)) for name in points[0].of_each_seed
        }
        return points[0].model_copy(update=together)

    return Computation(compute, load)


def _divided_over(num_devices: int) -> AbstractContextManager[object]:
    """Widths are divided over that many devices; one needs no mesh."""
    if num_devices == 1:
        return nullcontext()
    import jax

    from ntk_core.networks.architectures import width_mesh

    return jax.set_mesh(width_mesh(num_devices))
