"""Build the documentation site with Sphinx; every warning fails ``make docs``."""

import inspect
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from docutils.nodes import SkipNode, Text  # noqa: E402
from latex2mathml.converter import convert  # noqa: E402
from pydantic import BaseModel  # noqa: E402
from sphinx import addnodes  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402
from sphinx.environment import BuildEnvironment  # noqa: E402
from sphinx.util.logging import getLogger  # noqa: E402

import linearity_lab  # noqa: E402  (of this checkout)
import ntk_core  # noqa: E402
from docs.readable_types import plain_defaults, readable  # noqa: E402
from linearity_lab.site import DOCUMENTATION, MENU  # noqa: E402

project = "Linearity Lab"
author = ""
version = ntk_core.__version__
release = version
copyright = "MIT license"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# truth.md: the site has its page of claims.
exclude_patterns = [
    "decisions/0000-template.md",
    "truth.md",
    "_build",
]
html_theme = "furo"
html_title = f"Linearity Lab {version}"
html_favicon = "../linearity_lab/dashboard/icon.svg"
html_copy_source = html_show_sphinx = False
# One navigation for all pages.
templates_path = ["_templates"]
html_context = {"site_menu": MENU | DOCUMENTATION}
html_sidebars = {
    "**": [
        f"sidebar/{name}.html" for name in ("search", "scroll-start", "navigation", "scroll-end")
    ]
}
html_theme_options = {
    "announcement": "site",  # its place holds the menu: _templates/page.html
    "light_css_variables": {"color-brand-primary": "#1C78B5", "color-brand-content": "#1C78B5"},
    "dark_css_variables": {"color-brand-primary": "#5FB0E5", "color-brand-content": "#5FB0E5"},
}
html_math_renderer = "mathml"  # which browsers draw themselves: no script, no fonts, no other host
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # an outline may leave out a level
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "exclude-members": "model_config"}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
_LOG = getLogger(__name__)
# Before autodoc imports the modules a second time, with classes that pydantic takes for others.
PRESETS = [linearity_lab.runs.preset(name) for name in linearity_lab.presets()]


def public_names() -> list[str]:
    """Return every public name of both packages and their submodules, except the submodules."""
    found = []
    for package in (ntk_core, linearity_lab):
        top = {name: getattr(package, name) for name in package.__all__}
        known = [each for each in top.values() if not isinstance(each, ModuleType)]
        for name, each in top.items():
            if not isinstance(each, ModuleType):
                found.append(f"{package.__name__}.{name}")
                continue
            for inner in getattr(each, "__all__", ()):
                if all(getattr(each, inner) is not one for one in known):
                    found.append(f"{package.__name__}.{name}.{inner}")
    return found


def every_name_has_a_page(_: Sphinx, env: BuildEnvironment) -> None:
    """Warn of public names without a page or a docstring."""
    shown = env.get_domain("py").objects
    for name in public_names():
        if name not in shown:
            _LOG.warning("%s is on no page of docs/api", name)
        elif not inspect.getdoc(pkgutil.resolve_name(name)):
            _LOG.warning("%s has no docstring", name)


def files_outside(_: Sphinx, document: str, source: list[str]) -> None:
    """Copy files outside docs/ that pages link to."""
    folder = (DOCS / document).parent

    def copied(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve()
        leads_out = target.is_file() and not target.is_relative_to(DOCS)
        return f"](<path:{found[1]}>)" if leads_out else found[0]

    source[0] = re.sub(r"\]\((\.\./[^)\s#]+)(?:#[^)\s]*)?\)", copied, source[0])


def claims(_: Sphinx, document: str, source: list[str]) -> None:
    """Link to the site's page of claims."""
    page = f"{'../' * (1 + document.count('/'))}truth.html"
    source[0] = re.sub(
        r"\[([^\]]*)\]\((?:\.\./)*truth\.md\)", rf'<a href="{page}">\1</a>', source[0]
    )


def pictures(_: Sphinx, _document: str, source: list[str]) -> None:
    """Turn ``<picture>`` elements, whose files Sphinx does not copy, into images for each theme."""

    def images(found: re.Match[str]) -> str:
        sources = {"dark": r'dark\)" srcset="([^"]+)"', "light": r'<img [^>]*src="([^"]+)"'}
        files = {theme: re.search(pattern, found[0]) for theme, pattern in sources.items()}
        alt = re.search(r'alt="([^"]+)"', found[0])
        return "\n\n".join(
            f"```{{image}} {file[1]}\n:alt: {alt[1] if alt else ''}\n:class: only-{theme}\n```"
            for theme, file in files.items()
            if file
        )

    source[0] = re.sub(r"<picture>.*?</picture>", images, source[0], flags=re.DOTALL)


def table_of_presets(_: Sphinx, document: str, source: list[str]) -> None:
    """Write every preset with its claim and source where the page of presets asks for it."""
    if document == "presets":
        rows = (
            f"| {_figure(each.name)} | {each.title} | {each.source} |".replace("\n", " ")
            for each in PRESETS
        )
        table = "\n".join(["| name | figure | source |", "| --- | --- | --- |", *rows])
        source[0] = re.sub(r"<!-- presets:.*?-->", lambda _: table, source[0])


def _figure(preset: str) -> str:
    return f'<a href="../figures/{preset}.html"><code>{preset}</code></a>'


def short_signature(
    _app: Sphinx,
    _what: str,
    _name: str,
    thing: Any,
    _options: Any,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Replace the signature of settings by ``(**settings)``; each is described below."""
    if inspect.isclass(thing) and issubclass(thing, BaseModel):
        return "(**settings)", ""
    return signature and plain_defaults(signature), returned


def plain_words(
    _app: Sphinx, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]
) -> None:
    """Escape what means other things in reStructuredText.

    These are bars, leading stars and trailing underscores.
    """
    for index, line in enumerate(lines):
        parts = re.split(r"(``[^`]*``|`[^`]*`)", line)
        parts[::2] = [
            re.sub(r"(\||(?<=\w)_(?!\w)|(?<!\w)\*(?=\w)(?!\w[^*]*\*))", r"\\\1", part)
            for part in parts[::2]
        ]
        lines[index] = "".join(parts)


def short_types(_: Sphinx, page: Any) -> None:
    """Write ``array (n, C)`` for unions of array types, and ``Array`` for ``jaxlib._jax.Array``."""
    for text in list(page.findall(Text)):
        if "jaxlib._jax." in text:
            text.parent.replace(text, Text(text.replace("jaxlib._jax.", "")))
    for node in [*page.findall(addnodes.desc_parameter), *page.findall(addnodes.desc_annotation)]:
        words = [child.astext() for child in node.children]
        if ":" in words[:2]:  # name: type, or : type
            start = words.index(":") + 2
            has_default = isinstance(node, addnodes.desc_parameter) and "=" in words
            _write_type(node, start, words.index("=") - 1 if has_default else len(words))
    for node in page.findall(addnodes.desc_returns):
        _write_type(node, 0, len(node.children))


def _write_type(node: Any, start: int, end: int) -> None:
    """Replace the nodes of an annotation where its readable form differs; links stay."""
    given = node.children[start:end]
    old = "".join(child.astext() for child in given)
    if (new := readable(old)) != old:
        links = {
            link.astext(): link for child in given for link in child.findall(addnodes.pending_xref)
        }
        parts = [part for part in re.split(r"([\w.]+)", new) if part]
        node[start:end] = [
            links[part].deepcopy() if part in links else Text(part) for part in parts
        ]


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(convert(node.astext()))
    raise SkipNode


def _block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def setup(app: Sphinx) -> None:
    """Connect the hooks above."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("source-read", files_outside)
    app.connect("source-read", claims)
    app.connect("source-read", pictures)
    app.connect("source-read", table_of_presets)
    app.connect("autodoc-process-signature", short_signature)
    app.connect("autodoc-process-docstring", plain_words)
    app.connect("doctree-read", short_types)
    app.connect("env-check-consistency", every_name_has_a_page)
