"""What the provider sees of a table: in words, before anything is sent and after (spec §2)."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from verix_anon.client.account import Account, Form, SentColumn
from verix_anon.client.given import FilePath
from verix_anon.client.manifest import Manifest
from verix_anon.client.table.draft import read_options, read_roles
from verix_anon.client.table.roles import TableRole
from verix_anon.client.table.task import Task
from verix_anon.errors import TableError
from verix_anon.files.hashed import RECORDS
from verix_anon.protocol.contract import MAX_SCORE, Contract, Rule

__all__ = [
    "DROPPED",
    "PARTED",
    "Glimpse",
    "account_of",
    "foreseen",
    "glimpse",
    "parted",
    "seen",
    "taken",
]

GLIMPSED = 5
DROPPED = "Dropped for good"
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
    forms = {role: _form(role, manifest.contract) for role in TableRole}
    return _parted({name: TableRole(role) for name, role in manifest.roles.items()}, forms)


def foreseen(path: FilePath) -> dict[str, list[str]]:
    """The same of a table that is not prepared yet, by its roles file."""
    _, declared = read_roles(path)
    options = read_options(path)
    sent = Form.CLEAR if options.get("clear") else Form.CODED
    forms = dict.fromkeys(TableRole, Form.NEVER) | {TableRole.QUASI: sent}
    if options.get("rule") == Rule.VARIANCE_REDUCTION:
        forms[TableRole.TARGET] = sent
    return _parted({name: role for role, name in declared.named()}, forms)


def _parted(
    roles: Mapping[str, TableRole], forms: Mapping[TableRole, Form]
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {DROPPED: []}
    for name, role in roles.items():
        what = DROPPED if role is TableRole.IDENTIFIER else PARTED[forms[role]]
        found.setdefault(what, []).append(name)
    return found


class Glimpse(NamedTuple):
    """The beginning of what the provider gets."""

    n_rows: int
    names: list[str]
    rows: list[list[str]]


def glimpse(submission: Path) -> Glimpse:
    """The first records of a submission, as they are sent; of a file its beginning is read."""
    try:
        with pq.ParquetFile(submission / RECORDS) as file:
            batch = next(file.iter_batches(batch_size=GLIMPSED), None)
            n_rows = file.metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        raise TableError(f"the submission {submission} cannot be read ({error})") from None
    if batch is None:
        return Glimpse(n_rows, [], [])
    rows = [[_shown(value) for value in row.values()] for row in batch.to_pylist()]
    return Glimpse(n_rows, batch.schema.names, rows)


def _shown(value: object) -> str:
    return f"{value[:4].hex()}…" if isinstance(value, bytes) else str(value)


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
