"""The ledger remembers releases, whatever happened to its file."""

import stat
from pathlib import Path

import pytest

from verix_anon.client.ledger import Event, Ledger
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Digest

TABLE, OTHER, ROOT = Digest(b"t" * 32), Digest(b"o" * 32), Digest(b"r" * 32)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "new" / "ledger.jsonl")


def test_a_new_table_was_never_seen(ledger: Ledger) -> None:
    assert ledger.seen(TABLE) == ()
    assert ledger.warnings() == ()
    assert not ledger.path.exists()


def test_releases_are_remembered_in_order(ledger: Ledger) -> None:
    ledger.record(Event.RELEASE, TABLE, ROOT)
    ledger.record(Event.RELEASE, OTHER, ROOT)
    ledger.record(Event.RELEASE, TABLE, OTHER)
    assert [entry.made for entry in ledger.seen(TABLE)] == [ROOT, OTHER]
    assert ledger.seen(TABLE)[0].time.endswith("+00:00")


def test_submissions_are_remembered_apart_from_releases(ledger: Ledger) -> None:
    ledger.record(Event.PREPARE, TABLE, OTHER)
    assert [entry.made for entry in ledger.prepared(TABLE)] == [OTHER]
    assert ledger.prepared(OTHER) == ()
    assert ledger.seen(TABLE) == ()


def test_only_the_owner_can_read_it(ledger: Ledger) -> None:
    ledger.record(Event.RELEASE, TABLE, ROOT)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(ledger.path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "damage",
    [
        b"\xff\xfe",
        b"{}x\n",
        b"[]",
        b'"text"',
        b"{}",
        b'{"format": "verix/ledger/9"}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_line_costs_nothing_but_itself(ledger: Ledger, damage: bytes) -> None:
    ledger.record(Event.RELEASE, TABLE, ROOT)
    # Without an end: the next line must not be lost with it.
    ledger.path.write_bytes(ledger.path.read_bytes() + b"\n" + damage)
    ledger.record(Event.RELEASE, TABLE, ROOT)
    assert len(ledger.seen(TABLE)) == 2
    assert ledger.warnings() == (f"1 line of the ledger {ledger.path} cannot be read",)


@pytest.mark.parametrize("size", [1, 2, 40, -2])
def test_a_line_cut_short_does_not_count_and_is_told_of_once(ledger: Ledger, size: int) -> None:
    """Nothing rests on a line that is not whole: the process ended as it wrote it."""
    ledger.record(Event.RELEASE, TABLE, ROOT)
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole + whole[:size])
    assert len(ledger.seen(TABLE)) == 1
    (told,) = ledger.warnings()
    assert f"the last line of the ledger {ledger.path} was cut short" in told
    assert len(ledger.record(Event.RELEASE, TABLE, OTHER)) == 1
    assert [entry.made for entry in ledger.seen(TABLE)] == [ROOT, OTHER]
    assert ledger.warnings() == ()
    # Nothing was taken away.
    assert ledger.path.read_bytes().startswith(whole + whole[:size])


def test_a_line_that_is_whole_but_for_its_end_counts(ledger: Ledger) -> None:
    ledger.record(Event.RELEASE, TABLE, ROOT)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-1])
    assert len(ledger.seen(TABLE)) == 1
    assert ledger.warnings() == ()
    ledger.record(Event.RELEASE, TABLE, OTHER)
    assert [entry.made for entry in ledger.seen(TABLE)] == [ROOT, OTHER]


def test_a_ledger_that_cannot_be_used_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="cannot be used"):
        Ledger(tmp_path).seen(TABLE)
    with pytest.raises(TableError, match="cannot be used"):
        Ledger(tmp_path).record(Event.RELEASE, TABLE, ROOT)


def test_the_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("VERIX_LEDGER", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    home = tmp_path / ".local" / "share" / "verix-anon" / "ledger.jsonl"
    assert Ledger.default().path == home
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert Ledger.default().path == home
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert Ledger.default().path == tmp_path / "data" / "verix-anon" / "ledger.jsonl"
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "mine"))
    assert Ledger.default().path == tmp_path / "mine"
