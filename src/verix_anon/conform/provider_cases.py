"""The submissions that a provider is shown: those to answer, and those to refuse.

Each is a row of a table: the id of the case, the section of the specification, what the case shows,
and the change that makes its submission. What must be refused is wrong in one thing alone: where a
contract or records are changed, every digest is made to fit, except in the cases about a digest.
"""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from verix_anon.conform import KitSize, folders, independent, large, tables
from verix_anon.conform.folders import as_in_cluster, parts, with_cell, with_type
from verix_anon.conform.kit import CaseKind, KitCase, Made
from verix_anon.conform.tables import CLEAR_TARGET, KitSubmission, canonical, one_file

Make = Callable[[], KitSubmission]
Write = Callable[[pa.Table, Path], None]
Rows = dict[str, tuple[str, str, Make]]
"""By id: section of the specification, what it shows, and what makes the submission."""

MANY = 100_000
"""Records from which on the plain implementation would take minutes."""
N = 24
"""Records of the submission in which most of those to be refused begin"""
OTHER = "0" * 64


def for_providers(size: KitSize = KitSize.SMALL) -> list[KitCase]:
    """What a provider is shown: what it must answer, and, in small, what it must refuse."""
    if size is KitSize.LARGE:
        return _cases(CaseKind.ANSWERED, LARGE)
    return _cases(CaseKind.ANSWERED, ANSWERED) + _cases(CaseKind.REFUSED, CONTRACTS | DAMAGED)


def _cases(kind: CaseKind, rows: Rows) -> list[KitCase]:
    write = _write_answered if kind is CaseKind.ANSWERED else _write_refused
    return [
        KitCase(id=name, title=title, section=section, kind=kind, make=partial(write, name, make))
        for name, (section, title, make) in rows.items()
    ]


def _write_answered(name: str, make: Make, kit: Path) -> Made:
    sent = make()
    by = large.grow if len(sent.trackers) > MANY else None
    result = independent.anonymize(sent.contract, sent.trackers, sent.columns, by)
    paths = {"submission": f"submissions/{name}", "delivery": f"deliveries/{name}"}
    folders.write_submission(sent, kit / paths["submission"])
    folders.write_delivery(sent, result, kit / paths["delivery"])
    grown = "verix_anon.conform.large" if by else "verix_anon.conform.independent"
    return paths, {"root": result.root, "grown_by": grown}


def _write_refused(name: str, make: Make, kit: Path) -> Made:
    folders.write_submission(make(), kit / "refused" / name)
    return {"submission": f"refused/{name}"}, {}


def _row(
    section: str, title: str, make: Callable[..., KitSubmission], *values: object, **terms: object
) -> tuple[str, str, Make]:
    return section, title, partial(make, *values, **terms)


ANSWERED: Rows = {
    "continuous": _row("4.1", "Three columns of numbers without ties.", tables.continuous),
    "continuous-paper": _row("6.3", "The same under the paper's commitment.",
        tables.continuous, commitment="paper"),
    "mixed": _row("6.1",
        "Numbers, dates, categories and a constant column, with names beyond ASCII.", tables.mixed),
    "mixed-paper": _row("6.3",
        "The same under the paper's commitment: names are sorted, values have six decimals.",
        tables.mixed, commitment="paper"),
    "extremes": _row("6.2",
        "The greatest and the least binary64 numbers, neighbours of 1, and zeros.",
        tables.extremes, "binding"),
    "extremes-paper": _row("6.3",
        "The same under the paper's commitment: rounded half to even, and no -0.000000.",
        tables.extremes, "paper"),
    "depth-one": _row("4.1", "A tree that ends at max_depth.", tables.continuous, max_depth=1),
    "min-leaf": _row("4.1", "min_leaf decides, not k.", tables.continuous, k=3, min_leaf=4),
    "coded": _row("2.1", "Coded columns and a coded target.", tables.coded, None),
    "coded-min-leaf": _row("4.1", "The same with leaves of k.",
        tables.coded, None, k=3, min_leaf=3),
    "spread": _row("4.2",
        "The other rule: weights, a skewed column split below its median, a constant one.",
        tables.spread, [1, 9, 4, 2**52], min_leaf=2),
    "spread-2k": _row("4.2", "The same with leaves of 2k.", tables.spread, [1, 9, 4, 1], k=4),
    "spread-ties": _row("4.2", "Equal scores under weights: the first in contract order.",
        tables.spread, [3, 44, 25, 7], k=3, min_leaf=3),
    "spread-depth": _row("4.2", "Scores near 2^52, and a tree that ends at max_depth.",
        tables.spread, [2**52 // 59, 2**52 // 4, 2**52 // 7, 1], max_depth=2),
    "single-leaf": _row("4.3", "Exactly min_leaf records: one leaf.",
        tables.sent, [tables.numeric("x", tables.uniform(40, 10))], tables.whole(41, 10, 2), k=5),
    "pure": _row("4.1", "All records of one class: one leaf.",
        tables.sent, [tables.numeric("x", tables.uniform(42, 40))], [1] * 40),
    "ties": _row("4.1",
        "Ties make a candidate invalid, and equal scores go to the first in contract order.",
        tables.ties),
    "rounding": _row("4.1", "Two scores that are equal as fractions and are not as binary64.",
        tables.rounding),
    "rounding-order": _row("4.1",
        "Two scores that another order of the operations would not tell apart.",
        tables.rounding_order),
    "constant": _row("4.1", "No column can be split: one leaf.", tables.constant),
    "minority": _row("4.1", "Few records of the positive class.", tables.minority),
    "many-leaves": _row("4.1", "A tree of many levels, from columns of all shapes.",
        tables.many, min_leaf=2),
    "duplicates": _row("4.1", "Every record ten times.", tables.duplicates, None, min_leaf=3),
    "spread-duplicates": _row("4.2", "The same under the other rule.",
        tables.duplicates, 5, rule="importance-spread", min_leaf=3),
    "spread-many-leaves": _row("4.2",
        "A tree of many levels under the other rule, where one value has most of a column.",
        tables.many, rule="importance-spread", k=3, min_leaf=3),
    "spread-binary32": _row("4.2", "Scores that binary32 would not tell apart.", tables.binary32),
    "names": _row("3", "Names that only look reserved, or like something else.", tables.names),
    "names-paper": _row("6.3",
        "Names are sorted by code point; the target's may hold what theirs may not.",
        tables.sorted_names),
    "halves-paper": _row("6.3", "Values between two of six decimals go to the even.",
        tables.halves),
    "below-zero-paper": _row("6.3",
        "A threshold and bounds just below zero: 0.000000, without a sign.", tables.below_zero),
    "units": _row("3", "Datetime columns of each unit below a day.", tables.units),
    "spread-largest": _row("4.2", "Scores of 2^52, and a column of 2^31 - 1 positions.",
        tables.largest),
    "one-chunk": _row("6.1", "As many records as a chunk holds, and no more.", tables.one_chunk),
    "two-chunks": _row("6.1", "One record more than a chunk holds.", tables.two_chunks),
    "packed-otherwise": _row("8.1", "Rows in any order, in many row groups, by another codec.",
        lambda: replace(tables.spread([1, 9, 4, 1], k=4), write=folders.packed_otherwise)),
    "as-prepared": _row("8.1", "The encodings in which an owner writes numbers.",
        lambda: replace(tables.continuous(), write=folders.as_prepared)),
    "minus-zero": _row("2.1", "A file that holds -0.0, which is read as 0.0.",
        lambda: replace(tables.extremes("binding"), write=folders.with_minus_zeros)),
    "parts": _row("8.3", "Records as a folder of parts in a cluster's types, one of them empty.",
        lambda: replace(tables.coded(None, k=4), write=folders.parts)),
    "parts-names": _row("8.3", "Parts in ordinary types, whose names are sorted by code point.",
        lambda: replace(tables.coded(None, k=4), write=folders.parts_by_name)),
    "header-pretty": _row("8.2",
        "submission.json in another form than that of RFC 8785, which no reader asks for.",
        lambda: replace(tables.continuous(), header_bytes=tables.pretty)),
    "tracker-twice": _row("8.1", "Two equal trackers: whether they differ is the owner's affair.",
        tables.equal_trackers),
    "value-half-a-day": _row("8.1", "Dates that are not whole, which is the owner's affair too.",
        tables.half_a_day),
}  # fmt: skip

LARGE: Rows = {
    "large": _row("4.1", "A million records.", tables.million),
    "large-spread": _row("4.2", "A million records under the other rule.",
        tables.million, rule="importance-spread", min_leaf=25),
}  # fmt: skip
"""What takes minutes to make, and is made only when it is asked for."""


_coded: Make = partial(tables.coded, None, k=3)
# Without a target.
_weighed: Make = partial(tables.spread, [1, 9, 4, 1], k=3)
_paper: Make = partial(tables.clear, commitment="paper")


def _bytes(change: Callable[[bytes], bytes]) -> KitSubmission:
    """Other bytes in the contract."""
    made = tables.clear()
    return replace(made, contract=change(made.contract))


def _fields(change: Callable[[dict[str, Any]], object], base: Make = tables.clear) -> KitSubmission:
    """Other fields in the contract, in canonical form."""
    made = base()
    fields = json.loads(made.contract)
    change(fields)
    return replace(made, contract=canonical(fields))


def _terms(base: Make = tables.clear, **terms: object) -> KitSubmission:
    return _fields(lambda fields: fields.update(terms), base)


def _column(j: int, base: Make = tables.clear, **terms: object) -> KitSubmission:
    return _fields(lambda fields: fields["columns"][j].update(terms), base)


def _of(*kept: int, **last: object) -> KitSubmission:
    """Some of the columns alone, or one of them twice; the last is described otherwise."""
    made = tables.clear()
    made = replace(made, columns=[made.columns[j] for j in kept])

    def change(fields: dict[str, Any]) -> None:
        fields["columns"] = [{**fields["columns"][j]} for j in kept]
        fields["columns"][-1].update(last)

    return _fields(change, lambda: made)


def _reversed(data: bytes) -> bytes:
    fields = dict(reversed(json.loads(data).items()))
    return json.dumps(fields, separators=(",", ":")).encode()


def _clear_target(fields: dict[str, Any]) -> None:
    fields["columns"][1] = CLEAR_TARGET


def _spread_with_target(fields: dict[str, Any]) -> None:
    fields["rule"] = "importance-spread"
    for column in fields["columns"]:
        if column["role"] == "quasi":
            column["weight"] = 1


CONTRACTS: Rows = {
    "contract-spaces": _row("3", "Not the canonical form: a blank.",
        _bytes, lambda data: data.replace(b":", b": ", 1)),
    "contract-key-order": _row("3", "Not the canonical form: another order of keys.",
        _bytes, _reversed),
    "contract-key-twice": _row("3", "A field that stands twice.",
        _bytes, lambda data: b'{"k":2,' + data[1:]),
    "contract-fraction": _row("3", "An integer that is written 2.0.",
        _bytes, lambda data: data.replace(b'"k":2,', b'"k":2.0,')),
    "contract-surrogate": _row("3", "A label that is no valid Unicode.",
        _bytes, lambda data: data.replace(b'"yes"', b'"\\ud800"')),
    "contract-unknown-field": _row("3", "A field that the contract does not have.", _terms, more=1),
    "contract-missing-field": _row("3", "A field that is missing.",
        _fields, lambda fields: fields.pop("max_depth")),
    "contract-format": _row("3", "Another format.", _terms, format="verix/contract/9"),
    "contract-id": _row("3", "A submission_id in capitals.", _terms, submission_id="0A" * 16),
    "contract-id-short": _row("3", "A submission_id of 31 digits.", _terms, submission_id="0" * 31),
    "contract-k": _row("3", "k = 1.", _terms, k=1),
    "contract-min-leaf": _row("3", "min_leaf below k.", _terms, k=4, min_leaf=3),
    "contract-max-depth": _row("3", "max_depth beyond 50.", _terms, max_depth=51),
    "contract-no-depth": _row("3", "max_depth = 0.", _terms, max_depth=0),
    "contract-true": _row("3", "max_depth = true.", _terms, max_depth=True),
    "contract-rule": _row("3", "A rule that is none.", _terms, rule="information-gain"),
    "contract-commitment": _row("3", "A commitment that is none.", _terms, commitment="none"),
    "contract-reserved-name": _row("3", "A column named `leaf`.", _column, 0, name="leaf"),
    "contract-reserved-target": _row("3", "A target named `leaf`.", _column, 1, name="leaf"),
    "contract-name-twice": _row("3", "Two columns of one name.", _column, 2, name="a"),
    "contract-role": _row("3", "A role that is not sent.", _column, 0, role="kept"),
    "contract-unit": _row("3", "A datetime column without its unit.", _column, 0, kind="datetime"),
    "contract-unit-other": _row("3", "A unit that is none.",
        _column, 0, kind="datetime", unit="hour"),
    "contract-unit-more": _row("3", "A number with a unit.", _column, 0, unit="day"),
    "contract-label-type": _row("3", "A category that is no text.",
        _column, 1, categories=["no", 1]),
    "contract-label-twice": _row("3", "A label that stands twice.",
        _column, 1, categories=["no", "no"]),
    "contract-three-classes": _row("3", "A target of three classes.",
        _column, 1, categories=["no", "yes", "more"]),
    "contract-three-positions": _row("3", "A coded target of three classes.",
        _column, 1, _coded, size=3),
    "contract-no-quasi": _row("3", "A target, and no quasi-identifier.", _of, 1),
    "contract-no-target": _row("3", "variance-reduction without a target.", _of, 0, 2),
    "contract-two-targets": _row("3", "Two targets.", _of, 0, 1, 2, 1, name="z"),
    "contract-half-coded": _row("3", "One column coded, the others in clear.",
        _column, 2, kind="rank", size=9),
    "contract-clear-target": _row("3", "Coded columns, and a target in clear.",
        _fields, _clear_target, _coded),
    "contract-paper-coded": _row("3", "The paper's commitment over coded columns.",
        _terms, _coded, commitment="paper"),
    "contract-paper-name": _row("3", "A name with `|` under the paper's commitment.",
        _column, 0, _paper, name="a|b"),
    "contract-paper-colon": _row("3", "A name with `:` under the paper's commitment.",
        _column, 0, _paper, name="a:b"),
    "contract-paper-comma": _row("3", "A name with `,` under the paper's commitment.",
        _column, 0, _paper, name="a,b"),
    "contract-spread-target": _row("3", "importance-spread with a target that is sent.",
        _fields, _spread_with_target, _coded),
    "contract-no-weight": _row("3", "importance-spread with a column without a weight.",
        _fields, lambda fields: fields["columns"][1].pop("weight"), _weighed),
    "contract-weight-more": _row("3", "variance-reduction with a weight.",
        _column, 0, _coded, weight=1),
    "contract-weight": _row("3", "A weight with which a score could pass 2^52.",
        _column, 0, _weighed, weight=2**52),
    "contract-weight-by-one": _row("3", "A weight with which a score could pass 2^52 by little.",
        _column, 1, _weighed, weight=2**50 + 1),
    "contract-no-weight-at-all": _row("3", "A weight of 0.", _column, 1, _weighed, weight=0),
    "contract-size": _row("3", "2^31 positions.", _column, 0, _coded, size=2**31),
}  # fmt: skip


def _files(**changed: Any) -> KitSubmission:
    """Something else in the files of a submission."""
    return replace(tables.clear(), **changed)


def _digest_stated(name: str) -> Callable[[dict[str, Any]], bytes]:
    """submission.json with another digest of one of the files."""
    return lambda header: canonical({**header, "files": {**header["files"], name: OTHER}})


def _valued(j: int, value: float, base: Make = tables.clear) -> KitSubmission:
    """A value that the contract does not allow, and digests that fit it."""
    made = base()
    columns = list(made.columns)
    columns[j] = [value, *columns[j][1:]]
    return replace(made, columns=columns)


def _short_trackers(table: pa.Table) -> pa.Table:
    short = [tracker[:31] for tracker in table.column("tracker").to_pylist()]
    return table.set_column(1, "tracker", pa.array(short, pa.binary(31)))


def _spoiled(write: Write, spoil: Callable[[Path], object]) -> Write:
    """Write the records, and then do something to what was written."""

    def written(table: pa.Table, path: Path) -> None:
        write(table, path)
        spoil(path)

    return written


def _flipped(table: pa.Table, path: Path) -> None:
    """One bit of the first page, which no checksum of the file shows."""
    pq.write_table(table, path, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    tracker = table.column("tracker")[3].as_py()
    data[data.index(tracker) + 7] ^= 1
    path.write_bytes(data)


def _short_in_parts(table: pa.Table, path: Path) -> None:
    """Of one row alone, as only the parts of a cluster can have it."""
    trackers = table.column("tracker").to_pylist()
    trackers[2] = trackers[2][:31]
    parts(table.set_column(1, "tracker", pa.array(trackers, pa.binary())), path)


def _no_parts(_: pa.Table, path: Path) -> None:
    path.mkdir()
    (path / "_SUCCESS").touch()


def _folder_among_parts(path: Path) -> None:
    (path / "older").mkdir()
    (path / "older" / "notes.txt").write_text("not a part\n")


def _wrapping_label(path: Path) -> None:
    """A label of 256, which is 0 to a reader that keeps its lowest byte alone."""
    part = path / "part-00000.parquet"
    written = pq.ParquetFile(part).read()
    row = written.column("y").to_pylist().index(0)
    pq.write_table(with_cell("y", row, 256)(written), part)


DAMAGED: Rows = {
    "header-missing": _row("8.1", "There is no submission.json.",
        _files, left_out="submission.json"),
    "contract-missing": _row("8.1", "There is no contract.json.", _files, left_out="contract.json"),
    "records-missing": _row("8.1", "There is no records.parquet.",
        _files, left_out="records.parquet"),
    "header-format": _row("8.1", "Another format.",
        _files, header={"format": "verix/submission/9"}),
    "header-unknown-field": _row("8.1", "A field that submission.json does not have.",
        _files, header={"more": 1}),
    "header-field-twice": _row("8.2", "A field that stands twice.",
        _files, header_bytes=lambda header: b'{"rows":24,' + canonical(header)[1:]),
    "header-fraction": _row("8.2", "24.0 rows.", _files, header={"rows": float(N)}),
    "header-long": _row("8.2", "submission.json of more than 64 KiB.",
        _files, header_bytes=lambda header: canonical(header) + b" " * 65536),
    "header-rows": _row("8.1", "More rows than are stated.", _files, header={"rows": N - 1}),
    "digest-contract": _row("8.1", "Another digest of the contract.",
        _files, header={"contract": OTHER}),
    "digest-submission": _row("6.1", "Another digest of the submission than its records have.",
        _files, header={"submission": OTHER}),
    "digest-contract-file": _row("8.1", "Another SHA-256 of contract.json.",
        _files, header_bytes=_digest_stated("contract.json")),
    "digest-records-file": _row("8.1", "Another SHA-256 of records.parquet.",
        _files, header_bytes=_digest_stated("records.parquet")),
    "records-truncated": _row("8.1", "Parquet that ends early.", _files,
        write=_spoiled(one_file, lambda path: path.write_bytes(path.read_bytes()[:-9]))),
    "records-flipped": _row("6.1", "A bit of a tracker that changed before the file was hashed.",
        _files, write=_flipped),
    "records-encoding": _row("8", "An encoding that can unfold without limit.",
        _files, write=partial(pq.write_table, **folders.WITHOUT_LIMIT)),
    "row-missing": _row("8.1", "A row that is missing.",
        _files, change=lambda table: table.slice(0, N - 1)),
    "row-twice": _row("8.1", "A row that stands twice.", _files, change=with_cell("row", 5, 4)),
    "row-beyond": _row("8.1", "A row beyond the last.", _files, change=with_cell("row", 5, N)),
    "row-negative": _row("8.1", "A row below 0.", _files, change=with_cell("row", 5, -1)),
    "value-missing": _row("8", "A null.", _files, change=with_cell("a", 5, None)),
    "value-nan": _row("2.1", "A value that is no number.", _valued, 0, math.nan),
    "value-infinite": _row("2.1", "An infinite value.", _valued, 0, math.inf),
    "value-beyond": _row("2.1", "A position beyond the last of its column.",
        _valued, 1, 5, _weighed),
    "value-negative": _row("2.1", "A position below 0.", _valued, 0, -1, _weighed),
    "value-target": _row("6.1", "A label that is neither 0 nor 1.", _valued, 1, 2),
    "value-target-in-parts": _row("8.3", "A label of 256 among the parts.",
        _files, write=_spoiled(parts, _wrapping_label)),
    "column-missing": _row("8.1", "A column that is missing.",
        _files, change=lambda table: table.drop_columns(["b"])),
    "column-more": _row("8.1", "A column that the contract does not have.",
        _files, change=lambda table: table.append_column("c", table.column("b"))),
    "column-order": _row("8.1", "Columns in another order than the contract's.",
        _files, change=lambda table: table.select(["row", "tracker", "b", "y", "a"])),
    "column-type": _row("8.1", "binary32 in place of binary64.",
        _files, change=with_type("a", pa.float32())),
    "cluster-types-in-one-file": _row("8.3",
        "The types of a cluster's parts in a file that is none.", _files, change=as_in_cluster),
    "tracker-short": _row("8.1", "Trackers of 31 bytes.", _files, change=_short_trackers),
    "tracker-short-in-parts": _row("8.3", "A tracker of 31 bytes among the parts.",
        _files, write=_short_in_parts),
    "parts-none": _row("8.3", "A folder without a part.", _files, write=_no_parts),
    "parts-more": _row("8.3", "A folder with a file that is no part.", _files,
        write=_spoiled(parts, lambda path: (path / "notes.txt").write_text("not a part\n"))),
    "parts-not-ascii": _row("8.3", "A part whose name is not ASCII.", _files, write=_spoiled(parts,
        lambda path: (path / "part-00000.parquet").rename(path / "часть-00000.parquet"))),
    "parts-folder": _row("8.3", "A folder among the parts.",
        _files, write=_spoiled(parts, _folder_among_parts)),
    "parts-digest": _row("8.3", "Another digest of the parts.",
        _files, write=parts, header_bytes=_digest_stated("records.parquet")),
    "too-few-records": _row("4", "Fewer records than min_leaf.", tables.clear, min_leaf=N + 1),
    "too-few-by-far": _row("4", "The greatest min_leaf that there is.",
        tables.clear, min_leaf=2**31 - 1),
}  # fmt: skip
