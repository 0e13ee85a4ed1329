"""The provider in examples/ delivers what the engine does, and refuses what it refuses."""

import ast
import io
import json
import subprocess
import sys
import tokenize
from collections.abc import Callable
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from client import cases
from support import coded, submission
from verix_anon.client.verdict import Outcome
from verix_anon.client.verify import VerifyOptions, verify
from verix_anon.conform import folders, independent
from verix_anon.conform.answered import ANSWERED
from verix_anon.conform.tables import canonical
from verix_anon.errors import Error
from verix_anon.files.deliveries import Snapshot, read_delivery
from verix_anon.files.submissions import read_submission, write_submission
from verix_anon.protocol.contract import Commitment
from verix_anon.protocol.messages import Submission
from verix_anon.provider.local import LocalProvider

EXAMPLE = Path(__file__).parents[2] / "examples" / "provider.py"
SOURCE = EXAMPLE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = spec_from_file_location("example_provider", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def delivered(example: ModuleType, sent: Submission, folder: Path) -> Snapshot:
    """What it delivers, read as the owner does."""
    if not (folder / "submission").exists():
        write_submission(sent, folder / "submission")
    example.main(str(folder / "submission"), str(folder / "delivery"))
    assert sorted(path.name for path in folder.iterdir()) == ["delivery", "submission"]
    read = read_delivery(folder / "delivery", sent.contract, n_rows=sent.records.n_rows)
    assert read.damaged == ()
    return read


def test_it_is_short_and_stands_alone() -> None:
    tree = ast.parse(SOURCE)
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported - sys.stdlib_module_names == {"numpy", "pyarrow"}
    assert len(lines_of_code(tree)) < 200


def lines_of_code(tree: ast.Module) -> set[int]:
    """The lines that hold more than a comment or a docstring."""
    kinds = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(SOURCE).readline)
        if token.type not in (*kinds, tokenize.ENDMARKER)
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(
            node
        ):
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


@pytest.mark.parametrize("name", sorted(ANSWERED))
def test_it_answers_the_kit(example: ModuleType, name: str, tmp_path: Path) -> None:
    sent = ANSWERED[name].make()
    result = independent.anonymize(sent.contract, sent.trackers, sent.columns)
    folders.write_submission(drafted(name), tmp_path / "submission")
    read = delivered(example, read_submission(tmp_path / "submission"), tmp_path)
    assert read.delivery.header.root.hex() == result.root


def drafted(name: str) -> folders.Draft:
    sent = ANSWERED[name].make()
    contract = independent.read_contract(sent.contract)
    return folders.draft(sent, independent.read_records(contract, sent.trackers, sent.columns))


@pytest.mark.parametrize("seed", range(12))
def test_it_delivers_what_the_engine_does(example: ModuleType, seed: int, tmp_path: Path) -> None:
    sent = drawn(seed)
    expected = LocalProvider().anonymize(sent)
    read = delivered(example, sent, tmp_path).delivery
    assert read.header.root == expected.header.root
    assert np.array_equal(read.records.leaf, expected.records.leaf)
    assert np.array_equal(read.tree.threshold, expected.tree.threshold)
    assert np.array_equal(read.leaves.maximum, expected.leaves.maximum)


def drawn(seed: int) -> Submission:
    """A small table with ties, of any kind of contract."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(20, 300)), int(rng.integers(2, 5))
    positions = [rng.integers(0, int(rng.integers(1, 40)), n).tolist() for _ in range(4)]
    target = rng.integers(0, 2, n).tolist()
    if seed % 3 == 0:
        return coded(positions, weights=rng.integers(1, 50, 4).tolist(), k=k)
    if seed % 3 == 1:
        return coded(positions, target, k=k)
    values = [*positions[:2], rng.normal(size=n).tolist()]
    commitment = list(Commitment)[seed // 3 % 2]
    return submission(values, target, k=k, commitment=commitment, max_depth=4)


@pytest.mark.usefixtures("quick_models")
@pytest.mark.parametrize("clear", [False, True])
def test_the_owner_accepts_it(example: ModuleType, clear: bool, tmp_path: Path) -> None:
    made = cases.prepared(n_rows=400, clear=clear)
    read = delivered(example, made.submission, tmp_path)
    verdict = verify(
        read.delivery, made.manifest, submission=made.submission, options=VerifyOptions()
    )
    assert verdict.outcome is Outcome.VERIFIED


def test_more_records_than_a_chunk_holds(example: ModuleType, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 500, 70_000).tolist() for _ in range(2)]
    sent = coded(columns, k=2000)
    expected = LocalProvider().anonymize(sent).header.root
    assert delivered(example, sent, tmp_path).delivery.header.root == expected


def test_it_reads_parts_as_clusters_write_them(example: ModuleType, tmp_path: Path) -> None:
    made = replace(drafted("mixed"), write=folders.parts)
    folders.write_submission(made, tmp_path / "submission")
    sent = read_submission(tmp_path / "submission")
    expected = LocalProvider().anonymize(sent).header.root
    assert delivered(example, sent, tmp_path).delivery.header.root == expected


def test_it_is_a_command_that_refuses_without_a_trace(tmp_path: Path) -> None:
    folders.write_submission(drafted("spread"), tmp_path / "submission")
    (tmp_path / "submission" / "contract.json").write_bytes(b"{}")
    command = [sys.executable, EXAMPLE, tmp_path / "submission", tmp_path / "delivery"]
    ended = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("refused: ")
    assert [path.name for path in tmp_path.iterdir()] == ["submission"]


Change = Callable[[dict[str, Any]], object]


def column(number: int, **fields: object) -> Change:
    """Give a column of the contract other fields; None takes one away."""

    def change(contract: dict[str, Any]) -> None:
        described = contract["columns"][number]
        for name, value in fields.items():
            described.pop(name, None) if value is None else described.update({name: value})

    return change


def term(**fields: object) -> Change:
    return lambda contract: contract.update(fields)


CONTRACTS: dict[str, tuple[str, Change]] = {
    "another format": ("spread", term(format="verix/contract/1")),
    "an upper-case id": ("spread", term(submission_id="A" * 32)),
    "a short id": ("spread", term(submission_id="0" * 31)),
    "an id that is a number": ("spread", term(submission_id=10**31)),
    "k of 1": ("spread", term(k=1)),
    "k that is true": ("spread", term(k=True)),
    "k that is a fraction": ("spread", term(k=2.5)),
    "k that is huge": ("spread", term(k=2**31, min_leaf=2**31)),
    "min_leaf below k": ("spread", term(k=3, min_leaf=2)),
    "more records asked for than sent": ("spread", term(min_leaf=97)),
    "no depth": ("spread", term(max_depth=0)),
    "too much depth": ("spread", term(max_depth=51)),
    "another rule": ("spread", term(rule="blind")),
    "a rule that is a list": ("spread", term(rule=[])),
    "another commitment": ("spread", term(commitment="sha1")),
    "the paper's commitment with ranks": ("coded", term(commitment="paper")),
    "the paper's commitment with weights": ("spread", term(commitment="paper")),
    "one field more": ("spread", term(comment="")),
    "one field less": ("spread", lambda contract: contract.pop("max_depth")),
    "columns that are no list": ("spread", term(columns={})),
    "no columns": ("spread", term(columns=[])),
    "a column that is text": ("spread", term(columns=["age"])),
    "another kind": ("mixed", column(0, kind="text")),
    "a kind that is a list": ("mixed", column(0, kind=[])),
    "another role": ("mixed", column(0, role="sensitive")),
    "two targets": ("coded", column(0, role="target", size=2)),
    "no target": ("coded", column(1, role="quasi")),
    "a target without a use": ("spread", column(0, role="target")),
    "a target of three": ("mixed", column(1, categories=["a", "b", "c"])),
    "no quasi-identifier": ("pure", column(0, role="target", kind="rank", size=2)),
    "a weight too many": ("coded", column(0, weight=1)),
    "no weight": ("spread", column(0, weight=None)),
    "a weight of 0": ("spread", column(0, weight=0)),
    "a weight that is true": ("spread", column(0, weight=True)),
    "too large a weight": ("spread", column(0, weight=2**52)),
    "a size of 0": ("coded", column(3, size=0)),
    "too large a size": ("coded", column(0, size=2**31)),
    "clear beside coded": ("coded", column(3, kind="numeric", size=None)),
    "a reserved name": ("mixed", column(0, name="leaf")),
    "a name twice": ("mixed", column(0, name="born")),
    "a name that is a number": ("mixed", column(0, name=1)),
    "a separator in a name": ("mixed-paper", column(0, name="a|b")),
    "a category twice": ("mixed", column(1, categories=["no", "no"])),
    "no categories": ("mixed", column(2, categories=[])),
    "a category that is no text": ("mixed", column(1, categories=["no", 1])),
    "another unit": ("mixed", column(3, unit="week")),
    "a unit too many": ("mixed", column(0, unit="s")),
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_it_refuses_what_no_contract_is(example: ModuleType, name: str, tmp_path: Path) -> None:
    base, change = CONTRACTS[name]
    made = drafted(base)
    contract = json.loads(made.contract)
    change(contract)
    refused(example, replace(made, contract=canonical(contract)), tmp_path)


def refused(example: ModuleType, made: folders.Draft, folder: Path) -> None:
    """The engine's reader and the example refuse it, for all that its digests are true."""
    digest = independent.sha256(made.contract)
    header = {**made.header, "contract": digest.hex()}
    folders.write_submission(replace(made, header=header), folder / "submission")
    both_refuse(example, folder)


def both_refuse(example: ModuleType, folder: Path) -> None:
    with pytest.raises(Error):
        read_submission(folder / "submission")
    with pytest.raises(SystemExit, match="refused: "):
        example.main(str(folder / "submission"), str(folder / "delivery"))
    assert [path.name for path in folder.iterdir()] == ["submission"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"k":2', b'"k": 2'),
        (b'"k":2', b'"k":2.0'),
        (b'"k":2', b'"k":2,"k":2'),
        (b'"columns"', b'"\\u0063olumns"'),
        (b'"name":"q0"', b'"name":"\\ud800"'),
        (b'{"columns"', b'\xef\xbb\xbf{"columns"'),
    ],
)
def test_it_refuses_other_bytes_of_a_contract(
    example: ModuleType, old: bytes, new: bytes, tmp_path: Path
) -> None:
    made = drafted("spread")
    assert old in made.contract
    refused(example, replace(made, contract=made.contract.replace(old, new, 1)), tmp_path)


def with_value(table: pa.Table, name: str, value: object) -> pa.Table:
    """The table with another value in the first row of a column."""
    field = table.schema.field(name)
    values = [value, *table[name].to_pylist()[1:]]
    return table.set_column(table.schema.get_field_index(name), field, pa.array(values, field.type))


RECORDS: dict[str, tuple[str, Callable[[pa.Table], pa.Table]]] = {
    "a row twice": ("mixed", lambda t: with_value(t, "row", 1)),
    "a row beyond": ("mixed", lambda t: with_value(t, "row", 90)),
    "a row less": ("mixed", lambda t: t.slice(1)),
    "a value missing": ("mixed", lambda t: with_value(t, "age", None)),
    "a tracker missing": ("mixed", lambda t: with_value(t, "tracker", None)),
    "not a number": ("mixed", lambda t: with_value(t, "age", float("nan"))),
    "an infinity": ("mixed", lambda t: with_value(t, "born", float("-inf"))),
    "a category beyond": ("mixed", lambda t: with_value(t, "città 🏙", 300)),
    "a category below": ("mixed", lambda t: with_value(t, "città 🏙", -1)),
    "a target of 2": ("mixed", lambda t: with_value(t, "y", 2)),
    "a rank beyond": ("coded", lambda t: with_value(t, "q3", 1)),
    "columns in another order": (
        "coded",
        lambda t: t.select(["row", "tracker", "q0", "q1", "y", "q2", "q3"]),
    ),
    "a column more": ("coded", lambda t: t.append_column("more", t["q0"])),
    "a column less": ("coded", lambda t: t.drop_columns(["q3"])),
    "another type": ("coded", lambda t: t.set_column(2, "q0", t["q0"].cast(pa.int64()))),
    "a cluster's type in one file": ("coded", lambda t: t.set_column(3, "y", t["y"].cast("int16"))),
}


@pytest.mark.parametrize("name", RECORDS)
def test_it_refuses_records_that_do_not_fit(example: ModuleType, name: str, tmp_path: Path) -> None:
    base, change = RECORDS[name]
    made = drafted(base)
    refused(example, replace(made, table=change(made.table)), tmp_path)


HEADERS: dict[str, Callable[[bytes], bytes]] = {
    "a field twice": lambda data: data.replace(b'"rows":96', b'"rows":96,"rows":96'),
    "a fraction": lambda data: data.replace(b'"rows":96', b'"rows":96.0'),
    "another number of rows": lambda data: data.replace(b'"rows":96', b'"rows":95'),
    "another format": lambda data: data.replace(b"submission/2", b"submission/1"),
    "a field more": lambda data: data.replace(b'"rows":96', b'"rows":96,"time":0'),
    "another digest": lambda data: data.replace(b'"submission":"', b'"submission":"0')[:-2] + b'"}',
    "not UTF-8": lambda data: data.decode().encode("utf-16"),
    "not JSON": lambda data: data[:-1],
    "no object": lambda data: b"[]",
    "nested without end": lambda data: b"[" * 30_000,
    "too large": lambda data: data + b" " * 65536,
}


@pytest.mark.parametrize("name", HEADERS)
def test_it_refuses_a_header_that_is_not_true(
    example: ModuleType, name: str, tmp_path: Path
) -> None:
    folders.write_submission(drafted("spread"), tmp_path / "submission")
    path = tmp_path / "submission" / "submission.json"
    spoiled = HEADERS[name](path.read_bytes())
    assert spoiled != path.read_bytes()
    path.write_bytes(spoiled)
    both_refuse(example, tmp_path)


@pytest.mark.parametrize("name", ["submission.json", "contract.json", "records.parquet"])
def test_it_refuses_damaged_missing_and_linked_files(
    example: ModuleType, name: str, tmp_path: Path
) -> None:
    folders.write_submission(drafted("spread"), tmp_path / "submission")
    path = tmp_path / "submission" / name
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    both_refuse(example, tmp_path)
    path.write_bytes(data)
    path.rename(path.with_name("elsewhere"))
    both_refuse(example, tmp_path)
    path.symlink_to("elsewhere")
    both_refuse(example, tmp_path)
