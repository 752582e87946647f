"""From a click on a preset to its figures, on the side of the server: every preset that the gallery holds.

A page's script is run by Streamlit's own test harness, with the preset chosen in its menu: the script itself and the
messages that it sends, without network and browser. ``cold`` is the first visitor after the server's start, who finds
no figure drawn and no file read; ``warm`` is everybody later. A rerun is what follows every click: the whole script of
a page that is open, of every page of the menu. Reading the messages back, which a server need not, is counted too.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from benchmarks.measure import ROOT, Row, Settings
from linearity_lab.components import gallery
from linearity_lab.views.navigation import EMBEDDED, PAGES
from ntk_core.runs import PRESETS

MOST_MS = 500
MOST_RERUN_MS = 120
REPEATS = 3
RERUNS = 9


def shown() -> dict[str, list[str]]:
    """Page → its presets."""
    found: dict[str, list[str]] = {}
    for name, preset in PRESETS.items():
        if name != "kernel-convergence":  # on no page
            found.setdefault(preset.spec.experiment, []).append(name)
    return found


@contextmanager
def without_workers() -> Iterator[None]:
    """The pages as on a server whose menu has been shown, none of whose jobs is started."""
    create = PagesManager.__init__

    def create_after_the_menu(self: PagesManager, *arguments: Any, **named: Any) -> None:
        create(self, *arguments, **named)
        PagesManager.uses_pages_directory = False

    jobs = mock.Mock()
    jobs.snapshot.return_value = None
    jobs.followed.return_value = ()
    with (
        mock.patch.object(PagesManager, "__init__", create_after_the_menu),
        mock.patch("linearity_lab.jobs.shared_jobs", return_value=jobs),
        mock.patch("linearity_lab.components.run_panel.shared_jobs", return_value=jobs),
        mock.patch("linearity_lab.components.job_status.shared_jobs", return_value=jobs),
    ):
        yield


def click_ms(app: AppTest, page: str, preset: str, *, cold: bool) -> float:
    """Milliseconds from the choice of a preset to the end of the script."""
    if cold:
        st.cache_resource.clear()
        st.cache_data.clear()
        gallery._read.cache_clear()
    app.query_params = {"preset": preset}
    began = time.perf_counter()
    app.run()
    took = time.perf_counter() - began
    if app.exception or not app.get("plotly_chart"):
        raise RuntimeError(f"{page} shows no figure of {preset}")
    return 1000 * took


def rerun_ms(page: str, repeats: int) -> list[float]:
    """Milliseconds of each rerun of a page that is open; a figure of the gallery for the page that embeds one."""
    app = AppTest.from_file(ROOT / "app.py", default_timeout=60).run()
    app.switch_page(f"pages/{page}.py")
    if page == EMBEDDED:
        app.query_params = {"figure": "liu-fig1-left"}
    app.run()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        app.run()
        times.append(1000 * (time.perf_counter() - began))
    if app.exception or not app.main.children:
        raise RuntimeError(f"{page} shows nothing")
    return times


def measure(settings: Settings) -> Row:
    """Medians over repeats, a preset each, and the slowest; reruns of every page."""
    names, few = [page.name for page in PAGES] + [EMBEDDED], settings.quick
    repeats, num_reruns = (1, 2) if few else (REPEATS, RERUNS)
    rows: list[Row] = []
    with without_workers():
        for page, presets in shown().items():
            app = AppTest.from_file(ROOT / "app.py", default_timeout=60).run()
            app.switch_page(f"pages/{page}.py").run()
            for preset in presets[: 1 if few else None]:
                times = {
                    f"{kind}_ms": [click_ms(app, page, preset, cold=kind == "cold") for _ in range(repeats)]
                    for kind in ("cold", "warm")
                }
                medians = {kind: round(statistics.median(each), 1) for kind, each in times.items()}
                rows.append({"page": page, "preset": preset, **medians})
        clicks = {name: rerun_ms(name, num_reruns) for name in names[: 2 if few else None]}
    reruns: list[Row] = [
        {"page": name, "median_ms": round(statistics.median(times), 1), "max_ms": round(max(times), 1)}
        for name, times in clicks.items()
    ]
    return {
        "most_ms": MOST_MS,
        "repeats": repeats,
        "slowest_cold": max(rows, key=lambda row: row["cold_ms"]),
        "slowest_warm": max(rows, key=lambda row: row["warm_ms"]),
        "within": all(row["cold_ms"] <= MOST_MS for row in rows),
        "rows": rows,
        "most_rerun_ms": MOST_RERUN_MS,
        "reruns_within": all(row["median_ms"] <= MOST_RERUN_MS for row in reruns),
        "reruns": reruns,
    }
