"""Settings as notebooks show them: what is not at its default."""

from collections.abc import Callable
from typing import Any

from ntk_core.markup import paragraph, table
from ntk_core.settings.fields import changed_values, text_of
from ntk_core.settings.part import SpecPart
from ntk_core.settings.walk import Setting, settings, values_of

_LONGEST = 60  # letters of a value; a graph or a composition is longer


def settings_html(part: SpecPart) -> str:
    """A table of the settings that differ from the defaults, each by its title and by its name in Python."""
    kind: Callable[[], SpecPart] = type(part)
    usual = kind()
    known, before = {setting.name: setting for setting in settings(type(part))}, values_of(usual)
    changed = changed_values(part, usual)
    if not changed:
        return paragraph("All settings are at their defaults.")
    rows = [
        (known[name].full_title, name, _words(known[name], value), _default(known[name], before))
        for name, value in changed.items()
    ]
    return table(("Setting", "Name", "Value", "Default"), rows)


def _default(setting: Setting, before: dict[str, Any]) -> str:
    return _words(setting, before[setting.name]) if setting.name in before else "not used"


def _words(setting: Setting, value: Any) -> str:
    several = value if isinstance(value, tuple | list) else (value,)
    words = ", ".join(
        str(setting.label(each)) if setting.options and each is not None else text_of(each) for each in several
    )
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"
