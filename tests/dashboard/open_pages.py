"""Helpers that open pages through app.py and read their texts."""

import json
from pathlib import Path
from unittest import mock

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Widget

from linearity_lab.charts.chart import VEILED_KEY
from linearity_lab.dashboard import explain, settings_row
from linearity_lab.page_modules import page_folder
from linearity_lab.words.pages import charts_in

ROOT = Path(__file__).resolve().parents[2]


def open_page(page: str, /, *, opened: bool = True, **query: str) -> AppTest:
    """Open the page with these settings in its URL; ``__`` in a name is a dot.

    Args:
        opened: whether to open the panels of all settings and of the text about each figure.
    """
    app = AppTest.from_file(ROOT / "app.py", default_timeout=30)
    # A run to register the pages with Streamlit.
    with mock.patch("linearity_lab.dashboard.pages.overview.page.show"):
        app.run()
    app.switch_page(f"pages/{page}.py")
    if opened:
        open_panels(app, page)
    for name, text in query.items():
        app.query_params[name.replace("__", ".")] = text
    return checked(app.run())


def open_panels(app: AppTest, page: str, *, settings: bool = True) -> None:
    """Open all settings of a page, and the text about each of its figures."""
    app.session_state[f"{page}.{settings_row.OPENED}"] = settings
    for name in charts_in(page_folder(page)):
        for key in (f"{page}.{name}", f"{page}.{name}{VEILED_KEY}"):
            app.session_state[f"{key}.{explain.OPENED}"] = True


def checked(app: AppTest) -> AppTest:
    assert [exception.value for exception in app.exception] == []
    return app


def press(app: AppTest, key: str) -> AppTest:
    """Click on this button and run the page."""
    return checked(app.button(key=key).click().run())


def address(app: AppTest) -> dict[str, str]:
    """The settings in the URL."""
    return {
        name: texts if isinstance(texts, str) else texts[-1]
        for name, texts in app.query_params.items()
    }


def form_sentences(app: AppTest) -> list[str]:
    """Sentences of the form about its settings and the URL, without repeats."""
    shown = [element.value.replace("\\", "") for element in (*app.error, *app.warning)]
    # Several sentences about the URL are a list in one warning.
    output = [line.removeprefix("- ") for text in shown for line in text.splitlines()]
    return list(
        dict.fromkeys(
            sentence for sentence in output if not sentence.startswith("Fix these settings")
        )
    )


def words(app: AppTest) -> str:
    """All sentences on the page."""
    shown = [*app.error, *app.warning, *app.info, *app.caption, *app.markdown]
    return "\n".join(element.value.replace("\\", "") for element in shown)


def bars(app: AppTest) -> list[str]:
    """Words of the bars of running jobs."""
    mounts = [
        json.loads(each.proto.json)
        for each in app.get("bidi_component")
        if "_jobs" in each.proto.component_name
    ]
    return [mount["jobs"][0]["words"] for mount in mounts if mount["kind"] == "bar"]


def chooser(app: AppTest, key: str) -> Widget:
    """Widget that chooses between charts under this key: chips, a list, or a slider."""
    return next(
        each
        for each in (*app.segmented_control, *app.selectbox, *app.select_slider)
        if each.key == key
    )
