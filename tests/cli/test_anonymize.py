"""The command: what it prints, where, and with which exit code (spec §10)."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import support
from cli.jobs import Outcome, Run
from files.samples import restate
from verix_anon import __version__
from verix_anon.cli.output import tree_line
from verix_anon.files.deliveries import read_delivery
from verix_anon.files.folder_writer import write_submission
from verix_anon.protocol.messages import Submission

N_ROWS = 60


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A folder with a submission."""
    write_submission(sent(), tmp_path / "submission")
    return tmp_path


def sent(name: str = "x") -> Submission:
    rng = np.random.default_rng(0)
    return support.submission(
        rng.normal(size=(2, N_ROWS)).tolist(),
        rng.integers(0, 2, N_ROWS).tolist(),
        described=[support.numeric(name), support.numeric("z")],
    )


def assert_mistake(outcome: Outcome, *words: str) -> None:
    """Exit code 2, one sentence on stderr, nothing on stdout."""
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("verix-anon: ")
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_version_and_help(run: Run) -> None:
    assert run("--version") == (0, f"verix-anon {__version__}\n", "")
    for arguments in (["--help"], ["anonymize", "--help"], ["inspect", "--help"]):
        outcome = run(*arguments)
        assert outcome.code == 0
        assert "Usage: " in outcome.out
    assert run().code in (0, 2)


@pytest.mark.parametrize("arguments", [["nonsense"], ["anonymize"], ["inspect"], ["--nonsense"]])
def test_usage(run: Run, arguments: list[str]) -> None:
    outcome = run(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert "Usage: " in outcome.err


def test_anonymize(run: Run, job: Path) -> None:
    outcome = run("anonymize", job / "submission", "--out", job / "delivery", "--threads", 1)
    assert outcome.code == 0
    delivery = read_delivery(job / "delivery", sent().contract, n_rows=N_ROWS).delivery
    assert f"{N_ROWS} records in {delivery.header.leaves} leaves" in outcome.out
    assert delivery.header.root.hex() in outcome.out
    assert names(job) == ["delivery", "submission"]


def test_anonymize_as_json(run: Run, job: Path) -> None:
    outcome = run("anonymize", job / "submission", "-o", job / "delivery", "--json", "-q")
    assert outcome.code == 0
    said = json.loads(outcome.out)
    header = read_delivery(job / "delivery", sent().contract, n_rows=N_ROWS).delivery.header
    assert said == {
        "delivery": str(job / "delivery"),
        "rows": header.rows,
        "leaves": header.leaves,
        "nodes": header.nodes,
        "root": header.root.hex(),
        "seconds": header.seconds,
        "signed": None,
    }


def test_anonymize_in_place_of_an_old_delivery(run: Run, job: Path) -> None:
    arguments = ["anonymize", job / "submission", "--out", job / "delivery", "--json"]
    first = json.loads(run(*arguments).out)
    assert_mistake(run(*arguments), "delivery exists already", "--overwrite")
    again = json.loads(run(*arguments, "--overwrite").out)
    assert again["root"] == first["root"]
    assert names(job) == ["delivery", "submission"]


def nothing(job: Path) -> None:
    (job / "submission").rename(job / "moved")


def no_contract(job: Path) -> None:
    (job / "submission" / "contract.json").unlink()


def no_records(job: Path) -> None:
    (job / "submission" / "records.parquet").unlink()


def wrong_column(job: Path) -> None:
    path = job / "submission" / "records.parquet"
    table = pq.read_table(path)
    pq.write_table(table.rename_columns(["row", "tracker", "wrong", "z", "y"]), path)


def another_contract(job: Path) -> None:
    contract = support.submission([[0.0] * 8], [0, 1] * 4).contract
    (job / "submission" / "contract.json").write_bytes(contract.to_bytes())


def no_canonical_contract(job: Path) -> None:
    path = job / "submission" / "contract.json"
    path.write_bytes(path.read_bytes() + b"\n")


def truncated_records(job: Path) -> None:
    path = job / "submission" / "records.parquet"
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (nothing, ["there is no folder", "submission"]),
        (no_contract, ["contract.json is missing"]),
        (no_records, ["records.parquet is missing"]),
    ],
)
def test_mistakes(run: Run, job: Path, spoil: Callable[[Path], None], words: list[str]) -> None:
    spoil(job)
    before = names(job)
    assert_mistake(run("anonymize", job / "submission", "--out", job / "delivery"), *words)
    assert names(job) == before


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (wrong_column, ["records.parquet", "column 'x' is missing"]),
        (another_contract, ["contract.json is not the contract that submission.json states"]),
        (no_canonical_contract, ["contract.json", "not canonical"]),
        (truncated_records, ["records.parquet is not a readable Parquet file"]),
    ],
)
def test_damage(run: Run, job: Path, spoil: Callable[[Path], None], words: list[str]) -> None:
    """On the way, which the digests show; or at its source, where they do not."""
    spoil(job)
    for command in (("anonymize", "--out", job / "delivery"), ("inspect",)):
        said = run(*command, job / "submission")
        assert_mistake(said, "was damaged on the way", "that submission.json states")
    restate(job / "submission")
    assert_mistake(run("inspect", job / "submission"), *words)
    assert_mistake(run("anonymize", job / "submission", "--out", job / "delivery"), *words)
    assert not (job / "delivery").exists()


def test_no_place_to_write_to(run: Run, job: Path) -> None:
    outcome = run("anonymize", job / "submission", "--out", job / "no" / "delivery")
    assert_mistake(outcome, "there is no folder", "no to write to")
    assert names(job) == ["submission"]


def test_no_threads(run: Run, job: Path) -> None:
    outcome = run("anonymize", job / "submission", "--out", job / "delivery", "--threads", 0)
    assert outcome.code == 2
    assert "--threads" in outcome.err
    assert names(job) == ["submission"]


def test_nothing_half_written_is_left(run: Run, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    outcome = run("anonymize", job / "submission", "--out", job / "delivery", "--quiet")
    assert_mistake(outcome, "delivery cannot be written", "No space left on device")
    assert names(job) == ["submission"]


def test_a_bug_of_ours(run: Run, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("\x1b[31mno\nway")

    monkeypatch.setattr("verix_anon.provider.local.read_submission", broken)
    arguments = ["anonymize", job / "submission", "--out", job / "delivery"]
    outcome = run(*arguments)
    assert outcome.code == 70
    assert "internal error, a bug in verix-anon" in outcome.err
    assert "RuntimeError" in outcome.err
    assert "\x1b" not in outcome.err
    assert "Traceback" not in outcome.err
    assert names(job) == ["submission"]
    monkeypatch.setenv("VERIX_DEBUG", "1")
    outcome = run(*arguments)
    assert outcome.code == 70
    assert "Traceback" in outcome.err


def test_interrupted(run: Run, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def impatient(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("verix_anon.provider.local.read_submission", impatient)
    outcome = run("anonymize", job / "submission", "--out", job / "delivery")
    assert outcome.code == 130
    assert outcome.out == ""
    assert outcome.err.strip() == "verix-anon: interrupted; no half-written file was left"
    assert names(job) == ["submission"]


def test_inspect_a_submission(run: Run, job: Path) -> None:
    outcome = run("inspect", job / "submission", "--json")
    assert outcome.code == 0
    said = json.loads(outcome.out)
    assert said["kind"] == "submission"
    assert said["submission"] == sent().digest().hex()
    assert said["contract"] == sent().contract.digest.hex()
    assert said["rows"] == N_ROWS
    assert said["columns"]["y"] == "target, categorical, 2 categories"
    sizes = {p.name: p.stat().st_size for p in (job / "submission").iterdir()}
    assert said["bytes"] == {**sizes, "all": sum(sizes.values())}
    plain = run("inspect", job / "submission")
    assert plain.code == 0
    assert f"rows: {N_ROWS}\n" in plain.out
    prepared = run("inspect", job, "--json")
    assert json.loads(prepared.out) == said


def test_inspect_a_delivery(run: Run, job: Path) -> None:
    run("anonymize", job / "submission", "--out", job / "delivery")
    outcome = run("inspect", job / "delivery", "--json")
    assert outcome.code == 0
    said = json.loads(outcome.out)
    header = read_delivery(job / "delivery", sent().contract, n_rows=N_ROWS).delivery.header
    assert said["kind"] == "delivery"
    assert said["root"] == header.root.hex()
    assert said["leaves"] == header.leaves
    assert run("inspect", job / "delivery").code == 0
    (job / "delivery" / "nodes.parquet").unlink()
    assert_mistake(run("inspect", job / "delivery"), "nodes.parquet is missing")


def test_inspect_something_else(run: Run, tmp_path: Path) -> None:
    assert_mistake(
        run("inspect", tmp_path), str(tmp_path), "neither a delivery", "nor a submission"
    )
    assert_mistake(run("inspect", tmp_path / "no"), "there is no folder")
    assert_mistake(run("inspect", "x" * 300), "there is no folder")
    assert_mistake(run("inspect", "nonsense://x"), "cannot be opened")
    (tmp_path / "delivery.json").write_text("{}")
    assert_mistake(run("inspect", tmp_path), "delivery.json: format must be")


@pytest.mark.parametrize(
    ("how", "name"), [([], "a\x1b[2Jb\nc\x07\x9b2J\u202e"), (["--json"], "a\x1b[2Jb\nc\x07")]
)
def test_control_characters_are_not_printed(
    run: Run, tmp_path: Path, how: list[str], name: str
) -> None:
    write_submission(sent(name), tmp_path / "submission")
    outcome = run("inspect", tmp_path / "submission", *how)
    assert outcome.code == 0
    assert all(c.isprintable() or c == "\n" for c in outcome.out)
    (tmp_path / "submission" / "records.parquet").unlink()
    path = tmp_path / "other\x1b[2J"
    (tmp_path / "submission").rename(path)
    outcome = run("inspect", path, *how)
    assert_mistake(outcome, "records.parquet is missing")
    assert "\x1b" not in outcome.err


def test_one_leaf_is_not_leaves() -> None:
    assert tree_line(7, 1, b"\x01\x02") == "7 records in 1 leaf, root 0102"
    assert tree_line(7_000, 2, b"\x01\x02") == "7,000 records in 2 leaves, root 0102"
