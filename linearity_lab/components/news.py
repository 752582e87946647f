"""Run a part of a page again when the server has something new for it: the browser asks, the page rests."""

from pathlib import Path

import streamlit as st

HEADER = "x-lab-watch"  # requests of other sites cannot set it
_mount = st.components.v2.component(
    "linearity_lab_news", js=(Path(__file__).parent / "news.js").read_text(encoding="utf-8")
)


def rerun_on_news(key: str, path: str, watch: str, seen: str, every_s: float) -> None:
    """Run the enclosing fragment when the state at ``path`` is another one than ``seen``.

    Args:
        path: answers ``{"state": "…"}``, such as ``/api/polls``.
        watch: sent as a header, names what is watched and shows who asks.
    """
    data = {"url": address(path), "watch": watch, "seen": seen, "every_s": every_s}
    _mount(key=key, data=data, on_news_change=lambda: None)


def address(path: str) -> str:
    """A path of this server below its base path."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}{path}" if base else path
