"""Settings as text: in a URL, a form field and ``--set``; parsed into a spec."""

import math
import re
import typing
from collections.abc import Mapping
from typing import Any

from ntk_core.errors import InvalidInput
from ntk_core.settings.grammar import InvalidSpec, with_settings
from ntk_core.settings.part import SpecPart
from ntk_core.settings.walk import Part, Setting, settings, values_of

_AS_IT_IS = ("upload", "composition")  # entries whose text a spec takes as it is
_NOTHING = ("", "none", "null")


def text_of(value: Any) -> str:
    """A value as text, read back by :func:`value_of`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ",".join(map(text_of, value))
    return repr(value) if isinstance(value, float) else str(value)


def value_of(setting: Setting, text: str) -> Any:
    """Parse the text as a spec takes it; unparsable text is returned as it is, for the spec to refuse."""
    text = text.strip()
    if setting.entry in _AS_IT_IS:
        return None if text in _NOTHING else text
    if setting.entry == "switch":
        return {"true": True, "false": False}.get(text.lower(), text)
    if setting.entry == "choice":
        return next((option for option in setting.options if str(option) == text), text)
    if setting.entry in ("choices", "list"):
        if text.lower() in _NOTHING:
            return None if _accepts_none(setting) else []
        text = text.removeprefix("[").removesuffix("]")
        items = [item.strip("\"'") for item in re.split(r"[,;\s]+", text) if item]
        return items if setting.entry == "choices" else [_number(item, whole=True) for item in items]
    return _number(text, whole=setting.entry in ("integer", "parts"))


def changed_values(spec: SpecPart, base: SpecPart) -> dict[str, Any]:
    """Dotted name → value of what makes ``spec`` out of ``base`` by :func:`ntk_core.runs.with_settings`."""
    before = values_of(base)
    defaults = {setting.name: setting.info.default for setting in settings(type(spec))}
    return {name: value for name, value in values_of(spec).items() if value != before.get(name, defaults[name])}


def differences(spec: SpecPart, base: SpecPart) -> dict[str, str]:
    """Dotted name → text of what makes ``spec`` out of ``base``."""
    return {name: text_of(value) for name, value in changed_values(spec, base).items()}


def spec_from_texts(texts: Mapping[str, str], base: Part) -> tuple[Part, tuple[InvalidInput, ...]]:
    """``base`` with the settings of ``texts``; what cannot be used keeps its value in ``base`` and is named.

    So is a value of ``base`` that does not go with what is given: the nearest that does, or the default, replaces
    it. Good settings of ``texts`` are given up only where nothing else helps, and then each is named.
    """
    known = {setting.name: setting for setting in settings(type(base))}
    given = {name: value_of(known[name], text) for name, text in texts.items() if name in known}
    found = [
        InvalidInput(name, text, "only the settings of this page") for name, text in texts.items() if name not in known
    ]
    instead: dict[str, Any] = {}
    while True:
        try:
            return with_settings(base, {**given, **instead}), tuple(found)
        except InvalidSpec as error:
            named = {problem.field for problem in found}
            found += [problem for problem in error.problems if problem.field not in named]
            wrong = {problem.field for problem in error.problems} & set(given)
            others = {each.field: each.nearest for each in error.problems if each.field in known} if not wrong else {}
            for name in [name for name, nearest in others.items() if nearest is None]:
                others[name] = known[name].info.default
            if not wrong and any(name not in instead for name in others):
                instead = {**others, **instead}
                continue
            if not wrong:  # what was given made another setting of its group impossible
                groups = {problem.field.rpartition(".")[0] for problem in error.problems}
                wrong = {name for name in given if name.rpartition(".")[0] in groups} or set(given)
                why = f"a value that goes with the others ({error.problems[0].field}: {error.problems[0].allowed})"
                found += [InvalidInput(name, texts[name], why) for name in sorted(wrong)]
            given, instead = {name: value for name, value in given.items() if name not in wrong}, {}


def _accepts_none(setting: Setting) -> bool:
    return type(None) in typing.get_args(setting.info.annotation)


def _number(text: str, *, whole: bool) -> Any:
    """An integer (``1e4`` and ``100.0`` included) or a float; the text itself when it is neither."""
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
