"""The phenomenon in motion, three questions to begin with, and every page as a card."""

from dashboard.views.overview.parts import cards, living

PAGE = "overview"


def show() -> None:
    """The page."""
    living(PAGE)
    cards(PAGE)
