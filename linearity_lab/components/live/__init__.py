"""A network and its linear model train before one's eyes: a component of our own, in the browser alone."""

from typing import Any

import streamlit as st

from linearity_lab.components.live import source
from linearity_lab.components.live.settings import LiveSettings

NAME = "linearity_lab_live"
TOUR = (4, 64, 4096)
SHOWN = LiveSettings(width=TOUR[0], target="zigzag")  # on which narrow networks and their linear models part most
_mount = st.components.v2.component(NAME, css=source.style(), js=source.module())


def given(settings: LiveSettings, *, small: bool = False, **more: Any) -> dict[str, Any]:
    """What the component is told: settings, words and colors."""
    form = "small" if small else "page"
    return {"form": form, "settings": settings.plain(), "words": source.words(), "colors": source.colors(), **more}


def live_page(key: str, settings: LiveSettings, version: int) -> dict[str, Any] | None:
    """All of it; the settings that a person has chosen last, as the browser reports them.

    Args:
        version: another one lets the component take over ``settings``, which it otherwise reads once.
    """
    told = given(settings, version=version, tells=True)
    return _mount(key=key, data=told, on_settings_change=lambda: None).settings


def live_small(key: str, *, veiled: bool = False) -> None:
    """Both functions with a width to choose and the sentence about them, at some widths in turn until it is touched.

    Args:
        veiled: say nothing about the kernel yet.
    """
    version = int(veiled)  # its change starts the training over, with what it shows
    _mount(key=key, data=given(SHOWN, small=True, version=version, veiled=veiled, tour=TOUR))
