"""Folders that are no delivery, each an honest one spoiled in one thing alone.

Where a file is changed its digest is stated anew, but for the cases whose very point it is that
one is not.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from verix_anon.conform.folders import parts, with_cell
from verix_anon.conform.tables import canonical

__all__ = ["HEADER", "MALFORMED", "OTHER", "RECORDS", "Malformed"]

HEADER, RECORDS, LEAVES, NODES = (
    "delivery.json",
    "records.parquet",
    "leaves.parquet",
    "nodes.parquet",
)
OTHER = "0" * 64
"""A digest of nothing."""
Spoil = Callable[[Path], object]


@dataclass(frozen=True, slots=True)
class Malformed:
    """What is done to an honest delivery."""

    title: str
    section: str
    """Of the specification"""
    spoil: Spoil


def _header(**fields: object) -> Spoil:
    """Other fields in delivery.json."""

    def spoil(folder: Path) -> None:
        header = json.loads((folder / HEADER).read_bytes())
        (folder / HEADER).write_bytes(canonical({**header, **fields}))

    return spoil


def _bytes(name: str, change: Callable[[bytes], bytes], *, restated: bool = True) -> Spoil:
    """Other bytes in a file."""

    def spoil(folder: Path) -> None:
        (folder / name).write_bytes(change((folder / name).read_bytes()))
        if restated:
            _restate(folder, name)

    return spoil


def _fraction(folder: Path) -> None:
    header = json.loads((folder / HEADER).read_bytes())
    (folder / HEADER).write_bytes(canonical({**header, "rows": float(header["rows"])}))


def _other_digest(name: str) -> Spoil:
    def spoil(folder: Path) -> None:
        header = json.loads((folder / HEADER).read_bytes())
        header["files"][name] = OTHER
        (folder / HEADER).write_bytes(canonical(header))

    return spoil


def _other_digest_of_parts(folder: Path) -> None:
    table = pq.ParquetFile(folder / RECORDS).read()
    (folder / RECORDS).unlink()
    parts(table, folder / RECORDS)
    _other_digest(RECORDS)(folder)


def _from_right_to_left(folder: Path) -> None:
    """All leaves are numbered the other way round, in all files alike."""
    last = json.loads((folder / HEADER).read_bytes())["leaves"] - 1

    def renumbered(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index("leaf")
        numbers = [last - leaf if leaf >= 0 else leaf for leaf in table.column(at).to_pylist()]
        return table.set_column(at, "leaf", pa.array(numbers, pa.int32()))

    _table(RECORDS, renumbered)(folder)
    _table(NODES, renumbered)(folder)
    _table(LEAVES, lambda table: renumbered(table).take(list(range(last, -1, -1))))(folder)


def _restate(folder: Path, name: str) -> None:
    header = json.loads((folder / HEADER).read_bytes())
    header["files"][name] = sha256((folder / name).read_bytes()).hexdigest()
    (folder / HEADER).write_bytes(canonical(header))


def _table(name: str, change: Callable[[pa.Table], pa.Table], **writing: Any) -> Spoil:
    """Another table in a file."""

    def spoil(folder: Path) -> None:
        table = change(pq.ParquetFile(folder / name).read())
        pq.write_table(table, folder / name, **writing)
        _restate(folder, name)

    return spoil


def _wider(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("leaf")
    return table.set_column(at, "leaf", table.column(at).cast(pa.int64()))


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def _same(table: pa.Table) -> pa.Table:
    return table


MALFORMED: dict[str, Malformed] = {
    "no-header": Malformed(
        "There is no delivery.json.", "8.2", lambda folder: (folder / HEADER).unlink()
    ),
    "no-nodes": Malformed("A file is missing.", "8.2", lambda folder: (folder / NODES).unlink()),
    "header-no-json": Malformed(
        "delivery.json is cut short.", "8.2", _bytes(HEADER, lambda data: data[:-1], restated=False)
    ),
    "header-twice": Malformed(
        "A field of delivery.json stands there twice.",
        "8.2",
        _bytes(HEADER, lambda data: b'{"rows":1,' + data[1:], restated=False),
    ),
    "header-more": Malformed("delivery.json has a field of its own.", "8.2", _header(note="")),
    "header-format": Malformed(
        "delivery.json is of another version.", "8.2", _header(format="verix/delivery/3")
    ),
    "header-fraction": Malformed(
        "A count of delivery.json is written as a fraction.", "8.2", _fraction
    ),
    "header-leaves": Malformed(
        "More leaves than the records can make.", "11", _header(leaves=401, nodes=801)
    ),
    "header-nodes": Malformed("As many nodes as no tree has.", "11", _header(nodes=2)),
    "header-rows": Malformed("More records than were sent.", "11", _header(rows=10**6)),
    "damaged": Malformed(
        "A bit of the records was flipped, and the digest not stated anew.",
        "8.2",
        _bytes(RECORDS, _flipped, restated=False),
    ),
    "other-digest": Malformed(
        "The files are honest, and another digest of one is stated.", "8.2", _other_digest(LEAVES)
    ),
    "parts-digest": Malformed(
        "The parts are honest, and another digest of them is stated.",
        "8.3",
        _other_digest_of_parts,
    ),
    "no-parquet": Malformed("A file is no Parquet.", "8", _bytes(LEAVES, lambda _: b"leaves\n")),
    "cut-short": Malformed("A file is cut short.", "8", _bytes(RECORDS, lambda data: data[:-9])),
    "more-rows": Malformed(
        "More records than delivery.json says.",
        "11",
        _table(RECORDS, lambda table: pa.concat_tables([table, table.slice(0, 1)])),
    ),
    "more-columns": Malformed(
        "A column more.", "8", _table(LEAVES, lambda t: t.append_column("note", t.column("count")))
    ),
    "wider-type": Malformed("A column of another type.", "8", _table(RECORDS, _wider)),
    "null": Malformed("A value is missing.", "8", _table(RECORDS, with_cell("leaf", 3, None))),
    "encoding": Malformed(
        "An encoding that can unfold without limit.",
        "8",
        _table(
            RECORDS,
            _same,
            use_dictionary=False,
            column_encoding={"tracker": "DELTA_BYTE_ARRAY"},
        ),
    ),
    "row-beyond": Malformed(
        "A row that was not sent.", "11", _table(RECORDS, with_cell("row", 0, 10**6))
    ),
    "leaf-beyond": Malformed(
        "A leaf that there is not.", "11", _table(RECORDS, with_cell("leaf", 0, 10**6))
    ),
    "target-beyond": Malformed(
        "A target that is neither 0 nor 1.", "11", _table(RECORDS, with_cell("target", 0, 2))
    ),
    "bound-infinite": Malformed(
        "A bound that is not finite.", "11", _table(LEAVES, with_cell("max_0", 0, math.inf))
    ),
    "bound-none": Malformed(
        "A bound that is no number.", "11", _table(LEAVES, with_cell("min_0", 0, math.nan))
    ),
    "bounds-crossed": Malformed(
        "A least value above the greatest.", "11", _table(LEAVES, with_cell("min_0", 0, 1e9))
    ),
    "threshold-infinite": Malformed(
        "A threshold that is not finite.", "11", _table(NODES, with_cell("threshold", 0, math.inf))
    ),
    "column-beyond": Malformed(
        "A split by a column that there is not.", "11", _table(NODES, with_cell("column", 0, 5))
    ),
    "loop": Malformed(
        "A node that is its own child.", "11", _table(NODES, with_cell("right", 0, 0))
    ),
    "leaf-order": Malformed(
        "Leaves are numbered from right to left, in all files alike.", "11", _from_right_to_left
    ),
}
