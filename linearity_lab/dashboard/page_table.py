"""The pages: one table for the menu, the links between pages and the static site."""

from collections.abc import Iterator
from dataclasses import replace

from linearity_lab.installation import TOP
from linearity_lab.page_modules import GROUPS, Page, page_module, pages_outside

EMBEDDED = "embed"  # a script with a URL of its own, outside the menu


def _pages() -> Iterator[Page]:
    taken = {EMBEDDED}
    for script in (TOP / "pages").glob("*.py"):
        if script.stem != EMBEDDED:
            taken.add(script.stem)
            yield replace(page_module(script.stem).PAGE, name=script.stem)
    for name in pages_outside():
        if name not in taken:
            yield replace(page_module(name).PAGE, name=name)


# Every other script in pages/ is a page, and every view of an experiment from outside.
PAGES = tuple(sorted(_pages(), key=lambda page: (GROUPS.index(page.group), page.place)))
