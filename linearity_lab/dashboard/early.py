"""Scripts that show *Home* and *Live* early.

They begin training before Streamlit's scripts have loaded.
"""

import functools
import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from linearity_lab.dashboard.server import EARLY_PAGES, EARLY_SCRIPT


def _answer(request: Request) -> Response:
    headers = {"Cache-Control": "no-cache"}
    page = request.path_params["page"]
    if page not in EARLY_PAGES.values():
        return Response(status_code=404, headers=headers)
    return Response(script(page), media_type="text/javascript", headers=headers)


@functools.cache
def script(page: str) -> str:
    """Return component, data, title and words of a page as one ES module."""
    # Imported here: the server answers before it has loaded its first page.
    from linearity_lab.dashboard.live import given, home_data, source
    from linearity_lab.dashboard.live.settings import LiveSettings

    style = {"style": source.style()}
    if page == "live":
        from linearity_lab.dashboard.pages.live import QUESTION

        shown = {"title": QUESTION, "data": given(LiveSettings()), **style}
        return source.early_module(source.module(), "beginEarly(Live, inURL(EARLY.data))", shown)

    from linearity_lab.dashboard.pages.overview import TITLE
    from linearity_lab.dashboard.pages.overview.page import PAGE
    from linearity_lab.words.pages import SHOWS, prose

    words = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", prose(PAGE, SHOWS))
    shown = {"title": TITLE, "words": words, "data": home_data(), **style}
    return source.early_module(source.home_module(), "beginEarly(Home, EARLY.data)", shown)


ROUTE = Route(EARLY_SCRIPT, _answer, methods=["GET"])
