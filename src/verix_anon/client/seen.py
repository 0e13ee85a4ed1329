"""What the provider sees of a table: in words, before anything is sent and after (spec §2)."""

from verix_anon.client.account import Account, Form, SentColumn
from verix_anon.client.manifest import Manifest
from verix_anon.client.table.roles import TableRole
from verix_anon.client.table.task import Task
from verix_anon.protocol.contract import MAX_SCORE, Contract, Rule

__all__ = ["account_of", "parted", "seen", "taken"]

PARTED = {
    Form.CODED: "Sent as positions",
    Form.CLEAR: "Sent as they are",
    Form.NEVER: "Kept back, joined at release",
}


def taken(manifest: Manifest) -> str:
    """What the target was taken for."""
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
    """What becomes of the columns: each name under what is done with it."""
    found: dict[str, list[str]] = {"Dropped for good": []}
    for name, given in manifest.roles.items():
        role = TableRole(given)
        is_dropped = role is TableRole.IDENTIFIER
        what = "Dropped for good" if is_dropped else PARTED[_form(role, manifest.contract)]
        found.setdefault(what, []).append(name)
    return found


def seen(contract: Contract) -> list[str]:
    """What the submission shows, and what that is worth; true of whoever gets hold of it."""
    n_quasi = len(contract.quasi)
    if not contract.is_coded:
        return [f"The provider sees the names and values of {n_quasi} columns, and every label."]
    by_target = contract.rule is Rule.VARIANCE_REDUCTION
    labels = "but which of two classes each record has" if by_target else "no label"
    weights = ", and how much each tells about the target" if _tell(contract) else ""
    worth = (
        "It still sees how many distinct values each column has, their order and their joint"
        f" distribution{weights}. Whoever knows some hundreds of rows of the same population can"
        " name the columns and most values; whoever sees the release can put values to nearly all"
        " positions. It is pseudonymous data: this protects against a glance, a leaked file and a"
        " provider that knows nothing of the population, and replaces neither a contract with the"
        " provider nor encryption."
    )
    return [
        f"The provider sees {n_quasi} columns as positions, without names; no value, {labels}.",
        worth,
    ]


def account_of(manifest: Manifest) -> Account:
    """What a verdict says of the submission that it judges the delivery of."""
    return Account(
        parties=manifest.parties,
        columns=tuple(
            SentColumn(name, TableRole(role), _form(TableRole(role), manifest.contract))
            for name, role in manifest.roles.items()
        ),
        genuine=manifest.n_genuine,
        sentinels=int(manifest.sentinel_row.size),
        twins=len(manifest.twin_row),
        seen=tuple(seen(manifest.contract)),
    )


def _form(role: TableRole, contract: Contract) -> Form:
    is_sent = role is TableRole.QUASI or (role is TableRole.TARGET and contract.target is not None)
    if not is_sent:
        return Form.NEVER
    return Form.CODED if contract.is_coded else Form.CLEAR


def _tell(contract: Contract) -> bool:
    """Whether the weights say more than the sizes of the columns do."""
    return any(
        column.weight not in (None, max(1, MAX_SCORE // max(1, (column.size or 1) - 1)))
        for column in contract.quasi
    )
