"""The layer `commitment`: files that are not those whose digests the delivery states."""

from pathlib import Path

import pytest

from files.samples import restate, rewrite
from tools import cases
from verix_anon.client.verdict import Outcome, Profile, Status, Verdict
from verix_anon.client.verify import verify
from verix_anon.files.folder_writer import write_delivery

pytestmark = pytest.mark.usefixtures("quick_models")


def failed(verdict: Verdict) -> list[str]:
    return [finding.layer for finding in verdict.findings if finding.status is Status.FAIL]


@pytest.mark.parametrize("name", ["leaves.parquet", "nodes.parquet", "records.parquet"])
def test_another_file_than_stated_is_a_violation(tmp_path: Path, name: str) -> None:
    """The same content packed anew: the root follows from it, the digest does not."""
    made = cases.prepared()
    folder = tmp_path / "delivery"
    write_delivery(cases.honest(made.submission), folder)
    for beside in ("contract.json", "submission.json", "receipt.dsse.json"):
        (folder / beside).write_bytes(b"{}")
    assert verify(folder, made.manifest, submission=made.submission)
    rewrite(folder / name, lambda table: table)
    for profile in (Profile.FULL, Profile.THIN):
        verdict = verify(folder, made.manifest, submission=made.submission, profile=profile)
        assert verdict.outcome is Outcome.VIOLATION
        assert failed(verdict) == ["commitment"]
        summary = verdict.finding("commitment").summary
        assert f"{name} damaged on the way or altered" in summary
        assert "root" not in summary
    restate(folder)
    assert verify(folder, made.manifest, submission=made.submission)


def test_what_cannot_be_decoded_is_said_to_be_damaged_too(tmp_path: Path) -> None:
    made = cases.prepared()
    write_delivery(cases.honest(made.submission), tmp_path / "delivery")
    path = tmp_path / "delivery" / "nodes.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    verdict = verify(tmp_path / "delivery", made.manifest)
    assert verdict.outcome is Outcome.VIOLATION
    summary = verdict.finding("commitment").summary
    assert "not a readable Parquet file" in summary
    assert "nodes.parquet damaged on the way or altered" in summary
