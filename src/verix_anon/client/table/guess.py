"""A first guess at the roles of a table's columns, with a reason for each (spec §2).

Roles follow from names and from the values of all rows. A guess that drops a column says what
else the column could be, for what is dropped is gone.
"""

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files

import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.client.table.categories import as_label, is_text
from verix_anon.client.table.columns import columns_of
from verix_anon.client.table.digest import plain_column
from verix_anon.client.table.encode import kind_of
from verix_anon.client.table.hierarchies import DATE, PREFIX
from verix_anon.client.table.owner_table import RECORD, repeats
from verix_anon.client.table.task import MAX_CLASSES, TableRole
from verix_anon.errors import TableError
from verix_anon.files.tables.dates import dates_in, iso_dates
from verix_anon.files.tables.number_marks import marks_in, numbers_in, starts_with_zero
from verix_anon.protocol.contract import Column, Kind

DIGITS = r"^[0-9]{4,6}$"
DIAGNOSIS = r"^[A-Z][0-9][0-9A-Z](\.?[0-9A-Z]{1,4})?[+*!]?$"
"""A code of ICD-10, such as I21.0."""
FEWEST_CODES = 5
"""Fewer values are not taken for codes: A10 and B20 may be anything."""
LIST = r"^[^\s,;|]{1,12}( ?[,;|] ?[^\s,;|]{1,12})*$"
"""Codes in one cell, such as `E11.9, I10`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One column, looked at over all its rows."""

    n_rows: int
    n_distinct: int
    kind: Kind | None
    """None if the column cannot be a quasi-identifier."""
    is_text: bool = False
    """Text that is neither numbers nor dates."""
    is_whole: bool = False
    is_label: bool = False
    """Values of a list, such as the labels of an SPSS file."""
    written: str = ""
    """What text is written as, if it is numbers or dates."""
    codes: str = ""
    """`digits` of one length, `diagnoses`, `lists`, or `rooms`, which may be diagnoses."""

    @property
    def is_spread(self) -> bool:
        """Whether there are more values than half the rows, and not just two."""
        return 2 * self.n_distinct > self.n_rows and self.n_distinct > 2


def look(array: pa.Array) -> Look:
    """Look at a column that has values."""
    kind = kind_of(array.type)
    try:
        n_distinct = len(pc.unique(array.drop_null()))
    except pa.ArrowNotImplementedError:
        # Values of this type are not told apart.
        n_distinct, kind = 0, None
    if kind is None:
        return Look(n_rows=len(array), n_distinct=n_distinct, kind=None)
    is_label = pa.types.is_dictionary(array.type)
    if is_text(array.type) and not (is_label and array.type.ordered):
        return _text(array, n_distinct)
    return Look(
        n_rows=len(array),
        n_distinct=n_distinct,
        kind=kind,
        is_whole=kind is Kind.NUMERIC and _is_whole(array),
        is_label=is_label,
    )


def _is_whole(array: pa.Array) -> bool:
    """Whether all are whole numbers; a column with gaps may hold those as floats."""
    if pa.types.is_integer(array.type):
        return True
    if not pa.types.is_floating(array.type):
        return False
    present = plain_column(array)
    return bool(pc.all(pc.equal(present, pc.floor(present)), min_count=0).as_py())


def _text(array: pa.Array, n_distinct: int) -> Look:
    texts = pc.unique(plain_column(array).cast(pa.string()).drop_null())
    column = pa.chunked_array([texts])
    found = Look(n_rows=len(array), n_distinct=n_distinct, kind=Kind.CATEGORICAL)
    marks = marks_in(column)
    if not marks.others and len(texts):
        if iso_dates(column) is not None:
            return replace(found, kind=Kind.DATETIME, written="dates as yyyy-mm-dd")
        if forms := dates_in(column, None):
            shown = " or ".join(str(dates.form) for dates in forms)
            return replace(found, kind=Kind.DATETIME, written=f"dates as {shown}")
        if (ways := numbers_in(column, marks)) and not starts_with_zero(column):
            is_whole = not marks.found & {".", ",", "e", "E"}
            has_comma = any(one.form.decimal == "," for one in ways)
            written = "numbers with a decimal comma" if has_comma else "numbers"
            return replace(found, kind=Kind.NUMERIC, is_whole=is_whole, written=written)
    return replace(found, is_text=True, codes=_codes(texts))


def _codes(texts: pa.Array) -> str:
    """What codes these are, if all are of one form."""
    if len(texts) < FEWEST_CODES:
        return ""
    lengths = pc.min_max(pc.binary_length(texts))
    if lengths["min"] == lengths["max"] and _all_match(texts, DIGITS):
        return "digits"
    if _all_match(texts, DIAGNOSIS):
        return "diagnoses" if pc.any(pc.match_substring(texts, ".")).as_py() else "rooms"
    # A name and a first name are always two; how many a list has differs.
    counts = pc.min_max(pc.count_substring_regex(texts, "[,;|]"))
    return "lists" if counts["min"] != counts["max"] and _all_match(texts, LIST) else ""


def _all_match(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


PART = re.compile(r"[A-ZÄÖÜ]+(?![a-zäöüß])|[A-ZÄÖÜ]?[a-zäöüß]+|[0-9]+")
_FILE = tomllib.loads((files("verix_anon.client.table") / "guess_words.toml").read_text("utf-8"))
_WORDS = {name: frozenset(words) for name, words in _FILE["words"].items()}
_PATTERNS = {name: re.compile("|".join(parts)) for name, parts in _FILE["patterns"].items()}
TITLE = r"(^|\W)((Dr|Prof|Hr|Fr|Mr|Mrs|Ms)\.|Herrn?|Frau|Dr|Mr|Mrs|Ms) (med\. )?\p{Lu}\p{Ll}"
"""In front of a name of somebody."""
SENTENCE_WORDS = 4
"""So many words on average make sentences."""
FEWEST_SENTENCES = 20
"""Fewer values are categories, however long."""
MOST_LOOKED_AT = 10_000
MOST_CODES = 20
TARGETS = ("target", "label", "outcome")
"""Names of targets whatever their values, the surest first."""


def _parts(name: str) -> list[str]:
    """The words of a name: `Patienten-ID` and `patientId` alike."""
    return [part.lower() for part in PART.findall(name)]


def is_naming(name: str) -> bool:
    """Whether it is named like what names people by itself: a surname, an address, an IBAN."""
    parts = _parts(name)
    for i, part in enumerate(parts):
        if part in _WORDS["naming"] or "".join(parts[i : i + 2]) in _WORDS["naming"]:
            return not (part == "name" and i and parts[i - 1] in _WORDS["other_names"])
    return False


def prose_in(name: str, texts: pa.Array) -> str:
    """Return why a column of these texts is free text, or an empty string if it is not."""
    if len(texts) == 0:
        return ""
    some = pc.unique(texts.slice(0, MOST_LOOKED_AT))
    n_words = pc.mean(pc.count_substring_regex(some, r"\S+")).as_py()
    is_named = not _WORDS["prose"].isdisjoint(_parts(name))
    if is_named and (n_words > SENTENCE_WORDS / 2 or len(some) > FEW):
        return "named like remarks"
    if n_words >= SENTENCE_WORDS and len(some) > FEWEST_SENTENCES:
        return f"sentences of {n_words:.0f} words"
    n_titles = pc.sum(pc.match_substring_regex(some, TITLE)).as_py()
    return "names with titles, such as Dr." if 20 * n_titles >= len(some) else ""


def prose_warnings(
    quasi: Sequence[Column], others: Mapping[str, pa.Array], roles: Mapping[str, str]
) -> tuple[str, ...]:
    """Return a warning for each published column that is free text."""
    texts = {column.name: pa.array(column.categories or ()) for column in quasi}
    return tuple(
        f"Column {name!r} is {roles[name]}, but looks like free text ({why}). Its sentences and the"
        " names in them are published. Make it an identifier, which is left out."
        for name, values in {**texts, **others}.items()
        if is_text(values.type) and (why := prose_in(name, texts_of(values)))
    )


def texts_of(array: pa.Array) -> pa.Array:
    """Return the values of a column as text, without those that are missing."""
    return plain_column(array).cast(pa.large_string()).drop_null()


def is_numbering(name: str) -> bool:
    """Whether it is named like a number of somebody or something."""
    parts = _parts(name)
    if len(parts) > 1 and parts[0] in _WORDS["counted"]:
        return False
    return any(
        part in _WORDS["numbering"]
        or (len(part) > 4 and _PATTERNS["numbered"].search(part) is not None)
        for part in parts
    )


def is_sensitive(name: str) -> bool:
    """Whether it is named like what people keep to themselves: health, belief, income."""
    kinds = (_PATTERNS["sensitive_words"], _PATTERNS["money"])
    return any(words.search(name.lower()) for words in kinds)


FEW = 50
"""Numbers with no more values than this are not taken for those of people, whatever their name."""
IDENTIFIER, KEPT, SENSITIVE, QUASI, TARGET = TableRole


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
    width: float | None = None
    """The width of the intervals that take the place of exact amounts."""


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
    # All at once, for they are read more than once.
    arrays = dict(columns_of(table))
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
        seen = looks[target]
        found[target] = replace(
            found[target],
            role=TableRole.TARGET,
            reason=reason,
            otherwise=found[target].role.value,
            # Two values are classes, whatever they look like.
            is_kind_said=bool(seen.written) and seen.n_distinct > 2,
            hierarchy=None,
            width=None,
        )
        said = _positive(arrays[target], seen)
    identifiers = [name for name, guess in found.items() if guess.role is IDENTIFIER]
    return Guesses(tuple(found.values()), *said, *_person(identifiers, arrays))


def _likeliest_target(
    looks: Mapping[str, Look], found: Mapping[str, Guess]
) -> tuple[str | None, str]:
    """A column that may be the target, and why."""
    able = {
        name: seen
        for name, seen in looks.items()
        if seen.n_distinct >= 2 and found[name].role is not IDENTIFIER and seen.kind is not None
    }
    for wanted in TARGETS:
        for name, seen in able.items():
            is_fit = seen.n_distinct <= MAX_CLASSES or not seen.is_text
            if name.strip().lower() == wanted and is_fit:
                return name, "named like a target" + ", with two values" * (seen.n_distinct == 2)
    binary = [name for name, seen in able.items() if seen.n_distinct == 2]
    named = [name for name in binary if name.strip().lower() in _WORDS["other_targets"]]
    if named:
        return named[-1], "named like a target, with two values"
    if binary:
        return binary[-1], "a guess: the last column with two values; please check"
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
    said = [
        label
        for label in times
        if label.strip().lower() in _WORDS["yes"] or label.strip()[:1] in ">≥"
    ]
    if len(said) == 1:
        return said[0], f"class 1, of {shown}: it means yes"
    rarer = min(sorted(times, reverse=True), key=times.__getitem__)
    return rarer, f"class 1, of {shown}: the rarer one; or the other"


def _person(identifiers: Sequence[str], arrays: Mapping[str, pa.Array]) -> tuple[str | None, str]:
    """Return the likely person column, and why; None if no identifier repeats."""
    repeated = [name for name in identifiers if repeats(arrays[name])]
    if not repeated:
        return None, ""
    numbers = [name for name in identifiers if _PATTERNS["people"].search(name.lower())]
    own = next((name for name in numbers if name not in repeated), None)
    if own is not None:
        return RECORD, f"{own!r} differs in every row"
    chosen = next((name for name in numbers if not is_naming(name)), [*numbers, *repeated][0])
    return chosen, 'fewer values than rows: k counts people; or "record" if each row is one'


def _guess(name: str, array: pa.Array, seen: Look | None) -> Guess:
    """The first rule that applies."""
    if seen is None:
        return Guess(name, KEPT, "has no values, so there is nothing to anonymize", "identifier")
    if pa.types.is_nested(array.type):
        return Guess(name, IDENTIFIER, "each cell holds several values", "sensitive")
    if seen.kind is None:
        why = f"type {array.type} cannot be a quasi-identifier"
        return Guess(name, KEPT, why, "identifier")
    if seen.n_distinct == 1 and array.null_count == 0:
        return Guess(name, KEPT, "the same value in every row", "identifier", seen.kind)
    guess = next(guess for rule in RULES if (guess := rule(name, array, seen)) is not None)
    is_said = bool(seen.written) and guess.role is QUASI and guess.kind is None
    is_said |= guess.kind not in (None, seen.kind) and guess.hierarchy is None
    return replace(guess, kind=guess.kind or seen.kind, is_kind_said=is_said)


Rule = Callable[[str, pa.Array, Look], Guess | None]


def _dates(name: str, array: pa.Array, seen: Look) -> Guess | None:
    if seen.kind is not Kind.DATETIME:
        return None
    written = f"text, {seen.written}" if seen.written else "dates"
    if any(_PATTERNS["birth"].search(part) for part in _parts(name)):
        # The bounds of a class are the birth dates of two people unless they are coarser.
        reason = f"{written}; birth dates, as others know them"
        return Guess(name, QUASI, reason, "identifier", hierarchy=DATE)
    otherwise = "kept, if nobody else knows them"
    return Guess(name, QUASI, written, otherwise, hierarchy=DATE, is_hierarchy_likely=False)


def _postcodes(name: str, array: pa.Array, seen: Look) -> Guess | None:
    is_named = not _WORDS["postcode"].isdisjoint(_parts(name))
    if seen.codes == "digits" and (is_named or not (seen.is_spread or is_numbering(name))):
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
    is_icd = seen.codes == "diagnoses" or (seen.codes == "rooms" and is_sensitive(name))
    if not is_icd or is_numbering(name):
        return None
    reason = f"codes like those of ICD-10, {seen.n_distinct:,} values"
    otherwise = "quasi with a prefix hierarchy"
    return Guess(name, SENSITIVE, reason, otherwise, hierarchy=PREFIX, is_hierarchy_likely=False)


def _lists(name: str, array: pa.Array, seen: Look) -> Guess | None:
    if seen.codes != "lists" or is_naming(name):
        return None
    reason = f"lists of codes in one cell, {seen.n_distinct:,} different ones"
    if seen.n_distinct <= FEW:
        return Guess(name, SENSITIVE, reason, "identifier")
    # So many lists are nearly as telling as names.
    return Guess(name, IDENTIFIER, reason, "sensitive: published as it stands")


def _prose(name: str, array: pa.Array, seen: Look) -> Guess | None:
    why = prose_in(name, texts_of(array)) if seen.is_text else ""
    if not why:
        return None
    reason = f"free text: {why}, {seen.n_distinct:,} different ones"
    return Guess(name, IDENTIFIER, reason, "kept: published as it stands")


def _identifiers(name: str, array: pa.Array, seen: Look) -> Guess | None:
    spread = f"{seen.n_distinct:,} values in {seen.n_rows:,} rows"
    if is_naming(name) and (seen.is_text or seen.is_whole):
        return Guess(name, IDENTIFIER, "named like something that names people", "quasi")
    is_many = seen.n_distinct > FEW or (seen.is_text and seen.is_spread)
    if is_numbering(name) and (seen.is_text or seen.is_whole) and is_many:
        reason = f"named like an identifier, {spread}"
        return Guess(name, IDENTIFIER, reason, "quasi, if it numbers no people")
    if seen.is_text and seen.is_spread:
        return Guess(name, IDENTIFIER, f"text, {spread}", "kept; quasi with a hierarchy")
    return None


def _sensitive(name: str, array: pa.Array, seen: Look) -> Guess | None:
    if not is_sensitive(name):
        return None
    return Guess(name, SENSITIVE, "named like something people keep to themselves", "quasi, target")


def _amounts(name: str, array: pa.Array, seen: Look) -> Guess | None:
    is_named = any(
        words.search(name.lower()) for words in (_PATTERNS["amount"], _PATTERNS["money"])
    )
    if seen.kind is not Kind.NUMERIC or seen.written or seen.n_distinct <= FEW or not is_named:
        return None
    reason = f"exact amounts, {seen.n_distinct:,} values, rounded down by [derived]"
    low, high = pc.quantile(array.cast(pa.float64()), [0.05, 0.95]).to_pylist()
    step = (high - low or 1.0) / 20
    ten = 10.0 ** math.floor(math.log10(step))
    step = max(n * ten for n in (1, 2, 5) if n * ten <= step)
    return Guess(name, SENSITIVE, reason, "quasi", width=int(step) if step >= 1 else step)


def _numbered_rows(name: str, array: pa.Array, seen: Look) -> Guess | None:
    if not seen.is_whole or seen.n_distinct < seen.n_rows or seen.n_rows < 2:
        return None
    # Floats without fractions are amounts more often than numbers of rows.
    if _PATTERNS["quantity"].search(name.lower()) or pa.types.is_floating(array.type):
        return None
    return Guess(name, IDENTIFIER, "a different whole number in every row", "quasi, if an amount")


def _coded(name: str, array: pa.Array, seen: Look) -> Guess | None:
    """Numbers that stand for something, such as 1, 2 and 9 for sex: they have no middle."""
    parts = _parts(name)
    is_named = (
        any(_PATTERNS["coded"].search(part) for part in parts) and seen.n_distinct <= MOST_CODES
    )
    # `num` may stand for a number of something.
    is_number = (
        is_numbering(name) and _WORDS["counted"].isdisjoint(parts) and seen.n_distinct <= FEW
    )
    if not (seen.is_whole and (is_named or is_number)):
        return None
    reason = f"numbers that stand for something, {seen.n_distinct:,} values"
    return Guess(name, QUASI, reason, "numeric, if they count something", Kind.CATEGORICAL)


def _quasi(name: str, array: pa.Array, seen: Look) -> Guess:
    words = "true or false" if pa.types.is_boolean(array.type) else "text"
    numbers = "whole numbers" if seen.is_whole else "numbers"
    plain = numbers if seen.kind is Kind.NUMERIC else words
    what = f"text, {seen.written}" if seen.written else plain
    otherwise, n = "sensitive, if nobody else may learn it; kept", seen.n_distinct
    return Guess(name, QUASI, f"{what}, {n:,} value{'s' * (n > 1)}", otherwise)


RULES: Sequence[Rule]
RULES = (
    *(_dates, _postcodes, _diagnoses, _lists, _prose, _identifiers, _amounts, _sensitive),
    *(_numbered_rows, _coded, _quasi),
)


def explained(guesses: Guesses) -> Iterator[tuple[str, str, str, str, str]]:
    """Name, role, kind, reason and what else it could be, of each column."""
    for guess in guesses.columns:
        kind = "" if guess.kind is None else guess.kind.value
        if guess.hierarchy and guess.is_hierarchy_likely:
            kind += f", by {guess.hierarchy}"
        yield guess.name, guess.role.value, kind, guess.reason, guess.otherwise
