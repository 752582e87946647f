"""The settings of this process: environment variables, read each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linearity_lab.variables import Settings


def environment_settings() -> Settings:
    """Return the settings in the environment; errors name the variable."""
    from linearity_lab.variables import current  # imports pydantic, which delays the server's start

    return current()
