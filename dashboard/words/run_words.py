"""A stored run in a few words: of which figure it is a variation, and in what runs differ; free of Streamlit."""

import functools
from collections.abc import Sequence

from ntk_core.runs import PRESETS, Spec
from ntk_core.settings.fields import differences, settings, text_of, values_of

MAX_DIFFERENCES = 3
MAX_TEXT = 24
LETTERS = "ABCD"


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


def labels(specs: Sequence[Spec]) -> list[str]:
    """A letter for each of several runs of one experiment, and the settings in which they differ."""
    values = [values_of(spec) for spec in specs]
    names = list(dict.fromkeys(name for each in values for name in each))
    differing = [name for name in names if len({text_of(each.get(name)) for each in values}) > 1]
    titles = _titles(specs[0])
    found = []
    for letter, each in zip(LETTERS, values, strict=False):
        parts = [f"{titles[name]} {_short(text_of(each[name]))}" for name in differing if name in each]
        found.append(f"{letter}: {_joined(parts)}" if parts else letter)
    return found


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


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
