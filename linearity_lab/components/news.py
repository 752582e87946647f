"""Rerun part of a page when the server has something new; the browser polls."""

from pathlib import Path

import streamlit as st

HEADER = "x-lab-watch"  # other sites cannot set it
_mount = st.components.v2.component(
    "linearity_lab_news", js=(Path(__file__).parent / "news.js").read_text(encoding="utf-8")
)


def rerun_on_news(key: str, path: str, watch: str, seen: str, every_s: float) -> None:
    """Rerun the enclosing fragment when the state at ``path`` differs from ``seen``.

    Args:
        path: answers ``{"state": "…"}``, such as ``/api/polls``.
        watch: header value that names the watched object and the client.
    """
    data = {"url": address(path), "watch": watch, "seen": seen, "every_s": every_s}
    _mount(key=key, data=data, on_news_change=lambda: None)


def address(path: str) -> str:
    """Return a path of this server below its base path."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}{path}" if base else path
