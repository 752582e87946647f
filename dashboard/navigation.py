"""The pages: one table for the menu, the links between pages and the tests."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import streamlit as st


@dataclass(frozen=True)
class PageEntry:
    """One page.

    Attributes:
        name: its path in the URL and the prefix of its widgets' keys.
        group: the heading that it stands under in the menu.
    """

    name: str
    title: str
    icon: str
    group: str

    @property
    def path(self) -> str:
        """Its script, from the folder of app.py."""
        return f"pages/{self.name}.py"


PAGES = (
    PageEntry("overview", "Overview", ":material/home:", ""),
    PageEntry("kernel_drift", "Kernel change", ":material/show_chart:", ""),
    PageEntry("dag", "Graphs", ":material/polyline:", ""),
    PageEntry("dynamics", "True and linearized", ":material/compare_arrows:", ""),
    PageEntry("early_time", "Early time", ":material/schedule:", ""),
    PageEntry("architectures", "Architectures", ":material/account_tree:", ""),
)


_SHOWN = threading.Event()


def menu() -> st.Page:
    """Show the menu; the page that the URL asks for, the first one at the root."""
    groups: dict[str, list[st.Page]] = {}
    for index, entry in enumerate(PAGES):
        page = st.Page(entry.path, title=entry.title, icon=entry.icon, url_path=entry.name, default=index == 0)
        groups.setdefault(entry.group, []).append(page)
    opened = st.navigation(groups, position="top")
    _SHOWN.set()
    return opened


def enter(name: str) -> str:
    """The first line of every page: its name.

    On a fresh server Streamlit runs a page that is opened by its URL without app.py, as it did before ``st.navigation``
    existed; showing the menu once ends that, so the page starts over.
    """
    if not _SHOWN.is_set():
        menu()
        st.rerun()
    return name
