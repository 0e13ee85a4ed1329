"""What a service may announce as a delivery's files."""

from pathlib import Path

import pytest

from files.samples import sent
from verix_anon.client.remote.transfer import check_announced
from verix_anon.errors import ProviderError
from verix_anon.files.folder_writer import write_submission
from verix_anon.files.store import MAX_PARTS
from verix_anon.files.submission_listing import Listed, list_submission
from verix_anon.protocol.providers import File

SINGLE = ("delivery.json", "leaves.parquet", "nodes.parquet", "receipt.dsse.json")


@pytest.fixture
def submission(tmp_path: Path) -> Listed:
    write_submission(sent(), tmp_path / "submission")
    return list_submission(tmp_path / "submission")


def announced(n_parts: int) -> list[File]:
    parts = [f"records.parquet/{i}.parquet" for i in range(n_parts)]
    return [File(name=name, size=1, sha256="0" * 64) for name in (*parts, *SINGLE)]


def test_parts_are_not_compared_with_each_other(
    submission: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as there may be take no time that grows with their square."""
    compared = 0

    def equal(*_: object) -> bool:
        nonlocal compared
        compared += 1
        return False

    monkeypatch.setattr(File, "__eq__", equal)
    check_announced(announced(MAX_PARTS), submission)
    assert compared == 0
    with pytest.raises(ProviderError, match="other files than those of a delivery"):
        check_announced(announced(MAX_PARTS + 1), submission)
