"""The first tables."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "first"
down_revision = None


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "tenants",
        sa.Column("name", sa.String, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_tenants"),
    )
    op.create_table(
        "tokens",
        *_columns(sa.String, "id", "digest", "role"),
        sa.Column("tenant", sa.String),
        sa.Column("created", sa.Double, nullable=False),
        *_columns(sa.Double, "expires", "revoked", nullable=True),
        sa.ForeignKeyConstraint(["tenant"], ["tenants.name"], name="fk_tokens_tenant"),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("digest", name="uq_tokens_digest"),
    )
    _make_jobs()
    _make_files("files", sa.Column("is_complete", sa.Boolean, nullable=False))
    _make_files("delivered")


def _columns(
    kind: type[sa.types.TypeEngine[Any]], *names: str, nullable: bool = False
) -> Iterator[sa.Column[Any]]:
    return (sa.Column(name, kind, nullable=nullable) for name in names)


def _make_jobs() -> None:
    op.create_table(
        "jobs",
        *_columns(sa.String, "id", "tenant", "state"),
        sa.Column("key", sa.String),
        sa.Column("request", sa.String, nullable=False),
        *_columns(sa.BigInteger, "rows", "columns", "min_leaf"),
        sa.Column("engine", sa.String, nullable=False),
        *_columns(sa.Double, "created", "updated"),
        sa.Column("expires", sa.Double),
        sa.Column("retention", sa.Double, nullable=False),
        *_columns(sa.Double, "queued", "not_before", "started", "finished", nullable=True),
        *_columns(sa.BigInteger, "fence", "lost"),
        sa.Column("worker", sa.String),
        sa.Column("lease", sa.Double),
        sa.Column("stage", sa.String),
        *_columns(sa.BigInteger, "done", "total", nullable=True),
        *_columns(sa.String, "code", "detail", "root", nullable=True),
        sa.ForeignKeyConstraint(["tenant"], ["tenants.name"], name="fk_jobs_tenant"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.UniqueConstraint("tenant", "key", name="uq_jobs_tenant"),
    )
    op.create_index("ix_jobs_created", "jobs", ["created", "id"])
    op.create_index("ix_jobs_state", "jobs", ["state", "not_before"])


def _make_files(table: str, *more: sa.Column[bool]) -> None:
    op.create_table(
        table,
        *_columns(sa.String, "job", "name"),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.String, nullable=False),
        *more,
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name=f"fk_{table}_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", "name", name=f"pk_{table}"),
    )
