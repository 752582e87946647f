"""The largest specs within the bounds of their settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from linearity_lab.runs import EXPERIMENTS, Spec
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from linearity_lab.settings.validation import bounds, lengths
from linearity_lab.settings.walk import Setting, settings, values_of
from ntk_core.errors import InvalidInput


def largest(experiment: str, kind: str = "") -> Spec:
    """Each setting of an experiment as large as earlier ones allow.

    ``kind`` of architecture if it has one.
    """
    spec = EXPERIMENTS[experiment].spec()
    if kind:
        spec = with_settings(spec, {"architecture.kind": kind})
    for setting in settings(type(spec)):
        for value in _large(setting, values_of(spec).get(setting.name)):
            try:
                spec = with_settings(spec, {setting.name: value})
                break
            except (InvalidSpec, InvalidInput):
                continue
    return spec


def _large(setting: Setting, value: Any) -> Iterator[Any]:
    """Values of a setting, largest first; none for settings without effect on size."""
    if setting.entry == "choices":
        yield setting.options[: lengths(setting.info)[1]]
    elif setting.entry == "switch":
        yield True
    elif setting.entry == "list" and isinstance(value, tuple):
        most = lengths(setting.info)[1] or 16
        for count in (most, most // 2, 5, 3):
            for first in (1000, 10):
                yield tuple(range(first, first + count))
            yield tuple((1 + index) / (2 * most + 2) for index in range(count))
    elif setting.entry in ("integer", "number"):
        high = bounds(setting.info)[1]
        for share in (1, 4, 100) if high is not None else ():
            yield high // share if isinstance(high, int) else high / share
