"""Settings by dotted names: parsed from text, validated, changed, shown.

Errors name their setting.
"""

import math
import re
import typing
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from linearity_lab.settings.part import SpecPart, Values
from linearity_lab.settings.validation import lengths, part_type, problems
from linearity_lab.settings.walk import Part, Setting, settings, value_at, values_in, values_of
from ntk_core.allowed import allowed_values
from ntk_core.errors import InvalidInput, UnknownSetting
from ntk_core.markup import Part as ShownPart
from ntk_core.markup import paragraph, shortened, shown_parts, table


class InvalidSpec(ValueError):
    """Error for an invalid spec.

    A spec that cannot be used; ``problems`` has one :class:`InvalidInput` per setting.

    >>> from linearity_lab.experiments import KernelChangeSpec
    >>> try:
    ...     with_settings(KernelChangeSpec(), {"widths": [0]})
    ... except InvalidSpec as error:
    ...     [problem.field for problem in error.problems]
    ['widths']
    """

    def __init__(self, problems: tuple[InvalidInput, ...]):
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


def with_settings(spec: Part, given: Mapping[str, object]) -> Part:
    """Return a spec with some settings replaced.

    Spec → spec, with settings by dotted names: ``{"training.learning_rate": 0.5}``.

    A list of groups is given as a whole or by its length,
    ``{"architectures": 3, "architectures.2.kind": "resnet"}``; new groups have default settings.
    Settings that a changed choice (dataset, architecture, swept quantity) does not use are
    dropped unless given.

    >>> from linearity_lab.experiments import KernelChangeSpec
    >>> with_settings(KernelChangeSpec(), {"training.max_steps": 5}).training.max_steps
    5

    Args:
        spec: any spec.
        given: dotted name → value.

    Returns:
        A new spec of the same type.

    Raises:
        InvalidSpec: for an unknown setting or a value that is not allowed.

    Source: our choice, docs/decisions/0001-specs-and-events.md.
    """
    model = type(spec)
    data = spec.model_dump(mode="json")
    settings_by_name = {setting.name: setting for setting in settings(model)}
    # Lengths of lists come before settings of their entries: "networks" before "networks.1.depth".
    outermost_first = sorted(given, key=lambda name: name.count("."))
    for name in outermost_first:
        _set(model, data, name, given[name], settings_by_name)
    _drop_unused(model, data, given)
    return validated(model, data)


def _set(
    model: type[SpecPart],
    data: Values,
    name: str,
    value: object,
    settings_by_name: Mapping[str, Setting],
) -> None:
    """Set the value at a dotted name in the data of a spec.

    Raises:
        InvalidSpec: if the spec has no setting of this name.
    """
    outer, _, last = name.rpartition(".")
    try:
        group = value_at(data, outer) if outer else data
    except KeyError:
        group = None
    setting = settings_by_name.get(name)
    if not isinstance(group, dict) or not (
        setting is not None
        or last in group
        or any(each.startswith(f"{name}.") for each in settings_by_name)
    ):
        raise InvalidSpec((UnknownSetting.among(name, value, values_in(model, data)),))
    if setting is not None and setting.entry == "parts" and isinstance(value, int):
        value = _resized(setting, group.get(last), value)
    group[last] = value


def validated(model: type[Part], data: Values) -> Part:
    """Return a part of a spec from its data; :class:`InvalidSpec` has one sentence per setting."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidSpec(problems(model, error)) from None
    except UnicodeEncodeError as error:  # an unpaired surrogate, which JSON may contain
        raise InvalidSpec(
            (InvalidInput("spec", error.object, "text of whole Unicode characters"),)
        ) from None


def _resized(setting: Setting, groups: object, count: int) -> list[object]:
    """Return ``count`` groups: the first ones, then new ones with default settings."""
    low, high = lengths(setting.info)
    inner = part_type(setting.info)
    if inner is None or isinstance(count, bool) or not low <= count <= (high or 0):
        raise InvalidSpec((InvalidInput(setting.name, count, allowed_values(setting.info)),))
    kept = groups[:count] if isinstance(groups, list) else []
    num_new = count - len(kept)
    new = [inner().model_dump(mode="json") for _ in range(num_new)]
    return kept + new


def _drop_unused(model: type[SpecPart], data: Values, given: Mapping[str, object]) -> None:
    """Remove from ``data`` settings that its choices do not use.

    Settings given by their dotted names stay.
    """
    found = values_in(model, data)
    defaults = {setting.name: setting.info.default for setting in settings(model)}
    values = {**defaults, **found}
    for setting in reversed(settings(model)):  # entries of a list before the list
        if setting.name not in found or setting.is_used(values):
            continue
        # A given setting stays, also inside a group, so that validation refuses it by name.
        is_given = any(f"{name}.".startswith(f"{setting.name}.") for name in given)
        if is_given:
            continue
        outer, _, last = setting.name.rpartition(".")
        group = value_at(data, outer) if outer else data
        del group[last]


_AS_IT_IS = ("upload", "composition")  # entries that a spec takes as text
_NOTHING = ("", "none", "null")


def text_of(value: object) -> str:
    """Return a value as text, which :func:`value_of` parses."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ",".join(map(text_of, value))
    return repr(value) if isinstance(value, float) else str(value)


def value_of(setting: Setting, text: str) -> Any:
    """Parse text for a spec; leave unparsable text to the spec's validation."""
    text = text.strip()
    if setting.entry in _AS_IT_IS:
        return None if text in _NOTHING else text
    if setting.entry == "switch":
        return {"true": True, "false": False}.get(text.lower(), text)
    if setting.entry == "choice":
        return next((option for option in setting.options if str(option) == text), text)
    if setting.entry in ("choices", "list"):
        if text.lower() in _NOTHING:
            return None if type(None) in typing.get_args(setting.info.annotation) else []
        text = text.removeprefix("[").removesuffix("]")
        items = [item.strip("\"'") for item in re.split(r"[,;\s]+", text) if item]
        return (
            items if setting.entry == "choices" else [_number(item, whole=True) for item in items]
        )
    return _number(text, whole=setting.entry in ("integer", "parts"))


def changed_values(spec: SpecPart, base: SpecPart) -> Values:
    """Return the values that change ``base`` to ``spec``.

    They are by dotted name, see :func:`with_settings`.
    """
    before = values_of(base)
    defaults = {setting.name: setting.info.default for setting in settings(type(spec))}
    return {
        name: value
        for name, value in values_of(spec).items()
        if value != before.get(name, defaults[name])
    }


def differences(spec: SpecPart, base: SpecPart) -> dict[str, str]:
    """Return the texts by dotted name that change ``base`` to ``spec``."""
    return {name: text_of(value) for name, value in changed_values(spec, base).items()}


def spec_from_texts(texts: Mapping[str, str], base: Part) -> tuple[Part, tuple[InvalidInput, ...]]:
    """Apply the settings of ``texts`` to ``base``.

    Report those that cannot be used, which keep their values.

    Values of ``base`` that conflict with ``texts`` are replaced by the nearest allowed
    value or the default, and reported. Valid settings of ``texts`` are dropped, and
    reported, only as a last resort.
    """
    known = {setting.name: setting for setting in settings(type(base))}
    given: dict[str, object] = {}  # usable so far
    found: list[InvalidInput] = []  # to report
    for name, text in texts.items():
        if name in known:
            given[name] = value_of(known[name], text)
        else:
            found.append(InvalidInput(name, text, "only the settings of this page"))
    replaced: dict[str, object] = {}  # values of ``base`` that conflict with ``given``
    while True:
        try:
            return with_settings(base, {**given, **replaced}), tuple(found)
        except InvalidSpec as error:
            reported = {problem.field for problem in found}
            found += [problem for problem in error.problems if problem.field not in reported]
            wrong = {problem.field for problem in error.problems} & set(given)
            if not wrong:
                others = _replacements(error, known)
                if any(name not in replaced for name in others):
                    replaced = {**others, **replaced}
                    continue
                # A given value conflicts with another setting of its group.
                wrong = _in_groups_of(error, given)
                first = error.problems[0]
                why = f"a value compatible with the others ({first.field}: {first.allowed})"
                found += [InvalidInput(name, texts[name], why) for name in sorted(wrong)]
            given = {name: value for name, value in given.items() if name not in wrong}
            replaced = {}


def _replacements(error: InvalidSpec, known: Mapping[str, Setting]) -> dict[str, object]:
    """Return the nearest allowed value, or else the default, of each setting that is wrong."""
    found: dict[str, object] = {}
    for problem in error.problems:
        if problem.field in known:
            default = known[problem.field].info.default
            found[problem.field] = default if problem.nearest is None else problem.nearest
    return found


def _in_groups_of(error: InvalidSpec, given: Mapping[str, object]) -> set[str]:
    """Return the given settings in the groups of the wrong ones.

    All given ones if there are none.
    """
    groups = {problem.field.rpartition(".")[0] for problem in error.problems}
    return {name for name in given if name.rpartition(".")[0] in groups} or set(given)


def _number(text: str, *, whole: bool) -> float | str:
    """Return an integer (including ``1e4`` and ``100.0``) or a float, else the text."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    if whole:
        return int(number) if math.isfinite(number) and number.is_integer() else text
    return number


_LONGEST = 60  # characters of a value; graphs and compositions are longer


def settings_html(part: SpecPart) -> str:
    """Return a table of the settings that differ from defaults.

    It has their titles and Python names.
    """
    usual = type(part)()
    changed = changed_values(part, usual)
    if not changed:
        return paragraph("All settings are at their defaults.")
    known = {setting.name: setting for setting in settings(type(part))}
    defaults = values_of(usual)
    rows = []
    for name, value in changed.items():
        setting = known[name]
        default = _words(setting, defaults[name]) if name in defaults else "not used"
        rows.append((setting.full_title, name, _words(setting, value), default))
    return table(("Setting", "Name", "Value", "Default"), rows)


@shown_parts.register
def _settings_parts(part: SpecPart, with_figure: bool) -> list[ShownPart]:
    return [settings_html(part)]


def _words(setting: Setting, value: object) -> str:
    several = value if isinstance(value, tuple | list) else (value,)
    words = []
    for each in several:
        is_choice = bool(setting.options) and each is not None
        words.append(setting.label(each) if is_choice else text_of(each))
    return shortened(", ".join(words), _LONGEST)
