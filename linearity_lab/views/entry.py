"""What the menu knows of a page."""

from dataclasses import dataclass
from typing import Literal, get_args

from linearity_lab.view_modules import page_script

Group = Literal["See it", "Measure", "Beyond width", "Your own"]
GROUPS: tuple[Group, ...] = get_args(Group)


@dataclass(frozen=True)
class Page:
    """A page as the menu and the overview show it; its folder's ``__init__`` states it.

    Attributes:
        question: what the page answers, where the overview leads to it; empty for the overview itself.
        place: position in its group; the first page of all is shown at the root.
        group: group in the menu.
        letters: its picture on the overview, where it is not drawn; else its title.
        name: its script in ``pages/``, its folder in ``linearity_lab/views/``, its path in the URL and the prefix of
            its widgets' keys; the menu gives it.
    """

    title: str
    icon: str
    question: str
    place: float
    group: Group = "Beyond width"
    letters: str = ""
    name: str = ""

    @property
    def path(self) -> str:
        """Its script, from the folder of app.py."""
        return page_script(self.name)
