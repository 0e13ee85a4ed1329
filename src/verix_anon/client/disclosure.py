"""What the provider sees of a table: in words, before anything is sent and after (spec §2)."""

from collections.abc import Mapping

from verix_anon.client.audit_subject import SentForm, sent_form
from verix_anon.client.manifest import Manifest
from verix_anon.client.table.task import TableRole, Task

DROPPED = "Dropped for good"
PARTED = {
    SentForm.CODED: "Sent as positions",
    SentForm.CLEAR: "Sent as they are",
    SentForm.NEVER: "Kept back, joined at release",
}


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
    forms = {role: sent_form(role, manifest.contract) for role in TableRole}
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
