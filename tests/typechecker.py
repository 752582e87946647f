"""Type checker of calls inside the core's mathematics.

Types and jaxtyping's shapes (pyproject.toml).
"""

from beartype import BeartypeConf, beartype

# Accept an int for a float, as in Python's typing.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
