"""The components of *Live* and of the two networks on *Home*, in Streamlit."""

import streamlit as st

from linearity_lab.dashboard.live import HOME_NAME, NAME, given, home_data, source
from linearity_lab.dashboard.live.settings import LiveSettings
from ntk_core.markup import JSON

_mount = st.components.v2.component(NAME, css=source.style(), js=source.module())
_mount_home = st.components.v2.component(HOME_NAME, css=source.style(), js=source.home_module())


def live_page(key: str, settings: LiveSettings, version: int) -> JSON | None:
    """Show the component, which reads ``settings`` once per version.

    Return the latest ones that it reports.
    """
    payload = given(settings, version=version, sends=True)
    return _mount(key=key, data=payload, on_settings_change=lambda: None).settings


def live_home(key: str) -> None:
    """Train two networks side by side, linear and swish output.

    Also plot ΔK against the widths tried.
    """
    _mount_home(key=key, data=home_data())
