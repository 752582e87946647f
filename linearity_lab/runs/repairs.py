"""Repairs of settings that do not fit together.

The newest ones stay, others move to a value that fits.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from linearity_lab.data import DATASETS, dataset_shapes
from linearity_lab.runs._spec import UPLOAD, Spec
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from linearity_lab.settings.part import Values
from linearity_lab.settings.walk import Setting, settings, value_at, values_of
from ntk_core.errors import InvalidInput
from ntk_core.networks.kinds import ARCHITECTURES

AnySpec = TypeVar("AnySpec", bound=Spec)
DATA = "dataset.name"
PATCH = "dataset.patch_size"
USUAL_KIND = "fully-connected"  # takes all data
USUAL_PATCHES = (0, 7, 4, 1)  # sides that divide the shipped images; our choice
PREFERRED = ("mnist", "copy")  # data sets that are tried first; our choice
MOST_ROUNDS = 8


@dataclass(frozen=True)
class Repaired(Generic[AnySpec]):
    """A spec that fits, and how it was reached.

    Attributes:
        changes: dotted name → new value of each moved setting.
        sentences: one for each moved setting, such as "CNN needs images: Dataset is now MNIST".
    """

    spec: AnySpec
    changes: Values
    sentences: tuple[str, ...]


def repaired(
    base: AnySpec, given: Mapping[str, object], newest: Collection[str] = ()
) -> Repaired[AnySpec] | None:
    """Return the spec of ``given`` settings, with those moved that do not fit the ``newest`` ones.

    Args:
        base: a valid spec, which has the settings that are not given.
        given: dotted name → value.
        newest: names of the settings that someone has just chosen; they move only as a last resort.

    Returns:
        The repaired spec; None if nothing helps.
    """
    found = _moved(base, given, frozenset(newest))
    return found if found is not None else _moved(base, given, frozenset())


def _moved(
    base: AnySpec, given: Mapping[str, object], kept: frozenset[str]
) -> Repaired[AnySpec] | None:
    known = {setting.name: setting for setting in settings(type(base))}
    changes: Values = {}
    sentences: dict[str, str] = {}
    for _ in range(MOST_ROUNDS):
        try:
            _with(base, {**given, **changes})
            return _least(base, given, changes, sentences)
        except InvalidSpec as error:
            problem = error.problems[0]
        move = _move(base, {**given, **changes}, problem, known, kept)
        if move is None:
            return None
        for name, value in move.items():
            if changes.get(name, move) == value:
                return None  # tried already
            changes[name] = value
            sentences[name] = _sentence(
                known[name], value, problem, known, given, getattr(base, "needs_classes", ())
            )
    return None


def _with(base: AnySpec, given: Mapping[str, object]) -> AnySpec:
    """Return a spec with the given settings, without those that its choices do not use."""
    known = settings(type(base))
    defaults = {each.name: each.info.get_default(call_default_factory=True) for each in known}
    values = {**defaults, **values_of(base), **given}
    unused = {each.name for each in known if not each.is_used(values)}
    return with_settings(base, {name: each for name, each in given.items() if name not in unused})


def _least(
    base: AnySpec, given: Mapping[str, object], changes: Values, sentences: Mapping[str, str]
) -> Repaired[AnySpec]:
    """Return the repair without changes that later ones have made unnecessary."""
    for name in list(changes):
        fewer = {each: value for each, value in changes.items() if each != name}
        with contextlib.suppress(InvalidSpec):
            _with(base, {**given, **fewer})
            changes = fewer
    spec = _with(base, {**given, **changes})
    return Repaired(spec, changes, tuple(sentences[name] for name in changes))


def _move(
    base: Spec,
    given: Mapping[str, object],
    problem: InvalidInput,
    known: Mapping[str, Setting],
    kept: frozenset[str],
) -> Values | None:
    """Return the change that mends a problem."""
    name = problem.field
    if _chooses_architecture(known.get(name)) and DATA in known:
        for fitting in _fitting_data(base, given, name):
            if not kept & fitting.keys():
                return fitting
        return {name: USUAL_KIND}
    if name not in known:
        return None
    if name in kept:
        # The value that was just chosen cannot be used: the nearest one, if there is one.
        return None if problem.nearest is None else {name: problem.nearest}
    default = known[name].info.get_default(call_default_factory=True)
    return {name: default if problem.nearest is None else problem.nearest}


def _fitting_data(base: Spec, given: Mapping[str, object], name: str) -> Iterator[Values]:
    """Yield changes of the data that this architecture accepts.

    Other patches first, then other data.
    """
    current = str(given.get(DATA, value_at(base, DATA)))
    candidates: list[Values] = []
    for side in USUAL_PATCHES:
        if side != given.get(PATCH, 0) and _num_patches(current, side) != 1:
            candidates.append({PATCH: side})
    for other in dict.fromkeys((*PREFERRED, *DATASETS)):
        if other != UPLOAD:
            candidates.append({DATA: other})
    for change in candidates:
        rest = dict(given)
        if DATA in change:
            rest.pop(PATCH, None)
        try:
            _with(base, {**rest, **change})
        except InvalidSpec as error:
            # Other problems, such as an output for classes, are repaired after this one.
            if any(each.field in (name, DATA, PATCH) for each in error.problems):
                continue
        yield change


def _chooses_architecture(setting: Setting | None) -> bool:
    """Whether the choices of a setting are architectures."""
    if setting is None or not setting.options:
        return False
    return ARCHITECTURES.keys() >= set(setting.options)


def _num_patches(dataset: str, side: int) -> int:
    """Return the number of tokens of an image cut into such patches.

    0 for other data, and without patches.
    """
    if side == 0:
        return 0
    try:
        shapes = dataset_shapes(dataset, num_samples=1, num_test=0, patch_size=side)
    except InvalidInput:
        return 0
    return shapes.input_shape[0]


def _sentence(
    moved: Setting,
    value: object,
    problem: InvalidInput,
    known: Mapping[str, Setting],
    given: Mapping[str, object],
    classes_needed: Collection[str],
) -> str:
    """Return why a setting moved, and its new value."""
    cause = known.get(problem.field)
    title = moved.full_title
    now = f"{title} changed to {_words(moved, value)}"
    if cause is None:
        return now
    now = now[:1].lower() + now[1:]
    if problem.field in classes_needed and DATA in known:
        data = known[DATA].label(given.get(DATA, "these data"))
        return f"{data} has no classes: {now}"
    chosen = str(given.get(problem.field, problem.given))
    if _chooses_architecture(cause) and chosen in ARCHITECTURES:
        is_of_sequences = "num_heads" in ARCHITECTURES[chosen].settings
        needed = "sequences" if is_of_sequences else "images"
        return f"{cause.label(chosen)} needs {needed}: {now}"
    return f"{title} changed to {_words(moved, value)} (allowed: {problem.allowed})"


def _words(setting: Setting, value: object) -> str:
    several = value if isinstance(value, tuple | list) else (value,)
    words = []
    for each in several:
        label = setting.label(each) if setting.options else str(each)
        words.append(label.removesuffix(setting.common_ending).strip())
    return ", ".join(words)
