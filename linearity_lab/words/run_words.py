"""Short names of stored runs and their differences; free of Streamlit."""

import functools
import hashlib
from collections.abc import Callable, Sequence

from linearity_lab.runs import PRESETS, Spec
from linearity_lab.settings.grammar import (
    Setting,
    changed_values,
    differences,
    settings,
    text_of,
    values_of,
)
from ntk_core.markup import shortened
from ntk_core.networks.graphs import GRAPH_TITLES, Graph, example_graphs

MAX_DIFFERENCES = 3
MAX_IN_LABEL = 2  # differences in the name of a curve; a table has the others
MAX_TEXT = 32
LETTERS = "ABCD"
DEFAULT = "default settings"


@functools.lru_cache(maxsize=256)
def nearest_preset(spec: Spec) -> str:
    """Return the preset with the fewest differing settings."""
    names = [name for name, preset in PRESETS.items() if type(preset.spec) is type(spec)]
    return min(names, key=lambda name: len(differences(spec, PRESETS[name].spec)))


@functools.lru_cache(maxsize=256)
def variation(spec: Spec) -> str:
    """Name the nearest preset and the differing settings.

    ``liu-fig1-left``, or ``liu-fig1-left with Seeds 3``.
    """
    name = nearest_preset(spec)
    titles = _titles(spec)
    shown = [
        f"{titles[setting]} {_short(text)}"
        for setting, text in differences(spec, PRESETS[name].spec).items()
    ]
    return f"{name} with {_joined(shown)}" if shown else name


@functools.lru_cache(maxsize=256)
def name_of(spec: Spec) -> str:
    """Return the figure or file name, else the settings that differ from the defaults."""
    if own := spec.command():
        return own[1]
    same = [preset.title for preset in PRESETS.values() if preset.spec == spec]
    kind: Callable[[], Spec] = type(spec)
    default = kind()
    titles = _titles(spec)
    known = _settings(spec)
    changed = sorted(
        changed_values(spec, default).items(), key=lambda item: not isinstance(item[1], Graph)
    )
    shown = {
        name: value_words(known[name], value) for name, value in changed if name != spec.swept_field
    }
    return (
        next(iter(same), "")
        or _joined([f"{titles[name]} {_short(text)}" for name, text in shown.items()])
        or DEFAULT
    )


def labels(specs: Sequence[Spec]) -> list[str]:
    """Label runs of one experiment by letters and their first differing settings, choices first.

    A choice needs no title: ``A: bottleneck, linear output``.
    """
    found = []
    titles = _titles(specs[0])
    differ = sorted(_differing(specs), key=lambda each: not each[0].options)
    for number, letter in enumerate(LETTERS[: len(specs)]):
        given = [(setting, _short(texts[number])) for setting, texts in differ if texts[number]][
            :MAX_IN_LABEL
        ]
        parts = [
            text if setting.options else f"{titles[setting.name]} {text}" for setting, text in given
        ]
        found.append(f"{letter}: {', '.join(parts)}" if parts else letter)
    return found


def differing(specs: Sequence[Spec]) -> dict[str, list[str]]:
    """Map titles of differing settings to the value of each run; empty where unused."""
    titles = _titles(specs[0])
    return {titles[setting.name]: texts for setting, texts in _differing(specs)}


def _differing(specs: Sequence[Spec]) -> list[tuple[Setting, list[str]]]:
    values = [values_of(spec) for spec in specs]
    known = _settings(specs[0])
    names = dict.fromkeys(name for each in values for name in each)
    found = []
    for name in names:
        setting = known[name]
        texts = [value_words(setting, each[name]) if name in each else "" for each in values]
        if len(set(texts)) > 1:
            found.append((setting, texts))
    return found


def _settings(spec: Spec) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings(type(spec))}


def _titles(spec: Spec) -> dict[str, str]:
    """Dotted name → title, with the group's name if two settings share a title."""
    found = settings(type(spec))
    titles = [setting.full_title for setting in found]
    return {
        setting.name: title
        if titles.count(title) == 1
        else f"{title} ({setting.name.partition('.')[0]})"
        for setting, title in zip(found, titles, strict=True)
    }


def _joined(parts: Sequence[str]) -> str:
    shown = list(parts[:MAX_DIFFERENCES])
    more = len(parts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def value_words(setting: Setting, value: object) -> str:
    """Format a value.

    Graphs have their gallery name, or are "your own graph" with part of its digest.
    """
    if isinstance(value, list | tuple):
        return ", ".join(value_words(setting, each) for each in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    if setting.options:
        return setting.label(value)
    if isinstance(value, int) and not setting.is_label:
        return f"{value:,}"
    if not isinstance(value, Graph):
        return text_of(value)
    own = f"your own graph {hashlib.sha256(str(value).encode()).hexdigest()[:4]}"
    return next(
        (GRAPH_TITLES[name] for name, graph in example_graphs().items() if graph == value), own
    )


def _short(text: str) -> str:
    return shortened(text, MAX_TEXT)
