"""The published table: made from classes, and written with its sheet and dictionary (spec §12).

Nothing is published but columns: what else a table carries is taken off it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Ids
from verix_anon.client.arguments import FilePath, is_path
from verix_anon.client.notebook import as_list, as_table
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.release.cells import MOST_TEXTS, Cells, by_value
from verix_anon.client.release.classes import ClassCells
from verix_anon.client.release.row_order import random_order
from verix_anon.client.release.source import Source
from verix_anon.client.table.categories import is_text
from verix_anon.client.table.columns import columns_of, without_views
from verix_anon.client.table.task import TableRole
from verix_anon.errors import TableError
from verix_anon.fields import to_json
from verix_anon.files.atomic_write import Aside, begun, check_apart, check_free, write_bytes
from verix_anon.files.store import path_text
from verix_anon.files.tables import Parts, Stored, check_table_name, table_aside
from verix_anon.protocol.contract import Digest

FORMAT = "verix/schema/2"
"""Of a dictionary as a JSON file."""
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
"""So few labels of an ordered column stay in their order, whatever it is."""
TableT = TypeVar("TableT")


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """The owner's table with identifiers out and quasi-identifiers as published."""

    kept: nw.DataFrame[Any] | None
    """The owner's columns that are published as they are, in the order of the table."""
    library: Any
    """Of the owner's table."""
    names: Sequence[str]
    class_of_row: Ids
    """Of the owner's rows, in the order of the table."""
    columns: Mapping[str, pa.Array]
    """With one value per class."""
    of_quasi: Mapping[str, Sequence[str]]
    """Which of these are published of each quasi-identifier."""
    order: Ids | None
    """The owner's row that each published row is; None: they stand as in the table."""

    def rows(self, begin: int = 0, end: int | None = None) -> Ids:
        """The owner's rows that these published rows are."""
        if self.order is not None:
            return self.order[begin:end]
        return np.arange(begin, self.class_of_row.size if end is None else end, dtype=np.int32)

    def native(self) -> object:
        """As a table of the owner's kind."""
        order = self.rows()
        rows = pa.array(self.class_of_row[order])
        with ThreadPoolExecutor() as pool:
            new = pool.map(lambda array: _plain(array).take(rows), self.columns.values())
            # By number: Polars gives a column whose name is empty another.
            published = pa.table({str(i): array for i, array in enumerate(new)})
        columns = nw.from_arrow(published, backend=self.library)
        named = [columns[str(i)].alias(name) for i, name in enumerate(self.columns)]
        frame = columns.select(*named)
        if self.kept is not None:
            # Not every type that Arrow holds can be put in another order; those that are left can.
            bare: Any = bare_frame(self.kept)
            kept = nw.from_native(bare, eager_only=True)[order]
            # A pandas index is no column, and would tell the old order.
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
            found = self.columns[name].take(pa.array(self.class_of_row[rows]))
            return found if name in texts else _plain(found)

        def part(begin: int, end: int) -> pa.Table:
            rows = self.rows(begin, end)
            return pa.table([column(name, rows) for name in self.names], list(self.names))

        return Parts(self.class_of_row.size, part)


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def assemble(
    table: object,
    source: Source,
    roles: Mapping[str, str],
    written: ClassCells,
    *,
    keep_order: bool,
) -> Published:
    """Put what is published of each class beside what is kept, in random order or the table's."""
    of_quasi = {each.name: tuple(each.columns) for each in written.cells}
    names: list[str] = []
    for name in source.types:
        if roles[name] != TableRole.IDENTIFIER:
            names.extend(of_quasi.get(name, [name]))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TableError(f"the release would have two columns {twice!r}; rename the one there is")
    library, kept = _kept(table, source)
    order = None if keep_order else random_order(written.of_row.size)
    return Published(kept, library, names, written.of_row, written.columns, of_quasi, order)


def _kept(table: object, source: Source) -> tuple[Any, nw.DataFrame[Any] | None]:
    """The library of the table, and its columns that are published as they are, if any."""
    held = pa.table(dict(source.kept)) if isinstance(table, Stored) else table
    frame: nw.DataFrame[Any] = nw.from_native(held, eager_only=True)
    return frame.implementation, frame.select(list(source.kept)) if source.kept else None


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
        return self.published.rows()

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
) -> str:
    """The dictionary of a released table: what each column is, and how its cells read.

    Its fields are those of Frictionless Table Schema where they fit. It is published with the
    table, and holds nothing that the table's cells do not show, except the labels of a column that
    has no hierarchy, which `*` and `not {a}` speak of.

    Args:
        names: The published columns, in order.
        types: The types of the owner's columns.
        roles: The role of each of the owner's columns.
        cells: What is published of each quasi-identifier.
    """
    fields: dict[str, dict[str, object]] = {}
    for each in cells:
        for name, array in each.columns.items():
            fields[name] = {"name": name, "type": _type(array.type), **each.described}
    for name, kind in types.items():
        if roles[name] != TableRole.QUASI:
            fields[name] = {"name": name, "type": _type(kind), "role": str(roles[name])}
    document = {
        "format": FORMAT,
        "fields": [fields[name] for name in names],
        "missingValues": [""],
    }
    return to_json(document)


def _type(kind: pa.DataType) -> str:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return next((name for test, name in TYPES if test(plain)), "any")


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
            check_free(path, overwrite=overwrite)
        return found

    @property
    def schema(self) -> str | None:
        """Where the dictionary goes: beside the table."""
        return None if self.table is None else schema_path(path_text(self.table))

    @contextmanager
    def table_aside(self, published: Published) -> Iterator[Aside | None]:
        """The table, written, to take its name in the block."""
        if self.table is None:
            yield None
            return
        rows, texts = published.parts(), published.texts
        with table_aside(rows, self.table, overwrite=self.overwrite, expanded=texts) as aside:
            yield aside

    @contextmanager
    def texts_aside(self, sheet: str, schema: str) -> Iterator[list[Aside]]:
        """The sheet and the dictionary, written, to take their names in the block."""
        with ExitStack() as stack:
            asides = []
            for path, text, private in ((self.sheet, sheet, True), (self.schema, schema, False)):
                if path is not None:
                    beginning = begun(path, overwrite=self.overwrite, folder=False, private=private)
                    aside = stack.enter_context(beginning)
                    write_bytes(aside.path, text.encode() + b"\n")
                    aside.settle()
                    asides.append(aside)
            yield asides
