"""The tables of the store, the same in SQLite and Postgres."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

TABLES = sa.MetaData()
# Large texts come last: SQLite then reads the columns of a list without them.
RUNS = sa.Table(
    "lab_runs",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("schema_version", sa.Integer, nullable=False),
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
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("favorite", sa.Boolean, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("ending", sa.Text),
    sa.Column("sha", sa.String(64)),
    sa.Index("lab_runs_by_use", "used", "bytes"),
)
POINTS = sa.Table(
    "lab_points",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("key", sa.String(200), primary_key=True),
    sa.Column("sha", sa.String(64), nullable=False),
    sa.Column("json", sa.Text, nullable=False),
)
JOBS = sa.Table(
    "lab_jobs",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("seen", sa.Float, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("submitted", sa.Float, nullable=False),
    sa.Column("running", sa.Boolean, nullable=False),
    sa.Column("spent", sa.Float, nullable=False),
    sa.Column("allowed", sa.Float),
    sa.Column("ending", sa.Boolean, nullable=False),
)
_LOCK = 7_224_711_036  # any number that other programs are unlikely to lock in the same database


def create_tables(connection: sa.Connection) -> None:
    """Create the missing tables; several processes may do so simultaneously."""
    if connection.dialect.name == "postgresql":  # IF NOT EXISTS alone fails there when two processes create a table
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    for table in TABLES.sorted_tables:
        connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
        for index in table.indexes:
            connection.execute(sa.schema.CreateIndex(index, if_not_exists=True))


def insert_once(connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> bool:
    """Insert ``row`` unless its key exists; whether it was inserted."""
    insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table).values(row).on_conflict_do_nothing()
    # The driver of Postgres counts inserted rows only on request.
    return bool(connection.execute(statement, execution_options={"preserve_rowcount": True}).rowcount)
