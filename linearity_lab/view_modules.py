"""The pages and their modules: ``linearity_lab.views.PAGE``, or ``views`` in the package of an outside experiment."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args

from ntk_core.environment import OUTSIDE

VIEWS = Path(__file__).parent / "views"


def view_module(page: str, part: str = "") -> ModuleType:
    """Import the package of a page, or one module of it.

    Raises:
        ModuleNotFoundError: there is none.
    """
    return import_module(f"{_package(page)}{part and '.'}{part}")


def has_view(page: str, part: str = "") -> bool:
    """Whether a page has a package, or this module in it."""
    name = _package(page)
    return find_spec(name) is not None and (not part or find_spec(f"{name}.{part}") is not None)


def view_folder(page: str) -> Path:
    """Return the folder of a page, with its words."""
    outside = _outside().get(page)
    return VIEWS / page if outside is None else Path(str(view_module(page).__file__)).parent


def pages_outside() -> list[str]:
    """Return the names of experiments from outside that have a view."""
    return [name for name in _outside() if has_view(name)]


def page_script(page: str) -> str:
    """Return the script of a page as Streamlit takes it: from the folder of app.py, or an absolute path."""
    return str(view_folder(page) / "script.py") if page in _outside() else f"pages/{page}.py"


@functools.cache
def _outside() -> Mapping[str, str]:
    if not entry_points(group=OUTSIDE):  # a server listens before it imports the experiments
        return {}
    from ntk_core.runs import packages_outside

    return packages_outside()


def _package(page: str) -> str:
    outside = _outside().get(page)
    return f"linearity_lab.views.{page}" if outside is None else f"{outside}.views"


Group = Literal["See it", "Measure", "Beyond width", "Your own"]
GROUPS: tuple[Group, ...] = get_args(Group)


@dataclass(frozen=True)
class Page:
    """A page in the menu and on *Home*, defined in its folder's ``__init__``.

    Attributes:
        question: what the page answers, where the overview leads to it; empty for the overview itself.
        place: position in its group; the first page of all is shown at the root.
        group: group in the menu.
        name: its script in ``pages/``, its folder in ``linearity_lab/views/``, its path in the URL and the prefix of
            its widgets' keys; the menu gives it.
    """

    title: str
    icon: str
    question: str
    place: float
    group: Group = "Beyond width"
    name: str = ""

    @property
    def path(self) -> str:
        """Its script, from the folder of app.py."""
        return page_script(self.name)
