"""The experiments by name, with their settings, results, costs, summaries and computations."""

import functools
import hashlib
import importlib
import inspect
import sys
import tomllib
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, cast

from pydantic import BeforeValidator, SerializeAsAny

from linearity_lab.data import Dataset, data_fingerprint, load_dataset
from linearity_lab.installation import OUTSIDE
from linearity_lab.runs._result import ResultValue
from linearity_lab.runs._spec import SeededSpec, Spec
from linearity_lab.runs._values import PointValue
from linearity_lab.runs.columns import outcome_notes, text_table
from linearity_lab.runs.costs import Counts, CountsOf
from linearity_lab.settings.grammar import validated
from linearity_lab.settings.part import SpecPart
from ntk_core.errors import InvalidInput
from ntk_core.progress import Progress

Spec_co = TypeVar("Spec_co", covariant=True)
SpecType = TypeVar("SpecType", bound=Spec)
PointType = TypeVar("PointType", bound=PointValue)
Part = TypeVar("Part", bound=SpecPart)
Found = TypeVar("Found")


@dataclass(frozen=True)
class Preset(Generic[Spec_co]):
    """Named spec of a paper's figure with its claim: name → spec.

    Attributes:
        title: a few words for a menu.
        claim: the figure's expected outcome, in a sentence.
        source: paper and figure or section.
        our_choice: the settings that the source does not specify.
        spec: sized for two cores.
        paper_spec: the paper's sizes, for a GPU or a long run on a CPU.
        caveats: parts of the claim that measurements do not confirm, from ``claims.toml``.
        on_page: whether the menu of the experiment's page has it.

    Source: our choice; each preset names its figure, and docs/truth.md compares claims with measurements.

    >>> found = preset("liu-fig1-left")
    >>> max(found.paper_spec.widths) >= max(found.spec.widths)
    True
    """

    name: str
    title: str
    claim: str
    source: str
    our_choice: str
    spec: Spec_co
    paper_spec: Spec_co
    caveats: tuple[str, ...] = ()
    on_page: bool = True

    @property
    def statement(self) -> str:
        """The claim followed by its caveats."""
        caveats = "; ".join(self.caveats)
        return f"{self.claim} Measured here: {caveats}." if caveats else self.claim


def presets_beside(file: str, kind: type[Part]) -> tuple[Preset[Part], ...]:
    """Return the presets in ``presets.toml`` beside a file, one per table, in order.

    ``[NAME.spec]`` contains the settings that differ from the defaults of ``kind``, and ``[NAME.paper]`` the changes
    for the paper's sizes. ``our_choice`` above all tables is the default for presets without their own.

    Raises:
        InvalidSpec: for an unknown setting or a value that is not allowed.
        TypeError: if texts are missing or have unknown names.
    """
    tables: dict[str, Any] = tomllib.loads(
        Path(file).with_name("presets.toml").read_text(encoding="utf-8")
    )
    caveats = _caveats(Path(file).with_name("claims.toml"))
    common = {name: tables.pop(name) for name in ("our_choice",) if name in tables}
    found = []
    for name, table in tables.items():
        spec = validated(kind, table.pop("spec", {}))
        paper = validated(kind, _merged(spec.model_dump(mode="json"), table.pop("paper", {})))
        found.append(
            Preset(
                name, **(common | table), spec=spec, paper_spec=paper, caveats=caveats.get(name, ())
            )
        )
    return tuple(found)


def _caveats(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the caveats of the presets' own claims, by preset."""
    found: dict[str, tuple[str, ...]] = {}
    tables: dict[str, Any] = (
        tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    )
    for table in tables.values():
        if "document" not in table and "caveat" in table:
            found[table["preset"]] = (*found.get(table["preset"], ()), table["caveat"])
    return found


def _merged(data: Mapping[str, Any], changes: Mapping[str, object]) -> dict[str, object]:
    """Return ``data`` with some values replaced, also inside groups."""
    inner = {
        name: _merged(data[name], value)
        if isinstance(value, dict) and isinstance(data.get(name), dict)
        else value
        for name, value in changes.items()
    }
    return {**data, **inner}


_PACKAGE = "linearity_lab.experiments"
_POINT = "point"  # module of an experiment that states EXPERIMENT
Loaded = Dataset | Sequence["Loaded"] | Mapping[int, "Loaded"]  # one data set, or several


def fingerprint(data: Loaded) -> str:
    """Return the SHA-256 of a data set, or of the fingerprints of several."""
    if isinstance(data, Dataset):
        return data_fingerprint(data)
    each = [fingerprint(one) for one in (data.values() if isinstance(data, Mapping) else data)]
    return each[0] if len(each) == 1 else hashlib.sha256("".join(each).encode()).hexdigest()


@dataclass(frozen=True)
class Computation:
    """Computation of points by the function ``compute`` beside the spec.

    The module may also define ``load``, for an experiment with several data sets in a list or mapping.

    Attributes:
        compute: (spec, data, key, progress) → the point of this key; see :class:`ntk_core.progress.Progress`.
        load: spec → its data; raises ``InvalidInput`` if they are not available.
    """

    compute: Callable[[Any, Any, str, Progress], Any]
    load: Callable[[Any], Any]


def table_summary(spec: Spec, points: Sequence[PointValue]) -> str:
    """Return the table of an experiment's columns and the outcomes of unconverged runs."""
    return "\n".join(
        [*text_table(experiment_of(spec).result.columns, points), *outcome_notes(points)]
    )


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
        record_bytes: JSON bytes of one record of one seed and output in a point, or of one seed and output of an
            experiment without records; measured on the gallery, rounded up.
        kept_bytes: (spec, key) → bytes of the arrays that a point stores apart from its JSON.
        parts: classes that users need to write a spec of this experiment, beside the spec itself.
    """

    spec: type[SpecType]
    point: type[PointType]
    result: type[ResultValue]
    counts: CountsOf[SpecType]
    summary: Callable[[SpecType, Sequence[PointType]], str] = table_summary
    sources: tuple[str, ...] = ("liu",)
    record_bytes: float = 600.0
    kept_bytes: Callable[[SpecType, str], float] = no_arrays
    parts: tuple[type[SpecPart], ...] = ()

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


@functools.cache
def packages_outside() -> Mapping[str, str]:
    """Return the packages of experiments in other installed distributions, by name.

    An unusable entry point is skipped with a warning that explains why.
    """
    package, found = importlib.import_module(_PACKAGE), dict[str, str]()
    for entry in entry_points(group=OUTSIDE):
        try:
            stated = importlib.import_module(f"{entry.value}.{_POINT}").EXPERIMENT
            if entry.name in (*package.EXPERIMENTS, *package.KEPT, *found):
                raise InvalidInput(
                    "the entry point", entry.name, "a name that no other experiment has"
                )
            for name in (
                stated.spec.model_fields["experiment"].default,
                stated.point.model_fields["kind"].default,
            ):
                if name != entry.name:
                    raise InvalidInput(
                        "experiment and kind", name, f"{entry.name!r}, the name of the entry point"
                    )
            _ = stated.presets  # refuses presets with invalid specs
            found[entry.name] = entry.value
        except Exception as error:
            of = f" of {entry.dist.name}" if entry.dist else ""
            warnings.warn(f"The experiment {entry.name}{of} is left out: {error}", stacklevel=2)
    return found


@functools.cache
def _presets() -> dict[str, Preset[Spec]]:
    found: dict[str, Preset[Spec]] = {}
    for name, each in EXPERIMENTS.items():
        for preset in each.presets:
            if preset.name in found:
                warnings.warn(
                    f"The preset {preset.name} of {name} is left out: its name is taken.",
                    stacklevel=2,
                )
            found.setdefault(preset.name, preset)
    return found


class _Lazy(Mapping[str, Found]):
    """Mapping from name to value, both looked up on access."""

    def __init__(self, names: Callable[[], Collection[str]], find: Callable[[str], Found]):
        self._names, self._find = names, find

    def __getitem__(self, name: str) -> Found:
        if name not in self._names():
            raise KeyError(name)
        return self._find(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


def _names(*lists: str) -> tuple[str, ...]:
    """Return the names in these lists of ``linearity_lab.experiments``, imported lazily, and of other distributions."""
    package = importlib.import_module(_PACKAGE)
    return (*(name for each in lists for name in getattr(package, each)), *packages_outside())


def _experiment(name: str) -> AnyExperiment:
    package = packages_outside().get(name, f"{_PACKAGE}.{name}")
    return cast(AnyExperiment, importlib.import_module(f"{package}.{_POINT}").EXPERIMENT)


EXPERIMENTS: Mapping[str, AnyExperiment] = _Lazy(lambda: _names("EXPERIMENTS"), _experiment)
# Including experiments that are only stored and shown.
KINDS: Mapping[str, AnyExperiment] = _Lazy(lambda: _names("EXPERIMENTS", "KEPT"), _experiment)
PRESETS: Mapping[str, Preset[Spec]] = _Lazy(_presets, lambda name: _presets()[name])


def presets() -> dict[str, Spec]:
    """Return all presets as name → spec, sized for two cores.

    >>> presets()["liu-fig1-left"].num_seeds > 1
    True

    Returns:
        A new dictionary, in the order of the experiments.

    Source: our choice; each :class:`Preset` names the source of its figure.
    """
    return {name: found.spec for name, found in PRESETS.items()}


def preset(name: str, field: str = "preset") -> Preset[Spec]:
    """Return the preset of this name."""
    if name not in PRESETS:
        raise InvalidInput(field, name, "one of " + ", ".join(PRESETS))
    return PRESETS[name]


def experiment_of(spec: Spec) -> AnyExperiment:
    """Return the experiment of a spec."""
    return KINDS[spec.experiment]


def counts_of(spec: Spec, key: str, most: bool = False) -> Sequence[Counts]:
    """Return the counts of a point; with ``most``, the maximum numbers of steps and products."""
    return experiment_of(spec).counts(spec, key, most)


def run_summary(spec: Spec, points: Sequence[PointValue]) -> str:
    """Summarize finished points: (spec, points) → lines of text.

    >>> from linearity_lab.experiments import KernelChangeSpec
    >>> run_summary(KernelChangeSpec(), [])
    'No point is finished.'

    Args:
        spec: the spec of the run.
        points: its finished points.

    Returns:
        Lines of text with a table.

    Source: our choice; exponents and intervals: docs/math/exponents.md.
    """
    if not points:
        return "No point is finished."
    text = experiment_of(spec).summary(spec, points)
    return (
        f"{text}\nIntervals are {spec.scope}."
        if isinstance(spec, SeededSpec) and "interval" in text
        else text
    )


def _point(data: object) -> object:
    """Validate a point's JSON by its ``kind``; return other values unchanged."""
    kind = data.get("kind") if isinstance(data, dict) else None
    return (
        KINDS[kind].point.model_validate(data) if isinstance(kind, str) and kind in KINDS else data
    )


def _result(data: object) -> object:
    """Validate a result's JSON by its spec's experiment; return other values unchanged."""
    spec = data.get("spec") if isinstance(data, dict) else None
    name = spec.get("experiment") if isinstance(spec, dict) else None
    return (
        KINDS[name].result.model_validate(data) if isinstance(name, str) and name in KINDS else data
    )


Point = Annotated[SerializeAsAny[PointValue], BeforeValidator(_point)]
Result = Annotated[SerializeAsAny[ResultValue], BeforeValidator(_result)]
