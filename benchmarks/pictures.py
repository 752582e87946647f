"""Pictures of every preset or page in Chromium, with the words beside each figure.

``python -m benchmarks.pictures presets FOLDER [NAME…]`` and ``… pages FOLDER [NAME…]`` write PNG files;
of presets also ``words.txt``.
``LINEARITY_LAB_URL`` names a running server; by default a fresh one is started.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

from benchmarks.browser import Theme, fresh_app, headless
from benchmarks.first_sight import SCREENS, THEMES, Screen, inspected
from linearity_lab.dashboard.page_table import PAGES as ALL
from linearity_lab.runs import PRESETS

SCREEN_NAMES: tuple[Screen, Screen] = ("desktop", "phone")
# Sentences beside the first figure: what is found, how to read it, the paper.
WORDS = """() => {
  const text = (element) => {
    const copy = element.cloneNode(true);
    for (const formula of copy.querySelectorAll('.katex'))
      formula.textContent = formula.querySelector('annotation').textContent;
    return copy.textContent.trim();
  };
  const all = [...document.querySelectorAll('[class*="-run_panel"] :is(.finding, [data-testid="stMarkdown"] p)')];
  return all.filter((each) => each.offsetParent).map(text).filter(Boolean);
}"""


def open_view(
    browser: Browser, url: str, name: str, screen: Screen = "desktop", theme: Theme = "light"
) -> Page:
    """Open a view of the dashboard on this screen and wait until it has settled."""
    width, height = SCREENS[screen]
    is_phone = screen == "phone"
    context = browser.new_context(
        viewport={"width": width, "height": height},
        has_touch=is_phone,
        is_mobile=is_phone,
        color_scheme=theme,
        bypass_csp=True,
    )
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector(".early", state="detached")
    inspected(page, name)
    return page


def presets(browser: Browser, url: str, folder: Path, names: Sequence[str]) -> None:
    """Write the first screen of every preset, and its words into ``words.txt``."""
    for name, preset in PRESETS.items():
        if not preset.on_page or (names and name not in names):
            continue
        experiment = preset.spec.experiment
        page = open_view(browser, f"{url}/{experiment}?preset={name}", experiment)
        page.screenshot(path=folder / f"{name}.png")
        with (folder / "words.txt").open("a", encoding="utf-8") as file:
            file.write(f"== {name} ({experiment})\n" + "\n".join(page.evaluate(WORDS)) + "\n\n")
        page.context.close()


def pages(browser: Browser, url: str, folder: Path, names: Sequence[str]) -> None:
    """Write every page on both screens in both themes; a phone's picture has the full height."""
    for entry in ALL:
        if names and entry.name not in names:
            continue
        for screen in SCREEN_NAMES:
            for theme in THEMES:
                page = open_view(browser, f"{url}/{entry.name}", entry.name, screen, theme)
                page.screenshot(path=folder / f"{entry.name}-{screen}-{theme}.png")
                page.context.close()


@contextmanager
def server() -> Iterator[str]:
    """Return the URL of the named server, or of a fresh one."""
    url = os.environ.get("LINEARITY_LAB_URL")
    if url:
        yield url.rstrip("/")
        return
    with fresh_app() as (app, _):
        yield f"http://{app.address}"


def main() -> None:
    """Write the pictures that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["presets", "pages"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    draw = {"presets": presets, "pages": pages}[args.what]
    with server() as url, headless() as browser:
        draw(browser, url, args.folder, args.names)


if __name__ == "__main__":
    main()
