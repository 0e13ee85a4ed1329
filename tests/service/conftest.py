"""What tests of the service are run with: each of the databases, by real servers."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import fsspec
import psycopg
import pytest

import cluster
import s3_store
from service import made
from verix_anon.service.database import Database
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.worker import Worker


@pytest.fixture(scope="session")
def server() -> Iterator[Path]:
    """A PostgreSQL that tests may restart."""
    with cluster.running() as folder:
        yield folder


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
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


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The endpoint of an S3."""
    with s3_store.running() as endpoint:
        yield endpoint


@pytest.fixture(params=["disk", "s3"])
def blobs_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store of each kind."""
    if request.param == "disk":
        yield str(tmp_path / "blobs")
    else:
        with s3_store.reached(request.getfixturevalue("s3")):
            bucket = f"b{secrets.token_hex(4)}"
            fsspec.filesystem("s3").mkdir(bucket)
            yield f"s3://{bucket}/verix"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A database of each kind with its schema."""
    database = Database(database_url)
    database.migrate()
    yield database
    database.close()


@pytest.fixture
def worker_settings(tmp_path: Path, database_url: str, database: Database) -> ServiceSettings:
    """Of a worker that tries again at once."""
    made.tenant(database)
    return ServiceSettings(
        folder=tmp_path, database=database_url, workers=1, lease_seconds=30, retry_seconds=0.01
    )


@pytest.fixture
def worker(worker_settings: ServiceSettings) -> Iterator[Worker]:
    """A worker in this process."""
    worker = Worker(worker_settings, "one")
    yield worker
    worker.database.close()
