"""The gallery with a card for every figure, and the page that each figure has."""

import html
from collections.abc import Sequence
from itertools import groupby

from linearity_lab.components.explain import provenance_sentence
from linearity_lab.components.exports import command_line
from linearity_lab.site._figures import Figure, without_clicks
from linearity_lab.site._markdown import html_of
from linearity_lab.site._page import Page
from linearity_lab.site._thumbnail import thumbnail_of
from linearity_lab.view_modules import view_module
from linearity_lab.words.glossary import glossary
from linearity_lab.words.markdown import typeset
from linearity_lab.words.pages import FINITE, SHOWS, FigureWords, figure_words, prose
from ntk_core.citation import cite_run
from ntk_core.runs import PRESETS

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
        title = view_module(page, "page").TITLE
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
