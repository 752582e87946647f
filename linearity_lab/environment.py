"""The settings of this process: environment variables, read each time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linearity_lab.variables import Settings

PREFIX = "LINEARITY_LAB_"


def environment_settings() -> Settings:
    """Return the settings in the environment; errors name the variable."""
    from linearity_lab.variables import read  # imports pydantic, which delays the server's start

    ours = [(name, value) for name, value in os.environ.items() if name.startswith(PREFIX)]
    return read(tuple(sorted(ours)))
