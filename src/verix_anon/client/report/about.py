"""What the audit was about: table and parties, columns and what was sent of them, records."""

from dataclasses import dataclass

from verix_anon.client.account import Account, Form, SentColumn
from verix_anon.client.report.reading import clean
from verix_anon.client.table.roles import TableRole

__all__ = ["About", "about", "counted"]

MOST_COLUMNS = 200
SENT = {
    Form.CODED: "coded: each value as its place, without its column's name",
    Form.CLEAR: "clear: names and values as they are",
    Form.NEVER: "never sent",
}
CODED_TARGET = "coded: which of two classes, without their names"
RELEASED = {
    TableRole.IDENTIFIER: "dropped for good",
    TableRole.QUASI: "generalized",
    TableRole.KEPT: "as it is",
    TableRole.SENSITIVE: "as it is",
    TableRole.TARGET: "as it is",
}


@dataclass(frozen=True, slots=True)
class About:
    """An account as the page shows it."""

    parties: list[tuple[str, str]]
    counts: list[tuple[str, str]]
    columns: list[tuple[str, str, str, str]]
    """Name, role, what was sent, what a release does with it."""
    n_more: int
    """Columns beyond those that are shown."""
    dropped: list[str]
    seen: list[str]


def about(account: Account) -> About:
    """All that the page says of a submission."""
    parties, shown = account.parties, account.columns[:MOST_COLUMNS]
    return About(
        parties=[
            ("table", clean(parties.table_name, 200)),
            ("controller", clean(parties.controller, 200)),
            ("processor", clean(parties.processor, 200)),
        ],
        counts=[
            ("genuine records", f"{account.genuine:,}"),
            ("sentinels", f"{account.sentinels:,}"),
            ("twins", f"{account.twins:,}"),
        ],
        columns=[(clean(c.name), c.role.value, _sent(c), RELEASED[c.role]) for c in shown],
        n_more=len(account.columns) - len(shown),
        dropped=[clean(c.name) for c in shown if c.role is TableRole.IDENTIFIER],
        seen=[clean(line, 900) for line in account.seen],
    )


def _sent(column: SentColumn) -> str:
    is_target = column.role is TableRole.TARGET and column.form is Form.CODED
    return CODED_TARGET if is_target else SENT[column.form]


def counted(account: Account) -> str:
    """Genuine records and traps, apart."""
    n_traps = account.sentinels + account.twins
    planted = f"{n_traps:,} traps planted among them" if n_traps else "no traps"
    return f"{account.genuine:,} genuine records, {planted}"
