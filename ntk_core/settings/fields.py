"""The settings of a spec as people give them: one entry each, and its text in a URL or a field; free of Streamlit."""

from __future__ import annotations

import functools
import math
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ntk_core.errors import InvalidInput
from ntk_core.settings.grammar import InvalidSpec, with_settings
from ntk_core.settings.part import SpecPart, chosen_among
from ntk_core.settings.validation import allowed_values, bounds
from ntk_core.settings.vocabulary import (
    ACTIVATIONS,
    ARCHITECTURES,
    DATASETS,
    LOSSES,
    METHODS,
    OUTPUTS,
    PARAMETERIZATIONS,
    Term,
)

Part = TypeVar("Part", bound=SpecPart)
Entry = Literal["choice", "choices", "switch", "integer", "number", "list", "text", "upload", "composition"]
_AS_IT_IS = ("upload", "composition")  # entries whose text a spec takes as it is
_VOCABULARIES = (ACTIVATIONS, ARCHITECTURES, DATASETS, LOSSES, METHODS, OUTPUTS, PARAMETERIZATIONS)


@dataclass(frozen=True)
class Setting:
    """One setting of a spec, named by its dotted path (``dataset.num_samples``).

    Attributes:
        part: the group of settings it belongs to.
        entry: how a person gives it.
        options: what can be chosen, empty where anything may be written.
    """

    name: str
    part: type[BaseModel]
    info: FieldInfo
    entry: Entry
    options: tuple[Any, ...] = ()

    @property
    def title(self) -> str:
        """A few words with the symbol."""
        return self.info.title or self.name

    @property
    def help(self) -> str:
        """What it means, what is allowed, and the formula of each choice."""
        allowed = "" if self.options else f" Allowed: {allowed_values(self.info)}."
        formulas = [f"- **{term.title}**: {term.formula}" for option in self.options if (term := self.term(option))]
        return "\n".join([(self.info.description or "") + allowed, "", *formulas]).strip()

    @property
    def step(self) -> float:
        """How far one press of + or − goes."""
        low, high = bounds(self.info)
        return 1 if self.entry == "integer" else 0.01 if (high or 1) <= 10 and not low else 0.1

    def term(self, option: Any) -> Term | None:
        """The vocabulary's entry for a choice."""
        return next((table[option] for table in _VOCABULARIES if tuple(table) == self.options), None)

    def label(self, option: Any) -> str:
        """A choice as people read it."""
        term = self.term(option)
        return term.title if term else str(option).replace("_", " ").replace("-", " ")

    def is_used(self, values: Mapping[str, Any]) -> bool:
        """Whether the kind chosen in ``values`` (dotted name → value) uses this setting."""
        if not issubclass(self.part, SpecPart) or not self.part.selector:
            return True
        *path, last = self.name.split(".")
        kind = values.get(".".join([*path, self.part.selector]))
        return last not in self.part.relevant or chosen_among(kind, self.part.relevant[last])

    def sentence(self, problem: InvalidInput) -> str:
        """What is wrong, naming the setting by its title."""
        return f"{self.title}: {problem.given} is not allowed; allowed: {problem.allowed}."


def settings(model: type[BaseModel]) -> tuple[Setting, ...]:
    """All settings of a spec type that a person can change, in order."""
    return _settings(model, "")


@functools.cache
def _settings(model: type[BaseModel], prefix: str) -> tuple[Setting, ...]:
    found: list[Setting] = []
    for name, info in model.model_fields.items():
        annotation = info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found += _settings(annotation, f"{prefix}{name}.")
            continue
        entry, options = _entry(annotation)
        if isinstance(info.json_schema_extra, dict):  # the spec says how, where its type does not
            entry = typing.cast(Entry, info.json_schema_extra.get("entry", entry))
        if entry == "choice" and len(options) < 2 and info.title is None:
            continue  # a constant, such as the schema's version
        found.append(Setting(prefix + name, model, info, entry, options))
    return tuple(found)


def values_of(spec: SpecPart) -> dict[str, Any]:
    """Dotted name → value of every setting that the spec uses."""
    found: dict[str, Any] = {}
    for setting in settings(type(spec)):
        part: Any = spec
        *path, last = setting.name.split(".")
        for name in path:
            part = getattr(part, name)
        if not isinstance(part, SpecPart) or part.uses(last):
            found[setting.name] = getattr(part, last)
    return found


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
    """What the text says, as a spec takes it; text that says nothing of the kind stays, for the spec to refuse."""
    text = text.strip()
    if setting.entry in _AS_IT_IS:
        return None if text in ("", "none") else text
    if setting.entry == "switch":
        return {"true": True, "false": False}.get(text.lower(), text)
    if setting.entry == "choice":
        return next((option for option in setting.options if str(option) == text), text)
    if setting.entry in ("choices", "list"):
        if text.lower() in ("", "none"):
            return None if _accepts_none(setting) else []
        items = [item for item in re.split(r"[,;\s]+", text) if item]
        return items if setting.entry == "choices" else [_number(item, whole=True) for item in items]
    return _number(text, whole=setting.entry == "integer")


def changed_values(spec: SpecPart, base: SpecPart) -> dict[str, Any]:
    """Dotted name → value of what makes ``spec`` out of ``base`` by :func:`ntk_core.runs.with_settings`."""
    before = values_of(base)
    defaults = {setting.name: setting.info.default for setting in settings(type(spec))}
    return {name: value for name, value in values_of(spec).items() if value != before.get(name, defaults[name])}


def differences(spec: SpecPart, base: SpecPart) -> dict[str, str]:
    """Dotted name → text of what makes ``spec`` out of ``base``."""
    return {name: text_of(value) for name, value in changed_values(spec, base).items()}


def spec_from_texts(texts: Mapping[str, str], base: Part) -> tuple[Part, tuple[InvalidInput, ...]]:
    """``base`` with the settings of ``texts``; what cannot be used keeps its value in ``base`` and is named."""
    known = {setting.name: setting for setting in settings(type(base))}
    given = {name: value_of(known[name], text) for name, text in texts.items() if name in known}
    found = [
        InvalidInput(name, text, "only the settings of this page") for name, text in texts.items() if name not in known
    ]
    while True:
        try:
            return with_settings(base, given), tuple(found)
        except InvalidSpec as error:
            found += error.problems
            wrong = {problem.field for problem in error.problems} & set(given)
            if not wrong:  # what was given made another setting of its group impossible
                groups = {problem.field.rpartition(".")[0] for problem in error.problems}
                wrong = {name for name in given if name.rpartition(".")[0] in groups} or set(given)
            given = {name: value for name, value in given.items() if name not in wrong}


def _entry(annotation: Any) -> tuple[Entry, tuple[Any, ...]]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _entry(arguments[0])
    if origin is Literal:
        return "choice", arguments
    if origin is tuple:
        inner, options = _entry(arguments[0])
        return ("choices", options) if inner == "choice" else ("list", ())
    if origin in (typing.Union, types.UnionType):
        lists = [argument for argument in arguments if typing.get_origin(argument) is tuple]
        return _entry(lists[0]) if lists else ("text", ())
    entries: dict[Any, Entry] = {bool: "switch", int: "integer", float: "number"}
    return entries.get(annotation, "text"), ()


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
