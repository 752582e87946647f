"""The tables of the store, the same in SQLite and Postgres."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

TABLES = sa.MetaData()
# The large texts stand last: SQLite then reads the columns of a list without them.
RUNS = sa.Table(
    "lab_runs",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("schema_version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("experiment", sa.String(40), nullable=False),
    sa.Column("swept", sa.String(200), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("num_points", sa.Integer, nullable=False),
    sa.Column("private", sa.Boolean, nullable=False),
    sa.Column("imported", sa.Boolean, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("used", sa.Float, nullable=False),
    sa.Column("busy_until", sa.Float, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("ending", sa.Text),
    sa.Column("sha", sa.String(64)),
    sa.Index("lab_runs_by_use", "used", "bytes"),
)
POINTS = sa.Table(
    "lab_points",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("schema_version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("key", sa.String(200), primary_key=True),
    sa.Column("sha", sa.String(64), nullable=False),
    sa.Column("json", sa.Text, nullable=False),
)
SET_ASIDE = sa.Table(
    "lab_set_aside",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("key", sa.String(200), nullable=False),
    sa.Column("found", sa.Float, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("json", sa.Text, nullable=False),
)
JOBS = sa.Table(
    "lab_jobs",
    TABLES,
    sa.Column("server", sa.String(32), primary_key=True),
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("submitted", sa.Float, nullable=False),
    sa.Column("num_servers", sa.Integer, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
)
CLOCKS = sa.Table(
    "lab_clocks",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("running", sa.Boolean, nullable=False),
    sa.Column("spent", sa.Float, nullable=False),
    sa.Column("allowed", sa.Float),
    sa.Column("ending", sa.Boolean, nullable=False),
)
MARKS = sa.Table(
    "lab_marks",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("favorite", sa.Boolean, nullable=False),
)
_LOCK = 7_224_711_036  # any number that other programs are unlikely to lock in the same database


def create_tables(connection: sa.Connection) -> None:
    """Make the tables that are missing; several processes may do so at once."""
    if connection.dialect.name == "postgresql":  # there IF NOT EXISTS alone fails when two do it at the same moment
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    for table in TABLES.sorted_tables:
        connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
        for index in table.indexes:
            connection.execute(sa.schema.CreateIndex(index, if_not_exists=True))


def insert_once(connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> bool:
    """Insert ``row`` unless its key is there; whether it was inserted."""
    inserts: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
    if connection.dialect.name in inserts:
        insert = inserts[connection.dialect.name](table).values(row).on_conflict_do_nothing()
        # Of an INSERT the driver of Postgres tells the number of rows only when asked to.
        return connection.execute(insert, execution_options={"preserve_rowcount": True}).rowcount > 0
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(table).values(row))
    except sa.exc.IntegrityError:
        return False
    return True
