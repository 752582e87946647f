"""Script that shows Home and begins its training before Streamlit's scripts have loaded."""

import functools
import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from linearity_lab.server import EARLY_SCRIPT


def _answer(_: Request) -> Response:
    return Response(script(), media_type="text/javascript", headers={"Cache-Control": "no-cache"})


@functools.cache
def script() -> str:
    """The component of Home, its data, and the title and words above it, as one ES module."""
    # Imported here: the server answers before it has loaded its first page.
    from linearity_lab.components.live import home_data, source
    from linearity_lab.views.overview.page import PAGE, TITLE
    from linearity_lab.words.pages import SHOWS, prose

    words = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", prose(PAGE, SHOWS))
    return source.early_module({"title": TITLE, "words": words, "style": source.style(), "data": home_data()})


ROUTE = Route(EARLY_SCRIPT, _answer, methods=["GET"])
