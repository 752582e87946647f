"""The modules of pages: ``linearity_lab.views.PAGE``, or ``views`` in the package of an experiment from outside."""

import functools
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ntk_core.environment import OUTSIDE

VIEWS = Path(__file__).parent / "views"


def view_module(page: str, part: str = "") -> Any:
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
