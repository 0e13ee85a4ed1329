"""A release counts when it is written, and no table appears that does not count."""

import errno
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

from client.release.releases import Job
from verix_anon.client.ledger import Claim, Ledger, LedgerEntry
from verix_anon.client.release import ReleaseOptions, release
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.files import json_lines


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl")


def publish(case: Job, out: Path, ledger: Ledger, **options: Any) -> None:
    release(
        case.delivery,
        case.manifest,
        case.verdict,
        table=case.table,
        out=out,
        ledger=ledger,
        options=ReleaseOptions(**options),
    )


def test_written_and_recorded(case: Job, ledger: Ledger, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    publish(case, out, ledger)
    assert pyarrow.csv.read_csv(out).num_rows == case.table.num_rows
    assert [entry.made for entry in ledger.seen(case.manifest.table)] == [case.verdict.root]
    with pytest.raises(NotAcceptedError, match="released before"):
        publish(case, tmp_path / "again.csv", ledger, l=1)
    assert not (tmp_path / "again.csv").exists()


def test_a_table_that_is_not_written_does_not_count(
    case: Job, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for out, sentence in (("out.docx", "ends in"), ("no/out.csv", "there is no folder")):
        with pytest.raises(TableError, match=sentence):
            publish(case, tmp_path / out, ledger)

    def full(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("verix_anon.files.tables.table_writer._line", full)
    with pytest.raises(TableError, match="the disk is full"):
        publish(case, tmp_path / "out.csv", ledger)
    assert ledger.seen(case.manifest.table) == ()
    assert [*tmp_path.iterdir()] == []


def test_no_table_appears_that_cannot_be_recorded(
    case: Job, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(json_lines.Lines, "append", full)
        with pytest.raises(TableError, match=r"ledger\.jsonl cannot be used"):
            publish(case, tmp_path / "out.csv", ledger)
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.jsonl"]
    publish(case, tmp_path / "out.csv", ledger)


def test_a_refusal_names_the_ledger_and_the_option(
    case: Job, ledger: Ledger, tmp_path: Path
) -> None:
    publish(case, tmp_path / "out.csv", ledger)
    with pytest.raises(NotAcceptedError, match=rf"by the ledger {ledger.path}\).*\(--force\)"):
        publish(case, tmp_path / "again.csv", ledger, l=1)


def fail_to_name(case: Job, ledger: Ledger, out: Path) -> None:
    """A release whose line is written, and whose table never gets its name."""

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(TableError, match=r"cannot be written \(No space"):
            publish(case, out, ledger)
    assert not out.exists()
    assert len(ledger.seen(case.manifest.table)) == 1


def test_the_line_of_a_table_that_never_got_its_name_does_not_forbid_it(
    case: Job, ledger: Ledger, tmp_path: Path
) -> None:
    fail_to_name(case, ledger, tmp_path / "out.csv")
    released = case.release(ledger, keep_order=False)
    assert released.sheet.released_before == 0
    assert released.overridden == ()
    assert len(ledger.seen(case.manifest.table)) == 2


def rows_of(path: Path) -> list[str]:
    return sorted(path.read_text().splitlines()[1:])


def test_the_same_cells_in_another_file_are_the_same_release(
    case: Job, ledger: Ledger, tmp_path: Path
) -> None:
    publish(case, tmp_path / "out.csv", ledger)
    again = case.release(ledger, keep_order=False)
    publish(case, tmp_path / "again.csv", ledger)
    assert (again.sheet.released_before, again.overridden) == (0, ())
    assert rows_of(tmp_path / "out.csv") == rows_of(tmp_path / "again.csv")
    # Each file has an order of its own: one does not tell the order of the other.
    assert (tmp_path / "out.csv").read_text() != (tmp_path / "again.csv").read_text()
    assert len(ledger.seen(case.manifest.table)) == 3


@pytest.mark.parametrize("first", [False, True])
def test_the_order_of_the_table_is_another_release(
    case: Job, ledger: Ledger, tmp_path: Path, first: bool
) -> None:
    """Laid over a file in random order, one in the table's order would tell whose row is whose."""
    publish(case, tmp_path / "out.csv", ledger, keep_order=first)
    with pytest.raises(NotAcceptedError, match="released before"):
        publish(case, tmp_path / "again.csv", ledger, keep_order=not first)


def test_another_release_is_refused_after_that_line(
    case: Job, ledger: Ledger, tmp_path: Path
) -> None:
    fail_to_name(case, ledger, tmp_path / "out.csv")
    for other in ({"representation": "midpoint"}, {"l": 1}, {"person": case.table.column_names[0]}):
        with pytest.raises(NotAcceptedError, match="released before"):
            case.release(ledger, **other)
    forced = case.release(ledger, representation="midpoint", force=True)
    assert forced.sheet.released_before == 1
    with pytest.raises(NotAcceptedError, match="released before"):
        publish(case, tmp_path / "out.csv", ledger)


def test_of_two_releases_at_once_one_is_refused(case: Job, ledger: Ledger, tmp_path: Path) -> None:
    """Each looked into the ledger before the other's line was there."""
    both = threading.Barrier(2)
    began = Ledger.releasing

    def together(self: Ledger, claim: Claim, after: tuple[LedgerEntry, ...]) -> object:
        both.wait(60)
        return began(self, claim, after)

    def attempt(name: str) -> str:
        try:
            publish(case, tmp_path / name, ledger, exact_ends=name == "a.csv")
        except NotAcceptedError as error:
            return str(error)
        return ""

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(Ledger, "releasing", together)
        said = sorted(pool.map(attempt, ["a.csv", "b.csv"]))
    assert said[0] == ""
    assert f"recorded in the ledger {ledger.path} in the meantime" in said[1]
    assert len(list(tmp_path.glob("*.csv"))) == 1
    assert len(ledger.seen(case.manifest.table)) == 1
