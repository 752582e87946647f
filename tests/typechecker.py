"""Checks every call inside the core's mathematics: types, and the shapes that jaxtyping states (pyproject.toml)."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int where a float is asked for, as in Python's typing
