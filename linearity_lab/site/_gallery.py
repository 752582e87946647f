"""The gallery with a page per figure, and the pages of reference: glossary, claims, Live."""

import html
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import PurePosixPath

from linearity_lab.components.explain import provenance_sentence
from linearity_lab.components.exports import command_line
from linearity_lab.components.live import given
from linearity_lab.components.live.settings import LiveSettings
from linearity_lab.site._figures import Figure, thumbnail_of, without_clicks
from linearity_lab.site._page import Page, embedded, formula, html_of
from linearity_lab.view_modules import view_module
from linearity_lab.views.lecture.steps import STEPS
from linearity_lab.views.live import QUESTION
from linearity_lab.views.navigation import PAGES
from linearity_lab.words.markdown import typeset
from linearity_lab.words.pages import CHANGES, FINITE, SHOWS, FigureWords, figure_words, glossary, prose, titled_prose
from ntk_core.citation import cite_run
from ntk_core.environment import TOP
from ntk_core.runs import EXPERIMENTS, PRESETS

FRAME_HEIGHT = 620  # of the frame that a page proposes, in pixels
_TRAIL = '<a href="../{}.html#{}">{}</a>'
_SHARE = """\
<details class="share"><summary>On a slide or another page</summary>
<p><button type="button" class="save" data-format="svg">Save as SVG</button>
<button type="button" class="save" data-format="png">Save as PNG</button></p>
<label for="frame">A frame with the figure and its caption alone:</label>
<textarea id="frame" readonly rows="3" data-title="{title}" data-height="{height}"></textarea>
<button type="button" class="copy" data-of="frame">Copy</button></details>
"""


def gallery_page(figures: Sequence[Figure]) -> Page:
    """Every figure as a small picture, by page and preset."""
    parts, listed = [], []
    for page, of_page in groupby(figures, lambda figure: figure.page):
        title = view_module(page, "page").PAGE.heading
        listed.append(f'<li><a href="#{page}">{html.escape(title)}</a></li>')
        parts.append(f'<section id="{page}"><h2>{html.escape(title)}</h2>{html_of(prose(page, SHOWS))}')
        for name, group in groupby(of_page, lambda figure: figure.name.partition(".")[0]):
            preset = PRESETS[name]
            cards = "".join(
                f'<a class="card" href="figures/{each.name}.html">{thumbnail_of(each.charts[0].figure)}'
                f"<span>{html.escape(each.title)}</span></a>"
                for each in group
            )
            claim = html_of(f"{typeset(preset.statement)} *{preset.source}.*", inline=True)
            parts.append(
                f'<article id="{name}"><h3>{html.escape(preset.title)}</h3><p>{claim}</p>'
                f'<div class="cards">{cards}</div></article>'
            )
        parts.append("</section>")
    count = f"{len(figures)} figures of {len({figure.name.partition('.')[0] for figure in figures})} runs"
    body = (
        f"<h1>Gallery</h1><p>{count}, each with its numbers, where they come from, and the command that computes it "
        f'again.</p><ul class="jump">{"".join(listed)}</ul>{"".join(parts)}'
    )
    return Page("Gallery", body, here="gallery.html", kind="gallery")


def figure_page(figure: Figure) -> Page:
    """One figure with its words, its numbers and its origin; in a frame the figure and its caption alone."""
    title = figure.title if figure.page == "lecture" else figure.of
    title += f": {figure.title}" if figure.name not in PRESETS and figure.page != "lecture" else ""
    options = '<div class="options" role="group" aria-label="Show"></div>'
    places = "".join(
        f'<div class="place" data-figure="{figure.name}" data-chart="{index}"></div>'
        for index in range(len(figure.charts))
    )
    several = len(figure.charts) > 1
    headings = {figure_words(f"{figure.page}.{each.name}"): each.heading for each in reversed(figure.charts)}
    explained = "".join(_explained(words, heading, several=several) for words, heading in reversed(headings.items()))
    origins = "".join(
        f"<p>{html_of(typeset(provenance_sentence(result)), inline=True)}</p>"
        f"<pre><code>{html.escape(command_line(result.spec))}</code></pre><p>{html.escape(cite_run(result))}</p>"
        for result in figure.results
    )
    first, _, second = figure.name.partition(".")
    trail = _TRAIL.format(*(("index", second, "Lecture") if first == "lecture" else ("gallery", first, "Gallery")))
    body = (
        f'<p class="trail">{trail} › {html.escape(figure.of)}</p><h1>{html_of(title, inline=True)}</h1>{_claim(figure)}'
        f'<div class="figure">{options}{places}</div>'
        f'<p class="whole"><a href="{figure.name}.html" target="_blank">{html.escape(title)} · Linearity Lab</a></p>'
        f'<div class="about">{explained}</div><div class="more">'
        f"{_SHARE.format(title=html.escape(title, quote=True), height=FRAME_HEIGHT)}"
        f'<details class="numbers"><summary>The numbers</summary><div class="tables"></div></details>'
        f"<details><summary>Where it comes from, and how to compute it again</summary>{origins}</details></div>"
    )
    return Page(title, body, kind="one", about=figure.charts[0].takeaway, up="../")


def _claim(figure: Figure) -> str:
    name = figure.name
    if name not in PRESETS:
        return ""
    return f"<p>{html_of(f'{typeset(PRESETS[name].statement)} *{PRESETS[name].source}.*', inline=True)}</p>"


def _explained(words: FigureWords, heading: str, *, several: bool) -> str:
    """Return the app's words beside a figure."""
    terms = " ".join(
        f'<a href="../glossary.html#{name}">{html.escape(glossary()[name].title)}</a>' for name in words.terms
    )
    above = f"<h2>{html_of(heading, inline=True)}</h2>" if several else ""
    measured = f'<p class="formula">{html_of(words.formula, inline=True)}</p>' if words.formula else ""
    return (
        f"{above}{html_of(without_clicks(words.see))}{measured}{html_of(f'**{FINITE}** {words.finite_width}')}"
        f'<p class="terms">{terms}</p>'
    )


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
