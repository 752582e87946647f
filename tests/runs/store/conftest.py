"""A separate store for every test, in SQLite and in Postgres."""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from ntk_core.runs.store import Store
from tests.runs.store import postgres_cluster
from tests.runs.store.made_runs import result, spec


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """URL of a Postgres server for the whole test session."""
    found = postgres_cluster.programs()
    if found is None:
        pytest.skip("no Postgres: neither initdb on the PATH nor /usr/lib/postgresql (apt-get install postgresql)")
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("no driver for Postgres: pip install 'psycopg[binary]'")
    with postgres_cluster.running(found) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def location(request, tmp_path) -> Iterator[str]:
    """Location of an empty store: path of a SQLite file, or URL of a Postgres schema."""
    if request.param == "sqlite":
        yield str(tmp_path / "lab" / "results.sqlite")
        return
    url, schema = request.getfixturevalue("postgres"), f"lab_{uuid.uuid4().hex}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
    yield f"{url}&options=-csearch_path%3D{schema}"
    with engine.begin() as connection:
        connection.execute(sa.schema.DropSchema(schema, cascade=True))
    engine.dispose()


@pytest.fixture
def store(location) -> Iterator[Store]:
    store = Store(location)
    yield store
    store.close()


@pytest.fixture
def num_bytes_of_a_run(tmp_path) -> int:
    """Size of a completed run in bytes, for seeds of four digits."""
    store = Store(tmp_path / "one.sqlite")
    store.save_result(result(spec=spec(1000)))
    store.close()
    return store.num_bytes()


@pytest.fixture
def change(location, store) -> Callable[..., None]:
    """Change exactly one row without the store."""

    def execute(statement: str, **values: object) -> None:
        engine = sa.create_engine(location if "://" in location else f"sqlite:///{location}")
        with engine.begin() as connection:
            assert connection.execute(sa.text(statement), values).rowcount == 1
        engine.dispose()

    return execute
