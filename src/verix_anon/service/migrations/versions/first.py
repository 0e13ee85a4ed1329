"""The first tables."""

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
        sa.Column("id", sa.String, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("tenant", sa.String),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("expires", sa.Double),
        sa.Column("revoked", sa.Double),
        sa.ForeignKeyConstraint(["tenant"], ["tenants.name"], name="fk_tokens_tenant"),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("digest", name="uq_tokens_digest"),
    )
    _make_jobs()
    _make_files("files", sa.Column("is_complete", sa.Boolean, nullable=False))
    _make_files("delivered")


def _make_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("key", sa.String),
        sa.Column("request", sa.String, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("columns", sa.BigInteger, nullable=False),
        sa.Column("min_leaf", sa.BigInteger, nullable=False),
        sa.Column("engine", sa.String, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("updated", sa.Double, nullable=False),
        sa.Column("expires", sa.Double),
        sa.Column("retention", sa.Double, nullable=False),
        sa.Column("queued", sa.Double),
        sa.Column("not_before", sa.Double),
        sa.Column("started", sa.Double),
        sa.Column("finished", sa.Double),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("lost", sa.BigInteger, nullable=False),
        sa.Column("worker", sa.String),
        sa.Column("lease", sa.Double),
        sa.Column("stage", sa.String),
        sa.Column("done", sa.BigInteger),
        sa.Column("total", sa.BigInteger),
        sa.Column("code", sa.String),
        sa.Column("detail", sa.String),
        sa.Column("root", sa.String),
        sa.ForeignKeyConstraint(["tenant"], ["tenants.name"], name="fk_jobs_tenant"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.UniqueConstraint("tenant", "key", name="uq_jobs_tenant"),
    )
    op.create_index("ix_jobs_created", "jobs", ["created", "id"])
    op.create_index("ix_jobs_state", "jobs", ["state", "not_before"])


def _make_files(table: str, *more: sa.Column[bool]) -> None:
    op.create_table(
        table,
        sa.Column("job", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.String, nullable=False),
        *more,
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name=f"fk_{table}_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", "name", name=f"pk_{table}"),
    )
