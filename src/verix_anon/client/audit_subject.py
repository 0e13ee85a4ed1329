"""What an audit was about: whose table, what of it was sent and how, how many records (spec §10).

The owner reads it in words before anything is sent (spec §2). The verdict keeps it, so that a
report needs no manifest. It has no value and no record's place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from verix_anon.client.manifest import Manifest, Parties
from verix_anon.client.table.task import TableRole, Task
from verix_anon.fields import counted
from verix_anon.protocol.contract import MAX_SCORE, Contract, Rule


class SentForm(StrEnum):
    """How the provider saw a column."""

    CODED = "coded"
    """Each value as its place among those that occur."""
    CLEAR = "clear"
    NEVER = "never sent"


DROPPED = "Dropped for good"
PARTED = {
    SentForm.CODED: "Sent as positions",
    SentForm.CLEAR: "Sent as they are",
    SentForm.NEVER: "Kept back, joined at release",
}


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
    """Say what a verdict tells about the submission that the delivery answers."""
    return Account(
        parties=manifest.parties,
        columns=tuple(
            SentColumn(name, TableRole(role), _sent_form(TableRole(role), manifest.contract))
            for name, role in manifest.roles.items()
        ),
        genuine=manifest.n_genuine,
        sentinels=int(manifest.sentinel_row.size),
        twins=len(manifest.twin_row),
        seen=tuple(seen(manifest.contract)),
    )


def _sent_form(role: TableRole, contract: Contract) -> SentForm:
    """How the provider sees columns of a role."""
    is_sent = role is TableRole.QUASI or (role is TableRole.TARGET and contract.target is not None)
    if not is_sent:
        return SentForm.NEVER
    return SentForm.CODED if contract.is_coded else SentForm.CLEAR


def taken(manifest: Manifest) -> str:
    """Say how the target was understood."""
    classes = manifest.classes
    match manifest.task:
        case Task.NONE:
            return "There is no target to preserve."
        case Task.QUANTITY:
            return f"The target {manifest.target!r} is taken as a quantity."
    if len(classes) == 2:
        return f"The target {manifest.target!r} has two classes; {classes[1]!r} is class 1."
    return f"The target {manifest.target!r} has {len(classes):,} classes."


def parted(manifest: Manifest) -> dict[str, list[str]]:
    """Group the names of columns by what happens to them."""
    forms = {role: _sent_form(role, manifest.contract) for role in TableRole}
    return parted_by({name: TableRole(role) for name, role in manifest.roles.items()}, forms)


def parted_by(
    roles: Mapping[str, TableRole], forms: Mapping[TableRole, SentForm]
) -> dict[str, list[str]]:
    """Group names of columns by what happens to them, from their roles and what is sent of each."""
    found: dict[str, list[str]] = {DROPPED: []}
    for name, role in roles.items():
        what = DROPPED if role is TableRole.IDENTIFIER else PARTED[forms[role]]
        found.setdefault(what, []).append(name)
    return found
