"""The pages and their modules.

A page of an experiment is part of the experiment's folder. Other pages are folders in
``linearity_lab/dashboard/pages``.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args

from linearity_lab.installation import OUTSIDE

_LAB = Path(__file__).parent
# Package and folder of the pages: those of experiments, and those without an experiment.
ROOTS: Mapping[str, Path] = {
    "linearity_lab.experiments": _LAB / "experiments",
    "linearity_lab.dashboard.pages": _LAB / "dashboard" / "pages",
}


def page_module(page: str, part: str = "") -> ModuleType:
    """Import the package of a page, or one module of it.

    Raises:
        ModuleNotFoundError: there is none.
    """
    return import_module(f"{_package(page)}{part and '.'}{part}")


def has_page_module(page: str, part: str = "page") -> bool:
    """Whether the package of a page has this module."""
    name = _package(page)
    return find_spec(name) is not None and find_spec(f"{name}.{part}") is not None


def page_folder(page: str) -> Path:
    """Return the folder of a page, with its words."""
    outside = _outside().get(page)
    if outside is not None:
        return Path(str(page_module(page).__file__)).parent
    return _root(page)[1] / page


def page_folders() -> list[Path]:
    """Return the folders of all pages of this distribution, sorted by name."""
    found = {}
    for folder in ROOTS.values():
        for path in folder.glob("*/page.py"):
            found[path.parent.name] = path.parent
    return [found[name] for name in sorted(found)]


def pages_outside() -> list[str]:
    """Return the names of experiments from outside that have a page."""
    return [name for name in _outside() if has_page_module(name)]


def page_script(page: str) -> str:
    """Return the script of a page as Streamlit takes it.

    From the folder of app.py, or an absolute path.
    """
    return str(page_folder(page) / "script.py") if page in _outside() else f"pages/{page}.py"


@functools.cache
def _outside() -> Mapping[str, str]:
    if not entry_points(group=OUTSIDE):  # a server listens before it imports the experiments
        return {}
    from linearity_lab.runs import packages_outside

    return packages_outside()


def _package(page: str) -> str:
    outside = _outside().get(page)
    return f"{_root(page)[0]}.{page}" if outside is None else outside


def _root(page: str) -> tuple[str, Path]:
    """Return package and folder of the root that has this page; the last one if none has."""
    roots = list(ROOTS.items())
    for root in roots:
        if (root[1] / page).is_dir():
            return root
    return roots[-1]


Group = Literal["See it", "Measure", "Beyond width", "Your own"]
GROUPS: tuple[Group, ...] = get_args(Group)


@dataclass(frozen=True)
class Page:
    """A page in the menu and on *Home*, defined in its folder's ``__init__``.

    Attributes:
        question: what the page answers, where the overview leads to it; empty for the overview
            itself.
        place: position in its group; the first page of all is shown at the root.
        group: group in the menu.
        name: its script in ``pages/``, its folder, its path in the URL and the prefix of its
            widgets' keys; the menu gives it.
        headline: title above the page, by default its question.
    """

    title: str
    icon: str
    question: str
    place: float
    group: Group = "Beyond width"
    name: str = ""
    headline: str = ""

    @property
    def heading(self) -> str:
        """Title above the page."""
        return self.headline or self.question

    @property
    def path(self) -> str:
        """Its script, from the folder of app.py."""
        return page_script(self.name)
