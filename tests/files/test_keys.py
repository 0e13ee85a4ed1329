"""Key files: the private half is for its holder alone."""

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from protocol.signing import OURS
from verix_anon.errors import TableError
from verix_anon.files import keys
from verix_anon.files.keys import read_signing_key, write_key
from verix_anon.files.trust import MAX_KEY_BYTES, read_public_key


def test_both_halves_are_written_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "our.key"
    write_key(OURS, path)
    assert read_signing_key(path).public == OURS.public
    assert read_public_key(tmp_path / "our.key.pub") == OURS.public
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not keys.is_sealed(path)


def test_new_keys_differ() -> None:
    assert keys.new_key().public != keys.new_key().public


def test_a_sealed_key_needs_its_passphrase(tmp_path: Path) -> None:
    path = tmp_path / "our.key"
    write_key(OURS, path, passphrase="sesame")
    assert keys.is_sealed(path)
    assert read_signing_key(path, passphrase="sesame").public == OURS.public
    with pytest.raises(TableError, match="is sealed; give its passphrase"):
        read_signing_key(path)
    with pytest.raises(TableError, match="damaged, or the passphrase is wrong"):
        read_signing_key(path, passphrase="simsim")
    with pytest.raises(TableError, match="empty passphrase"):
        write_key(OURS, tmp_path / "other.key", passphrase="")


def test_a_passphrase_that_is_not_needed_does_not_matter(tmp_path: Path) -> None:
    write_key(OURS, tmp_path / "our.key")
    assert read_signing_key(tmp_path / "our.key", passphrase="x").public == OURS.public


@pytest.mark.parametrize("taken", ["our.key", "our.key.pub"])
def test_no_key_is_replaced(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_text("mine")
    with pytest.raises(TableError, match="exists already, and no key is replaced"):
        write_key(OURS, tmp_path / "our.key")
    assert [path.name for path in tmp_path.iterdir()] == [taken]


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o644, 0o666, 0o660, 0o620])
def test_a_key_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "our.key"
    write_key(OURS, path)
    path.chmod(mode)
    with pytest.raises(TableError, match=rf"by others \(mode {mode:04o}\): chmod 600"):
        read_signing_key(path)


@pytest.mark.parametrize(("owner", "mode", "is_read"), [(0, 0o640, True), (1000, 0o640, False)])
def test_of_roots_keys_a_group_may_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, mode: int, is_read: bool
) -> None:
    """As a service's key is handed to a container."""
    path = tmp_path / "our.key"
    write_key(OURS, path)

    class Found:
        st_uid, st_mode = owner, mode

    monkeypatch.setattr(Path, "stat", lambda *_, **__: Found)
    if is_read:
        assert read_signing_key(path).public == OURS.public
    else:
        with pytest.raises(TableError, match="by others"):
            read_signing_key(path)


def test_what_is_no_key_is_told_of(tmp_path: Path) -> None:
    write_key(OURS, tmp_path / "our.key")
    with pytest.raises(TableError, match="there is no key"):
        read_signing_key(tmp_path / "none.key")
    with pytest.raises(TableError, match="is a private key; its public half is"):
        read_public_key(tmp_path / "our.key")
    public = tmp_path / "our.key.pub"
    public.chmod(0o600)
    with pytest.raises(TableError, match="not a private key in PEM"):
        read_signing_key(public)
    with pytest.raises(TableError, match="cannot be read"):
        read_public_key(tmp_path)
    (tmp_path / "huge").write_bytes(b" " * (MAX_KEY_BYTES + 1))
    with pytest.raises(TableError, match="larger than 16384 bytes"):
        read_public_key(tmp_path / "huge")
    (tmp_path / "odd").write_text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    with pytest.raises(TableError, match="not a public key in PEM"):
        read_public_key(tmp_path / "odd")


def test_only_ed25519_signs(tmp_path: Path) -> None:
    path = tmp_path / "ec.key"
    key = generate_private_key(SECP256R1())
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    with pytest.raises(TableError, match=r"not of Ed25519; make one"):
        read_signing_key(path)
    path.write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    with pytest.raises(TableError, match="is damaged"):
        read_signing_key(path)
