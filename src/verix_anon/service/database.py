"""Where the service keeps its state: SQLite in WAL mode, or PostgreSQL by URL.

All times are the database's own, in seconds since 1970: processes whose clocks differ agree on when
a lease has run out.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship
from sqlalchemy.sql.functions import FunctionElement

from verix_anon.errors import ProviderError
from verix_anon.protocol.providers import JobState

if TYPE_CHECKING:
    from alembic.config import Config


DatabaseError = DBAPIError
"""Raised when the database does not answer or cannot write"""
BUSY_SECONDS = 30
"""How long a writer waits for another writer, in SQLite"""
# Of a PostgreSQL that vanishes, whose connections a system would keep for a quarter of an hour.
DEADLINES = {"connect_timeout": "10", "tcp_user_timeout": "30000", "keepalives_idle": "30"}
MIGRATION_LOCK = 0x7665726978
"""A lock of PostgreSQL: one process at a time brings the schema up to date."""


class now(FunctionElement[float]):  # noqa: N801, because it is used as a function of SQL
    """The database's time, in seconds since 1970."""

    type = sa.Double()
    inherit_cache = True


@compiles(now, "sqlite")
def _now_sqlite(*_: Any, **__: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _now_postgresql(*_: Any, **__: Any) -> str:
    # now() is when the transaction began, but a claim may have waited for a lock since.
    return "extract(epoch from clock_timestamp())::float8"


def database_time(session: Session) -> float:
    """Return the database's time, in seconds since 1970."""
    return float(session.scalars(sa.select(now())).one())


class _StateText(sa.TypeDecorator[JobState]):
    """A job's state, which is stored as text."""

    impl = sa.String
    cache_ok = True

    def process_result_value(self, value: str | None, dialect: Dialect) -> JobState | None:
        return None if value is None else JobState(value)


class Schema(DeclarativeBase):
    """The tables; `migrations/` makes them."""

    metadata = sa.MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ix": "ix_%(table_name)s_%(column_0_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012, as SQLAlchemy has it
        int: sa.BigInteger,
        float: sa.Double,
        JobState: _StateText,
    }


class TenantRow(Schema):
    """An owner of data; tenants see nothing of each other."""

    __tablename__ = "tenants"
    name: Mapped[str] = mapped_column(primary_key=True)
    created: Mapped[float]
    served: Mapped[float | None]
    """When a worker last took up a job of this tenant"""


class TokenRow(Schema):
    """A token by which a tenant or the operator is recognized."""

    __tablename__ = "tokens"
    id: Mapped[str] = mapped_column(primary_key=True)
    """Names the token in lists and commands, and reveals nothing about it"""
    digest: Mapped[str] = mapped_column(unique=True)
    """SHA-256 of the token"""
    role: Mapped[str]
    tenant: Mapped[str | None] = mapped_column(sa.ForeignKey("tenants.name"))
    """None if it is the operator's"""
    created: Mapped[float]
    expires: Mapped[float | None]
    revoked: Mapped[float | None]


class JobProgress(NamedTuple):
    """How far the work on a job has come."""

    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a job failed."""

    code: str
    detail: str


class JobRow(Schema):
    """A job: what was requested, how far it is, and which worker has it now.

    A row that was read does not change later. It holds the files only if the query asked for them,
    because a job may have thousands.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        sa.UniqueConstraint("tenant", "key"),
        sa.Index(None, "state", "not_before"),
        sa.Index(None, "created", "id"),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(sa.ForeignKey("tenants.name"))
    state: Mapped[JobState]
    key: Mapped[str | None]
    """The Idempotency-Key"""
    request: Mapped[str]
    """SHA-256 of the request that came with the key"""
    rows: Mapped[int]
    columns: Mapped[int]
    """Quasi-identifiers"""
    min_leaf: Mapped[int]
    bytes: Mapped[int] = mapped_column(default=0)
    """The size of all announced files; of the delivery's files when the job is done"""
    missing: Mapped[int] = mapped_column(default=0)
    """Bytes of the files that are not complete"""
    engine: Mapped[str]
    created: Mapped[float]
    updated: Mapped[float]
    expires: Mapped[float | None]
    """None while it waits or runs"""
    retention: Mapped[float]
    """How many seconds an ended job is kept"""
    queued: Mapped[float | None]
    not_before: Mapped[float | None]
    """When a queued job may be taken"""
    started: Mapped[float | None]
    finished: Mapped[float | None]
    fence: Mapped[int] = mapped_column(default=0)
    """Grows with every claim. A worker with an older number has lost the job. The delivery lies
    under the last number."""
    lost: Mapped[int] = mapped_column(default=0)
    """How many claims ended without a message"""
    worker: Mapped[str | None]
    lease: Mapped[float | None]
    """Until when the worker has the job"""
    stage: Mapped[str | None]
    done: Mapped[int | None]
    total: Mapped[int | None]
    code: Mapped[str | None]
    """Why it failed"""
    detail: Mapped[str | None]
    root: Mapped[str | None]
    files: Mapped[list["FileRow"]] = relationship(
        order_by="FileRow.name", lazy="raise", viewonly=True
    )
    delivered: Mapped[list["DeliveredRow"]] = relationship(
        order_by="DeliveredRow.name", lazy="raise", viewonly=True
    )

    @property
    def progress(self) -> JobProgress | None:
        """What its worker reported last, while a worker has the job."""
        if self.stage is None:
            return None
        return JobProgress(self.stage, self.done or 0, self.total or 0)

    @property
    def reason(self) -> Reason | None:
        """Why it failed, if it did."""
        return Reason(code=self.code, detail=self.detail or "") if self.code else None

    @property
    def delivery(self) -> "list[DeliveredRow] | None":
        """The files of its delivery, or None until it is done."""
        return self.delivered if self.state is JobState.DONE else None


class FileRow(Schema):
    """A file that a job's owner uploads."""

    __tablename__ = "files"
    job: Mapped[str] = mapped_column(sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[int]
    sha256: Mapped[str]
    is_complete: Mapped[bool] = mapped_column(default=False)


class DeliveredRow(Schema):
    """A file of a job's delivery."""

    __tablename__ = "delivered"
    job: Mapped[str] = mapped_column(sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[int]
    sha256: Mapped[str]


class ServerRow(Schema):
    """A running server, and what its supervisor found when it last looked."""

    __tablename__ = "servers"
    name: Mapped[str] = mapped_column(primary_key=True)
    seen: Mapped[float]
    workers: Mapped[int]
    """How many were alive"""
    is_storing: Mapped[bool]
    """Whether bytes could be written to the folder and to the store"""


class DailyRow(Schema):
    """How often something happened to a tenant's jobs on a day; `daily_counts` names the events."""

    __tablename__ = "daily"
    day: Mapped[int] = mapped_column(primary_key=True)
    """Days since 1970, in UTC"""
    tenant: Mapped[str] = mapped_column(primary_key=True)
    event: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int]
    bytes: Mapped[int]
    seconds: Mapped[float]


class Database:
    """Sessions that read or write; one object may serve many threads."""

    def __init__(self, url: str) -> None:
        parsed = sa.make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set("postgresql+psycopg", query={**DEADLINES, **parsed.query})
        # After a restart of the server the pool's connections are dead: each is tried first.
        self.engine = sa.create_engine(parsed, pool_pre_ping=True, hide_parameters=True)
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        if self.is_sqlite:
            sa.event.listen(self.engine, "connect", _prepare_sqlite)
            sa.event.listen(self.engine, "begin", _begin_sqlite)
        self._writing = self.engine.execution_options(is_writing=True)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Yield a session that sees one state of the database and does not change it."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Yield a session in a transaction, which is committed at its end or not at all."""
        with Session(self._writing, expire_on_commit=False) as session, session.begin():
            yield session

    def migrate(self) -> None:
        """Bring the schema up to date; processes that start together do so one by one.

        Raises:
            ProviderError: A later version of ours has changed it.
        """
        # Imported here: it takes a third of a worker's start, and workers do not need it.
        from alembic import command
        from alembic.util import CommandError

        with self._writing.begin() as connection:
            if not self.is_sqlite:
                connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            try:
                command.upgrade(migrations(connection), "head")
            except CommandError:
                raise ProviderError(
                    "the database was made by a later version of verix-anon: use that one"
                ) from None

    @classmethod
    def opened(cls, url: str) -> "Database":
        """Open the database, and bring its schema up to date.

        Raises:
            ProviderError: The URL is not valid, or no database answers there. The message does not
                repeat the URL, which may hold a password.
        """
        try:
            database = cls(url)
        except (ArgumentError, NoSuchModuleError, ImportError):
            raise ProviderError("the database's URL is not one of SQLite or PostgreSQL") from None
        try:
            database.close_to_others()
            database.migrate()
        except (DBAPIError, ProviderError) as error:
            database.close()
            if isinstance(error, ProviderError):
                raise
            raise ProviderError(
                "the database cannot be reached, its disk is full, or this user may not change it"
            ) from None
        return database

    def close_to_others(self) -> None:
        """Make SQLite's files readable for this user only, also those that existed before."""
        path = Path(self.engine.url.database or "")
        if self.is_sqlite and path.name:
            # SQLite gives the files beside the database the mode of the database.
            for each in (path, *path.parent.glob(f"{path.name}-*")):
                with suppress(OSError):
                    each.touch(0o600)
                    each.chmod(0o600)

    def close(self) -> None:
        """Close all connections that are not in use."""
        self.engine.dispose()


def migrations(connection: Connection) -> "Config":
    """Return Alembic's settings: the folder of the migrations, and the connection to migrate."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def _prepare_sqlite(connection: DBAPIConnection, _: object) -> None:
    # The driver would begin transactions by itself, and only before some statements.
    connection.isolation_level = None
    for pragma in (
        f"busy_timeout = {BUSY_SECONDS * 1000}",
        "journal_mode = WAL",
        # A change that a client was told of survives a power cut.
        "synchronous = FULL",
        "foreign_keys = ON",
    ):
        connection.cursor().execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A reader that became a writer would fail if another one had written since.
    is_writing = connection.get_execution_options().get("is_writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")
