"""Servers that say how they are, the bytes of jobs, and whose turn it is."""

import sqlalchemy as sa
from alembic import op

revision = "second"
down_revision = "first"
COUNTED = (
    (
        "UPDATE jobs SET bytes = coalesce((SELECT sum(size) FROM files WHERE job = jobs.id), 0)"
        " WHERE state IN ('uploading', 'queued', 'running')"
    ),
    (
        "UPDATE jobs SET bytes = coalesce((SELECT sum(size) FROM delivered WHERE job = jobs.id), 0)"
        " WHERE state = 'done'"
    ),
    (
        "UPDATE jobs SET missing = coalesce("
        "(SELECT sum(size) FROM files WHERE job = jobs.id AND NOT is_complete), 0)"
    ),
)


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "servers",
        sa.Column("name", sa.String, nullable=False),
        sa.Column("seen", sa.Double, nullable=False),
        sa.Column("workers", sa.BigInteger, nullable=False),
        sa.Column("is_storing", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_servers"),
    )
    for name in ("bytes", "missing"):
        op.add_column("jobs", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("tenants", sa.Column("served", sa.Double))
    for statement in COUNTED:
        op.execute(statement)
