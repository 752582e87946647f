"""The moving picture of the README: *Live* at three widths.

``python -m benchmarks.moving_picture`` writes docs/images/live_light.webp and live_dark.webp, and a
still of each for readers who prefer no motion. Its speed is chosen here, its content is computed
while it is recorded.
"""

import io
import itertools
from collections.abc import Sequence

from PIL import Image
from playwright.sync_api import Page, ViewportSize

from benchmarks.browser import Theme, headless, live_page, script
from benchmarks.measure import ROOT
from linearity_lab.dashboard.live import SHOWN, TOUR

IMAGES = ROOT / "docs" / "images"
THEMES: tuple[Theme, ...] = ("light", "dark")
Frame = tuple[Image.Image, int]  # and for how many milliseconds it is shown
# Of the page, and of the picture.
SIZE = (1120, 682)
WIDTH = 900
# The component alone, as large as the picture.
ALONE = """\
body > :not(main), main > :not(.live-place), .live .note { display: none }
main#main { max-width: none; margin: 16px; padding: 0 }
"""
# Of one width; steps at equal distances of their logarithm.
FRAMES = 24
LAST_STEP = 6_000
SLID = 4  # frames while the slider moves from one width to the next
FRAME_MS = 100
FIRST_MS = 600
LAST_MS = 1800
QUALITY = 60
STILL_QUALITY = 80
# The page takes no steps by itself.
HOLD = "each => { each.live.train = () => {}; each.live.playing = true; }"
CHOOSE = "(each, width) => each.live.choose({ width }, false)"


def recorded(theme: Theme) -> list[Frame]:
    """Record every passage from the slider's move to the last step."""
    frames: list[Frame] = []
    advance = script("advance")
    screen = ViewportSize(width=SIZE[0], height=SIZE[1])
    with headless() as browser, live_page(browser, SHOWN, screen, theme) as page:
        component = page.locator(".live")
        page.add_style_tag(content=ALONE)
        component.evaluate(HOLD)
        for before, width in itertools.pairwise((TOUR[-1], *TOUR)):  # around in a circle
            for share in range(1, SLID + 1):
                component.evaluate(CHOOSE, round(before * (width / before) ** (share / SLID)))
                component.evaluate(advance, 0)
                frames.append((_seen(page), FRAME_MS if share < SLID else FIRST_MS))
            for due in sorted(
                {round(LAST_STEP ** (frame / FRAMES)) for frame in range(1, FRAMES + 1)}
            ):
                component.evaluate(advance, due)
                frames.append((_seen(page), FRAME_MS if due < LAST_STEP else LAST_MS))
    return frames


def _seen(page: Page) -> Image.Image:
    seen = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    return seen.resize((WIDTH, round(SIZE[1] * WIDTH / SIZE[0])), Image.Resampling.LANCZOS)


def write(theme: Theme, frames: Sequence[Frame]) -> None:
    """Write the moving picture of a theme, and its last frame."""
    (first, *others), durations = zip(*frames, strict=True)
    animation = {"save_all": True, "append_images": others, "duration": list(durations), "loop": 0}
    first.save(IMAGES / f"live_{theme}.webp", quality=QUALITY, method=3, **animation)
    others[-1].save(IMAGES / f"live_still_{theme}.webp", quality=STILL_QUALITY)


if __name__ == "__main__":
    for each in THEMES:
        write(each, recorded(each))
