"""The pages to look things up in: the glossary, what is claimed, and the lab in motion."""

import html
import re
from pathlib import PurePosixPath

from linearity_lab.components.live import given
from linearity_lab.components.live.settings import LiveSettings
from linearity_lab.site._markdown import formula, html_of
from linearity_lab.site._page import Page, embedded
from linearity_lab.views.lecture.steps import STEPS
from linearity_lab.views.live import QUESTION
from linearity_lab.views.navigation import PAGES
from linearity_lab.words.glossary import glossary
from linearity_lab.words.pages import CHANGES, SHOWS, prose, titled_prose
from ntk_core.environment import TOP
from ntk_core.runs import EXPERIMENTS, PRESETS

_PRESET = re.compile(r"<code>([\w-]+)</code>")
_NAMED = re.compile(r'<a href="((?:gallery|live)\.html(?:#\w+)?)">(\w+)</a>')  # a page of the app by its folder


def glossary_page() -> Page:
    """Every word with its symbol, sentence, formula and source, and a field that leaves those that are searched for."""
    entries = []
    for entry in glossary().values():
        symbol = (
            f' <span class="symbol">{formula(entry.symbol)}</span>' if entry.symbol and len(entry.title) > 1 else ""
        )
        shown = f"<div class='formulas'>{formula(entry.formula, 'block')}</div>" if entry.formula else ""
        seen = _seen(entry.page)
        searched = html.escape(
            f"{entry.name} {entry.title} {entry.symbol} {entry.sentence} {entry.source} {entry.other_names}"
        )
        entries.append(
            f'<article id="{entry.name}" data-search="{searched.lower()}"><h2>{html.escape(entry.title)}{symbol}</h2>'
            f'{html_of(entry.sentence)}{shown}<p class="source">{html.escape(entry.source)}{seen}</p></article>'
        )
    body = (
        '<h1>Glossary</h1><p class="search"><label for="search">Search</label> '
        '<input id="search" type="search" autocomplete="off" maxlength="100"> <output for="search"></output></p>'
        f'<div class="entries">{"".join(entries)}</div>'
    )
    return Page("Glossary", body, here="glossary.html", kind="glossary")


def _seen(page: str) -> str:
    """A link to where the site shows a page of the app."""
    at = {"lecture": "index.html", "overview": "index.html", "live": "live.html"}.get(page)
    at = at or (f"gallery.html#{page}" if page in EXPERIMENTS else "")
    return f' · <a href="{at}">See it</a>' if at else ""


def truth_page() -> Page:
    """Every claim beside its measurement: docs/truth.md."""
    text = html_of((TOP / "docs" / "truth.md").read_text(encoding="utf-8"), link=_place)
    text = _PRESET.sub(
        lambda found: (
            f'<a href="figures/{found[1]}.html"><code>{found[1]}</code></a>' if found[1] in PRESETS else found[0]
        ),
        text,
    )
    titles = {page.name: page.title for page in PAGES}
    text = _NAMED.sub(lambda found: f'<a href="{found[1]}">{titles[found[2]]}</a>', text)
    return Page("What is claimed", text, here="truth.html", kind="truth")


def _place(target: str) -> str | None:
    """Return the page of the site with the contents of a project file."""
    path = PurePosixPath(target)
    if path.stem in {step.name for step in STEPS}:
        return f"index.html#{path.stem}"
    page = path.parent.name
    if path.name == "words.md" and page in EXPERIMENTS:
        return f"gallery.html#{page}"
    return "live.html" if page == "live" else None


def live_page() -> Page:
    """*Live* with all its controls; the URL holds the settings."""
    answers = "".join(html_of(titled_prose("live", heading)) for heading in (SHOWS, CHANGES))
    body = (
        f'<h1>{html.escape(QUESTION)}</h1><div class="live-place" id="live"></div>'
        f'<div class="answers">{answers}</div>{embedded("data", {"live": given(LiveSettings())})}'
    )
    about = " ".join(prose("live", SHOWS).split())
    return Page("Live", body, here="live.html", kind="live-page", about=about, scripts=("live.js",))
