"""Keys and trackers, against RFC 5869 and RFC 2104 worked out by hand."""

import hashlib
import hmac
import struct

import numpy as np
import pytest

from support import submission
from tools import cases
from verix_anon.client.prepare.trackers import Part, Secret, assemble, row_bytes, trackers
from verix_anon.client.prepare.traps import Traps


def hkdf(material: bytes, info: bytes) -> bytes:
    """RFC 5869 with SHA-256, no salt, 32 bytes: extract, then the first block of expand."""
    extracted = hmac.new(bytes(32), material, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()


def hmac_by_hand(key: bytes, message: bytes) -> bytes:
    """RFC 2104 for a key no longer than a block."""
    padded = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in padded) + message).digest()
    return hashlib.sha256(bytes(b ^ 0x5C for b in padded) + inner).digest()


def test_hkdf_of_the_rfc() -> None:
    # RFC 5869, test case 3: no salt, no info; 42 bytes are asked for, of which 32 are compared.
    expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
    assert hkdf(b"\x0b" * 22, b"").hex() == expected


@pytest.mark.parametrize("label", ["trackers", "watch", "seed/twins"])
def test_keys_are_hkdf(label: str) -> None:
    salt = bytes(range(32))
    assert Secret(salt).key(label) == hkdf(salt, b"verix/2/" + label.encode())


def test_keys_and_seeds_differ_by_label() -> None:
    secret = Secret(bytes(32))
    purposes = ["trackers", "watch", "twins", "sentinels/noise", "calibration"]
    assert (
        len({secret.key(p) for p in purposes} | {secret.key(f"seed/{p}") for p in purposes}) == 10
    )
    assert secret.seed("twins") == int.from_bytes(secret.key("seed/twins"), "big")
    assert secret.seed("twins").bit_length() > 128


def test_fresh_salts_differ_and_have_256_bits() -> None:
    salts = {Secret.fresh().salt for _ in range(50)}
    assert len(salts) == 50
    assert {len(salt) for salt in salts} == {32}


def test_tracker_by_hand() -> None:
    row = struct.pack("<d", 1.5) + struct.pack("<i", 2) + b"\x01"
    message = b"sentinel\x00" + struct.pack("<Q", 258) + row
    key = bytes(range(32))
    expected = hmac_by_hand(key, message)
    assert expected == hmac.new(key, message, hashlib.sha256).digest()
    rows = np.tile(np.frombuffer(row, np.uint8), (259, 1))
    assert trackers(key, "sentinel", rows)[258].tobytes() == expected


def test_no_records_of_a_role() -> None:
    assert trackers(b"k" * 32, "twin", np.empty((0, 17), np.uint8)).shape == (0, 32)


def test_submitted_trackers_by_hand() -> None:
    """Every tracker of a real submission, from the salt and the owner's table alone."""
    prepared = cases.prepared(traps=Traps.NONE, clear=True)
    sent, manifest = prepared.submission, prepared.manifest
    key = hkdf(manifest.salt, b"verix/2/trackers")
    for row in range(sent.records.n_rows):
        packed = b""
        values = iter(sent.records.values[:, row].tolist())
        for column in sent.contract.columns:
            if column.name == "y":
                packed += struct.pack("<B", sent.records.target[row])
            elif column.categories is not None:
                packed += struct.pack("<i", int(next(values)))
            else:
                packed += struct.pack("<d", next(values))
        message = b"genuine\x00" + struct.pack("<Q", manifest.owner_row[row]) + packed
        assert sent.records.tracker[row].tobytes() == hmac_by_hand(key, message)


def test_roles_and_indexes_count_from_zero() -> None:
    sent = submission([[1.0] * 6], [0, 1] * 3)
    blank = sent.records

    def part(n: int) -> Part:
        return Part([np.ones(n)], np.zeros(n, np.uint8))

    secret = Secret(bytes(32))
    parts = {"genuine": part(3), "sentinel": part(2), "twin": part(1)}
    assembled = assemble(sent.contract, parts, secret, threads=1)
    row = row_bytes(sent.contract, part(1).records(slice(None)))[0].tobytes()
    key = secret.key("trackers")
    found = assembled.records.tracker
    for role, rows in (
        ("genuine", assembled.genuine_row),
        ("sentinel", assembled.sentinel_row),
        ("twin", assembled.twin_row),
    ):
        for index, at in enumerate(rows):
            assert found[at].tobytes() == hmac_by_hand(
                key, role.encode() + b"\0" + struct.pack("<Q", index) + row
            )
    assert len({t.tobytes() for t in found}) == 6
    assert blank.n_rows == 6


def test_rows_stand_in_ascending_tracker() -> None:
    names = [t.tobytes() for t in cases.prepared().submission.records.tracker]
    assert names == sorted(names)
    assert len(set(names)) == len(names)
