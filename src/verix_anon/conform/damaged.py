"""Submissions that are not what submission.json says, or not what their contract allows.

Each is wrong in one thing alone: where records are changed, every digest is made anew, but for the
cases whose very point it is that one is not.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from verix_anon.conform.contracts import N, clear, spread
from verix_anon.conform.folders import (
    Draft,
    Refused,
    as_in_cluster,
    described,
    draft,
    job_of,
    one_file,
    parts,
    with_cell,
)
from verix_anon.conform.tables import Sent, canonical

__all__ = ["DAMAGED"]

OTHER = "0" * 64


def _honest(made: Sent) -> Draft:
    return draft(made, job_of(described(made), made))


def _stated(**fields: object) -> Callable[[], Draft]:
    """What submission.json says, changed."""

    def make() -> Draft:
        made = _honest(clear())
        return replace(made, header={**made.header, **fields})

    return make


def _digest_stated(name: str) -> Callable[[dict[str, Any]], bytes]:
    """submission.json with another digest of one of the files."""
    return lambda header: canonical({**header, "files": {**header["files"], name: OTHER}})


def _table(change: Callable[[pa.Table], pa.Table]) -> Callable[[], Draft]:
    """The records as a file with something changed."""

    def make() -> Draft:
        made = _honest(clear())
        return replace(made, table=change(made.table))

    return make


def _written(write: Callable[[pa.Table, Path], None]) -> Callable[[], Draft]:
    return lambda: replace(_honest(clear()), write=write)


def _valued(j: int, value: float, base: Callable[[], Sent] = clear) -> Callable[[], Draft]:
    """A submission with a value that its contract does not allow, and digests that fit it."""

    def make() -> Draft:
        made = base()
        columns = list(made.columns)
        columns[j] = [value, *columns[j][1:]]
        return _honest(replace(made, columns=columns))

    return make


def _typed(name: str, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        return table.set_column(at, name, table.column(name).cast(kind))

    return change


def _short_trackers(table: pa.Table) -> pa.Table:
    short = [tracker[:31] for tracker in table.column("tracker").to_pylist()]
    return table.set_column(1, "tracker", pa.array(short, pa.binary(31)))


def _truncated(table: pa.Table, path: Path) -> None:
    one_file(table, path)
    path.write_bytes(path.read_bytes()[:-9])


def _flipped(table: pa.Table, path: Path) -> None:
    """One bit of the first page, which no checksum of the file shows."""
    pq.write_table(table, path, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    tracker = table.column("tracker")[3].as_py()
    data[data.index(tracker) + 7] ^= 1
    path.write_bytes(data)


def _unbounded(table: pa.Table, path: Path) -> None:
    pq.write_table(
        table, path, use_dictionary=False, column_encoding={"tracker": "DELTA_BYTE_ARRAY"}
    )


def _short_in_parts(table: pa.Table, path: Path) -> None:
    """Of one row alone, as only the parts of a cluster can have it."""
    trackers = table.column("tracker").to_pylist()
    trackers[2] = trackers[2][:31]
    parts(table.set_column(1, "tracker", pa.array(trackers, pa.binary())), path)


def _no_parts(_: pa.Table, path: Path) -> None:
    path.mkdir()
    (path / "_SUCCESS").touch()


def _more_than_parts(table: pa.Table, path: Path) -> None:
    parts(table, path)
    (path / "notes.txt").write_text("not a part\n")


def _name_in_another_script(table: pa.Table, path: Path) -> None:
    parts(table, path)
    (path / "part-00000.parquet").rename(path / "часть-00000.parquet")


def _folder_among_parts(table: pa.Table, path: Path) -> None:
    parts(table, path)
    (path / "older").mkdir()
    (path / "older" / "notes.txt").write_text("not a part\n")


def _wrapping_in_parts(table: pa.Table, path: Path) -> None:
    """A label of 256, which is 0 to whoever keeps its lowest byte alone."""
    parts(table, path)
    part = path / "part-00000.parquet"
    written = pq.ParquetFile(part).read()
    row = written.column("y").to_pylist().index(0)
    pq.write_table(with_cell("y", row, 256)(written), part)


def _refused(title: str, make: Callable[[], Draft], section: str = "8.1") -> Refused:
    return Refused(title, section, make)


DAMAGED: dict[str, Refused] = {
    "header-missing": _refused(
        "There is no submission.json.",
        lambda: replace(_honest(clear()), left_out=("submission.json",)),
    ),
    "contract-missing": _refused(
        "There is no contract.json.",
        lambda: replace(_honest(clear()), left_out=("contract.json",)),
    ),
    "records-missing": _refused(
        "There is no records.parquet.",
        lambda: replace(_honest(clear()), left_out=("records.parquet",)),
    ),
    "header-format": _refused("Another format.", _stated(format="verix/submission/9")),
    "header-unknown-field": _refused(
        "A field that submission.json does not have.", _stated(more=1)
    ),
    "header-field-twice": _refused(
        "A field that stands twice.",
        lambda: replace(
            _honest(clear()), header_bytes=lambda header: b'{"rows":24,' + canonical(header)[1:]
        ),
        "8.2",
    ),
    "header-fraction": _refused("24.0 rows.", _stated(rows=float(N)), "8.2"),
    "header-long": _refused(
        "submission.json of more than 64 KiB.",
        lambda: replace(
            _honest(clear()), header_bytes=lambda header: canonical(header) + b" " * 65536
        ),
        "8.2",
    ),
    "header-rows": _refused("More rows than are stated.", _stated(rows=N - 1)),
    "digest-contract": _refused("Another digest of the contract.", _stated(contract=OTHER)),
    "digest-submission": _refused(
        "Another digest of the submission than its records have.", _stated(submission=OTHER), "6.1"
    ),
    "digest-contract-file": _refused(
        "Another SHA-256 of contract.json.",
        lambda: replace(_honest(clear()), header_bytes=_digest_stated("contract.json")),
    ),
    "digest-records-file": _refused(
        "Another SHA-256 of records.parquet.",
        lambda: replace(_honest(clear()), header_bytes=_digest_stated("records.parquet")),
    ),
    "records-truncated": _refused("Parquet that ends early.", _written(_truncated)),
    "records-flipped": _refused(
        "A bit of a tracker that changed before the file was hashed.", _written(_flipped), "6.1"
    ),
    "records-encoding": _refused(
        "An encoding that can unfold without limit.", _written(_unbounded), "8"
    ),
    "row-missing": _refused("A row that is missing.", _table(lambda table: table.slice(0, N - 1))),
    "row-twice": _refused("A row that stands twice.", _table(with_cell("row", 5, 4))),
    "row-beyond": _refused("A row beyond the last.", _table(with_cell("row", 5, N))),
    "row-negative": _refused("A row below 0.", _table(with_cell("row", 5, -1))),
    "value-missing": _refused("A null.", _table(with_cell("a", 5, None)), "8"),
    "value-nan": _refused("A value that is no number.", _valued(0, math.nan), "2.1"),
    "value-infinite": _refused("An infinite value.", _valued(0, math.inf), "2.1"),
    "value-beyond": _refused(
        "A position beyond the last of its column.", _valued(1, 5, spread), "2.1"
    ),
    "value-negative": _refused("A position below 0.", _valued(0, -1, spread), "2.1"),
    "value-target": _refused("A label that is neither 0 nor 1.", _valued(1, 2), "6.1"),
    "value-target-in-parts": _refused(
        "A label of 256 among the parts.", _written(_wrapping_in_parts), "8.3"
    ),
    "column-missing": _refused(
        "A column that is missing.", _table(lambda table: table.drop_columns(["b"]))
    ),
    "column-more": _refused(
        "A column that the contract does not have.",
        _table(lambda table: table.append_column("c", table.column("b"))),
    ),
    "column-order": _refused(
        "Columns in another order than the contract's.",
        _table(lambda table: table.select(["row", "tracker", "b", "y", "a"])),
    ),
    "column-type": _refused("binary32 in place of binary64.", _table(_typed("a", pa.float32()))),
    "cluster-types-in-one-file": _refused(
        "The types of a cluster's parts in a file that is none.",
        _table(as_in_cluster),
        "8.3",
    ),
    "tracker-short": _refused("Trackers of 31 bytes.", _table(_short_trackers)),
    "tracker-short-in-parts": _refused(
        "A tracker of 31 bytes among the parts.", _written(_short_in_parts), "8.3"
    ),
    "parts-none": _refused("A folder without a part.", _written(_no_parts), "8.3"),
    "parts-more": _refused(
        "A folder with a file that is no part.", _written(_more_than_parts), "8.3"
    ),
    "parts-not-ascii": _refused(
        "A part whose name is not ASCII.", _written(_name_in_another_script), "8.3"
    ),
    "parts-folder": _refused("A folder among the parts.", _written(_folder_among_parts), "8.3"),
    "parts-digest": _refused(
        "Another digest of the parts.",
        lambda: replace(
            _honest(clear()), write=parts, header_bytes=_digest_stated("records.parquet")
        ),
        "8.3",
    ),
    "too-few-records": _refused(
        "Fewer records than min_leaf.", lambda: _honest(clear(min_leaf=N + 1)), "4"
    ),
    "too-few-by-far": _refused(
        "The greatest min_leaf that there is.", lambda: _honest(clear(min_leaf=2**31 - 1)), "4"
    ),
}
