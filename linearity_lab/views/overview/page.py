"""Two networks in training under one width slider, three doors, and the other pages as cards."""

from linearity_lab.components.live import live_home
from linearity_lab.views.overview.parts import cards, doors, question

PAGE = "overview"


def show() -> None:
    """Draw the page."""
    question(PAGE)
    live_home(f"{PAGE}.home")
    doors(PAGE)
    cards(PAGE)
