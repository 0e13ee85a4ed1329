"""What an audit was about: whose table, what of it was sent and how, how many records (spec §10).

The verdict keeps it, so that a report needs no manifest. It has no value and no record's place.
"""

from dataclasses import dataclass
from enum import StrEnum

from verix_anon.client.manifest import Manifest, Parties
from verix_anon.client.table.task import TableRole
from verix_anon.fields import counted
from verix_anon.protocol.contract import MAX_SCORE, Contract, Rule


class SentForm(StrEnum):
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
    form: SentForm


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


def seen(contract: Contract) -> list[str]:
    """What the submission shows to anyone who holds it, and what that is worth."""
    n_quasi = counted(len(contract.quasi), "column")
    if not contract.is_coded:
        return [f"The provider sees the names and values of {n_quasi}, and every label."]
    by_target = contract.rule is Rule.VARIANCE_REDUCTION
    labels = "It sees which of two classes each record has" if by_target else "It sees no label"
    # Weights that are not those of the sizes alone are a model's or the owner's.
    by_size = [max(1, MAX_SCORE // max(1, (c.size or 1) - 1)) for c in contract.quasi]
    tells = any(c.weight not in (None, w) for c, w in zip(contract.quasi, by_size, strict=True))
    weights = " It also sees weights, from your priorities or from the target." if tells else ""
    worth = (
        "It still sees how many distinct values each column has, their order and how columns go"
        f" together.{weights} Anyone who knows some hundreds of rows of the same population can"
        " name the columns and most values. Anyone who sees the release can name nearly all values."
        " So this is pseudonymous data. It protects against a glance, a leaked file and a provider"
        " that knows nothing of the population. It replaces neither a contract nor encryption."
    )
    told = f"The provider sees {n_quasi} as positions, without names and values. {labels}."
    return [told, worth]


def account_of(manifest: Manifest) -> Account:
    """What a verdict says of the submission that it judges the delivery of."""
    return Account(
        parties=manifest.parties,
        columns=tuple(
            SentColumn(name, TableRole(role), sent_form(TableRole(role), manifest.contract))
            for name, role in manifest.roles.items()
        ),
        genuine=manifest.n_genuine,
        sentinels=int(manifest.sentinel_row.size),
        twins=len(manifest.twin_row),
        seen=tuple(seen(manifest.contract)),
    )


def sent_form(role: TableRole, contract: Contract) -> SentForm:
    """How the provider sees columns of a role."""
    is_sent = role is TableRole.QUASI or (role is TableRole.TARGET and contract.target is not None)
    if not is_sent:
        return SentForm.NEVER
    return SentForm.CODED if contract.is_coded else SentForm.CLEAR
