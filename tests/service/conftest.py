"""What tests of the service are run with: each of the databases, by real servers."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import cluster
from verix_anon.service.database import Database


@pytest.fixture(scope="session")
def server() -> Iterator[Path]:
    """A PostgreSQL that tests may restart."""
    with cluster.running() as folder:
        yield folder


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'verix.db'}"
    else:
        server = request.getfixturevalue("server")
        name = f"v{secrets.token_hex(8)}"
        with psycopg.connect(cluster.url(server), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        yield cluster.url(server, database=name)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A database of each kind with its schema."""
    database = Database(database_url)
    database.migrate()
    yield database
    database.close()
