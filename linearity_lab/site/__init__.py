"""The lab as static files: ``linearity-lab site --out DIR``.

The files work from a disk, any file server or GitHub Pages, without external resources: the
lecture, *Live*, the gallery with a page per figure, the glossary, the claims, and the questions and
answers as Markdown.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from linearity_lab.charts.style import CHART_CONFIG
from linearity_lab.dashboard.live import source
from linearity_lab.dashboard.pages.lecture.steps import STEPS
from linearity_lab.dashboard.scripts import SKETCH, plain_script
from linearity_lab.runs import PRESETS
from linearity_lab.site import _gallery, _lecture, _page
from linearity_lab.site._figures import FigurePage, gallery_figures, lecture_figure
from linearity_lab.site._page import DOCUMENTATION, MENU

FOLDER = Path(__file__).parent
LOOK = FOLDER.parent / "dashboard/look.css"
# A third of plotly.py's bundle, sufficient for our figures.
PLOTLY = FOLDER / "plotly-cartesian.min.js"

__all__ = ["DOCUMENTATION", "MENU", "FigurePage", "gallery_figures", "write_site"]


def write_site(
    folder: Path,
    write: Callable[[Path, str], object],
    presets: Iterable[str] = tuple(PRESETS),
    *,
    documentation: bool = False,
) -> Iterator[str]:
    """Write all files below ``folder`` by ``write(path, text)``.

    Yield a few words on each written part.

    With ``documentation``, menus link to the pages that make docs builds in docs/ there.
    """
    menu = MENU | (DOCUMENTATION if documentation else {})
    for name, text in _shared().items():
        write(folder / name, text)
    write(folder / "live.html", _gallery.live_page(menu))
    yield "scripts, styles and Live"
    figures = list(gallery_figures(presets))
    of_lecture = [lecture_figure(step) for step in STEPS]
    for figure in (*figures, *of_lecture):
        write(folder / "data" / f"{figure.name}.js", figure.script())
        write(folder / "figures" / f"{figure.name}.html", _gallery.figure_page(figure, menu))
    yield f"{len(figures) + len(of_lecture)} figures"
    write(folder / "gallery.html", _gallery.gallery_page(figures, menu))
    write(folder / "index.html", _lecture.lecture_page(menu))
    write(folder / "questions.md", _lecture.questions())
    yield "the lecture"
    write(folder / "glossary.html", _gallery.glossary_page(menu))
    write(folder / "truth.html", _gallery.truth_page(menu))
    yield "glossary and claims"


def _shared() -> dict[str, str]:
    return {
        "plotly.js": PLOTLY.read_text(encoding="utf-8"),
        "live.js": plain_script(source.module(), "live", "inURL"),
        "home.js": plain_script(source.home_module(), "home"),
        "sketch.js": plain_script(SKETCH.read_text(encoding="utf-8"), "sketch"),
        "site.js": (FOLDER / "site.js").read_text(encoding="utf-8")
        + f"lab.config = {json.dumps(CHART_CONFIG)};\n",
        "lecture.js": (FOLDER / "lecture.js").read_text(encoding="utf-8"),
        "site.css": "".join(
            [
                LOOK.read_text(encoding="utf-8"),
                source.style(),
                (FOLDER / "site.css").read_text(encoding="utf-8"),
            ]
        ),
        "icon.svg": _page.ICON,
        ".nojekyll": "",  # GitHub Pages serves the files as they are
    }
