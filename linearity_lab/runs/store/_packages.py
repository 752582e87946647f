"""SQLAlchemy and filelock for the modules of the store, or the advice how to install them."""

from ntk_core.machine import check_installed

check_installed("cli", "A store of runs", "filelock", "sqlalchemy")

import sqlalchemy as sa  # noqa: E402
from filelock import FileLock, Timeout  # noqa: E402
from sqlalchemy.dialects import postgresql, sqlite  # noqa: E402

__all__ = ["FileLock", "Timeout", "postgresql", "sa", "sqlite"]
