"""Type checker of calls inside the core's mathematics.

Types and jaxtyping's shapes (pyproject.toml).
"""

from beartype import BeartypeConf, beartype

checked = beartype(
    conf=BeartypeConf(is_pep484_tower=True)
)  # accept an int for a float, as in Python's typing
