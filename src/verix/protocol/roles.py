"""Which column is what: every column of the owner's table has a declared role (spec §2)."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from verix.errors import TableError
from verix.protocol.contract import Kind

__all__ = ["Declared", "Missing", "TableRole"]


class TableRole(StrEnum):
    """What a column of the owner's table is; only `quasi` and `target` are ever sent."""

    IDENTIFIER = "identifier"
    KEPT = "kept"
    SENSITIVE = "sensitive"
    QUASI = "quasi"
    TARGET = "target"


class Missing(StrEnum):
    """What to do with missing values of quasi-identifiers."""

    IMPUTE = "impute"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the owner says of the table's columns; `quasi="all"` takes all that are not named."""

    target: str
    quasi: Sequence[str] | str
    identifiers: Sequence[str] = ()
    kept: Sequence[str] = ()
    sensitive: Sequence[str] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    positive: str | None = None
    missing: Missing = Missing.IMPUTE

    def roles(self, names: Sequence[str]) -> dict[str, TableRole]:
        """The role of each column, in table order; raises unless each has exactly one."""
        declared: dict[str, TableRole] = {}
        for role, chosen in self._chosen():
            for name in chosen:
                _check_known(name, names)
                if name in declared:
                    raise TableError(
                        f"column {name!r} is declared twice: {declared[name]} and {role}"
                    )
                declared[name] = role
        for name in (*self.kinds, *self.orders):
            _check_known(name, names)
        rest = [name for name in names if name not in declared]
        if self.quasi == "all":
            declared |= dict.fromkeys(rest, TableRole.QUASI)
        elif rest:
            raise TableError(
                f"no role is declared for {_listed(rest)}; declare each as quasi, identifier,"
                ' kept or sensitive (quasi="all", or --quasi all, takes all that are left)'
            )
        if TableRole.QUASI not in declared.values():
            raise TableError("no column is declared as a quasi-identifier; name at least one")
        return {name: declared[name] for name in names}

    def _chosen(self) -> list[tuple[TableRole, Sequence[str]]]:
        if isinstance(self.quasi, str) and self.quasi != "all":
            raise TableError(f'quasi must be a list of columns or "all", not {self.quasi!r}')
        return [
            (TableRole.TARGET, [self.target]),
            (TableRole.QUASI, [] if self.quasi == "all" else self.quasi),
            (TableRole.IDENTIFIER, self.identifiers),
            (TableRole.KEPT, self.kept),
            (TableRole.SENSITIVE, self.sensitive),
        ]


def _check_known(name: str, names: Sequence[str]) -> None:
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"the columns are {_listed(names)}"
        raise TableError(f"there is no column {name!r}; {hint}")


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
