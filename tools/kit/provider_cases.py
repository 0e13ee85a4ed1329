"""The submissions that a provider is shown: those to answer, and those to refuse.

`provider_cases.toml` is the table of them. Here stands what its words mean, and how a case is made.
"""

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tools.kit import folders, independent, large, tables
from tools.kit.folders import as_in_cluster, parts, with_cell, with_type
from tools.kit.tables import KitSubmission, canonical, one_file
from tools.kit.writing import Made, UnmadeCase
from verix_anon.conform.kit import CaseKind, KitSize

Row = Mapping[str, Any]
"""What the table of cases says of one."""

MANY = 100_000
"""Records from which on the plain implementation would take minutes."""
OTHER = "0" * 64

_cases: dict[str, dict[str, Row]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)
ANSWERED, LARGE = _cases["answered"], _cases["large"]
CONTRACTS, DAMAGED = _cases["contracts"], _cases["damaged"]


def for_providers(size: KitSize = KitSize.SMALL) -> list[UnmadeCase]:
    """What a provider is shown: what it must answer, and, in small, what it must refuse."""

    def cases(kind: CaseKind, rows: dict[str, Row], write: Callable[..., Made]) -> list[UnmadeCase]:
        return [
            UnmadeCase(
                id=name,
                title=row["title"],
                section=row["section"],
                kind=kind,
                make=partial(write, name, row),
            )
            for name, row in rows.items()
        ]

    if size is KitSize.LARGE:
        return cases(CaseKind.ANSWERED, LARGE, _write_answered)
    answered = cases(CaseKind.ANSWERED, ANSWERED, _write_answered)
    return answered + cases(CaseKind.REFUSED, CONTRACTS | DAMAGED, _write_refused)


def _write_answered(name: str, row: Row, kit: Path) -> Made:
    sent = submission(row)
    by = large.grow if len(sent.trackers) > MANY else None
    result = independent.anonymize(sent.contract, sent.trackers, sent.columns, by)
    paths = {"submission": f"submissions/{name}", "delivery": f"deliveries/{name}"}
    folders.write_submission(sent, kit / paths["submission"])
    folders.write_delivery(sent, result, kit / paths["delivery"])
    # The names that these modules had when this version of the cases was first made.
    grown = "verix_anon.conform.large" if by else "verix_anon.conform.independent"
    return paths, {"root": result.root, "grown_by": grown}


def _write_refused(name: str, row: Row, kit: Path) -> Made:
    folders.write_submission(submission(row), kit / "refused" / name)
    return {"submission": f"refused/{name}"}, {}


def submission(row: Row) -> KitSubmission:
    """The submission of a case: one of `tables`, with what the case changes."""
    make = getattr(tables, row.get("table", "clear"))
    made: KitSubmission = make(*row.get("of", ()), **row.get("terms", {}))
    columns = [made.columns[j] for j in row.get("columns_kept", range(len(made.columns)))]
    if "value" in row:
        # Digests fit it, though the contract does not allow it.
        j, value = row["value"]
        columns[j] = [value, *columns[j][1:]]
    return replace(
        made,
        contract=_contract(made, row),
        columns=columns,
        change=_change(row),
        write=partial(_write, row),
        header=row.get("header", {}),
        header_bytes=partial(_header_bytes, row),
        left_out=row.get("left_out", ""),
    )


def _contract(made: KitSubmission, row: Row) -> bytes:
    """The contract with other fields, in canonical form; then with other text."""
    fields = json.loads(made.contract)
    fields.update(row.get("contract", {}))
    fields.pop(row.get("contract_without"), None)
    kept = row.get("columns_kept", range(len(fields["columns"])))
    columns = fields["columns"] = [{**fields["columns"][j]} for j in kept]
    if "column" in row:
        columns[row["column"]].update(row.get("becomes", {}))
        columns[row["column"]].pop(row.get("column_without"), None)
    for column in columns:
        if column["role"] == "quasi":
            column.update(row.get("each_quasi", {}))
    if row.get("contract_reversed"):
        return json.dumps(dict(reversed(fields.items())), separators=(",", ":")).encode()
    old, new = row.get("contract_text", ("", ""))
    return canonical(fields).replace(old.encode(), new.encode(), 1)


def _header_bytes(row: Row, header: dict[str, Any]) -> bytes:
    """submission.json in another form, or with another digest of one of the files."""
    if row.get("header_form") == "pretty":
        return tables.pretty(header)
    if "states" in row:
        header = {**header, "files": {**header["files"], row["states"]: OTHER}}
    old, new = row.get("header_text", ("", ""))
    padding: int = row.get("header_padding", 0)
    return canonical(header).replace(old.encode(), new.encode(), 1) + b" " * padding


def _change(row: Row) -> Callable[[pa.Table], pa.Table]:
    """What becomes of the table of records before it is written."""
    if "cell" in row:
        name, at, value = (*row["cell"], None)[:3]
        return with_cell(name, at, value)
    if "type" in row:
        return with_type(row["type"][0], pa.type_for_alias(row["type"][1]))
    if "select" in row:
        return lambda table: table.select(row["select"])
    if "rows" in row:
        return lambda table: table.slice(0, row["rows"])
    changes = {
        "as_in_cluster": as_in_cluster,
        "with_copy": lambda table: table.append_column("c", table.column("b")),
        "with_short_trackers": _with_short_trackers,
    }
    return changes[row["change"]] if "change" in row else lambda table: table


def _with_short_trackers(table: pa.Table) -> pa.Table:
    short = [tracker[:31] for tracker in table.column("tracker").to_pylist()]
    return table.set_column(1, "tracker", pa.array(short, pa.binary(31)))


def _write(row: Row, table: pa.Table, path: Path) -> None:
    """Write the records, and then do something to what was written."""
    WRITES[row.get("write", "one_file")](table, path)
    if "spoil" in row:
        SPOILS[row["spoil"]](path)


def _flipped(table: pa.Table, path: Path) -> None:
    """One bit of the first page, which no checksum of the file shows."""
    pq.write_table(table, path, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    tracker = table.column("tracker")[3].as_py()
    data[data.index(tracker) + 7] ^= 1
    path.write_bytes(data)


def _parts_with_short_tracker(table: pa.Table, path: Path) -> None:
    """Of one row alone, as only the parts of a cluster can have it."""
    trackers = table.column("tracker").to_pylist()
    trackers[2] = trackers[2][:31]
    parts(table.set_column(1, "tracker", pa.array(trackers, pa.binary())), path)


def _no_parts(_: pa.Table, path: Path) -> None:
    path.mkdir()
    (path / "_SUCCESS").touch()


WRITES: dict[str, Callable[[pa.Table, Path], None]] = {
    "one_file": one_file,
    "packed_otherwise": folders.packed_otherwise,
    "as_prepared": folders.as_prepared,
    "with_minus_zeros": folders.with_minus_zeros,
    "without_limit": partial(pq.write_table, **folders.WITHOUT_LIMIT),
    "flipped": _flipped,
    "parts": parts,
    "parts_by_name": folders.parts_by_name,
    "parts_with_short_tracker": _parts_with_short_tracker,
    "no_parts": _no_parts,
}


def _add_folder(path: Path) -> None:
    (path / "older").mkdir()
    (path / "older" / "notes.txt").write_text("not a part\n")


def _wrap_label(path: Path) -> None:
    """A label of 256, which is 0 to a reader that keeps its lowest byte alone."""
    part = path / "part-00000.parquet"
    written = pq.ParquetFile(part).read()
    row = written.column("y").to_pylist().index(0)
    pq.write_table(with_cell("y", row, 256)(written), part)


SPOILS: dict[str, Callable[[Path], object]] = {
    "truncate": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "add_notes": lambda path: (path / "notes.txt").write_text("not a part\n"),
    "rename_part": lambda path: (path / "part-00000.parquet").rename(path / "часть-00000.parquet"),
    "add_folder": _add_folder,
    "wrap_label": _wrap_label,
}
