"""First paint: name and purpose of the lab before Streamlit's scripts load."""

import functools
import re
from pathlib import Path

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER = Path(__file__).parents[1]
STATIC = Path(st.__file__).parent / "static"
# Below a page's URL, Streamlit's scripts would look for their server in the wrong place
# (`/lecture/_stcore/health`).
OWN_SCRIPT = 'window.__streamlit = { BACKEND_BASE_URL: new URL(".", document.baseURI).href }'
EARLY_SCRIPT = "/api/early/{page}.js"
# Path → page that begins before Streamlit's scripts have loaded.
EARLY_PAGES = {
    "": "overview",
    "live": "live",
}
_FONT = re.compile(r"\./static/media/SourceSansVF-Upright[^\"]+")
_FONT_FACE = (
    "@font-face { font-family: 'Source Sans'; font-weight: 200 900; font-display: swap; "
    "src: url(URL) }"
)
_TITLE = "<title>Streamlit</title>"
_ROOT = '<div id="root">'
_HEAD_END = "</head>"


class FirstPaint:
    """ASGI middleware that replaces Streamlit's empty page.

    Its own page has the lab's name and purpose.
    """

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_browser = scope["type"] == "http" and "text/html" in Headers(scope=scope).get(
            "accept", ""
        )
        if not is_browser or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        is_page = False

        async def paint(message: Message) -> None:
            nonlocal is_page
            if message["type"] == "http.response.start" and message["status"] == 200:
                is_page = (
                    Headers(raw=message["headers"]).get("content-type", "").startswith("text/html")
                )
            if not is_page:
                await send(message)

        await self._app(scope, receive, paint)
        if is_page:
            path = (
                scope["path"]
                .removeprefix(f"/{st.get_option('server.baseUrlPath')}")
                .removeprefix("/")
            )
            answer = HTMLResponse(
                painted_page(EARLY_PAGES.get(path)), headers={"Cache-Control": "no-cache"}
            )
            await answer(scope, receive, send)


@functools.cache
def painted_page(early: str | None) -> str:
    """Return Streamlit's page with title, first text and style.

    It also preloads the component script.

    The style is in the body after Streamlit's own; a style loaded later would shift the page.
    """
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    scripts = (STATIC / "static" / "js").glob("BidiComponent.*.js")
    links = "".join(
        f'<link rel="modulepreload" crossorigin href="./static/js/{path.name}">' for path in scripts
    )
    words = (FOLDER / "first_paint.html").read_text(encoding="utf-8")
    words = words.replace("ICON", (FOLDER / "icon.svg").read_text(encoding="utf-8"))
    begin = (
        f'<script type="module" src=".{EARLY_SCRIPT.format(page=early)}"></script>' if early else ""
    )
    page = page.replace(
        _TITLE, f"<title>Linearity Lab</title>{begin}<script>{OWN_SCRIPT}</script>", 1
    )
    fonts = "".join(_FONT_FACE.replace("URL", url) for url in _FONT.findall(page))
    style = f"<style>{fonts}{(FOLDER / 'look.css').read_text(encoding='utf-8')}</style>"
    return page.replace(_HEAD_END, links + _HEAD_END, 1).replace(_ROOT, style + _ROOT + words, 1)
