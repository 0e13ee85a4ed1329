"""verix-anon keys: pairs to sign with, and the list of those that count."""

import json
import stat
from pathlib import Path

import pytest

from cli.jobs import Run
from protocol.signing import OTHER, OURS
from verix_anon.errors import TableError
from verix_anon.files.keys import pinned_to_json, read_signing_key, write_key, write_trust
from verix_anon.files.trust import NO_TRUST, read_public_key, read_trust


def test_new_makes_both_halves(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "our.key"
    made = run("keys", "new", path, "--json")
    assert made.code == 0
    public = read_public_key(tmp_path / "our.key.pub")
    assert json.loads(made.out) == {
        "private": str(path),
        "public": f"{path}.pub",
        "keyid": public.keyid,
    }
    assert read_signing_key(path).public == public
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = run("keys", "new", path)
    assert again.code == 2
    assert "exists already" in again.err


def test_a_sealed_key_is_made_and_shown(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VERIX_KEY_PASSPHRASE", raising=False)
    (tmp_path / "secret").write_text("sesame\n")
    path, file = tmp_path / "our.key", ("--key-passphrase-file", tmp_path / "secret")
    assert run("keys", "new", path, *file).code == 0
    keyid = read_signing_key(path, passphrase="sesame").public.keyid
    assert f"keyid: {keyid}" in run("keys", "show", path, *file).out
    assert f"keyid: {keyid}" in run("keys", "show", f"{path}.pub").out
    refused = run("keys", "show", path)
    assert refused.code == 2
    assert "the key is sealed; give --key-passphrase-file or $VERIX_KEY_PASSPHRASE" in refused.err
    monkeypatch.setenv("VERIX_KEY_PASSPHRASE", "sesame")
    shown = run("keys", "show", path, "--json")
    assert json.loads(shown.out)["keyid"] == keyid
    assert "PRIVATE" not in shown.out


def test_a_key_that_others_may_read_is_told_of(tmp_path: Path, run: Run) -> None:
    write_key(OURS, tmp_path / "our.key")
    with pytest.raises(TableError, match="is not a private key"):
        read_signing_key(tmp_path / "our.key.pub")
    (tmp_path / "our.key").chmod(0o644)
    shown = run("keys", "show", tmp_path / "our.key")
    assert shown.code == 2
    assert "can be read or changed by others (mode 0644)" in shown.err


def test_pin_revoke_and_list(tmp_path: Path, run: Run) -> None:
    trust = ("--trust", tmp_path / "keys.json")
    for name, key in (("old", OURS), ("new", OTHER)):
        write_key(key, tmp_path / name)
        times = ("--not-before", "2026-01-01", "--not-after", "2027-01-01T00:00+01:00")
        pinned = run("keys", "pin", tmp_path / f"{name}.pub", *trust, "--name", name, *times)
        assert pinned.code == 0
        assert key.public.keyid in pinned.out
    known = read_trust(tmp_path / "keys.json").keys
    assert [each.key for each in known] == [OURS.public, OTHER.public]
    assert pinned_to_json(known[0])["not_before"] == "2026-01-01T00:00:00+00:00"
    assert pinned_to_json(known[0])["not_after"] == "2026-12-31T23:00:00+00:00"
    assert run("keys", "pin", tmp_path / "old.pub", *trust).code == 2
    gone = run("keys", "revoke", OURS.public.keyid[:12], *trust, "--reason", "stolen")
    assert gone.code == 0
    assert run("keys", "revoke", tmp_path / "old.pub", *trust, "--reason", "twice").code == 2
    lines = run("keys", "list", *trust).out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{OURS.public.keyid}  old: was revoked on ")
    assert lines[0].endswith(": stolen")
    listed = json.loads(run("keys", "list", *trust, "--json").out)
    assert [(each["name"], each.get("reason", "")) for each in listed] == [
        ("old", "stolen"),
        ("new", ""),
    ]
    assert listed[0]["counts"] is False


def test_a_file_without_keys_is_listed_and_pinned_into(tmp_path: Path, run: Run) -> None:
    trust = ("--trust", tmp_path / "keys.json")
    write_trust(NO_TRUST, tmp_path / "keys.json")
    write_key(OURS, tmp_path / "key")
    assert run("keys", "list", *trust).code == 0
    assert run("keys", "pin", tmp_path / "key.pub", *trust).code == 0
    assert run("keys", "list", *trust).out.startswith(OURS.public.keyid)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("list", "--trust", "none.json"), "there is no trust file none.json"),
        (("revoke", "00", "--trust", "none.json", "--reason", ""), "there is no trust file"),
        (("pin", "none.pub", "--trust", "keys.json"), "there is no key none.pub"),
        (("show", "none.pub"), "there is no key none.pub"),
        (("new", "no/folder/key"), "there is no folder no/folder"),
    ],
)
def test_mistakes_are_told_of(
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("keys", *arguments)
    assert done.code == 2
    assert words in done.err


def test_times_must_be_times(tmp_path: Path, run: Run) -> None:
    write_key(OURS, tmp_path / "key")
    trust = ("--trust", tmp_path / "keys.json")
    done = run("keys", "pin", tmp_path / "key.pub", *trust, "--not-after", "soon")
    assert done.code == 2
    assert "--not-after must be a time such as" in done.err
    assert not (tmp_path / "keys.json").exists()
