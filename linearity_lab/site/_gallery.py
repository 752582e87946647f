"""The gallery with a page per figure, and the pages of reference: glossary, claims, Live."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import PurePosixPath

from markupsafe import Markup

from linearity_lab.charts.reading import how_to_read
from linearity_lab.charts.vector import thumbnail_of
from linearity_lab.citation import cite_run, provenance_sentence
from linearity_lab.dashboard.export_formats import command_line
from linearity_lab.dashboard.live import given
from linearity_lab.dashboard.live.settings import LiveSettings
from linearity_lab.dashboard.page_table import PAGES
from linearity_lab.dashboard.pages.lecture.steps import STEPS
from linearity_lab.dashboard.pages.live import QUESTION
from linearity_lab.installation import TOP
from linearity_lab.page_modules import page_module
from linearity_lab.runs import EXPERIMENTS, PRESETS
from linearity_lab.site._figures import FigurePage
from linearity_lab.site._page import html_of, page
from linearity_lab.words.markdown import typeset
from linearity_lab.words.pages import SHOWS, FigureWords, figure_words, prose

FRAME_HEIGHT = 620  # suggested size of an embedding frame, in pixels


def gallery_page(figures: Sequence[FigurePage], menu: Mapping[str, str]) -> str:
    """Show every figure as a thumbnail, by page and preset."""
    pages = []
    for name, of_page in groupby(figures, lambda figure: figure.page):
        presets = []
        for preset, group in groupby(of_page, lambda figure: figure.name.partition(".")[0]):
            presets.append((PRESETS[preset], list(group)))
        pages.append((name, page_module(name).PAGE.heading, presets))
    return page(
        "gallery.html",
        menu,
        title="Gallery",
        here="gallery.html",
        kind="gallery",
        pages=pages,
        num_figures=len(figures),
        num_runs=sum(len(presets) for _, _, presets in pages),
        thumbnail=lambda figure: Markup(thumbnail_of(figure.charts[0].figure)),
    )


def figure_page(figure: FigurePage, menu: Mapping[str, str]) -> str:
    """Show a figure with words, numbers and origin; in a frame only figure and caption."""
    title = figure.title if figure.page == "lecture" else figure.of
    title += f": {figure.title}" if figure.name not in PRESETS and figure.page != "lecture" else ""
    explained: dict[FigureWords, tuple[str, str]] = {}  # words → how to read it, heading
    for each in figure.charts:
        words = figure_words(f"{figure.page}.{each.name}")
        explained.setdefault(words, (how_to_read(words, each), each.heading))
    first, _, second = figure.name.partition(".")
    return page(
        "figure.html",
        menu,
        title=title,
        kind="one",
        about=figure.charts[0].takeaway,
        up="../",
        figure=figure,
        preset=PRESETS.get(figure.name),
        trail=("index", second, "Lecture") if first == "lecture" else ("gallery", first, "Gallery"),
        explained=[(words, *shown) for words, shown in explained.items()],
        height=FRAME_HEIGHT,
        typeset=typeset,
        provenance=provenance_sentence,
        command_line=command_line,
        cite_run=cite_run,
    )


_PRESET = re.compile(r"<code>([\w-]+)</code>")
# A page of the app by its folder.
_NAMED = re.compile(r'<a href="((?:gallery|live)\.html(?:#\w+)?)">(\w+)</a>')


def glossary_page(menu: Mapping[str, str]) -> str:
    """Show all glossary entries with a search field."""
    return page(
        "glossary.html", menu, title="Glossary", here="glossary.html", kind="glossary", seen=_seen
    )


def _seen(page: str) -> str:
    at = {"lecture": "index.html", "overview": "index.html", "live": "live.html"}.get(page)
    return at or (f"gallery.html#{page}" if page in EXPERIMENTS else "")


def truth_page(menu: Mapping[str, str]) -> str:
    """Show all claims with their measurements, from docs/truth.md."""
    text = html_of((TOP / "docs" / "truth.md").read_text(encoding="utf-8"), link=_place)
    text = _PRESET.sub(
        lambda found: (
            f'<a href="figures/{found[1]}.html"><code>{found[1]}</code></a>'
            if found[1] in PRESETS
            else found[0]
        ),
        text,
    )
    titles = {each.name: each.title for each in PAGES}
    text = _NAMED.sub(lambda found: f'<a href="{found[1]}">{titles[found[2]]}</a>', text)
    return page(
        "truth.html",
        menu,
        title="What is claimed",
        here="truth.html",
        kind="truth",
        text=Markup(text),
    )


def _place(target: str) -> str | None:
    path = PurePosixPath(target)
    if path.stem in {step.name for step in STEPS}:
        return f"index.html#{path.stem}"
    page = path.parent.name
    if path.name == "words.md" and page in EXPERIMENTS:
        return f"gallery.html#{page}"
    return "live.html" if page == "live" else None


def live_page(menu: Mapping[str, str]) -> str:
    """Show *Live* with all controls; the URL contains the settings."""
    return page(
        "live.html",
        menu,
        title="Live",
        here="live.html",
        kind="live-page",
        about=" ".join(prose("live", SHOWS).split()),
        scripts=("live.js",),
        question=QUESTION,
        data={"live": given(LiveSettings())},
    )
