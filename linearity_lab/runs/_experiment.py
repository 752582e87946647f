"""Declaration of an experiment: its types, costs, summary, presets and computation."""

import functools
import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from linearity_lab.data import Dataset, data_fingerprint, load_dataset
from linearity_lab.runs._presets import Preset, presets_beside
from linearity_lab.runs._result import ResultValue
from linearity_lab.runs._spec import Spec
from linearity_lab.runs._values import PointValue
from linearity_lab.runs.columns import outcome_notes, text_table
from linearity_lab.runs.costs import CountsOf
from linearity_lab.settings.part import SpecPart
from ntk_core.progress import Progress

SpecType = TypeVar("SpecType", bound=Spec)
PointType = TypeVar("PointType", bound=PointValue)
Loaded = Dataset | Sequence["Loaded"] | Mapping[int, "Loaded"]  # one data set, or several


@dataclass(frozen=True)
class Computation:
    """Computation of points by the function ``compute`` beside the spec.

    The module may also define ``load``, for an experiment with several data sets in a list or
    mapping.

    Attributes:
        compute: (spec, data, key, progress) → the point of this key; see
            :class:`ntk_core.progress.Progress`.
        load: spec → its data; raises ``InvalidInput`` if they are not available.
    """

    compute: Callable[[Any, Any, str, Progress], Any]
    load: Callable[[Any], Any]


def no_arrays(spec: Spec, key: str) -> float:
    """Return 0: the points of most experiments have no arrays beside their JSON."""
    return 0.0


@dataclass(frozen=True)
class Experiment(Generic[SpecType, PointType]):
    """One experiment.

    Attributes:
        spec, point, result: types of the settings, of a point, and of a run's result.
        counts: computations and arrays of a point, without JAX.
        summary: (spec, points) → lines of text; by default the table of the result's columns.
        sources: keys of its papers, see ``linearity_lab.citation``.
        record_bytes: JSON bytes of one record of one seed and output in a point, or of one seed and
            output of an experiment without records; measured on the gallery, rounded up.
        kept_bytes: (spec, key) → bytes of the arrays that a point stores apart from its JSON.
        parts: classes that users need to write a spec of this experiment, beside the spec itself.
    """

    spec: type[SpecType]
    point: type[PointType]
    result: type[ResultValue]
    counts: CountsOf[SpecType]
    summary: Callable[[SpecType, Sequence[PointType]], str] | None = None
    sources: tuple[str, ...] = ("liu",)
    record_bytes: float = 600.0
    kept_bytes: Callable[[SpecType, str], float] = no_arrays
    parts: tuple[type[SpecPart], ...] = ()

    def summarize(self, spec: SpecType, points: Sequence[PointType]) -> str:
        """Return the summary: its own, or the table of the columns and the unconverged outcomes."""
        if self.summary is not None:
            return self.summary(spec, points)
        lines = [*text_table(self.result.columns, points), *outcome_notes(points)]
        return "\n".join(lines)

    @functools.cached_property
    def presets(self) -> tuple[Preset[SpecType], ...]:
        """The presets in ``presets.toml`` beside the spec: papers' figures and our own."""
        return presets_beside(inspect.getfile(self.spec), self.spec)

    def computation(self) -> Computation:
        """Return the computation in the module ``compute`` beside the spec; this imports JAX."""
        module = importlib.import_module(".compute", sys.modules[self.spec.__module__].__package__)
        return Computation(module.compute, getattr(module, "load", load_data))


AnyExperiment = Experiment[Any, Any]


def load_data(spec: Any) -> Dataset:
    """Return the data set of a spec; raise ``InvalidInput`` if it is not available."""
    return load_dataset(spec.dataset.name, **spec.data_options())


def fingerprint(data: Loaded) -> str:
    """Return the SHA-256 of a data set, or of the fingerprints of several."""
    if isinstance(data, Dataset):
        return data_fingerprint(data)
    data_sets = data.values() if isinstance(data, Mapping) else data
    fingerprints = [fingerprint(each) for each in data_sets]
    if len(fingerprints) == 1:
        return fingerprints[0]
    return hashlib.sha256("".join(fingerprints).encode()).hexdigest()
