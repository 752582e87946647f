"""The source lecture in twelve steps: a claim, a formula, a figure, a question to predict first."""

from dashboard.views.lecture.parts import lecture


def show() -> None:
    """The page."""
    lecture("lecture")
