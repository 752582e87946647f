"""The live component in headless Chromium: frames and steps a second, and the time to the first frame.

The component stands in the page that needs no server, with twenty points; training is counted over some seconds from
its first frame on, in which a worker computes beside the page.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from benchmarks import dashboard
from benchmarks.dashboard import FLAGS, chromium
from benchmarks.measure import Settings
from dashboard.components.live import given, source
from dashboard.components.live.settings import OWN, LiveSettings

NUM_POINTS = 20
SECONDS = 5.0
AIM_FRAMES, AIM_STEPS = 30, 5
CASES = ((64, 1), (1024, 1), (4096, 1), (256, 2), (1024, 2))
POINTS = tuple((round(4 * at / (NUM_POINTS - 1) - 2, 2), round((-1) ** at * 0.5, 2)) for at in range(NUM_POINTS))
COUNTED = "each => [each.live.frames, each.live.steps, performance.now()]"

reason_to_skip = dashboard.reason_to_skip


def follow(browser: Browser, settings: LiveSettings, seconds: float) -> dict[str, Any]:
    """Frames and steps of one network, and the milliseconds from the navigation to its first frame."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "live.html"
        file.write_text(source.standalone_page(given(settings), "Live"), encoding="utf-8")
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(file.as_uri())
        page.wait_for_function("document.querySelector('.live')?.live.frames > 0")
        component = page.locator(".live")
        painted = component.evaluate("each => each.live.paintedAt")
        frames, steps, began = component.evaluate(COUNTED)
        page.wait_for_timeout(1000 * seconds)
        more_frames, more_steps, ended = component.evaluate(COUNTED)
        page.close()
    passed = (ended - began) / 1000
    return {
        "width": settings.width,
        "hidden_layers": settings.layers,
        "frames_per_s": round((more_frames - frames) / passed, 1),
        "steps_per_s": round((more_steps - steps) / passed, 1),
        "steps_per_frame": round((more_steps - steps) / max(more_frames - frames, 1), 2),
        "first_frame_ms": round(painted),
    }


def measure(settings: Settings) -> dict[str, Any]:
    """Each network on its own, after one that is not counted."""
    seconds = 0.5 if settings.quick else SECONDS
    cases = [LiveSettings(width=width, layers=layers, target=OWN, points=POINTS) for width, layers in CASES]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), headless=True, args=FLAGS)
        follow(browser, cases[0], 0.5)
        rows = [follow(browser, case, seconds) for case in cases[: 2 if settings.quick else None]]
        browser.close()
    (aimed,) = [row for row in rows if (row["width"], row["hidden_layers"]) == (1024, 1)]
    within = aimed["frames_per_s"] >= AIM_FRAMES and aimed["steps_per_frame"] >= AIM_STEPS
    return {"num_points": NUM_POINTS, "seconds": seconds, "within": within, "rows": rows}
