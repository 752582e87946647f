"""Server time from a click on a preset to its figures.

Streamlit's own test harness runs a page's script with the preset chosen in its menu, without
network and browser. ``cold`` is the first visitor after the server's start, before figures are
drawn and files read; ``warm`` is everyone later. A rerun follows every click: the whole script of
an open page. Reading the messages back counts too.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from benchmarks.measure import ROOT, Row, Settings
from linearity_lab.dashboard import gallery
from linearity_lab.dashboard.page_table import EMBEDDED, PAGES
from linearity_lab.runs import PRESETS

MOST_MS = 500
MOST_RERUN_MS = 120
REPEATS = 3
RERUNS = 9
# Modules that name the jobs of the server.
JOBS = (
    "dashboard.jobs",
    "dashboard.run_panel",
    "dashboard.job_status",
)


def shown() -> dict[str, list[str]]:
    """Return the presets of each page."""
    found: dict[str, list[str]] = {}
    for name, preset in PRESETS.items():
        if name != "kernel-convergence":  # on no page
            found.setdefault(preset.spec.experiment, []).append(name)
    return found


@contextmanager
def without_workers() -> Iterator[None]:
    """Pages as on a server whose menu has been shown, without jobs."""
    create = PagesManager.__init__

    def create_after_the_menu(self: PagesManager, *arguments: object, **named: object) -> None:
        create(self, *arguments, **named)  # type: ignore[arg-type]
        PagesManager.uses_pages_directory = False

    jobs = mock.Mock(**{"snapshot.return_value": None, "followed.return_value": ()})
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(PagesManager, "__init__", create_after_the_menu))
        for module in JOBS:
            stack.enter_context(
                mock.patch(f"linearity_lab.{module}.shared_jobs", return_value=jobs)
            )
        yield


def run_ms(app: AppTest) -> float:
    """Return milliseconds of one run of a page's script."""
    began = time.perf_counter()
    app.run()
    return 1000 * (time.perf_counter() - began)


def click_ms(app: AppTest, page: str, preset: str, *, cold: bool) -> float:
    """Return milliseconds of the script after the choice of a preset."""
    if cold:
        st.cache_resource.clear()
        st.cache_data.clear()
        gallery._results.clear()
    app.query_params = {"preset": preset}
    took = run_ms(app)
    if app.exception or not app.get("plotly_chart"):
        raise RuntimeError(f"{page} shows no figure of {preset}")
    return took


def opened(page: str) -> AppTest:
    """Return the app on a page of its menu."""
    app = AppTest.from_file(ROOT / "app.py", default_timeout=60).run()
    app.switch_page(f"pages/{page}.py")
    return app


def rerun_ms(page: str, repeats: int) -> list[float]:
    """Return milliseconds of each rerun of an open page."""
    app = opened(page)
    if page == EMBEDDED:
        app.query_params = {"figure": "liu-fig1-left"}
    app.run()
    times = [run_ms(app) for _ in range(repeats)]
    if app.exception or not app.main.children:
        raise RuntimeError(f"{page} shows nothing")
    return times


def measure(settings: Settings) -> Row:
    """Medians of clicks on every preset, and of reruns."""
    names = [page.name for page in PAGES] + [EMBEDDED]
    few = settings.quick
    repeats, num_reruns = (1, 2) if few else (REPEATS, RERUNS)
    rows = list[Row]()
    reruns = list[Row]()
    with without_workers():
        for page, presets in shown().items():
            app = opened(page).run()
            for preset in presets[: 1 if few else None]:
                row: Row = {"page": page, "preset": preset}
                for kind in ("cold", "warm"):
                    times = [
                        click_ms(app, page, preset, cold=kind == "cold") for _ in range(repeats)
                    ]
                    row[f"{kind}_ms"] = round(statistics.median(times), 1)
                rows.append(row)
        for name in names[: 2 if few else None]:
            times = rerun_ms(name, num_reruns)
            median, longest = (round(each(times), 1) for each in (statistics.median, max))
            reruns.append({"page": name, "median_ms": median, "max_ms": longest})
    aims = {"most_ms": MOST_MS, "most_rerun_ms": MOST_RERUN_MS}
    return {**aims, "repeats": repeats, "rows": rows, "reruns": reruns}
