"""Titles of the choices of settings."""

from ntk_core.runs import KINDS
from ntk_core.settings.walk import settings


def test_no_choice_shows_an_internal_name():
    shown = [
        (experiment, setting.name, option)
        for experiment, kind in KINDS.items()
        for setting in settings(kind.spec)
        for option in setting.options
        if "_" in str(option) and setting.term(option) is None
    ]
    assert shown == []
