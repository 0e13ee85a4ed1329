"""submission.json says exactly what it must, of exactly two files."""

import json
from pathlib import Path
from typing import Any

import pytest

from files.samples import sent
from verix_anon.errors import TableError
from verix_anon.files.folder_writer import write_submission
from verix_anon.files.submissions import read_submission


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_submission(sent(), tmp_path / "submission")
    return tmp_path / "submission"


def refused(sentence: str) -> Any:
    return pytest.raises(TableError, match=sentence)


@pytest.mark.parametrize("name", ["format", "contract", "submission", "rows", "files"])
def test_fields_of_submission_json(folder: Path, name: str) -> None:
    path = folder / "submission.json"
    honest = json.loads(path.read_bytes())
    wrong: list[object] = [None, True, 1.5, [], {}, "", "x", "00" * 31, "AB" * 32, -1, 2**31, 0]
    for value in wrong:
        path.write_text(json.dumps(honest | {name: value}))
        with refused(
            f"submission.json: ({name} must (be|hold)|files: field 'contract.json' is missing)"
        ):
            read_submission(folder)
    del honest[name]
    path.write_text(json.dumps(honest))
    with refused(f"format must be|field '{name}' is missing"):
        read_submission(folder)


def test_other_bytes_than_submission_json(folder: Path) -> None:
    path = folder / "submission.json"
    honest = path.read_bytes()
    for data, sentence in (
        (b"", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"[" * 60_000, "not JSON"),
        (honest.replace(b"{", b'{"rows":1,', 1), "a field occurs twice"),
        (honest.replace(b"{", b'{"note":1,', 1), "unknown field 'note'"),
        (honest.replace(b"submission/2", b"submission/1"), "format must be 'verix/submission/2'"),
        (honest + b" " * 70_000, "larger than"),
    ):
        path.write_bytes(data)
        with refused(sentence):
            read_submission(folder)


@pytest.mark.parametrize(
    "name",
    ["submission.json", "leaves.parquet", "../contract.json", "/etc/passwd", "a\nb", "x" * 999],
)
def test_files_of_other_names(folder: Path, name: str) -> None:
    path = folder / "submission.json"
    stated = json.loads(path.read_bytes())
    digest = stated["files"]["contract.json"]
    path.write_text(json.dumps(stated | {"files": stated["files"] | {name: digest}}))
    with refused("submission.json: files: unknown field "):
        read_submission(folder)
    stated["files"] = {name: digest, "records.parquet": digest}
    path.write_text(json.dumps(stated))
    with refused("submission.json: files: field 'contract.json' is missing"):
        read_submission(folder)
    for value in (None, 5, digest.upper(), digest[:-1], [digest]):
        stated["files"] = {"contract.json": value, "records.parquet": digest}
        path.write_text(json.dumps(stated))
        with refused("files: contract.json must be 64 lower-case hexadecimal digits"):
            read_submission(folder)
