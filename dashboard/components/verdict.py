"""What the theorems say of a graph, with the reasons."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from dashboard.words.sentences import plain
from ntk_core.networks.graphs import Verdict

_LOOKS: dict[str, tuple[str, Literal["green", "orange", "red"], str]] = {
    "wide": ("Wide: becomes linear", "green", ":material/check_circle:"),
    "wide but for a few": ("Wide but for a few neurons: becomes linear", "green", ":material/check_circle:"),
    "not wide": ("Not wide: linearity is not guaranteed", "red", ":material/cancel:"),
    "nonlinear output": ("Nonlinear output: does not become linear", "red", ":material/cancel:"),
}


def verdict_panel(found: Verdict, width: int) -> None:
    """The verdict, its reasons and the in-degrees at one width."""
    words, color, icon = _LOOKS[found.outcome]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(words, icon=icon, color=color)
        st.caption(
            f"in-degrees {found.min_in_degree:,.4g} to {found.max_in_degree:,.4g} at m = {width:,}", width="content"
        )
    st.markdown("\n".join(f"- {plain(reason.words)}" for reason in found.reasons))
