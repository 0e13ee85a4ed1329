"""What a roles file asks of privacy: k, l, cap and t, the rule, its traps and its leaves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from verix_anon.client.table.diversity import Asked, check_asked
from verix_anon.client.table.draft import USUAL_K, parse_roles
from verix_anon.client.table.edited import Change, edited, entries
from verix_anon.client.table.roles import TableRole
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Rule

__all__ = ["Protection", "protected", "protection"]

HIDDEN = (TableRole.TARGET, TableRole.SENSITIVE)
USUAL = {"rule": Rule.IMPORTANCE_SPREAD.value, "traps": "adaptive", "min_leaf": "k"}
LARGEST_K = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """What is chosen."""

    k: int = USUAL_K
    contract: Mapping[str, str] = field(default_factory=lambda: dict(USUAL))
    """`rule`, `traps` and `min_leaf`."""
    hidden: Asked = field(default_factory=dict)
    """What every class must hide, of the target and of each sensitive column; nothing of some."""
    target: str | None = None

    @property
    def of_target(self) -> int:
        """The l of the target."""
        return int(self.hidden.get(self.target or "", {}).get("l", 1))


def protection(text: str, beside: Path) -> Protection:
    """What a roles file says, which lies in that folder."""
    declared = parse_roles(text, beside)
    found = {(*e.section, e.name): e.value for e in entries(text) if e.name is not None}
    columns = [name for role, name in declared.named() if role in HIDDEN]
    k = found.get(("k",), USUAL_K)
    return Protection(
        k=k if isinstance(k, int) else USUAL_K,
        contract={name: str(found.get(("contract", name), usual)) for name, usual in USUAL.items()},
        hidden={name: dict(declared.diversity.get(name, {})) for name in columns},
        target=declared.target,
    )


def protected(text: str, wanted: Protection, beside: Path) -> str:
    """The roles file with what is chosen in it.

    Raises:
        TableError: It is not within reason.
    """
    if not 2 <= wanted.k <= LARGEST_K:
        raise TableError("k must be a whole number, 2 or more")
    before = protection(text, beside)
    declared = parse_roles(text, beside)
    check_asked(wanted.hidden, {name: role.value for role, name in declared.named()})
    return edited(text, dict(_changes(before, wanted)))


def _changes(before: Protection, wanted: Protection) -> Iterator[tuple[tuple[str, ...], Change]]:
    if wanted.k != before.k:
        yield ("k",), Change(wanted.k)
    for name, value in wanted.contract.items():
        if value != before.contract[name]:
            is_number = name == "min_leaf" and value.isdecimal()
            yield ("contract", name), Change(int(value) if is_number else value)
    for name, measures in wanted.hidden.items():
        if measures != before.hidden.get(name, {}):
            asked = {m: int(v) if m == "l" else v for m, v in measures.items()}
            yield ("diversity", name), Change(asked or None)
