"""The words of the field, to be searched, each with a link of its own."""

from dashboard.views.glossary.parts import glossary


def show() -> None:
    """The page."""
    glossary("glossary")
