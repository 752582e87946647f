"""First paint: Streamlit's page contains text before its scripts run; other responses are unchanged."""

import re
from pathlib import Path

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.responses import Response

from linearity_lab.server._first_paint import EARLY_PAGES, EARLY_SCRIPT, OWN_SCRIPT, FirstPaint
from linearity_lab.views import early
from tests.hosting.answer import Answer

PAGE = (Path(streamlit.__file__).parent / "static" / "index.html").read_text()


def answer(path="/kernel_change", method="GET", accept="text/html,*/*", status=200, kind="text/html"):
    app = FirstPaint(Response(PAGE, status, {"etag": '"1"'}, kind))
    return Answer(app, path, method=method, accept=accept)


def test_the_page_of_this_streamlit_is_painted():
    painted = answer()
    body = painted.text
    assert "wide neural network" in body
    assert "<title>Linearity Lab</title>" in body
    assert body.index(OWN_SCRIPT) < body.index('<script type="module"')
    assert body.count('<div id="root">') == 1
    # Pages with components do not wait for the script that mounts them.
    assert re.search(r'<link rel="modulepreload" crossorigin href="./static/js/BidiComponent.[^"]+"></head>', body)
    assert "etag" not in painted.headers
    assert body.count("<script") == PAGE.count("<script") + 1
    assert all(line in body for line in PAGE.splitlines() if "script" in line)


@pytest.mark.parametrize("path", EARLY_PAGES)
def test_home_and_live_begin_before_streamlits_scripts(path):
    page = answer(f"/{path}").text
    script = EARLY_SCRIPT.format(page=EARLY_PAGES[path])
    assert page.index(f'src=".{script}"') < page.index("./static/js/index.")
    found = Answer(Starlette(routes=[early.ROUTE]), script)
    assert found.headers["content-type"].startswith("text/javascript")
    assert "beginEarly(" in found.text.splitlines()[-1]


def test_other_pages_wait_for_streamlits_scripts():
    assert "/api/early" not in answer().text
    # Its relative URLs would refer to another folder.
    assert "/api/early" not in answer("/live/").text
    assert Answer(Starlette(routes=[early.ROUTE]), EARLY_SCRIPT.format(page="lecture")).status == 404


@pytest.mark.parametrize(
    "asked",
    [{"kind": "text/javascript"}, {"method": "HEAD"}, {"status": 404}, {"accept": "*/*"}],
    ids=["a script", "HEAD", "an error", "no browser"],
)
def test_other_answers_are_untouched(asked):
    found = answer(**asked)
    assert found.text == PAGE
    assert found.headers["etag"] == '"1"'
