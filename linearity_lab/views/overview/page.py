"""Two networks in training under one width slider, three starting points, and the other pages as cards."""

from linearity_lab.components.live import live_home
from linearity_lab.views.overview.parts import cards, question, starting_points

PAGE = "overview"


def show() -> None:
    """Draw the page."""
    question(PAGE)
    live_home(f"{PAGE}.home")
    starting_points(PAGE)
    cards(PAGE)
