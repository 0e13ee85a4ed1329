"""Declare the role of every column of the owner's table (spec §2)."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from verix_anon.client.arguments import check_fields
from verix_anon.client.table.columns import Derived
from verix_anon.client.table.hierarchies import DATE, Hierarchy
from verix_anon.client.table.task import TableRole, Task
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Kind

Asked = Mapping[str, Mapping[str, float]]
"""For each column its measures, and how much of each."""


class Measure(StrEnum):
    """What can be asked of how a class hides a column."""

    L = "l"
    """At least so many distinct values."""
    CAP = "cap"
    """At most this share of one value."""
    T = "t"
    """At most this distance to the whole table."""


def check_asked(asked: Asked, roles: Mapping[str, str]) -> None:
    """Raise TableError unless it is asked of the target and sensitive columns, within reason."""
    for name, measures in asked.items():
        if name not in roles:
            raise TableError(f"there is no column {name!r} to ask l, cap or t of")
        if roles[name] not in ("target", "sensitive"):
            raise TableError(
                f"column {name!r} is declared as {roles[name]}; l, cap and t are for the target and"
                " for sensitive columns"
            )
        for measure, value in measures.items():
            if measure not in set(Measure):
                raise TableError(f"column {name!r} is asked for {measure!r}, not l, cap or t")
            if problem := _problem(measure, value):
                raise TableError(f"{measure} of column {name!r} must be {problem}, not {value!r}")


def _problem(measure: str, value: float) -> str | None:
    match measure:
        case Measure.L if not (value >= 1 and float(value).is_integer()):
            return "a whole number of values, 1 or more"
        case Measure.CAP if not 0 < value <= 1:
            return "a share above 0, at most 1"
        case Measure.T if not 0 <= value <= 1:
            return "a distance from 0 to 1"
    return None


SENT = frozenset({TableRole.QUASI, TableRole.TARGET})
ATTRIBUTES = frozenset({TableRole.TARGET, TableRole.KEPT, TableRole.SENSITIVE})
"""Whose columns are published as they are."""


class Missing(StrEnum):
    """What to do with missing values of quasi-identifiers; each but `error` sends imputed ones.

    Examples:
        >>> roles = verix_anon.Declared(quasi="all", missing=verix_anon.Missing.IMPUTE)
    """

    MARK = "mark"
    IMPUTE = "impute"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the owner says of the table's columns; `quasi="all"` takes all that are not named.

    One name may stand for a list of one, and a kind or `missing` may be given as text.

    Examples:
        >>> roles = verix_anon.Declared(target="income", quasi="all", kept="commute_km")
    """

    target: str | None = None
    quasi: Sequence[str] | str = ()
    identifier: Sequence[str] | str = ()
    kept: Sequence[str] | str = ()
    sensitive: Sequence[str] | str = ()
    kinds: Mapping[str, Kind | str] = field(default_factory=dict)
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hierarchies: Mapping[str, Hierarchy | str] = field(default_factory=dict)
    """Names for groups of values: `prefix`, `date`, or a hierarchy or its file."""
    positive: object = None
    """As it stands in the table, or as a label."""
    missing: Missing | str = Missing.MARK
    task: Task | str | None = None
    """What the target is good for; None: what it looks like."""
    person: str | None = None
    """The column that tells people apart, or `record`; None: nothing was said."""
    pseudonym: str | None = None
    """The column that a release adds, with a fresh random number for each person."""
    derived: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Columns that are made of others; those are identifiers unless they have a role."""
    diversity: Asked = field(default_factory=dict)
    """What every class must hide of the target and of sensitive columns: `l`, `cap`, `t`."""
    release: Mapping[str, object] = field(default_factory=dict)
    """What release() does unless it is told otherwise: `round`, `top_code`, `bins`, `drop`,
    `suppress`."""

    def __post_init__(self) -> None:
        check_fields(self)
        found = {name: Hierarchy.of(given) for name, given in self.hierarchies.items()}
        object.__setattr__(self, "hierarchies", found)

    def hierarchy(self, name: str) -> Hierarchy:
        """The one of a column that has one."""
        return Hierarchy.of(self.hierarchies[name])

    @property
    def made(self) -> dict[str, Derived]:
        """The derived columns; raises TableError if one cannot be."""
        return {name: Derived.of(name, given) for name, given in self.derived.items()}

    def naming(self, roles: Mapping[str, TableRole]) -> dict[str, TableRole]:
        """The roles, without columns that are dropped only because others are made of them."""
        said, sources = {name for _, name in self.named()}, {m.source for m in self.made.values()}
        return {name: role for name, role in roles.items() if name in said or name not in sources}

    def roles(self, names: Sequence[str]) -> dict[str, TableRole]:
        """The role of each column, in table order; raises unless each has exactly one."""
        declared = self._named(names)
        sources = {made.source for made in self.made.values()}.intersection(names)
        declared = dict.fromkeys(sources, TableRole.IDENTIFIER) | declared
        rest = [name for name in names if name not in declared]
        if self._takes_all:
            declared |= dict.fromkeys(rest, TableRole.QUASI)
        elif rest:
            raise TableError(
                f"no role is declared for {_listed(rest)}; declare each as quasi, identifier,"
                ' kept or sensitive (quasi="all", or --quasi all, takes all that are left)'
            )
        if TableRole.QUASI not in declared.values():
            raise TableError("no column is declared as a quasi-identifier; name at least one")
        self._check_readings(declared)
        check_asked(self.diversity, declared)
        return {name: declared[name] for name in names}

    def kind(self, name: str) -> Kind | None:
        """The kind declared for a column, by itself or by an order, if one is."""
        if name in self.kinds:
            return Kind(self.kinds[name])
        if name in self.hierarchies:
            is_date = self.hierarchy(name).kind == DATE
            return Kind.DATETIME if is_date else Kind.CATEGORICAL
        return Kind.CATEGORICAL if self.orders.get(name) is not None else None

    @property
    def _takes_all(self) -> bool:
        # An array of names would compare name by name.
        return isinstance(self.quasi, str) and self.quasi == "all"

    def _named(self, names: Sequence[str]) -> dict[str, TableRole]:
        """The roles of the columns that are declared by name; all names must exist."""
        known = frozenset(names)
        declared: dict[str, TableRole] = {}
        for role, name in self.named():
            if name not in known:
                raise unknown_column(name, names)
            if name in declared:
                raise TableError(f"column {name!r} is declared twice: {declared[name]} and {role}")
            declared[name] = role
        for name in (*self.kinds, *self.orders, *self.hierarchies):
            if name not in known:
                raise unknown_column(name, names)
        return declared

    def named(self) -> Iterator[tuple[TableRole, str]]:
        """Each column that is declared by name, with its role."""
        chosen: list[tuple[TableRole, Sequence[str] | str]] = [
            (TableRole.TARGET, [] if self.target is None else [self.target]),
            (TableRole.QUASI, [] if self._takes_all else self.quasi),
            (TableRole.IDENTIFIER, self.identifier),
            (TableRole.KEPT, self.kept),
            (TableRole.SENSITIVE, self.sensitive),
        ]
        for role, names in chosen:
            for name in [names] if isinstance(names, str) else names:
                yield role, name

    def _check_readings(self, roles: Mapping[str, TableRole]) -> None:
        """How to read a column is said only of sent ones, and without contradiction."""
        for name in self.hierarchies:
            if roles[name] is not TableRole.QUASI:
                raise TableError(
                    f"column {name!r} is declared as {roles[name]}; a hierarchy is for"
                    " quasi-identifiers, which are generalized"
                )
        for name in (*self.kinds, *self.orders):
            if roles[name] not in SENT:
                what = "kind" if name in self.kinds else "order"
                raise TableError(
                    f"column {name!r} is declared as {roles[name]} and is not sent;"
                    f" leave out its {what}, which only quasi-identifiers and the target have"
                )
            kind = self.kind(name)
            if self.orders.get(name) is None:
                continue
            if name in self.hierarchies:
                raise TableError(
                    f"column {name!r} has an order and a hierarchy, which orders it too;"
                    " leave out one of the two"
                )
            if kind is not Kind.CATEGORICAL:
                raise TableError(
                    f"column {name!r} is declared {kind}, but an order is for categorical"
                    " columns; leave out one of the two"
                )


def unknown_column(name: str, names: Sequence[str]) -> TableError:
    """The error for a name that no column has."""
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the columns are {_listed(names)}"
    return TableError(f"there is no column {name!r}; {hint}")


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
