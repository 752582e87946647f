"""The table of all experiments and presets by name, also of other distributions.

Their summaries.
"""

import functools
import importlib
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar, cast

from linearity_lab.installation import OUTSIDE
from linearity_lab.runs._experiment import AnyExperiment
from linearity_lab.runs._presets import Preset
from linearity_lab.runs._spec import SeededSpec, Spec
from linearity_lab.runs._values import PointValue
from linearity_lab.runs.costs import Counts
from ntk_core.errors import InvalidInput

Found = TypeVar("Found")
_PACKAGE = "linearity_lab.experiments"
_POINT = "point"  # module of an experiment that states EXPERIMENT


class _Lazy(Mapping[str, Found]):
    """Mapping from name to value, both looked up on access."""

    def __init__(self, names: Callable[[], Collection[str]], find: Callable[[str], Found]):
        self._names = names
        self._find = find

    def __getitem__(self, name: str) -> Found:
        if name not in self._names():
            raise KeyError(name)
        return self._find(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


def _names(*lists: str) -> tuple[str, ...]:
    """Return the names in these lists of ``linearity_lab.experiments``, imported lazily.

    Also those of other distributions.
    """
    package = importlib.import_module(_PACKAGE)
    names: list[str] = []
    for each in lists:
        names.extend(getattr(package, each))
    return (*names, *packages_outside())


def _experiment(name: str) -> AnyExperiment:
    package = packages_outside().get(name, f"{_PACKAGE}.{name}")
    return cast(AnyExperiment, importlib.import_module(f"{package}.{_POINT}").EXPERIMENT)


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
        near = get_close_matches(name, PRESETS, n=3, cutoff=0.5)
        raise InvalidInput(field, name, "one of " + ", ".join(near or PRESETS))
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
    summary = experiment_of(spec).summarize(spec, points)
    if isinstance(spec, SeededSpec):
        return f"{summary}\nErrors and intervals are {spec.scope}."
    return summary


@functools.cache
def packages_outside() -> Mapping[str, str]:
    """Return the packages of experiments in other installed distributions, by name.

    An unusable entry point is skipped with a warning that explains why.
    """
    found: dict[str, str] = {}
    for entry in entry_points(group=OUTSIDE):
        try:
            _check_outside(entry, found)
        except Exception as error:
            of = f" of {entry.dist.name}" if entry.dist else ""
            warnings.warn(f"The experiment {entry.name}{of} is left out: {error}", stacklevel=2)
        else:
            found[entry.name] = entry.value
    return found


def _check_outside(entry: EntryPoint, found: Collection[str]) -> None:
    """Refuse an entry point whose experiment cannot be added.

    It must fit ours and those already ``found``.
    """
    ours = importlib.import_module(_PACKAGE)
    stated = importlib.import_module(f"{entry.value}.{_POINT}").EXPERIMENT
    if entry.name in (*ours.EXPERIMENTS, *ours.KEPT, *found):
        raise InvalidInput("the entry point", entry.name, "a name that no other experiment has")
    name_in_spec = stated.spec.model_fields["experiment"].default
    kind_of_point = stated.point.model_fields["kind"].default
    for name in (name_in_spec, kind_of_point):
        if name != entry.name:
            allowed = f"{entry.name!r}, the name of the entry point"
            raise InvalidInput("experiment and kind", name, allowed)
    _ = stated.presets  # refuses presets with invalid specs
