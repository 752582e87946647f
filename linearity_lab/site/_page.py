"""What every page of the site has: head, menu and foot."""

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from linearity_lab.charts.style import CHART_CONFIG

NAME = "Linearity Lab"
MENU = {
    "index.html": "Lecture",
    "live.html": "Live",
    "gallery.html": "Gallery",
    "glossary.html": "Glossary",
    "truth.html": "Claims",
}
DOCUMENTATION = {"docs/index.html": "Docs", "docs/api/index.html": "API"}  # written by make docs
ICON = (Path(__file__).parents[1] / "icon.svg").read_text(encoding="utf-8")
# Before anything is drawn: the chosen theme, and whether the page is embedded.
_FIRST = """\
const root = document.documentElement;
try { root.dataset.theme = (localStorage.getItem("theme") ?? "").replace("auto", ""); } catch { /* keeps nothing */ }
if (self !== top) root.classList.add("framed");"""
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="{about}">
<title>{title}</title>
<link rel="icon" href="{up}icon.svg">
<link rel="stylesheet" href="{up}site.css">
<script>{first}</script>
{scripts}
</head>
<body data-up="{up}">
<a class="skip" href="#main">Skip to the text</a>
<header><nav aria-label="Pages"><a class="home" href="{up}index.html">{icon}<span>{name}</span></a>{menu}</nav>
<button type="button" class="theme" hidden>◐</button></header>
<main id="main" class="{kind}">
{body}
</main>
<footer><p>
Made by <code>linearity-lab site</code> from the results of its gallery; nothing comes from other hosts.</p></footer>
</body>
</html>
"""


@dataclass(frozen=True)
class Page:
    """A page of the site.

    Attributes:
        here: its file, where the menu has it.
        kind: class of its main part, for the style sheet.
        about: a sentence for search engines.
        up: what leads from its folder to that of the site.
        scripts: files that it loads, in this order, once it is read; what draws figures is loaded with the first one.
    """

    title: str
    body: str
    here: str = ""
    kind: str = ""
    about: str = ""
    up: str = ""
    scripts: tuple[str, ...] = ()

    def html(self, menu: Mapping[str, str]) -> str:
        """Return the page with a menu of files and their titles."""
        links = "".join(
            f'<a href="{self.up}{file}"{" aria-current=page" if file == self.here else ""}>{words}</a>'
            for file, words in menu.items()
        )
        return _PAGE.format(
            title=html.escape(NAME if self.title == NAME else f"{self.title} · {NAME}"),
            about=html.escape(self.about, quote=True),
            up=self.up,
            first=_FIRST,
            scripts="\n".join(f'<script defer src="{self.up}{each}"></script>' for each in ("site.js", *self.scripts)),
            icon=ICON,
            name=NAME,
            menu=links,
            kind=self.kind,
            body=self.body,
        )


def embedded(name: str, data: object) -> str:
    """Embed data for the scripts of the page."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


def configuration() -> str:
    """What the scripts need of the app's own settings."""
    return f"lab.config = {json.dumps(CHART_CONFIG)};\n"
