"""What people write on runs: a name, a note, a star; no part of a result, and in no file of runs."""

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from ntk_core.errors import InvalidInput
from ntk_core.runs.store._tables import MARKS, RUNS, insert_once

MAX_NAME, MAX_NOTE, MAX_MARKS = 80, 500, 1000


@dataclass(frozen=True)
class Mark:
    """What is written on one run.

    Raises:
        InvalidInput: name or note are too long, or hold what cannot be printed.
    """

    name: str = ""
    note: str = ""
    favorite: bool = False

    def __post_init__(self) -> None:
        for field, text, most in (("name", self.name, MAX_NAME), ("note", self.note, MAX_NOTE)):
            if len(text) > most or not text.replace("\n", " ").isprintable():
                raise InvalidInput(field, text, f"at most {most} printable letters")


def marks(connection: sa.Connection) -> dict[str, Mark]:
    """Digest → what is written on that run."""
    rows = connection.execute(sa.select(MARKS).limit(MAX_MARKS))
    return {row.digest: Mark(row.name[:MAX_NAME], row.note[:MAX_NOTE], bool(row.favorite)) for row in rows}


def write_mark(connection: sa.Connection, run: str, mark: Mark) -> None:
    """Write it in place of what was there; what is written on runs that have gone goes too."""
    connection.execute(
        sa.delete(MARKS).where((MARKS.c.digest == run) | MARKS.c.digest.not_in(sa.select(RUNS.c.digest)))
    )
    if mark != Mark():
        if (connection.scalar(sa.select(sa.func.count()).select_from(MARKS)) or 0) >= MAX_MARKS:
            raise InvalidInput("name", f"{MAX_MARKS:,} runs have one", "fewer names, notes and favorites")
        insert_once(connection, MARKS, {"digest": run, **asdict(mark)})
