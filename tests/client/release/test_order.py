"""A release counts when it is written, and no table appears that does not count."""

from pathlib import Path

import pyarrow.csv
import pytest

from client.release.releases import Job
from verix_anon.client.ledger import Event, Ledger
from verix_anon.client.release import release
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.protocol.contract import Digest


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl")


def publish(case: Job, out: Path, ledger: Ledger) -> None:
    release(case.delivery, case.manifest, case.verdict, table=case.table, out=out, ledger=ledger)


def test_written_and_recorded(case: Job, ledger: Ledger, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    publish(case, out, ledger)
    assert pyarrow.csv.read_csv(out).num_rows == case.table.num_rows
    assert [entry.made for entry in ledger.seen(case.manifest.table)] == [case.verdict.root]
    with pytest.raises(NotAcceptedError, match="released before"):
        publish(case, tmp_path / "again.csv", ledger)
    assert not (tmp_path / "again.csv").exists()


def test_a_table_that_is_not_written_does_not_count(
    case: Job, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for out, sentence in (("out.xlsx", "ends in"), ("no/out.csv", "there is no folder")):
        with pytest.raises(TableError, match=sentence):
            publish(case, tmp_path / out, ledger)

    def full(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("pyarrow.csv.CSVWriter", full)
    with pytest.raises(TableError, match="the disk is full"):
        publish(case, tmp_path / "out.csv", ledger)
    assert ledger.seen(case.manifest.table) == ()
    assert [*tmp_path.iterdir()] == []


def test_no_table_appears_that_cannot_be_recorded(
    case: Job, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Ledger, event: Event, table: Digest, root: Digest) -> None:
        raise TableError("the ledger cannot be used")

    monkeypatch.setattr(Ledger, "record", refuse)
    with pytest.raises(TableError, match="the ledger cannot be used"):
        publish(case, tmp_path / "out.csv", ledger)
    assert [*tmp_path.iterdir()] == []
