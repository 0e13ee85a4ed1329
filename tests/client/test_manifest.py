"""The manifest on disk: what was written comes back, and damage is named."""

import json
import os
import stat
import zipfile
from dataclasses import fields
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from tools import cases
from verix_anon.client import manifest as module
from verix_anon.client.manifest import ARRAYS, Manifest, read_manifest
from verix_anon.client.owner_files import is_sealed, write_manifest
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.verify import verify
from verix_anon.errors import TableError

PASSPHRASE = "correct horse battery staple"


@pytest.fixture(autouse=True)
def _light_scrypt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "heavy_scrypt" not in request.fixturenames:
        monkeypatch.setattr(module, "SCRYPT", {"n": 2**4, "r": 8, "p": 1})


@pytest.fixture
def heavy_scrypt() -> None:
    """Keep the real cost of a passphrase."""


def assert_same(one: Manifest, two: Manifest) -> None:
    for field in fields(Manifest):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if isinstance(a, np.ndarray):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), field.name
            assert (a == b).all(), field.name
        else:
            assert type(a) is type(b), field.name
            assert a == b, field.name


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE, "ß", " "])
@pytest.mark.parametrize("witnesses", [0, 20])
def test_round_trip(tmp_path: Path, passphrase: str | None, witnesses: int) -> None:
    manifest = cases.prepared(witnesses=witnesses).manifest
    write_manifest(manifest, tmp_path / "m", passphrase=passphrase)
    assert_same(manifest, read_manifest(tmp_path / "m", passphrase=passphrase))


def test_round_trip_with_everything(tmp_path: Path) -> None:
    source = cases.table(100).to_pandas()
    source.loc[3, "score"] = None
    source["name"] = [f"person {i}" for i in range(100)]
    made = prepare(
        source,
        target="y",
        quasi="all",
        identifier=["name"],
        k=3,
        options=PrepareOptions(unsafe_seed=1, calibrate=2),
    )
    write_manifest(made.manifest, tmp_path / "m")
    assert made.manifest.imputed["score"] == 1
    assert_same(made.manifest, read_manifest(tmp_path / "m"))


def test_every_array_is_kept() -> None:
    manifest = cases.prepared().manifest
    held = {f.name for f in fields(Manifest) if isinstance(getattr(manifest, f.name), np.ndarray)}
    assert held == set(ARRAYS)


def test_arrays_are_read_only(tmp_path: Path) -> None:
    write_manifest(cases.prepared().manifest, tmp_path / "m")
    for manifest in (cases.prepared().manifest, read_manifest(tmp_path / "m")):
        assert not any(getattr(manifest, name).flags.writeable for name in ARRAYS)


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_what_was_read_verifies(tmp_path: Path, passphrase: str | None) -> None:
    made = cases.prepared()
    write_manifest(made.manifest, tmp_path / "m", passphrase=passphrase)
    manifest = read_manifest(tmp_path / "m", passphrase=passphrase)
    delivery = cases.honest(made.submission)
    assert verify(delivery, manifest, submission=made.submission)
    assert verify(delivery, manifest)


@pytest.mark.usefixtures("heavy_scrypt")
def test_the_real_cost_of_a_passphrase(tmp_path: Path) -> None:
    assert module.SCRYPT == {"n": 2**17, "r": 8, "p": 1}
    manifest = cases.prepared().manifest
    write_manifest(manifest, tmp_path / "m", passphrase=PASSPHRASE)
    assert_same(manifest, read_manifest(tmp_path / "m", passphrase=PASSPHRASE))


def test_sealed_or_not(tmp_path: Path) -> None:
    manifest = cases.prepared().manifest
    write_manifest(manifest, tmp_path / "plain")
    write_manifest(manifest, tmp_path / "sealed", passphrase=PASSPHRASE)
    assert not is_sealed(tmp_path / "plain")
    assert is_sealed(tmp_path / "sealed")
    with pytest.raises(TableError, match="cannot be read"):
        is_sealed(tmp_path / "nothing")


@pytest.mark.parametrize("wrong", ["", "x", PASSPHRASE.upper(), PASSPHRASE + " ", "\udcff"])
def test_wrong_passphrase(tmp_path: Path, wrong: str) -> None:
    write_manifest(cases.prepared().manifest, tmp_path / "m", passphrase=PASSPHRASE)
    with pytest.raises(TableError, match="passphrase is wrong") as raised:
        read_manifest(tmp_path / "m", passphrase=wrong)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
    assert PASSPHRASE not in str(raised.value)


def test_missing_passphrase(tmp_path: Path) -> None:
    write_manifest(cases.prepared().manifest, tmp_path / "m", passphrase=PASSPHRASE)
    with pytest.raises(TableError, match="sealed; give its passphrase"):
        read_manifest(tmp_path / "m")


def test_empty_passphrase_seals_nothing(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="empty passphrase"):
        write_manifest(cases.prepared().manifest, tmp_path / "m", passphrase="")
    assert not (tmp_path / "m").exists()


def test_passphrase_of_a_plain_manifest_is_not_needed(tmp_path: Path) -> None:
    write_manifest(cases.prepared().manifest, tmp_path / "m")
    assert_same(cases.prepared().manifest, read_manifest(tmp_path / "m", passphrase="x"))


def test_sealing_twice_gives_other_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_manifest(cases.prepared().manifest, tmp_path / name, passphrase=PASSPHRASE)
    one, two = ((tmp_path / name).read_bytes() for name in ("a", "b"))
    start = len(module.SEALED)
    assert one[start : start + 28] != two[start : start + 28]
    assert one[start + 28 :] != two[start + 28 :]


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_any_flipped_bit_is_damage(tmp_path: Path, passphrase: str | None) -> None:
    path = tmp_path / "m"
    write_manifest(cases.prepared().manifest, path, passphrase=passphrase)
    data, rng = path.read_bytes(), np.random.default_rng(0)
    places = [*range(120), *rng.integers(0, len(data), 150), *range(len(data) - 60, len(data))]
    for place in places:
        spoilt = bytearray(data)
        spoilt[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(spoilt)
        with pytest.raises(TableError):
            read_manifest(path, passphrase=passphrase)


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_any_truncation_is_damage(tmp_path: Path, passphrase: str | None) -> None:
    path = tmp_path / "m"
    write_manifest(cases.prepared().manifest, path, passphrase=passphrase)
    data = path.read_bytes()
    lengths = [*range(100), *np.random.default_rng(0).integers(100, len(data), 60), len(data) - 1]
    for length in lengths:
        path.write_bytes(data[:length])
        with pytest.raises(TableError):
            read_manifest(path, passphrase=passphrase)
    path.write_bytes(data + b"x")
    with pytest.raises(TableError):
        read_manifest(path, passphrase=passphrase)


def packed(members: dict[str, bytes]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x05\x06" + bytes(18),
        packed({}),
        packed({"manifest.json": b"{"}),
        packed({"manifest.json": b"[]"}),
        packed({"manifest.json": b"{}"}),
        packed({"manifest.json": b"{}"} | {f"{name}.npy": b"\x93NUMPY" for name in ARRAYS}),
    ],
)
def test_other_content_under_a_fitting_digest(tmp_path: Path, content: bytes) -> None:
    from hashlib import sha256

    path = tmp_path / "m"
    path.write_bytes(module.PLAIN + sha256(content).digest() + content)
    with pytest.raises(TableError, match="damaged"):
        read_manifest(path)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    from hashlib import sha256

    array = BytesIO()
    np.save(array, np.array([print], dtype=object), allow_pickle=True)
    content = packed(
        {"manifest.json": json.dumps({}).encode()}
        | {f"{name}.npy": array.getvalue() for name in ARRAYS}
    )
    path = tmp_path / "m"
    path.write_bytes(module.PLAIN + sha256(content).digest() + content)
    with pytest.raises(TableError, match="damaged"):
        read_manifest(path)


@pytest.mark.parametrize("content", [b"", b"verix", b"PK", b"verix/manifest/1 plain\n" + bytes(99)])
def test_what_is_not_a_manifest(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(TableError, match="is not a manifest"):
        read_manifest(tmp_path / "m")


def test_no_manifest_at_all(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="there is no manifest"):
        read_manifest(tmp_path / "nothing")
    with pytest.raises(TableError, match="cannot be read"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_for_the_owners_eyes_only(tmp_path: Path, mask: int, passphrase: str | None) -> None:
    before = os.umask(mask)
    try:
        write_manifest(cases.prepared().manifest, tmp_path / "m", passphrase=passphrase)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o600


def test_overwriting_narrows_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"old")
    path.chmod(0o666)
    with pytest.raises(TableError, match="exists already"):
        write_manifest(cases.prepared().manifest, path)
    assert path.read_bytes() == b"old"
    write_manifest(cases.prepared().manifest, path, overwrite=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
