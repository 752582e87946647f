"""The pages: one table for the menu, the links between pages and the tests."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

ICON = Path(__file__).parent / "icon.svg"


@dataclass(frozen=True)
class PageEntry:
    """One page.

    Attributes:
        name: its path in the URL and the prefix of its widgets' keys.
        question: what the page answers, where the overview leads to it; empty for the overview itself.
    """

    name: str
    title: str
    icon: str
    question: str

    @property
    def path(self) -> str:
        """Its script, from the folder of app.py."""
        return f"pages/{self.name}.py"


PAGES = (
    PageEntry("overview", "Overview", ":material/home:", ""),
    PageEntry("lecture", "Lecture", ":material/school:", "Why does all this happen, step by step?"),
    PageEntry("kernel_change", "Kernel", ":material/show_chart:", "Does the kernel stop moving as the width grows?"),
    PageEntry("hessian", "Hessian", ":material/grid_on:", "Why does it become linear?"),
    PageEntry("architectures", "Architectures", ":material/account_tree:", "Which architectures become linear?"),
    PageEntry("dynamics", "Dynamics", ":material/compare_arrows:", "Does the network move like its linear model?"),
    PageEntry("optimization", "Optimization", ":material/trending_down:", "Does training need a constant kernel?"),
    PageEntry("lazy", "Lazy", ":material/alt_route:", "Lazy by scale or linear by width?"),
    PageEntry("early_time", "Early time", ":material/schedule:", "What does a network learn first?"),
    PageEntry("dag", "Graphs", ":material/polyline:", "Does the graph that I draw become linear?"),
    PageEntry("own_data", "Your data", ":material/upload_file:", "What about my own data?"),
    PageEntry("results", "Results", ":material/folder_open:", "What has been computed here?"),
    PageEntry("glossary", "Glossary", ":material/dictionary:", "What does this word mean?"),
)


ROOT_NAME = "home"
_SHOWN = threading.Event()


def menu() -> st.Page:
    """Show the menu; the page that the URL asks for, the first one at the root."""
    first, *others = PAGES
    # The default page lives at the root and keeps the name that it is given here from all others.
    home = st.Page(first.path, title=first.title, icon=first.icon, url_path=ROOT_NAME, default=True)
    pages = [home, *(st.Page(each.path, title=each.title, icon=each.icon, url_path=each.name) for each in others)]

    def go_home() -> None:
        st.switch_page(home)

    # Who opens it by its own name is led to the root.
    pages.append(st.Page(go_home, title=first.title, url_path=first.name, visibility="hidden"))
    opened = st.navigation(pages, position="top")
    _SHOWN.set()
    return opened


def enter(name: str) -> str:
    """The first line of every page: its name.

    On a fresh server Streamlit runs a page that is opened by its URL without app.py, as it did before ``st.navigation``
    existed; showing the menu once ends that, so the page starts over.
    """
    if not _SHOWN.is_set():
        st.set_page_config(page_icon=str(ICON))  # before the menu, whose named icon would be fetched from another host
        menu()
        st.rerun()
    return name
