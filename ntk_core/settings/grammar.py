"""Settings by their dotted names: checked, changed, named one by one where they are wrong."""

from typing import Any

from pydantic import ValidationError

from ntk_core.errors import InvalidInput, UnknownSetting
from ntk_core.settings.part import SpecPart
from ntk_core.settings.validation import allowed_values, lengths, part_type, problems
from ntk_core.settings.walk import Part, Setting, settings, value_at, values_in


class InvalidSpec(ValueError):
    """Error for an invalid spec.

    A spec from outside that cannot be used; ``problems`` holds one :class:`InvalidInput` a setting.

    >>> from ntk_core.experiments import KernelChangeSpec
    >>> try:
    ...     with_settings(KernelChangeSpec(), {"widths": [0]})
    ... except InvalidSpec as error:
    ...     [problem.field for problem in error.problems]
    ['widths']
    """

    def __init__(self, problems: tuple[InvalidInput, ...]):
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


def with_settings(spec: Part, given: dict[str, Any]) -> Part:
    """Return a spec with some settings replaced.

    Spec → spec, with settings by dotted names: ``{"training.learning_rate": 0.5}``.

    A list of groups is given as a whole or by its number, ``{"architectures": 3, "architectures.2.kind": "resnet"}``;
    further ones have default settings. Settings that a changed kind (dataset, architecture, what is swept) does not
    use are dropped unless they are given.

    >>> from ntk_core.experiments import KernelChangeSpec
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
    model, data = type(spec), spec.model_dump(mode="json")
    known = {setting.name: setting for setting in settings(model)}
    for name in sorted(given, key=lambda name: name.count(".")):  # how many groups there are before what is in them
        value, setting = given[name], known.get(name)
        outer, _, last = name.rpartition(".")
        try:
            group = value_at(data, outer) if outer else data
        except KeyError:
            group = None
        is_group = any(each.startswith(f"{name}.") for each in known)
        if not isinstance(group, dict) or not (setting or last in group or is_group):
            raise InvalidSpec((UnknownSetting.among(name, value, values_in(model, data)),))
        if setting is not None and setting.entry == "parts" and isinstance(value, int):
            value = _resized(setting, group.get(last), value)
        group[last] = value
    _drop_unused(model, data, given)
    return validated(model, data)


def validated(model: type[Part], data: dict[str, Any]) -> Part:
    """A part of a spec from its data.

    Raises:
        InvalidSpec: with one sentence per setting.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidSpec(problems(model, error)) from None
    except UnicodeEncodeError as error:  # half of a character: JSON may hold it, pydantic does not check it
        raise InvalidSpec((InvalidInput("spec", error.object, "text of whole Unicode characters"),)) from None


def _resized(setting: Setting, groups: Any, count: int) -> list[Any]:
    """The first ``count`` of the groups, and as many more with default settings as that takes."""
    low, high = lengths(setting.info)
    inner = part_type(setting.info)
    if inner is None or isinstance(count, bool) or not low <= count <= (high or 0):
        raise InvalidSpec((InvalidInput(setting.name, count, allowed_values(setting.info)),))
    kept = list(groups)[:count] if isinstance(groups, list) else []
    return kept + [inner().model_dump(mode="json") for _ in range(count - len(kept))]


def _drop_unused(model: type[SpecPart], data: dict[str, Any], given: dict[str, Any]) -> None:
    """Take out of ``data`` what the kind chosen there does not use, unless it is given by its dotted name."""
    found = values_in(model, data)
    values = {**{setting.name: setting.info.default for setting in settings(model)}, **found}
    for setting in reversed(settings(model)):  # what is in a list of groups before the list
        if setting.name in found and not setting.is_used(values):
            outer, _, last = setting.name.rpartition(".")
            if not any(f"{name}.".startswith(f"{setting.name}.") for name in given):
                del (value_at(data, outer) if outer else data)[last]
