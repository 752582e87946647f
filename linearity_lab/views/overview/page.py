"""What a tangent kernel is, one path through the pages, the phenomenon in motion, and the other pages as cards."""

from linearity_lab.components.live import live_small
from linearity_lab.views.overview.parts import cards, meaning, path

PAGE = "overview"


def show() -> None:
    """The page."""
    meaning(PAGE)
    path(PAGE)
    live_small(f"{PAGE}.live")
    cards(PAGE)
