"""A first guess at the roles of a table's columns, with a reason for each (spec §2).

Roles follow from names and from the values of all rows. A guess that drops a column says what
else the column could be, for what is dropped is gone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.client.table import names
from verix_anon.client.table.categories import as_label
from verix_anon.client.table.columns import arrow_columns
from verix_anon.client.table.digest import plain_column
from verix_anon.client.table.hierarchies import DATE, PREFIX
from verix_anon.client.table.look import Look, look
from verix_anon.client.table.person import RECORD, repeats
from verix_anon.client.table.roles import TableRole
from verix_anon.client.table.task import MAX_CLASSES
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Kind

__all__ = ["Guess", "Guesses", "explained", "guess_roles"]

FEW = 50
"""Numbers with no more values than this are not taken for those of people, whatever their name."""
YES = frozenset(
    ("yes", "y", "ja", "j", "true", "wahr", "t", "1", "positive", "positiv", "pos", "+", "died")
)
IDENTIFIER, KEPT, SENSITIVE, QUASI = (
    TableRole.IDENTIFIER,
    TableRole.KEPT,
    TableRole.SENSITIVE,
    TableRole.QUASI,
)


@dataclass(frozen=True, slots=True)
class Guess:
    """The guessed role of one column, and why."""

    name: str
    role: TableRole
    reason: str
    otherwise: str = ""
    """What else it could be."""
    kind: Kind | None = None
    is_kind_said: bool = False
    """Whether the kind does not follow from the column's type, and so must be declared."""
    hierarchy: str | None = None
    is_hierarchy_likely: bool = True
    """Whether it is declared, or only shown as what could be."""


@dataclass(frozen=True, slots=True)
class Guesses:
    """All that is guessed of a table."""

    columns: tuple[Guess, ...]
    positive: str | None = None
    why_positive: str = ""
    person: str | None = None
    why_person: str = ""

    @property
    def target(self) -> Guess | None:
        """The guess for the column to preserve, if there is one."""
        return next((guess for guess in self.columns if guess.role is TableRole.TARGET), None)

    def to_json(self) -> dict[str, object]:
        """As JSON values."""
        target = self.target
        return {
            "target": None if target is None else target.name,
            "positive": self.positive,
            "person": self.person,
            "columns": [asdict(guess) for guess in self.columns],
        }


def guess_roles(table: object, target: str | None = None) -> Guesses:
    """A role for every column; the target is the one named, or the likeliest one, if any."""
    arrays = arrow_columns(table)
    looks = {name: look(array) for name, array in arrays.items() if array.null_count < len(array)}
    found = {name: _guess(name, array, looks.get(name)) for name, array in arrays.items()}
    reason = "as you said"
    if target is None:
        target, reason = _likeliest_target(looks, found)
    elif target not in arrays:
        raise TableError(f"there is no column {target!r}")
    elif target not in looks or (looks[target].kind and looks[target].n_distinct < 2):
        n = looks[target].n_distinct if target in looks else 0
        raise TableError(f"the target must have two values or more; {target!r} has {n:,}")
    said: tuple[str | None, str] = (None, "")
    if target is not None:
        found[target] = _as_target(found[target], reason, looks[target])
        said = _positive(arrays[target], looks[target])
    identifiers = [name for name, guess in found.items() if guess.role is IDENTIFIER]
    return Guesses(tuple(found.values()), *said, *_person(identifiers, arrays))


def _as_target(guess: Guess, reason: str, seen: Look) -> Guess:
    return replace(
        guess,
        role=TableRole.TARGET,
        reason=reason,
        otherwise=guess.role.value,
        # Two values are classes, whatever they look like.
        is_kind_said=bool(seen.written) and seen.n_distinct > 2,
        hierarchy=None,
    )


def _likeliest_target(
    looks: Mapping[str, Look], found: Mapping[str, Guess]
) -> tuple[str | None, str]:
    """A column that may be the target, and why."""
    able = {
        name: seen
        for name, seen in looks.items()
        if seen.n_distinct >= 2 and found[name].role is not IDENTIFIER and seen.kind is not None
    }
    for wanted in names.TARGETS:
        for name, seen in able.items():
            is_fit = seen.n_distinct <= MAX_CLASSES or not seen.is_text
            if name.strip().lower() == wanted and is_fit:
                return name, "named like a target" + ", with two values" * (seen.n_distinct == 2)
    binary = [name for name, seen in able.items() if seen.n_distinct == 2]
    named = [name for name in binary if names.is_target(name)]
    if named:
        return named[-1], "named like a target, with two values"
    if binary:
        return binary[-1], "a mere guess: the last column with two values; is it what to preserve?"
    return None, "no column has exactly two values"


def _positive(array: pa.Array, seen: Look) -> tuple[str | None, str]:
    """The likely class 1 of two, and why."""
    if seen.n_distinct != 2:
        return None, ""
    counts = pc.value_counts(plain_column(array).drop_null()).to_pylist()
    times = {as_label(one["values"]): one["counts"] for one in counts}
    if len(times) != 2:
        return None, ""
    shown = " and ".join(f"{label!r}" for label in sorted(times))
    said = [label for label in times if label.strip().lower() in YES or label.strip()[:1] in ">≥"]
    if len(said) == 1:
        return said[0], f"class 1, of {shown}: it says yes"
    rarer = min(sorted(times, reverse=True), key=times.__getitem__)
    return rarer, f"class 1, of {shown}: the rarer one; or the other"


def _person(identifiers: Sequence[str], arrays: Mapping[str, pa.Array]) -> tuple[str | None, str]:
    """Who is a person, as far as identifiers tell; None if they say nothing."""
    repeated = [name for name in identifiers if repeats(arrays[name])]
    if not repeated:
        return None, ""
    numbers = [name for name in identifiers if names.is_number_of_people(name)]
    own = next((name for name in numbers if name not in repeated), None)
    if own is not None:
        return RECORD, f"{own!r} differs in every row"
    chosen = next((name for name in numbers if not names.is_naming(name)), None)
    chosen = chosen or next((name for name in numbers), None) or repeated[0]
    return chosen, 'fewer values than rows: k counts people; or "record" if each row is one'


def _guess(name: str, array: pa.Array, seen: Look | None) -> Guess:
    """The first rule that applies."""
    if seen is None:
        return Guess(name, KEPT, "has no values, so there is nothing to anonymize", "identifier")
    if seen.kind is None:
        why = f"type {array.type} cannot be a quasi-identifier"
        return Guess(name, KEPT, why, "identifier")
    if seen.n_distinct == 1 and array.null_count == 0:
        return Guess(name, KEPT, "the same value in every row", "identifier", seen.kind)
    guess = next(guess for rule in RULES if (guess := rule(name, array, seen)) is not None)
    is_said = bool(seen.written) and guess.role is QUASI and guess.kind is None
    return replace(guess, kind=guess.kind or seen.kind, is_kind_said=is_said)


Rule = Callable[[str, pa.Array, Look], Guess | None]


def _dates(name: str, array: pa.Array, seen: Look) -> Guess | None:
    if seen.kind is not Kind.DATETIME:
        return None
    written = f"text, {seen.written}" if seen.written else "dates"
    if names.is_birth(name):
        # The bounds of a class are the birth dates of two people unless they are coarser.
        reason = f"{written}; birth dates, as others know them"
        return Guess(name, QUASI, reason, "identifier", hierarchy=DATE)
    otherwise = "kept, if nobody else knows them"
    return Guess(name, QUASI, written, otherwise, hierarchy=DATE, is_hierarchy_likely=False)


def _postcodes(name: str, array: pa.Array, seen: Look) -> Guess | None:
    is_named = names.is_postcode(name)
    if seen.codes == "digits" and (is_named or not (seen.is_spread or names.is_numbering(name))):
        what = "postcodes" if is_named else "codes of as many digits each, as postcodes"
        reason = f"{what}, {seen.n_distinct:,} values"
        return Guess(name, QUASI, reason, "identifier", Kind.CATEGORICAL, hierarchy=PREFIX)
    if not is_named:
        return None
    if seen.is_whole:
        lengths = pc.unique(pc.utf8_length(plain_column(array).drop_null().cast(pa.string())))
        if len(lengths) > 1:
            reason = "postcodes as numbers of different lengths: a leading zero may be lost"
            return Guess(name, QUASI, reason, "text with a hierarchy, zeros put back")
    reason = f"postcodes, {seen.n_distinct:,} values"
    return Guess(name, QUASI, reason, "identifier", Kind.CATEGORICAL, hierarchy=PREFIX)


def _diagnoses(name: str, array: pa.Array, seen: Look) -> Guess | None:
    if seen.codes != "diagnoses" or names.is_numbering(name):
        return None
    reason = f"codes like those of ICD-10, {seen.n_distinct:,} values"
    if names.is_sensitive(name):
        return Guess(name, SENSITIVE, reason, "quasi with a prefix hierarchy")
    return Guess(name, QUASI, reason, "sensitive, if these are diagnoses", hierarchy=PREFIX)


def _identifiers(name: str, array: pa.Array, seen: Look) -> Guess | None:
    spread = f"{seen.n_distinct:,} values in {seen.n_rows:,} rows"
    if names.is_naming(name) and (seen.is_text or seen.is_whole):
        return Guess(name, IDENTIFIER, "named like something that names people", "quasi")
    is_many = seen.n_distinct > FEW or (seen.is_text and seen.is_spread)
    if names.is_numbering(name) and (seen.is_text or seen.is_whole) and is_many:
        reason = f"named like an identifier, {spread}"
        return Guess(name, IDENTIFIER, reason, "quasi, if it numbers no people")
    if seen.is_text and seen.is_spread:
        return Guess(name, IDENTIFIER, f"text, {spread}", "kept; quasi with a hierarchy")
    return None


def _sensitive(name: str, array: pa.Array, seen: Look) -> Guess | None:
    if not names.is_sensitive(name):
        return None
    return Guess(name, SENSITIVE, "named like something people keep to themselves", "quasi, target")


def _numbered_rows(name: str, array: pa.Array, seen: Look) -> Guess | None:
    if not seen.is_whole or seen.n_distinct < seen.n_rows or seen.n_rows < 2:
        return None
    # Floats without fractions are amounts more often than numbers of rows.
    if names.is_quantity(name) or pa.types.is_floating(array.type):
        return None
    return Guess(name, IDENTIFIER, "a different whole number in every row", "quasi, if an amount")


def _quasi(name: str, array: pa.Array, seen: Look) -> Guess:
    what = f"text, {seen.written}" if seen.written else str(array.type)
    otherwise = "sensitive, if nobody else may learn it; kept"
    if seen.is_whole and seen.n_distinct <= FEW and names.is_numbering(name):
        otherwise = "categorical, if a code"
    return Guess(name, QUASI, f"{what}, {seen.n_distinct:,} values", otherwise)


RULES: tuple[Rule, ...] = (
    _dates,
    _postcodes,
    _diagnoses,
    _identifiers,
    _sensitive,
    _numbered_rows,
    _quasi,
)


def explained(guesses: Guesses) -> Iterator[tuple[str, str, str, str, str]]:
    """Name, role, kind, reason and what else it could be, of each column."""
    for guess in guesses.columns:
        kind = "" if guess.kind is None else guess.kind.value
        if guess.hierarchy and guess.is_hierarchy_likely:
            kind += f", by {guess.hierarchy}"
        yield guess.name, guess.role.value, kind, guess.reason, guess.otherwise
