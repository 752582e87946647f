"""Iteration over the settings of a spec by dotted names.

``dataset.num_samples``, ``architectures.0.depth``.
"""

import functools
import string
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic.fields import FieldInfo

from linearity_lab.settings import validation
from linearity_lab.settings.part import Constant, SpecPart, Values, chosen_among
from ntk_core.errors import InvalidInput
from ntk_core.terms import Term

Part = TypeVar("Part", bound=SpecPart)
Option = str | int
Condition = tuple[str, tuple[str, ...] | int]
Entry = Literal[
    "choice",
    "choices",
    "switch",
    "integer",
    "number",
    "list",
    "text",
    "upload",
    "composition",
    "parts",
]


@dataclass(frozen=True)
class Setting:
    """One setting of a spec, named by its dotted path (``dataset.num_samples``).

    Attributes:
        part: its group of settings.
        entry: kind of input; ``parts`` is a list of groups, given by its length.
        options: choices; empty for free input.
        conditions: (name of another setting, required kinds, or an index below its length) for each
            setting that decides whether this one is used.
        place: its group among several, such as ``Network A``; empty for a single group.
    """

    name: str
    part: type[SpecPart]
    info: FieldInfo
    entry: Entry
    options: tuple[Option, ...] = ()
    conditions: tuple[Condition, ...] = ()
    place: str = ""

    @property
    def title(self) -> str:
        """Short title with the symbol."""
        return self.info.title or self.name

    @property
    def full_title(self) -> str:
        """The title, after the place if there are several groups."""
        return f"{self.place}, {self.title}" if self.place else self.title

    @property
    def help(self) -> str:
        """Meaning, allowed values, and the formula of each choice."""
        allowed = "" if self.options else f" Allowed: {validation.allowed_values(self.info)}."
        lines = [(self.info.description or "") + allowed, ""]
        for option in self.options:
            term = self.term(option)
            if term is not None:
                lines.append(f"- **{term.title}**: {term.formula}")
        return "\n".join(lines).strip()

    @property
    def when_empty(self) -> str | None:
        """Value of an empty input, in words; None if it cannot be empty."""
        return _extra(self.info).get("when_empty")

    @property
    def common_ending(self) -> str:
        """Last word of the choices' titles that the title of the setting already states."""
        return _extra(self.info).get("common_ending", "")

    @property
    def is_label(self) -> bool:
        """Whether its number names something, such as a seed, and counts nothing."""
        return _extra(self.info).get("is_label", False)

    @property
    def step(self) -> float:
        """Step of the + and − buttons."""
        if self.entry == "integer":
            return 1
        low, high = validation.bounds(self.info)
        is_from_zero_to_ten = not low and (high or 1) <= 10
        return 0.01 if is_from_zero_to_ten else 0.1

    @property
    def counts_neurons(self) -> bool:
        """Whether it has widths or other swept values."""
        return validation.counts_neurons(self.info)

    def term(self, option: object) -> Term | None:
        """Return the vocabulary's entry for a choice."""
        return validation.terms_of(self.info).get(option) if isinstance(option, str) else None

    def label(self, option: object) -> str:
        """Return the title of a choice."""
        term = self.term(option)
        return term.title if term else str(option).replace("_", " ").replace("-", " ")

    def is_used(self, values: Mapping[str, object]) -> bool:
        """Whether the choices in ``values`` (dotted name → value) use this setting."""
        return self.unmet_condition(values) is None

    def unmet_condition(self, values: Mapping[str, object]) -> str | None:
        """Name of the setting that must change before this one is used; None if it is used."""
        for name, needed in self.conditions:
            value = values.get(name)
            if isinstance(needed, int):
                if not (isinstance(value, int) and value > needed):
                    return name
            elif not chosen_among(value, needed):
                return name
        return None

    def sentence(self, problem: InvalidInput) -> str:
        """Describe the problem, naming the setting by its title."""
        return f"{problem.template.format(self.full_title, problem.given, problem.allowed)}."


@functools.cache
def settings(model: type[SpecPart]) -> tuple[Setting, ...]:
    """Return all changeable settings of a spec type, in order.

    All possible groups of lists are included.
    """
    return tuple(_settings(model, "", (), ""))


def _settings(
    model: type[SpecPart], prefix: str, conditions: tuple[Condition, ...], place: str
) -> Iterator[Setting]:
    for field, info in model.model_fields.items():
        name = prefix + field
        needed = conditions
        if field in model.relevant:
            needed = (*conditions, (prefix + model.selector, model.relevant[field]))
        inner = validation.part_type(info)
        extra = _extra(info)
        if inner is None:
            entry, options = entry_of(info.annotation)
            has_one_choice = entry == "choice" and len(options) < 2 and info.title is None
            if has_one_choice or any(isinstance(mark, Constant) for mark in info.metadata):
                continue
            entry = typing.cast(Entry, extra.get("entry", entry))  # the spec may override its type
            yield Setting(name, model, info, entry, options, needed, place)
        elif not validation.holds_several(info):
            yield from _settings(inner, f"{name}.", needed, place)
        else:
            yield Setting(name, model, info, "parts", (), needed, place)
            each = extra.get("each", info.title)
            for index in range(validation.lengths(info)[1] or 0):
                one = f"{each} {string.ascii_uppercase[index]}"  # such as "Network A"
                yield from _settings(inner, f"{name}.{index}.", (*needed, (name, index)), one)


def _extra(info: FieldInfo) -> dict[str, Any]:
    """Return what a field states for forms, beside its type and bounds."""
    return info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}


def entry_of(annotation: object) -> tuple[Entry, tuple[Option, ...]]:
    """Return the kind of input for this type, and its choices."""
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is Annotated:
        return entry_of(arguments[0])
    if origin is Literal:
        return "choice", arguments
    if origin is tuple:
        inner, options = entry_of(arguments[0])
        return ("choices", options) if inner == "choice" else ("list", ())
    if origin in (typing.Union, types.UnionType):
        lists = [argument for argument in arguments if typing.get_origin(argument) is tuple]
        return entry_of(lists[0]) if lists else ("text", ())
    entries: dict[object, Entry] = {bool: "switch", int: "integer", float: "number"}
    return entries.get(annotation, "text"), ()


def value_at(part: object, name: str) -> Any:
    """Return the value at a dotted name in a spec or its JSON data.

    ``KeyError`` for an unknown or unused setting.
    """
    for step in name.split("."):
        if isinstance(part, tuple | list):
            part = {str(index): each for index, each in enumerate(part)}
        if isinstance(part, SpecPart):
            if step not in type(part).model_fields or not part.uses(step):
                raise KeyError(name)
            part = getattr(part, step)
        elif isinstance(part, dict):
            part = part[step]
        else:
            raise KeyError(name)
    return part


def with_value(part: Any, name: str, value: object) -> Any:
    """Copy a spec with another value at a dotted name, without validation."""
    step, _, rest = name.partition(".")
    if isinstance(part, tuple):
        items = list(part)
        index = int(step)
        items[index] = with_value(items[index], rest, value) if rest else value
        return tuple(items)
    changed = with_value(getattr(part, step), rest, value) if rest else value
    return part.model_copy(update={step: changed})


def values_in(model: type[SpecPart], data: object) -> Values:
    """Return every setting's value by dotted name, in a spec of this type or its data."""
    found = {}
    for setting in settings(model):
        try:
            value = value_at(data, setting.name)
        except KeyError:
            continue
        if setting.entry == "parts" and isinstance(value, tuple | list):
            value = len(value)
        found[setting.name] = value
    return found


def values_of(spec: SpecPart) -> Values:
    """Return the values of all used settings by dotted name; lists of groups as their length."""
    return dict(_values_of(spec))


@functools.lru_cache(maxsize=512)  # pages call it repeatedly
def _values_of(spec: SpecPart) -> Values:
    return values_in(type(spec), spec)
