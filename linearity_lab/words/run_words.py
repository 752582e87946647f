"""A stored run in a few words: of which figure it is a variation, and in what runs differ; free of Streamlit."""

import functools
import hashlib
from collections.abc import Callable, Sequence

from ntk_core.networks.graphs import GRAPH_TITLES, Graph, example_graphs
from ntk_core.runs import PRESETS, Spec
from ntk_core.settings.fields import changed_values, differences, settings, text_of, values_of

MAX_DIFFERENCES = 3
MAX_TEXT = 24
LETTERS = "ABCD"
DEFAULT = "default settings"


@functools.lru_cache(maxsize=4096)
def nearest_preset(spec: Spec) -> str:
    """The preset of the same experiment from which the fewest settings lead to ``spec``."""
    names = [name for name, preset in PRESETS.items() if type(preset.spec) is type(spec)]
    return min(names, key=lambda name: len(differences(spec, PRESETS[name].spec)))


@functools.lru_cache(maxsize=4096)
def variation(spec: Spec) -> str:
    """``liu-fig1-left``, or ``liu-fig1-left with Seeds 3``: the nearest preset of the experiment and what differs."""
    name, titles = nearest_preset(spec), _titles(spec)
    shown = [f"{titles[setting]} {_short(text)}" for setting, text in differences(spec, PRESETS[name].spec).items()]
    return f"{name} with {_joined(shown)}" if shown else name


@functools.lru_cache(maxsize=4096)
def name_of(spec: Spec) -> str:
    """The preset that it is, or the file; else what differs from its experiment's defaults, but for its points."""
    if own := spec.command():
        return own[1]
    same = [name for name, preset in PRESETS.items() if preset.spec == spec]
    kind: Callable[[], Spec] = type(spec)
    default, titles = kind(), _titles(spec)
    changed = sorted(changed_values(spec, default).items(), key=lambda item: not isinstance(item[1], Graph))
    shown = {name: _said(value) for name, value in changed if name != spec.swept_field}
    return (
        next(iter(same), "") or _joined([f"{titles[name]} {_short(text)}" for name, text in shown.items()]) or DEFAULT
    )


def labels(specs: Sequence[Spec]) -> list[str]:
    """A letter for each of several runs of one experiment, and the settings in which they differ."""
    found = []
    for number, letter in enumerate(LETTERS[: len(specs)]):
        parts = [f"{title} {_short(texts[number])}" for title, texts in differing(specs).items() if texts[number]]
        found.append(f"{letter}: {_joined(parts)}" if parts else letter)
    return found


def differing(specs: Sequence[Spec]) -> dict[str, list[str]]:
    """Title of each setting in which several runs of one experiment differ → what each has; empty where it has none."""
    values, titles = [values_of(spec) for spec in specs], _titles(specs[0])
    texts = {name: [_said(each[name]) if name in each else "" for each in values] for each in values for name in each}
    return {titles[name]: entries for name, entries in texts.items() if len(set(entries)) > 1}


def _titles(spec: Spec) -> dict[str, str]:
    """Dotted name → title; with the part it belongs to where two settings have one title."""
    found = settings(type(spec))
    titles = [setting.full_title for setting in found]
    return {
        setting.name: title if titles.count(title) == 1 else f"{title} ({setting.name.partition('.')[0]})"
        for setting, title in zip(found, titles, strict=True)
    }


def _joined(parts: Sequence[str]) -> str:
    shown = list(parts[:MAX_DIFFERENCES])
    more = len(parts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _said(value: object) -> str:
    """A value as text; a graph by its name in the gallery, or as your own with four letters of its digest."""
    if not isinstance(value, Graph):
        return text_of(value)
    own = f"your own graph {hashlib.sha256(str(value).encode()).hexdigest()[:4]}"
    return next((GRAPH_TITLES[name] for name, graph in example_graphs().items() if graph == value), own)


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
