"""The tables of the first layout of the store (``runs``, ``points``): what they hold is taken over once."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from pydantic import TypeAdapter

from ntk_core.runs._spec import Spec
from ntk_core.runs._table import Result
from ntk_core.runs._values import PointValue
from ntk_core.runs.store._entries import POINT, intact, intact_spec

_RESULT: TypeAdapter[Result] = TypeAdapter(Result)
_RUNS = sa.table("runs", *map(sa.column, ("digest", "schema_version", "spec", "status", "result", "sha", "used")))
_POINTS = sa.table("points", *map(sa.column, ("digest", "key", "json", "sha")))


class Older(NamedTuple):
    """What the first layout holds; ``found`` says whether there is one."""

    found: bool
    results: tuple[Result, ...]
    points: tuple[tuple[Spec, str, PointValue], ...]


def read_older(connection: sa.Connection) -> Older:
    """The intact results and points, the ones used longest ago first."""
    if not _is_there(connection):
        return Older(False, (), ())
    results: list[Result] = []
    points: list[tuple[Spec, str, PointValue]] = []
    for row in connection.execute(sa.select(_RUNS).order_by(_RUNS.c.used)).all():
        spec = intact_spec(row.digest, row.spec)
        if spec is None:
            continue
        result = row.result and intact(_RESULT, row.result, row.sha, f"result {row.digest[:16]}")
        if result:
            results.append(result)
        for kept in connection.execute(sa.select(_POINTS).where(_POINTS.c.digest == row.digest)).all():
            point = intact(POINT, kept.json, kept.sha, f"point {kept.key} of {row.digest[:16]}")
            if point is not None:
                points.append((spec, kept.key, point))
    return Older(True, tuple(results), tuple(points))


def drop_older(connection: sa.Connection) -> None:
    """Delete those tables, once what they hold has been taken over."""
    for name in ("points", "runs"):
        connection.execute(sa.schema.DropTable(sa.Table(name, sa.MetaData()), if_exists=True))


def _is_there(connection: sa.Connection) -> bool:
    """Whether both tables are there and ours: another program's may have the same names."""
    inspector = sa.inspect(connection)
    wanted = {"runs": _RUNS, "points": _POINTS}
    return set(wanted) <= set(inspector.get_table_names()) and all(
        {column.name for column in table.c} <= {column["name"] for column in inspector.get_columns(name)}
        for name, table in wanted.items()
    )
