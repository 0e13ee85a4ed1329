"""How Alembic runs: on the connection, and in the transaction, that `Database.migrate` gives it."""

from alembic import context

from verix_anon.service.database import Schema


def run() -> None:
    """Bring the schema up to date."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=Schema.metadata,
        # SQLite changes a schema within a transaction too; Alembic believes it does not.
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


# The name by which Alembic loads this file.
if __name__ == "env_py":
    run()
