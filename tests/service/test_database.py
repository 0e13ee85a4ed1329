"""The schema is what the migrations make, on both databases; its time is the database's."""

import datetime as dt
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import inspect, select, text
from sqlalchemy.exc import OperationalError

from verix_anon.errors import ProviderError
from verix_anon.service.database import Database, JobRow, Schema, migrations, now


def test_the_migrations_make_the_models(database: Database) -> None:
    # Takes a second to load, which collecting need not.
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Schema.metadata) == []


def test_processes_that_start_together_migrate_once(database_url: str) -> None:
    many = [Database(database_url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(Database.migrate, many))
    many[0].migrate()
    with many[0].engine.connect() as connection:
        assert connection.scalars(text("SELECT version_num FROM alembic_version")).all() == [
            "third"
        ]
    for each in many:
        each.close()


def test_jobs_of_an_earlier_version_have_their_bytes_counted(database_url: str) -> None:
    from alembic import command

    database = Database(database_url)
    with database._writing.begin() as connection:
        command.upgrade(migrations(connection), "first")
        connection.execute(text("INSERT INTO tenants (name, created) VALUES ('a', 0)"))
        for state in ("uploading", "done"):
            connection.execute(
                text(
                    "INSERT INTO jobs (id, tenant, state, request, rows, columns, min_leaf, engine,"
                    " created, updated, retention, fence, lost)"
                    f" VALUES ('{state}', 'a', '{state}', '', 1, 1, 1, '', 0, 0, 0, 0, 0)"
                )
            )
            for name, size, is_there in (("x", 3, "true"), ("y", 4, "false")):
                values = f"('{state}', '{name}', {size}, '', {is_there})"
                connection.execute(text(f"INSERT INTO files VALUES {values}"))
        connection.execute(text("INSERT INTO delivered VALUES ('done', 'z', 9, '')"))
    database.migrate()
    with database.read() as session:
        found = {job.id: (job.bytes, job.missing) for job in session.scalars(select(JobRow))}
    assert found == {"uploading": (7, 4), "done": (9, 4)}
    database.close()


def test_a_migration_that_fails_leaves_nothing(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from alembic import op

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("half way")

    database = Database(database_url)
    monkeypatch.setattr(op, "create_index", fail)
    with pytest.raises(RuntimeError, match="half way"):
        database.migrate()
    assert inspect(database.engine).get_table_names() == []
    monkeypatch.undo()
    database.migrate()
    assert "jobs" in inspect(database.engine).get_table_names()
    database.close()


def test_the_database_of_a_later_version_is_left_alone(
    database: Database, database_url: str
) -> None:
    with database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = 'later'"))
    with pytest.raises(ProviderError, match="later version"):
        Database.opened(database_url)


def test_others_cannot_read_a_database_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "verix.db"
    for each in (path, tmp_path / "verix.db-wal"):
        each.touch(0o644)
        each.chmod(0o644)
    Database.opened(f"sqlite:///{path}").close()
    opened = Database.opened(f"sqlite:///{path}")
    with opened.write() as session:
        session.execute(text("INSERT INTO tenants (name, created) VALUES ('clinic', 0)"))
        assert {each.stat().st_mode & 0o777 for each in tmp_path.glob("verix.db*")} == {0o600}
    opened.close()


def test_time_is_the_databases(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dt.datetime.now(dt.UTC).timestamp()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    with database.read() as session:
        found = session.scalars(select(now())).one()
    assert abs(found - before) < 60


def test_a_write_is_done_whole_or_not_at_all(database: Database) -> None:
    def write_half() -> None:
        with database.write() as session:
            session.execute(text("INSERT INTO tenants (name, created) VALUES ('clinic', 0)"))
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    with database.read() as session:
        assert session.scalars(text("SELECT count(*) FROM tenants")).one() == 0


def test_a_server_that_says_nothing_is_given_up() -> None:
    pytest.importorskip("psycopg")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://one:two@127.0.0.1:{silent.getsockname()[1]}/three"
        found = Database(url).engine.url.query
        assert int(str(found["connect_timeout"])) <= 10
        assert int(str(found["tcp_user_timeout"])) <= 60_000
        # The owner's own word counts.
        database = Database(f"{url}?connect_timeout=2")
        with pytest.raises(OperationalError, match="timeout"), database.read() as session:
            session.execute(text("SELECT 1"))
