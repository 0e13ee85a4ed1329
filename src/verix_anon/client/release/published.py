"""The published table: made from classes, and written with its sheet and dictionary (spec §12).

Nothing is published but columns: what else a table carries is taken off it.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Ids, Ints
from verix_anon.client.arguments import FilePath, is_path
from verix_anon.client.notebook import as_list, as_table
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.release.cells import IN_WORDS, MISSING, MOST_TEXTS, Cells, by_value
from verix_anon.client.release.classes import ClassCells
from verix_anon.client.release.representation import Representation
from verix_anon.client.release.row_order import random_order
from verix_anon.client.release.source import Source
from verix_anon.client.table.categories import is_text, value_type
from verix_anon.client.table.columns import columns_of, without_views
from verix_anon.client.table.encode import plain
from verix_anon.client.table.task import TableRole
from verix_anon.errors import TableError
from verix_anon.fields import to_json
from verix_anon.files.atomic_write import Aside, begun, check_apart, check_writable, write_bytes
from verix_anon.files.store import path_text
from verix_anon.files.tables import Parts, Stored, TextForm, check_table_name, table_aside
from verix_anon.protocol.contract import Digest, Kind, Unit

FORMAT = "verix/schema/3"
"""The format of a dictionary as a JSON file."""
OURS = "verix"
"""The name of the fields that Frictionless Table Schema does not know."""
READS: Mapping[object, str] = {
    Kind.NUMERIC: "lo..hi: from lo to hi, both included; <= and >= mark a capped end; * is any.",
    Kind.DATETIME: "lo..hi as for numbers; 2024, 2024-Q1 and 2024-M01 are periods; * is any.",
    Kind.CATEGORICAL: "A label or a name above it; {a, b}: one of these; not {a}: another;"
    " lo..hi: one between; 01***: one that begins so; * is any.",
    Representation.BOUNDS: "The least (_min) or greatest (_max) value of the record's class.",
    Representation.MIDPOINT: "The middle of the record's class.",
    Representation.MEAN: "The mean of the record's class.",
    Representation.SHARES: "The share of the record's class that has this label.",
    Representation.MODEL: "A number: the place of a value in `levels`, or as many `unit`s.",
    MISSING: "The share of the records here that have no value.",
}
"""How cells read, for people."""
FIGURES = ("enforced", "classes", "risk of re-identification", "information lost")
"""Facts of the privacy sheet that may be published with the table."""
Texts = Sequence[Sequence[str]]
FRACTIONS = {"s": "", "ms": ".%f", "us": ".%f"}
"""How the seconds of a time go on in a text table, by the unit of its type."""
TYPES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_decimal, "number"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "datetime"),
    (is_text, "string"),
)
FEW_RANKS = 10
"""An ordered column with at most this many labels keeps their order, whatever it is."""
TableT = TypeVar("TableT")


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """The owner's table with identifiers out and quasi-identifiers as published."""

    kept: nw.DataFrame[Any] | None
    """The owner's columns that are published as they are, in the order of the table."""
    library: Any
    """The library of the owner's table."""
    names: Sequence[str]
    class_of_row: Ids
    """The class of each of the owner's rows, in the order of the table."""
    columns: Mapping[str, pa.Array]
    """With one value per class."""
    added: Mapping[str, pa.Array]
    """Columns that are not the owner's, with one value for each of the owner's rows."""
    of_quasi: Mapping[str, Sequence[str]]
    """The published columns of each quasi-identifier, by their names."""
    order: Ids | None
    """For each published row, which of the rows left it is; None if in the order of the table."""
    left: Ints | None = None
    """The owner's rows that are not left out; None if all are published."""

    def rows(self, begin: int = 0, end: int | None = None) -> Ids:
        """Return which of the owner's rows these published rows are."""
        if self.order is not None:
            return self.order[begin:end]
        return np.arange(begin, self.class_of_row.size if end is None else end, dtype=np.int32)

    def native(self) -> object:
        """Return a table of the same library as the owner's."""
        order = self.rows()
        rows = pa.array(self.class_of_row[order])
        with ThreadPoolExecutor() as pool:
            new = [*pool.map(lambda array: plain(array).take(rows), self.columns.values())]
            new += [array.take(pa.array(order)) for array in self.added.values()]
            # By number: Polars gives a column whose name is empty another.
            published = pa.table({str(i): array for i, array in enumerate(new)})
        columns = nw.from_arrow(published, backend=self.library)
        named = [columns[str(i)].alias(name) for i, name in enumerate((*self.columns, *self.added))]
        frame = columns.select(*named)
        if self.kept is not None:
            # Not every type that Arrow holds can be put in another order; those that are left can.
            bare: Any = bare_frame(self.kept)
            kept = nw.from_native(bare, eager_only=True)[order]
            # A pandas index is not a column, and would tell the old order.
            frame = nw.maybe_reset_index(kept).with_columns(*named)
        return bare_frame(frame.select(self.names))

    @property
    def texts(self) -> list[str]:
        """The columns that are written as dictionaries."""
        return [
            name
            for name, array in self.columns.items()
            if pa.types.is_dictionary(array.type) and len(array.dictionary) <= MOST_TEXTS
        ]

    def parts(self) -> Parts:
        """As Arrow tables to be written, some rows at a time, each text in them once."""
        texts = {*self.texts}
        kept = {}
        if self.kept is not None:
            held = columns_of(self.kept.to_native())
            kept = {name: bare_array(held[name]) for name in held}

        def column(name: str, rows: Ids) -> pa.Array:
            if name in kept:
                return kept[name].take(pa.array(rows))
            if name in self.added:
                return self.added[name].take(pa.array(rows))
            found = self.columns[name].take(pa.array(self.class_of_row[rows]))
            return found if name in texts else plain(found)

        def part(begin: int, end: int) -> pa.Table:
            rows = self.rows(begin, end)
            return pa.table([column(name, rows) for name in self.names], list(self.names))

        return Parts(self.class_of_row.size, part)

    def marked(self, cells: Iterable[Cells], mark: str) -> "Published":
        """Return the same table with this decimal mark in intervals, which are text."""
        words = {
            name: array
            for each in cells
            for name, array in each.columns.items()
            if each.described["kind"] == Kind.NUMERIC and is_text(value_type(array.type))
        }
        if mark == "." or not words:
            return self
        for name, array in words.items():
            # The dots between two numbers stay.
            texts = pc.replace_substring_regex(array.dictionary, r"(\d)\.(\d)", rf"\1{mark}\2")
            words[name] = by_value(pa.DictionaryArray.from_arrays(array.indices, texts))
        return replace(self, columns={**self.columns, **words})


def assemble(
    table: object,
    source: Source,
    written: ClassCells,
    model: Sequence[Cells],
    *,
    keep_order: bool,
    pseudonym: str | None = None,
    derived: Collection[str] = (),
) -> Published:
    """Put what is published of each class beside what is kept, in random order or the table's.

    `model` has the columns that are kept as numbers, if they are to be.
    """
    of_quasi = {each.name: tuple(each.columns) for each in written.cells}
    added = {} if pseudonym is None else {pseudonym: _pseudonyms(source.person_of_row)}
    made = of_quasi | {each.name: tuple(each.columns) for each in model}
    names: list[str] = [*added]
    for name in source.types:
        if name in of_quasi or name in source.kept:
            names.extend(made.get(name, [name]))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TableError(f"the release would have two columns {twice!r}; rename the one there is")
    made_here = {*derived, *source.changed}
    library, kept = _kept(table, [name for name in source.kept if name not in made_here], source)
    if model:
        numbers = pa.table({name: a for each in model for name, a in each.columns.items()})
        kept = nw.from_arrow(numbers, backend=library)
    else:
        added |= {name: plain(source.kept[name]) for name in source.kept if name in made_here}
    order = None if keep_order else random_order(written.of_row.size)
    of_row, columns, left = written.of_row, written.columns, source.rows
    return Published(kept, library, names, of_row, columns, added, of_quasi, order, left)


def _pseudonyms(person_of_row: Ints | None) -> pa.Array:
    """A number for each row's person, from 1 up, in an order from the system's randomness.

    The order is fresh for every release, so that numbers of two releases have nothing in common.
    """
    if person_of_row is None:
        raise TableError(
            "a pseudonym is a number for each person: name the column that tells people apart,"
            " with person (--person)"
        )
    numbers = random_order(int(person_of_row.max()) + 1) + 1
    return pa.array(numbers[person_of_row])


def _kept(table: object, names: list[str], source: Source) -> tuple[Any, nw.DataFrame[Any] | None]:
    """The library of the table, and its columns that are published as they are, if any."""
    held = pa.table(dict(source.kept)) if isinstance(table, Stored) else table
    frame: nw.DataFrame[Any] = nw.from_native(held, eager_only=True)
    if not names:
        return frame.implementation, None
    kept = frame.select(names)
    if source.rows is not None and not isinstance(table, Stored):
        kept = kept[source.rows]
    return frame.implementation, kept


def as_numbers(name: str, role: str, array: pa.Array) -> Cells:
    """A column that is not generalized, for models: all numbers, and none missing.

    Numbers, truth values and times stay what they count. Where one is missing or infinite it is
    the mean of the others, and a column `NAME_missing` is 1. Other values are numbered from 0 in
    their order, and a missing one is -1.
    """
    said: dict[str, object] = {"role": str(role), "column": name, "representation": "model"}
    array = bare_array(array)
    if not (pa.types.is_dictionary(array.type) and array.type.ordered):
        array = plain(array)
    if pa.types.is_date64(array.type):
        array = array.cast(pa.date32())
    kind = array.type
    if pa.types.is_date(kind) or hasattr(kind, "unit"):
        said["unit"] = Unit.DAY.value if pa.types.is_date(kind) else kind.unit
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    if _type(array.type) in ("integer", "number"):
        values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        is_there = np.isfinite(values)
        if is_there.all():
            is_whole = pa.types.is_integer(array.type)
            return Cells(name, {name: array if is_whole else pa.array(values)}, said)
        # Divided before adding, so that nothing overflows.
        mean = (values[is_there] / max(1, is_there.sum())).sum()
        missing = {f"{name}_{MISSING}": pa.array((~is_there).astype(np.int8))}
        return Cells(name, {name: pa.array(np.where(is_there, values, mean)), **missing}, said)
    if not pa.types.is_dictionary(array.type):
        texts = [None if value is None else str(value) for value in array.to_pylist()]
        array = by_value(pa.array(texts, pa.large_string()).dictionary_encode())
    said |= {"levels": [str(label) for label in array.dictionary.to_pylist()], MISSING: -1}
    return Cells(name, {name: array.indices.cast(pa.int32()).fill_null(-1)}, said)


def bare_array(array: pa.Array) -> pa.Array:
    """The same values, on a type without metadata, with no category that does not occur.

    Such categories are values of people who are not in the table. Categories without an order are
    sorted: as they stand they may tell in which order the rows stood.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return bare_array(array.storage)
    if pa.types.is_dictionary(kind):
        return _occurring(array)
    if pa.types.is_run_end_encoded(kind):
        return bare_array(pc.run_end_decode(array))
    if pa.types.is_nested(kind):
        return pa.array(array.to_pylist(), _without_metadata(kind))
    return without_views(array)


def _occurring(array: pa.DictionaryArray) -> pa.Array:
    """The labels that occur, each once: in their order if the type has one, else by value."""
    places = array.indices.drop_null().to_numpy(zero_copy_only=False)
    n_labels = len(array.dictionary)
    used = np.flatnonzero(np.bincount(places, minlength=n_labels))
    moved = np.zeros(n_labels, np.int32)
    moved[used] = np.arange(used.size, dtype=np.int32)
    labels = bare_array(array.dictionary).take(pa.array(used))
    coded = pa.array(moved).take(array.indices)
    if array.type.ordered and _is_rank(moved[places]):
        return pa.DictionaryArray.from_arrays(coded, labels, ordered=True)
    try:
        once = labels.dictionary_encode()
        return by_value(pa.DictionaryArray.from_arrays(once.indices.take(coded), once.dictionary))
    except pa.ArrowNotImplementedError:
        # Nothing sorts labels of such a type.
        return labels.take(coded)


def _is_rank(codes: npt.NDArray[Any]) -> bool:
    """Whether an order of labels is more than that in which rows first have them."""
    n_labels = int(codes.max(initial=-1)) + 1
    first = np.empty(n_labels, np.int64)
    # The last of several that are assigned stays.
    first[codes[::-1]] = np.arange(codes.size)[::-1]
    return n_labels <= FEW_RANKS or bool((np.diff(first) < 0).any())


def _without_metadata(kind: pa.DataType) -> pa.DataType:
    """A type like this one, and the types within it, without names' metadata or dictionaries."""
    if isinstance(kind, pa.BaseExtensionType):
        return _without_metadata(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _without_metadata(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _without_metadata(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(_without_metadata(kind.key_type), _without_metadata(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_without_metadata(kind.value_type), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_without_metadata(kind.value_type))
    if pa.types.is_list(kind):
        return pa.list_(_without_metadata(kind.value_type))
    return kind


def bare_frame(frame: nw.DataFrame[Any]) -> object:
    """A table of the owner's kind with nothing in it but its columns.

    Metadata, names of an index and attributes hold whatever programs put there.
    """
    native = frame.to_native()
    if frame.implementation.is_pyarrow():
        columns = (native[name].combine_chunks() for name in frame.columns)
        return pa.table([bare_array(column) for column in columns], frame.columns)
    coded = [name for name, kind in frame.schema.items() if kind in (nw.Categorical, nw.Enum)]
    if frame.implementation.is_polars():
        return frame.with_columns(nw.col(*coded).cast(nw.String)).to_native() if coded else native
    native = native.reset_index(drop=True)
    native.attrs, native.columns = {}, frame.columns
    for name in frame.columns:
        kind = getattr(native[name].dtype, "pyarrow_dtype", None)
        if kind is not None and (pa.types.is_dictionary(kind) or pa.types.is_nested(kind)):
            held = native[name].array
            array = pa.chunked_array(held.__arrow_array__()).combine_chunks()
            native[name] = type(held)(pa.chunked_array([bare_array(array)]))
        elif name in coded:
            held = native[name].cat.remove_unused_categories()
            if not (held.cat.ordered and _is_rank(held.cat.codes[held.notna()].to_numpy())):
                labels = held.cat.categories.sort_values()
                held = held.cat.set_categories(labels, ordered=False)
            native[name] = held
    return native


@dataclass(frozen=True, eq=False)
class Released(Generic[TableT]):
    """A table to publish, and what was measured on it.

    Examples:
        >>> job = ("job/delivery", "job/manifest.verix", "job/verdict.json")
        >>> released = verix_anon.release(*job, table="people.csv")
        >>> released.table.num_rows, released.sheet.k >= 5
        (600, True)
    """

    published: Published
    sheet: Sheet

    @cached_property
    def table(self) -> TableT:
        """The table, of the kind that was given; made when it is first asked for."""
        return cast("TableT", self.published.native())

    @property
    def rows(self) -> Ids:
        """The row of the owner's table, from 0, that each row is; not to be published."""
        rows, left = self.published.rows(), self.published.left
        return rows if left is None else left[rows].astype(np.int32)

    @property
    def root(self) -> Digest:
        """The root of the delivery it was made from."""
        assert self.sheet.root is not None
        return self.sheet.root

    @property
    def n_classes(self) -> int:
        """How many classes of records look alike in the table."""
        return self.sheet.n_classes

    @property
    def overridden(self) -> tuple[str, ...]:
        """What `force` passed over."""
        return self.sheet.overridden

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the owner should know before publishing."""
        return self.sheet.warnings

    def __repr__(self) -> str:
        return (
            f"<Released: {self.sheet.n_records:,} records in {self.n_classes:,} classes,"
            f" k {self.sheet.k:,}, {len(self.warnings)} warning(s)>"
        )

    def _repr_html_(self) -> str:
        return as_table(self.sheet.facts().items()) + as_list((*self.overridden, *self.warnings))

    def to_json(self) -> str:
        """The privacy sheet as JSON, with the root, the warnings and what was overridden."""
        return self.sheet.to_json()


def schema_path(table: str) -> str:
    """`released.schema.json` for `released.csv`."""
    head, slash, name = table.rpartition("/")
    return f"{head}{slash}{name.rpartition('.')[0] or name}.schema.json"


def schema_json(
    names: Sequence[str],
    types: Mapping[str, pa.DataType],
    roles: Mapping[str, str],
    cells: Iterable[Cells],
    form: TextForm,
    changed: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
) -> str:
    """The dictionary of a released table: what each column is, and how its cells read.

    It is a Frictionless Table Schema. What that does not know stands under `verix`. It is
    published with the table, and holds nothing that the table's cells do not show, except the
    labels of a column that has no hierarchy, which `*` and `not {a}` speak of.

    Args:
        names: The published columns, in order.
        types: The types of the owner's columns.
        roles: The role of each of the owner's columns.
        cells: What is published of each quasi-identifier.
        form: How the table is written as text; other files have its decimal mark in words.
        changed: What was done to kept and sensitive columns that are not published as they are.
    """
    found: dict[str, dict[str, object]] = {}
    for name, kind in types.items():
        if roles[name] != TableRole.QUASI:
            said = {"role": str(roles[name]), **changed.get(name, {})}
            found[name] = _field(name, kind, said, form)
    for each in cells:
        for name, array in each.columns.items():
            found[name] = _field(name, array.type, each.described, form)
    number = {"type": "integer", OURS: {"role": "pseudonym"}}
    document = {
        # First: the desk knows its files by how they begin.
        OURS: {"format": FORMAT, "decimal": form.decimal},
        "fields": [found.get(name, {"name": name, **number}) for name in names],
        "missingValues": [""],
        "dialect": {"delimiter": form.delimiter, "quoteChar": '"', "doubleQuote": True},
        "encoding": form.encoding,
    }
    return to_json(document)


def _field(
    name: str, kind: pa.DataType, described: Mapping[str, object], form: TextForm
) -> dict[str, object]:
    found: dict[str, object] = {"name": name, "type": _type(kind)}
    if found["type"] == "number" and form.decimal != ".":
        found["decimalChar"] = form.decimal
    if found["type"] == "datetime":
        is_known = kind.unit in FRACTIONS and kind.tz is None
        found["format"] = f"%Y-%m-%d %H:%M:%S{FRACTIONS[kind.unit]}" if is_known else "any"
    reads = described.get("representation")
    if reads in IN_WORDS:
        reads, found["constraints"] = described["kind"], {"required": True}
    elif name == f"{described.get('column')}_{MISSING}":
        reads = MISSING
    if reads in READS:
        found["description"] = READS[reads]
    return found | {OURS: dict(described)}


def sheets_of(schema: str, sheet: Sheet | None) -> dict[str, Texts]:
    """The dictionary and the figures of the privacy sheet, as sheets beside the table.

    Left out is what only the owner can know: how leaves were joined, who owns a bound, what was
    missing, and the name of a person column that is not published.
    """
    about = [
        [f["name"], f["type"], f.get(OURS, f).get("role", ""), f.get("description", "")]
        for f in json.loads(schema)["fields"]
    ]
    found: dict[str, Texts] = {"Dictionary": [["column", "type", "role", "how it reads"], *about]}
    if sheet is not None:
        columns = (f"{d.column} ({d.role})" for d in sheet.diversity)
        shown = {*FIGURES, *columns}
        said = [[name, "", "", text] for name, text in sheet.facts().items() if name in shown]
        k = ["k reached", "", "", f"{sheet.k:,} (agreed {sheet.k_agreed:,})"]
        found["Privacy"] = [["measure", "", "", "what was reached"], k, *said]
    return found


def _type(kind: pa.DataType) -> str:
    return next((name for test, name in TYPES if test(value_type(kind))), "any")


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """The files that a release writes; None if one is not asked for."""

    table: FilePath | None
    sheet: FilePath | None
    overwrite: bool

    @classmethod
    def check(
        cls,
        table: FilePath | None,
        sheet: FilePath | None,
        inputs: Sequence[object],
        overwrite: bool,
    ) -> "OutputFiles":
        """Raise unless all can be written, and replace neither an input nor each other."""
        if table is not None:
            check_table_name(table)
        found = cls(table, sheet, overwrite)
        wanted = [path for path in (table, sheet, found.schema) if path is not None]
        for path in wanted:
            path_text(path)
            check_apart(path, filter(is_path, (*inputs, *(o for o in wanted if o is not path))))
            # Whether a dictionary that is there is the same one is known when it is made.
            check_writable(path, overwrite=overwrite or path == found.schema)
        return found

    @property
    def schema(self) -> str | None:
        """Where the dictionary goes: beside the table."""
        return None if self.table is None else schema_path(path_text(self.table))

    def table_aside(
        self,
        table: object,
        form: TextForm,
        sheets: Callable[[], Mapping[str, Texts]],
        expanded: Collection[str] = (),
    ) -> AbstractContextManager[Aside | None]:
        """The table, written, to take its name in the block."""
        if self.table is None:
            return nullcontext()
        return table_aside(
            table, self.table, overwrite=self.overwrite, expanded=expanded, form=form, sheets=sheets
        )

    @contextmanager
    def texts_aside(self, sheet: str, schema: str) -> Iterator[list[Aside]]:
        """The sheet and the dictionary, written, to take their names in the block."""
        with ExitStack() as stack:
            asides = []
            for path, text, private in ((self.sheet, sheet, True), (self.schema, schema, False)):
                if path is not None and not (path == self.schema and _holds(path, text)):
                    beginning = begun(path, overwrite=self.overwrite, folder=False, private=private)
                    aside = stack.enter_context(beginning)
                    write_bytes(aside.path, text.encode() + b"\n")
                    aside.settle()
                    asides.append(aside)
            yield asides


def _holds(path: FilePath, text: str) -> bool:
    """Whether a file has this very text, so that it need not be written."""
    try:
        return Path(path).read_bytes() == text.encode() + b"\n"
    except OSError:
        return False
