"""A Postgres database of an earlier layout is migrated like a SQLite file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from linearity_lab.runs.store import Store
from tests.runs.store.test_released_stores import RELEASED, written_runs

# Before layouts were stored, so a database without their table is of layout 3.
OF_LAYOUT_3 = [folder for folder in RELEASED if folder.name == "0.2.0"]


def copy_to_postgres(file: Path, location: str) -> None:
    """Create the tables of a SQLite file in Postgres by its own statements, and copy all rows."""
    engine = sa.create_engine(location)
    with closing(sqlite3.connect(file)) as source, engine.begin() as target:
        statements = source.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        for (statement,) in statements.fetchall():
            target.exec_driver_sql(statement)
        tables = sa.MetaData()
        tables.reflect(target)
        for table in tables.sorted_tables:
            names = [column.name for column in table.columns]
            for row in source.execute(f"SELECT {', '.join(map(_quoted, names))} FROM {table.name}"):
                target.execute(table.insert(), [_row(table, row)])
    engine.dispose()


def _quoted(name: str) -> str:
    return f'"{name}"'


def _row(table: sa.Table, values: tuple[object, ...]) -> dict[str, object]:
    """Values of SQLite, whose booleans are integers."""
    row = {}
    for column, value in zip(table.columns, values, strict=True):
        row[column.name] = bool(value) if isinstance(column.type, sa.Boolean) else value
    return row


@pytest.mark.slow
@pytest.mark.parametrize("location", ["postgres"], indirect=True)
@pytest.mark.parametrize("folder", OF_LAYOUT_3, ids=lambda folder: folder.name)
def test_an_earlier_database_is_migrated_with_all_runs(location, folder):
    copy_to_postgres(folder / "runs.sqlite", location)
    store = Store(location)
    try:
        for written in written_runs(folder):
            spec = store.spec(written.digest)
            assert spec is not None
            assert (spec.experiment, spec.point_keys()) == (written.experiment, written.keys)
            assert len(store.points_of(written.digest)) == written.num_points
        listed = store.runs(limit=1000).runs
        assert {entry.reason for entry in listed} == {""}
    finally:
        store.close()
    again = Store(location)
    assert len(again.runs(limit=1000).runs) == len(listed)
    again.close()
