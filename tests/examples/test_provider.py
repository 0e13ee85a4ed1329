"""The provider in examples/ delivers what the engine does, and refuses what it refuses."""

import ast
import io
import shutil
import subprocess
import sys
import tokenize
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow.parquet as pq
import pytest

from conform.in_process import asked_example, some_of_each_kind
from support import coded, submission
from tools import cases
from tools.kit import folders
from tools.kit.tables import clear
from verix_anon.client.verdict import Outcome as Judged
from verix_anon.client.verify import VerifyOptions, verify
from verix_anon.conform.kit import CaseKind, Kit
from verix_anon.conform.results import Result
from verix_anon.conform.trials import command_provider, try_provider
from verix_anon.files.deliveries import Snapshot, read_delivery
from verix_anon.files.folder_writer import write_submission
from verix_anon.files.submissions import read_submission
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


def assert_all_pass(results: list[Result]) -> None:
    assert [(result.case.id, result.failures) for result in results if not result.passed] == []
    asked = {result.case.kind: [check.name for check in result.checks] for result in results}
    compared = ["answer", "files", "header", "tree", "bounds", "records", "root"]
    assert asked == {CaseKind.ANSWERED: compared, CaseKind.REFUSED: ["refusal"]}


def test_it_passes_the_kit(example: ModuleType, small_kit: Kit) -> None:
    assert_all_pass(try_provider(small_kit, small_kit.cases, asked_example(example)))


def test_its_command_passes_some_cases(small_kit: Kit) -> None:
    ask = command_provider([sys.executable, str(EXAMPLE)], limit=300)
    assert_all_pass(try_provider(small_kit, some_of_each_kind(small_kit), ask, jobs=2))


@pytest.mark.long
def test_its_command_passes_the_kit(small_kit: Kit) -> None:
    ask = command_provider([sys.executable, str(EXAMPLE)], limit=300)
    assert_all_pass(try_provider(small_kit, small_kit.cases, ask, jobs=2))


def refused(example: ModuleType, folder: Path) -> None:
    with pytest.raises(SystemExit, match="refused: "):
        example.main(str(folder / "submission"), str(folder / "delivery"))
    assert [path.name for path in folder.iterdir()] == ["submission"]


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
    assert verdict.outcome is Judged.VERIFIED


def test_more_records_than_a_chunk_holds(example: ModuleType, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 500, 70_000).tolist() for _ in range(2)]
    sent = coded(columns, k=2000)
    expected = LocalProvider().anonymize(sent).header.root
    assert delivered(example, sent, tmp_path).delivery.header.root == expected


def test_what_spark_writes_is_answered(example: ModuleType, tmp_path: Path) -> None:
    """The records of `clear`, read by Spark 4 from parts and written again as one."""
    written = Path(__file__).with_name("spark.parquet")
    listed = pq.read_metadata(written).row_group(0).column(0).encodings
    assert "BIT_PACKED" in listed

    def parts(_: object, path: Path) -> None:
        path.mkdir()
        shutil.copy(written, path / "part-00000.snappy.parquet")

    honest = replace(clear(), write=parts)
    folders.write_submission(honest, tmp_path / "submission")
    sent = read_submission(tmp_path / "submission")
    expected = LocalProvider().anonymize(sent).header.root
    assert delivered(example, sent, tmp_path).delivery.header.root == expected


def test_it_is_a_command_that_refuses_without_a_trace(tmp_path: Path) -> None:
    folders.write_submission(clear(), tmp_path / "submission")
    (tmp_path / "submission" / "contract.json").write_bytes(b"{}")
    command = [sys.executable, EXAMPLE, tmp_path / "submission", tmp_path / "delivery"]
    ended = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("refused: ")
    assert [path.name for path in tmp_path.iterdir()] == ["submission"]


def test_a_contract_cannot_ask_for_memory(tmp_path: Path) -> None:
    folders.write_submission(clear(min_leaf=2**31 - 1), tmp_path / "submission")
    # In KiB, of which an array of as many rows would take 16,000,000.
    words = [sys.executable, str(EXAMPLE), "submission", "delivery"]
    bounded = ["sh", "-c", 'ulimit -v 8000000; exec "$@"', "sh", *words]
    ended = subprocess.run(bounded, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "refused: too few records\n")


@pytest.mark.parametrize("name", ["submission.json", "contract.json", "records.parquet"])
def test_it_reads_no_links(example: ModuleType, name: str, tmp_path: Path) -> None:
    folders.write_submission(clear(), tmp_path / "submission")
    path = tmp_path / "submission" / name
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")
    refused(example, tmp_path)
