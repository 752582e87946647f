"""The menu in Streamlit, and how scripts open their pages."""

import threading
from pathlib import Path

import streamlit as st

from linearity_lab.dashboard.page_table import EMBEDDED, PAGES
from linearity_lab.page_modules import GROUPS, page_module

ICON = Path(__file__).with_name("icon.svg")
BRAND = ICON.with_name("brand.svg")

ROOT_NAME = "home"
OLD_NAMES = {"kernel_change": "kernel_drift"}  # names in old links
_SHOWN = threading.Event()


def menu() -> st.Page:
    """Show the menu; return the requested page, at the root the first one."""
    # The default page is at the root, and its name here is not available to other pages.
    pages = {
        each: st.Page(
            each.path,
            title=each.title,
            icon=each.icon,
            url_path=each.name if number else ROOT_NAME,
            default=not number,
        )
        for number, each in enumerate(PAGES)
    }

    def leading_to(page: st.Page, name: str) -> st.Page:
        """Return a hidden page of this name that redirects, with the settings of the URL."""

        def lead() -> None:
            st.switch_page(page, query_params=st.query_params.to_dict())

        return st.Page(lead, title=page.title, url_path=name, visibility="hidden")

    groups: dict[str, list[st.Page]] = {
        group: [page for each, page in pages.items() if each.group == group] for group in GROUPS
    }
    # The first page's own name redirects to the root, and old names to their pages.
    old = {PAGES[0].name: PAGES[0].name, **OLD_NAMES}
    groups[GROUPS[0]] += [
        leading_to(page, old[each.name]) for each, page in pages.items() if each.name in old
    ]
    groups[GROUPS[0]].append(st.Page(f"pages/{EMBEDDED}.py", title="Figure", visibility="hidden"))
    st.logo(str(BRAND), size="large")
    opened = st.navigation(groups, position="top")
    _mark(
        next((each.group for each, page in pages.items() if page.url_path == opened.url_path), None)
    )
    _SHOWN.set()
    return opened


def _mark(group: str | None) -> None:
    if group is not None:
        place = GROUPS.index(group) + 1
        st.html(
            f'<style>[data-testid="stTopNav"] > :nth-child({place}) button '
            "{ box-shadow: inset 0 -3px }</style>"
        )


def open_page(name: str) -> None:
    """Show a page; its script in ``pages/`` does nothing else.

    On a fresh server Streamlit runs a page opened by its URL without app.py, as before
    ``st.navigation``. Showing the menu once changes that, so the page starts over.
    """
    if not _SHOWN.is_set():
        # Before the menu, whose named icon would be fetched from another host.
        st.set_page_config(page_icon=str(ICON))
        menu()
        st.rerun()
    page_module(name, "page").show()
