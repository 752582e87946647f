"""A small picture of every page, drawn from the gallery; free of Streamlit."""

import functools
from collections.abc import Callable
from typing import Any

from linearity_lab.charts.vector import letters
from linearity_lab.components.gallery import gallery_result
from linearity_lab.view_modules import has_view, view_module
from linearity_lab.views.entry import Page


def page_thumbnail(page: Page) -> str:
    """The picture of a page as SVG: as its ``figures`` draw it; its letters where they do not, or without a result."""
    found = view_module(page.name, "figures") if has_view(page.name, "figures") else None
    shown: str | None = getattr(found, "CARD", None)  # empty: the picture needs no result
    result = gallery_result(shown) if shown else None
    if found is None or shown is None or (shown and result is None):
        return letters(page.letters or page.title)
    return _drawn(found.card, _Once(result))


class _Once:
    """A result by its identity: two requests for one object draw one picture."""

    def __init__(self, result: Any):
        self.result = result

    def __hash__(self) -> int:
        return id(self.result)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Once) and other.result is self.result


@functools.lru_cache(maxsize=32)
def _drawn(draw: Callable[[Any], str], once: _Once) -> str:
    return draw(once.result)
