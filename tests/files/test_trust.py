"""Which keys count, and when."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from protocol.signing import OTHER, OURS, THIRD
from verix_anon.errors import TableError
from verix_anon.files.keys import pin, revoke, write_key, write_trust
from verix_anon.files.trust import NO_TRUST, Pinned, Trust, read_trust, trust_in

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def pinned(**given: Any) -> Trust:
    return Trust((Pinned(key=OURS.public, pinned=NOW, **given),))


def test_several_keys_count_at_once() -> None:
    both = pin(pinned(), Pinned(key=OTHER.public, name="next"))
    assert both.counting(NOW) == (OURS.public, OTHER.public)
    assert both.name_of(OTHER.public.keyid) == "next"
    assert both.refusal(THIRD.public.keyid, NOW) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"not_before": NOW}, ""),
        ({"not_after": NOW}, ""),
        ({"not_before": NOW + DAY}, "does not count before 2026-11-17T12:00:00+00:00"),
        ({"not_after": NOW - DAY}, "does not count after 2026-11-15T12:00:00+00:00"),
        ({"revoked": NOW + DAY}, "was revoked on 2026-11-17T12:00:00+00:00"),
    ],
)
def test_when_a_key_counts(given: dict[str, datetime], said: str) -> None:
    """A revoked key never counts, not even before the time that stands beside it."""
    assert pinned(**given).refusal(OURS.public.keyid, NOW) == said
    assert bool(pinned(**given).counting(NOW)) is (said == "")


def test_revoking_is_for_good() -> None:
    gone = revoke(pinned(), OURS.public.keyid[:8], NOW, "stolen")
    assert gone.counting(NOW - 1000 * DAY) == ()
    assert (
        gone.refusal(OURS.public.keyid, NOW) == "was revoked on 2026-11-16T12:00:00+00:00: stolen"
    )
    with pytest.raises(TableError, match="revoked, which is final"):
        pin(gone, Pinned(key=OURS.public))
    with pytest.raises(TableError, match="was revoked already"):
        revoke(gone, OURS.public.keyid, NOW, "again")
    with pytest.raises(TableError, match="was pinned already"):
        pin(pinned(), Pinned(key=OURS.public))


def test_what_is_pinned_here_and_revoked_there_is_revoked() -> None:
    gone = revoke(pinned(), OURS.public.keyid, NOW, "stolen")
    for joined in (gone + pinned(), pinned() + gone):
        assert joined.counting(NOW) == ()


def test_what_counts_by_one_file_counts() -> None:
    assert (pinned(not_after=NOW - DAY) + pinned()).counting(NOW) == (OURS.public,)


def test_a_key_pinned_elsewhere_counts_only_if_nothing_is_decided_of_it() -> None:
    ended = pinned(not_after=NOW - DAY)
    assert ended.beside([OURS.public]) == ended
    assert ended.beside([OURS.public, OTHER.public]).counting(NOW) == (OTHER.public,)
    assert NO_TRUST.beside([OURS.public]).counting(NOW) == (OURS.public,)


@pytest.mark.parametrize("keyid", ["", "nothing", "0" * 64])
def test_a_key_must_be_named(keyid: str) -> None:
    with pytest.raises(TableError, match="pinned keys have a keyid that begins with"):
        revoke(pinned(), keyid, NOW, "")


def test_the_file_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    trust = pin(
        pinned(not_before=NOW - DAY, not_after=NOW + DAY),
        Pinned(key=OTHER.public, name="Prüfer", pinned=NOW),
    )
    trust = revoke(trust, OTHER.public.keyid, NOW, "lost")
    write_trust(trust, path)
    assert read_trust(path) == trust
    assert json.loads(path.read_text())["format"] == "verix/keys/1"


def test_keys_come_from_public_keys_and_from_lists(tmp_path: Path) -> None:
    write_key(THIRD, tmp_path / "third")
    write_trust(pinned(), tmp_path / "keys.json")
    found = trust_in([tmp_path / "third.pub", tmp_path / "keys.json"])
    assert found.counting(NOW) == (THIRD.public, OURS.public)
    assert not trust_in([])
    assert not NO_TRUST


def test_a_file_without_keys_is_read_but_not_trusted_by(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    write_trust(NO_TRUST, path)
    assert read_trust(path) == NO_TRUST
    write_key(THIRD, tmp_path / "third")
    with pytest.raises(TableError, match=r"keys\.json holds no key"):
        trust_in([tmp_path / "third.pub", path])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"keyid": "0" * 64}, "keyid is not that of the key"),
        ({"public": "-----BEGIN"}, "not a public key in PEM"),
        ({"pinned": "today"}, "pinned must be a time in UTC"),
        ({"revoked": "2026-01-01"}, "revoked must be a time in UTC"),
        ({"extra": "x"}, "unknown field 'extra'"),
        ({"name": "a\nb"}, "name and reason are one line"),
        ({"not_before": "2027-01-01T00:00:00Z"}, "ends before it begins"),
    ],
)
def test_an_altered_file_is_refused(tmp_path: Path, change: dict[str, str], words: str) -> None:
    path = tmp_path / "keys.json"
    write_trust(pinned(not_after=NOW), path)
    fields = json.loads(path.read_text())
    fields["keys"][0] |= change
    path.write_text(json.dumps(fields))
    with pytest.raises(TableError, match=words):
        read_trust(path)


@pytest.mark.parametrize("text", ["", "[]", '{"format": "verix/keys/2", "keys": []}', "[" * 9999])
def test_what_is_no_list_of_keys_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(TableError, match=r"keys\.json"):
        trust_in([path])
