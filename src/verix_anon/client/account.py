"""What an audit was about: whose table, what of it was sent and how, how many records (spec §10).

The verdict keeps it, so that a report needs no manifest. It has no value and no record's place.
"""

from dataclasses import dataclass
from enum import StrEnum

from verix_anon.client.parties import Parties
from verix_anon.client.table.roles import TableRole
from verix_anon.fields import Fields

__all__ = ["Account", "Form", "SentColumn"]


class Form(StrEnum):
    """How the provider saw a column."""

    CODED = "coded"
    """Each value as its place among those that occur."""
    CLEAR = "clear"
    NEVER = "never sent"


@dataclass(frozen=True, slots=True)
class SentColumn:
    """A column of the owner's table, and what the provider saw of it."""

    name: str
    role: TableRole
    form: Form


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What was submitted, in words and counts."""

    parties: Parties
    columns: tuple[SentColumn, ...]
    """In the order of the owner's table."""
    genuine: int
    sentinels: int
    twins: int
    seen: tuple[str, ...]
    """What the provider sees in all, and what that is worth."""

    def to_json(self) -> dict[str, object]:
        """The account as JSON values."""
        return {
            "parties": self.parties.to_json(),
            "columns": [
                {"name": c.name, "role": c.role.value, "form": c.form.value} for c in self.columns
            ],
            "genuine": self.genuine,
            "sentinels": self.sentinels,
            "twins": self.twins,
            "seen": list(self.seen),
        }

    @classmethod
    def from_json(cls, found: Fields) -> "Account":
        """Read it back."""
        counts = range(2**63)
        return cls(
            parties=Parties.from_json(found.inner("parties")),
            columns=tuple(
                SentColumn(
                    each.text("name"), each.choice("role", TableRole), each.choice("form", Form)
                )
                for each in found.each("columns")
            ),
            genuine=found.whole("genuine", counts),
            sentinels=found.whole("sentinels", counts),
            twins=found.whole("twins", counts),
            seen=found.texts("seen"),
        )
