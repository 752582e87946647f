"""The packages that a store needs, with the advice how to install them; imported before them."""

from ntk_core.machine import check_installed

check_installed("cli", "A store of runs", "filelock", "sqlalchemy")
