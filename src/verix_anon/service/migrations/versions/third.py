"""Counts of each day, which outlive the jobs."""

import sqlalchemy as sa
from alembic import op

revision = "third"
down_revision = "second"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "daily",
        sa.Column("day", sa.BigInteger, nullable=False),
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("event", sa.String, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("day", "tenant", "event", name="pk_daily"),
    )
