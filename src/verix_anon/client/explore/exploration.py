"""What explore() found: one row for each setting, as numbers and as words."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from verix_anon.client.arguments import FilePath
from verix_anon.client.notebook import as_list, as_table
from verix_anon.client.prepare.options import PrepareOptions
from verix_anon.client.privacy_sheet import ColumnLoss, losses_of
from verix_anon.client.table.roles_file import read_reading, read_roles
from verix_anon.errors import TableError
from verix_anon.fields import Fields, to_json
from verix_anon.protocol.contract import Rule

FORMAT = "verix/exploration/1"
COUNTS = range(1, 2**53)
TITLES = {
    "f1": "F1",
    "macro_f1": "macro F1",
    "auc": "AUC",
    "r2": "R2",
    "mean_absolute_error": "mean error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """One setting, and what its release would be like.

    Examples:
        >>> engine = verix_anon.LocalProvider()
        >>> row = verix_anon.explore("people.csv", "roles.toml", provider=engine).rows[0]
        >>> row.k_reached >= row.k
        True
    """

    k: int
    rule: str
    l: int  # noqa: E741
    """Of the target."""
    is_chosen: bool
    """Whether it is the setting of the roles file."""
    k_reached: int
    """The people in the smallest class."""
    classes: int
    prosecutor_max: float
    """The chance that a record picked for somebody known to be in the table is that person's."""
    prosecutor_mean: float
    ncp: float
    """How much is lost of a value: 0 nothing, 1 all."""
    same_target: float
    """Share of the records in classes of one label."""
    scores: Mapping[str, float]
    """The scores of a model trained on the release, by measure; empty without a target."""
    losses: tuple[ColumnLoss, ...] = ()
    """What is left of each quasi-identifier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """The settings that were tried on one table.

    Examples:
        >>> roles = {"target": "income", "quasi": "all"}
        >>> found = verix_anon.explore("people.csv", roles, provider=verix_anon.LocalProvider())
        >>> [row.k for row in found.rows if row.is_chosen]
        [5]
    """

    rows: tuple[Explored, ...]
    raw: Mapping[str, float]
    """The scores of a model trained on raw records."""
    target: str | None
    n_records: int
    tested_on: int
    """How many raw records, which no model has seen, gave the scores."""
    left_out: tuple[str, ...] = ()
    """Settings that cannot be reached, each with the reason."""
    basis: Mapping[str, str] = field(default_factory=dict)
    """Names for the roles and the table that were explored, if they were files: see `basis_of`."""

    @property
    def chosen(self) -> Explored | None:
        """The setting of the roles file, if it was tried."""
        return next((row for row in self.rows if row.is_chosen), None)

    @property
    def has_rules(self) -> bool:
        """Whether several rules were tried."""
        return len({row.rule for row in self.rows}) > 1

    @property
    def head(self) -> tuple[str, ...]:
        """The titles of the columns, as people read them."""
        return tuple(self._shown(self.rows[0]))

    def cells(self) -> Iterator[tuple[str, ...]]:
        """Yield each row as people read it, under `head`."""
        yield from (tuple(self._shown(row).values()) for row in self.rows)

    def _shown(self, row: Explored) -> dict[str, str]:
        """A row as people read it, by the titles of its columns."""
        return {
            "k": f"{row.k:,}",
            **({"rule": row.rule} if self.has_rules else {}),
            "l": f"{row.l:,}",
            "classes": f"{row.classes:,}",
            "risk": f"{row.prosecutor_max:.3f}",
            "mean risk": f"{row.prosecutor_mean:.4f}",
            "NCP": f"{row.ncp:.3f}",
            **({} if self.target is None else {"one label": f"{row.same_target:.1%}"}),
            **{TITLES[name]: shown(name, row.scores[name]) for name in self.raw},
        }

    def notes(self) -> Iterator[str]:
        """Yield what readers of the rows need to know."""
        if self.raw:
            scores = [f"{TITLES[name]} {shown(name, value)}" for name, value in self.raw.items()]
            reached = " and ".join(scores)
            yield (
                f"A model trained on raw records reaches {reached}; all are tested on"
                f" {self.tested_on:,} raw records that they have not seen."
            )
        yield from (f"Left out: {sentence}" for sentence in self.left_out)

    def is_on(self, basis: Mapping[str, str]) -> bool:
        """Whether it was tried on this, as far as that is known."""
        return basis.items() <= self.basis.items()

    def marked(self, wanted: tuple[int, str, int] | None) -> "Exploration":
        """Return a copy that marks this k, rule and l as chosen, if they were tried."""
        rows = (replace(r, is_chosen=(r.k, r.rule, r.l) == wanted) for r in self.rows)
        return replace(self, rows=tuple(rows))

    def to_json(self) -> str:
        """Return the exploration as JSON."""
        return to_json({"format": FORMAT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> "Exploration":
        """Read it back; raises TableError."""
        fields = Fields.parse(text, "the exploration", TableError)
        fields.expect("format", FORMAT)
        rows = tuple(_row(each) for each in fields.each("rows"))
        found = fields.record(cls, optional=("basis",), rows=rows)
        if not found.rows or not set(found.raw) <= set(TITLES):
            raise TableError("the exploration is not one that verix-anon wrote")
        if any(set(row.scores) != set(found.raw) for row in found.rows):
            raise TableError("the exploration's rows have other scores than its raw records")
        return found

    def _repr_html_(self) -> str:
        pairs = zip(self.rows, self.cells(), strict=True)
        marked = (("→" if row.is_chosen else "", *cells) for row, cells in pairs)
        return as_table(marked, ("", *self.head)) + as_list(self.notes())


def shown(name: str, score: float) -> str:
    """A score as people read it."""
    return f"{score:,.4g}" if name == "mean_absolute_error" else f"{score:.3f}"


def _row(fields: Fields) -> Explored:
    return fields.record(
        Explored,
        k=fields.whole("k", COUNTS),
        rule=fields.choice("rule", Rule).value,
        l=fields.whole("l", COUNTS),
        losses=losses_of(fields),
    )


DECIDING = ("importance", "priorities", "min_leaf", "places", "max_depth")
"""The options of prepare() that a tree or its classes depend on, but the rule, which is tried."""


def basis_of(roles: FilePath, table: FilePath | None) -> Mapping[str, str]:
    """Return names for a roles file and a table's file as they are now, without what is tried.

    They are equal if the curves would be equal. A table that is not a file has no name.
    """
    declared = asdict(read_roles(roles)[1])
    hidden, _ = declared.pop("diversity"), declared.pop("release")
    hidden.get(declared["target"], {}).pop("l", None)
    options = PrepareOptions.of_roles(roles)
    said = {
        "declared": declared,
        "hidden": {name: asked for name, asked in hidden.items() if asked},
        "options": {name: getattr(options, name) for name in DECIDING},
        "reading": read_reading(roles).to_json(),
    }
    found = {"columns": sha256(json.dumps(said, default=str).encode()).hexdigest()}
    if table is not None:
        with suppress(OSError, ValueError):
            about = Path(table).stat()
            found["table"] = f"{about.st_size} {about.st_mtime_ns}"
    return found
