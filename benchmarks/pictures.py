"""Pictures of every preset or page in Chromium, with the words beside each figure.

``python -m benchmarks.pictures presets FOLDER [NAME…]`` and ``… pages FOLDER [NAME…]`` write PNG
files; of presets also ``words.txt``. ``… tour docs/images`` writes those of docs/tour.md.
``… tabs FOLDER [NAME…]`` writes every tab of pages or presets at full height.
``… runs FOLDER [NAME…]`` presses Run on them and writes sheets: before, while and after the run, in
light, dark and on a phone. ``LINEARITY_LAB_URL`` names a running server; by default a fresh one is
started.
"""

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page

from benchmarks.browser import Theme, fresh_app, headless
from benchmarks.first_sight import MEANT, RUN, SCREENS, THEMES, TIMEOUT_MS, Screen, inspected
from linearity_lab.dashboard.page_table import PAGES as ALL
from linearity_lab.runs import EXPERIMENTS, PRESETS

SCREEN_NAMES: tuple[Screen, Screen] = ("desktop", "phone")
# Sentences beside the first figure: what is found, how to read it, the paper.
WORDS = """() => {
  const text = (element) => {
    const copy = element.cloneNode(true);
    for (const formula of copy.querySelectorAll('.katex'))
      formula.textContent = formula.querySelector('annotation').textContent;
    return copy.textContent.trim();
  };
  const words = ':is(.finding, [data-testid="stMarkdown"] p)';
  const all = [...document.querySelectorAll(`[class*="-run_panel"] ${words}`)];
  return all.filter((each) => each.offsetParent).map(text).filter(Boolean);
}"""


def open_view(
    browser: Browser, url: str, name: str, screen: Screen = "desktop", theme: Theme = "light"
) -> Page:
    """Open a view of the dashboard on this screen and wait until it has settled."""
    page = open_at(browser, url, screen, theme)
    inspected(page, name)
    return page


def open_at(browser: Browser, url: str, screen: Screen, theme: Theme) -> Page:
    """Open an address once its first words are there."""
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


# Pictures of docs/tour.md → page with its settings, and theme.
TOUR: Mapping[str, tuple[str, Theme]] = {
    "kernel_change_light.png": ("kernel_change?preset=liu-fig1-left", "light"),
    "kernel_change_dark.png": ("kernel_change?preset=liu-fig1-left", "dark"),
    "hessian_light.png": ("hessian?preset=liu-table1", "light"),
    "lecture_light.png": ("lecture?step=nonlinear-output", "light"),
    "architectures_light.png": ("architectures?preset=bottleneck", "light"),
}


def tour(browser: Browser, url: str, folder: Path, names: Sequence[str]) -> None:
    """Write the pictures of docs/tour.md."""
    for file, (address, theme) in TOUR.items():
        if names and file not in names:
            continue
        page = open_view(browser, f"{url}/{address}", address.partition("?")[0], theme=theme)
        page.screenshot(path=folder / file)
        page.context.close()


VIEWS: Mapping[str, tuple[Screen, Theme]] = {
    "light": ("desktop", "light"),
    "dark": ("desktop", "dark"),
    "phone": ("phone", "light"),
}
MOMENTS = ("before", "during", "after")
QUICK = 'button:has-text("Quick run")'
NEW = "num_seeds=2&seed=1"  # without a stored answer
DURING_MS = 5_000  # later than the first message of a run
RUN_TIMEOUT_MS = 240_000
TALL = 2_400  # pixels: a page with one open tab
SHEET_WIDTH = 760  # pixels of a desktop view on a sheet


def runs(browser: Browser, url: str, folder: Path, names: Sequence[str]) -> None:
    """Run pages or presets once; write a sheet of each run, and every tab after it."""
    for name in names or list(EXPERIMENTS):
        experiment, address = place_of(url, name)
        for view, (screen, theme) in VIEWS.items():
            page = open_view(browser, address, experiment, screen, theme)
            page.screenshot(path=folder / f"{name}-{view}-before.png")
            page.context.close()
        first = open_view(browser, f"{address}&{NEW}", experiment)
        press_run(first)
        first.wait_for_timeout(DURING_MS)
        first.screenshot(path=folder / f"{name}-light-during.png")
        views = {view: open_at(browser, first.url, *VIEWS[view]) for view in ("dark", "phone")}
        for view, page in views.items():
            page.wait_for_timeout(DURING_MS)
            page.screenshot(path=folder / f"{name}-{view}-during.png")
        ended = first.locator(RUN, has_text=re.compile("Resume|Run"))
        ended.first.wait_for(timeout=RUN_TIMEOUT_MS)
        for view, page in {"light": first, **views}.items():
            page.wait_for_timeout(DURING_MS)
            page.screenshot(path=folder / f"{name}-{view}-after.png")
        for page in (first, *views.values()):
            page.context.close()
        sheet(folder, name)
        print(name, flush=True)


def press_run(page: Page) -> None:
    """Press Run, and Quick where the page asks."""
    page.locator(RUN).first.click()
    stop = page.locator(RUN, has_text="Stop")
    choice = page.locator(QUICK).or_(page.locator(MEANT))
    stop.or_(choice).first.wait_for(timeout=TIMEOUT_MS)
    if choice.count():
        choice.first.click()
        stop.first.wait_for(timeout=TIMEOUT_MS)


def place_of(url: str, name: str) -> tuple[str, str]:
    """Return the experiment and the address of a preset or of a page."""
    if name in PRESETS:
        experiment = PRESETS[name].spec.experiment
        return experiment, f"{url}/{experiment}?preset={name}"
    return name, f"{url}/{name}?"


def tabs(browser: Browser, url: str, folder: Path, names: Sequence[str]) -> None:
    """Write the whole page once for each of its tabs, in both themes."""
    for name in names or list(EXPERIMENTS):
        experiment, address = place_of(url, name)
        for theme in THEMES:
            page = open_view(browser, address, experiment, theme=theme)
            page.set_viewport_size({"width": SCREENS["desktop"][0], "height": TALL})
            found = page.get_by_role("tab")
            for index in range(max(1, found.count())):
                if found.count():
                    found.nth(index).click()
                inspected(page, experiment)
                page.screenshot(path=folder / f"{name}-{theme}-tab{index}.png")
            page.context.close()


def sheet(folder: Path, name: str) -> None:
    """Join light and dark (columns) before, while and after a run (rows).

    A phone's screens apart.
    """
    desktop = [
        [Image.open(folder / f"{name}-{theme}-{moment}.png") for theme in THEMES]
        for moment in MOMENTS
    ]
    phone = [[Image.open(folder / f"{name}-phone-{moment}.png") for moment in MOMENTS]]
    joined(desktop, SHEET_WIDTH).save(folder / f"{name}-sheet.png")
    joined(phone, SHEET_WIDTH * 2 // len(MOMENTS)).save(folder / f"{name}-sheet-phone.png")


def joined(rows: Sequence[Sequence[Image.Image]], width: int) -> Image.Image:
    """Return pictures of equal shape in rows, each this wide."""
    first = rows[0][0]
    height = round(first.height * width / first.width)
    whole = Image.new("RGB", (width * len(rows[0]), height * len(rows)))
    for row, pictures in enumerate(rows):
        for column, picture in enumerate(pictures):
            whole.paste(picture.resize((width, height)), (column * width, row * height))
    return whole


@contextmanager
def server() -> Iterator[str]:
    """Return the URL of the named server, or of a fresh one."""
    url = os.environ.get("LINEARITY_LAB_URL")
    if url:
        yield url.rstrip("/")
        return
    with fresh_app() as (app, _):
        yield f"http://{app.address}"


DRAW = {"presets": presets, "pages": pages, "tour": tour, "runs": runs, "tabs": tabs}


def main() -> None:
    """Write the pictures that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=list(DRAW))
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    draw = DRAW[args.what]
    with server() as url, headless() as browser:
        draw(browser, url, args.folder, args.names)


if __name__ == "__main__":
    main()
