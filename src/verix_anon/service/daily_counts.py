"""What happened on each day, for every tenant; it is kept when the jobs are deleted.

A count grows in the transaction of the change that it counts, so the two cannot differ. Days are
UTC's, by the database's clock. A row holds a tenant's name, a word and three figures.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import delete, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import InstrumentedAttribute, Session

from verix_anon.service.database import DailyRow, Database, database_time

CREATED, RECEIVED, DELIVERED = "created", "received", "delivered"
FAILED, REFUSED = "failed: ", "refused: "
"""Each is followed by the code that says why"""
DELETED, EXPIRED = "deleted", "expired"
"""By the owner, and by the sweep"""
DAY = 86_400
WEEK = 7
KEPT_DAYS = 400


class Total(NamedTuple):
    """How often, and with how many bytes and seconds of work."""

    number: int
    bytes: int
    seconds: float


def count(
    session: Session,
    tenants: str | Iterable[str],
    event: str,
    *,
    n_bytes: int = 0,
    seconds: float = 0.0,
) -> None:
    """Count an event once for each tenant that is named."""
    # In one order, so that two transactions do not wait for each other.
    found = sorted(Counter([tenants] if isinstance(tenants, str) else tenants).items())
    if not found:
        return
    day = _today(session)
    rows = [
        {"day": day, "tenant": name, "event": event, "number": n, "bytes": n_bytes * n}
        | {"seconds": seconds * n}
        for name, n in found
    ]
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    insert = (sqlite.insert if is_sqlite else postgresql.insert)(DailyRow).values(rows)
    grown = {
        name: getattr(DailyRow, name) + insert.excluded[name]
        for name in ("number", "bytes", "seconds")
    }
    session.execute(
        insert.on_conflict_do_update(index_elements=["day", "tenant", "event"], set_=grown)
    )


def totals(
    database: Database,
    n_days: int,
    by: InstrumentedAttribute[str] = DailyRow.event,
    *,
    only: str = "",
) -> dict[str, Total]:
    """What the last days add up to, today included, for each event or each tenant.

    With `only`, of the events that begin with this word.
    """
    number, size = func.sum(DailyRow.number), func.sum(DailyRow.bytes)
    wanted = (
        select(by, number, size, func.sum(DailyRow.seconds))
        .where(DailyRow.event.startswith(only))
        .group_by(by)
        .order_by(by)
    )
    with database.read() as session:
        rows = session.execute(wanted.where(DailyRow.day > _today(session) - n_days)).all()
    return {key: Total(int(n), int(n_bytes), seconds) for key, n, n_bytes, seconds in rows}


def forget_old(session: Session) -> None:
    """Delete the counts of days that are long over."""
    session.execute(delete(DailyRow).where(DailyRow.day < _today(session) - KEPT_DAYS))


def _today(session: Session) -> int:
    """Days since 1970."""
    return int(database_time(session) // DAY)
