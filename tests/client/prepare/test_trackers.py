"""Keys and trackers, against RFC 5869 and RFC 8439 worked out by hand."""

import hashlib
import hmac
import struct

import numpy as np
import pytest

from support import submission
from tools import cases
from verix_anon.client.prepare.trackers import Part, Secret, ascending, assemble, trackers
from verix_anon.client.prepare.traps import Traps


def hkdf(material: bytes, info: bytes) -> bytes:
    """RFC 5869 with SHA-256, no salt, 32 bytes: extract, then the first block of expand."""
    extracted = hmac.new(bytes(32), material, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()


def keystream(key: bytes, n_blocks: int) -> bytes:
    """ChaCha20 of RFC 8439 from block 0, with a nonce of zeros."""
    return b"".join(chacha20_block(key, counter, bytes(12)) for counter in range(n_blocks))


def chacha20_block(key: bytes, counter: int, nonce: bytes) -> bytes:
    """RFC 8439, section 2.3."""
    start = list(
        struct.unpack("<16I", b"expand 32-byte k" + key + struct.pack("<I", counter) + nonce)
    )
    state = start.copy()

    def turn(a: int, b: int, c: int, d: int) -> None:
        for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) & 0xFFFFFFFF
            mixed = state[z] ^ state[x]
            state[z] = ((mixed << bits) | (mixed >> (32 - bits))) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            turn(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            turn(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *((x + y) & 0xFFFFFFFF for x, y in zip(state, start, strict=True)))


def test_chacha20_of_the_rfc() -> None:
    # RFC 8439, section 2.3.2.
    nonce = bytes.fromhex("000000090000004a00000000")
    block = chacha20_block(bytes(range(32)), 1, nonce)
    assert block.hex().startswith("10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c06803")


def test_hkdf_of_the_rfc() -> None:
    # RFC 5869, test case 3: no salt, no info; 42 bytes are asked for, of which 32 are compared.
    expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
    assert hkdf(b"\x0b" * 22, b"").hex() == expected


@pytest.mark.parametrize("label", ["trackers/genuine", "watch", "seed/twins"])
def test_keys_are_hkdf(label: str) -> None:
    salt = bytes(range(32))
    assert Secret(salt).key(label) == hkdf(salt, b"verix/2/" + label.encode())


def test_keys_and_seeds_differ_by_label() -> None:
    secret = Secret(bytes(32))
    purposes = ["trackers/twin", "watch", "twins", "sentinels/noise", "calibration"]
    assert (
        len({secret.key(p) for p in purposes} | {secret.key(f"seed/{p}") for p in purposes}) == 10
    )
    assert secret.seed("twins") == int.from_bytes(secret.key("seed/twins"), "big")
    assert secret.seed("twins").bit_length() > 128


def test_fresh_salts_differ_and_have_256_bits() -> None:
    salts = {Secret.fresh().salt for _ in range(50)}
    assert len(salts) == 50
    assert {len(salt) for salt in salts} == {32}


def test_trackers_are_the_keystream_of_each_role() -> None:
    secret = Secret(bytes(range(32)))
    found = trackers(secret, {"genuine": 5, "twin": 3}).tobytes()
    genuine, twin = (
        hkdf(secret.salt, f"verix/2/trackers/{r}".encode()) for r in ("genuine", "twin")
    )
    assert found == keystream(genuine, 3)[: 5 * 32] + keystream(twin, 2)[: 3 * 32]


def test_no_records_of_a_role() -> None:
    assert trackers(Secret(bytes(32)), {"genuine": 0, "twin": 0}).shape == (0, 32)


def test_a_keystream_goes_on_from_block_to_block(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Secret(bytes(32))
    whole = trackers(secret, {"genuine": 100})
    monkeypatch.setattr("verix_anon.client.prepare.trackers.BLOCK_ROWS", 7)
    assert np.array_equal(trackers(secret, {"genuine": 100}), whole)


def test_submitted_trackers_by_hand() -> None:
    """Every tracker of a real submission, from the salt and the owner's table alone."""
    prepared = cases.prepared(traps=Traps.NONE, clear=True)
    sent, manifest = prepared.submission, prepared.manifest
    stream = keystream(
        hkdf(manifest.salt, b"verix/2/trackers/genuine"), sent.records.n_rows // 2 + 1
    )
    for row, index in enumerate(manifest.owner_row):
        assert sent.records.tracker[row].tobytes() == stream[32 * index : 32 * index + 32]


def test_roles_and_indexes_count_from_zero() -> None:
    sent = submission([[1.0] * 6], [0, 1] * 3)

    def part(n: int) -> Part:
        return Part([np.ones(n)], np.zeros(n, np.uint8))

    secret = Secret(bytes(32))
    parts = {"genuine": part(3), "sentinel": part(2), "twin": part(1)}
    assembled = assemble(sent.contract, parts, secret, threads=1)
    rows = (assembled.genuine_row, assembled.sentinel_row, assembled.twin_row)
    expected = trackers(secret, {"genuine": 3, "sentinel": 2, "twin": 1})
    assert np.array_equal(assembled.records.tracker[np.concatenate(rows)], expected)
    assert len({t.tobytes() for t in expected}) == 6


def test_equal_trackers_are_noticed() -> None:
    with pytest.raises(AssertionError, match="two trackers are equal"):
        ascending(np.zeros((2, 32), np.uint8))


def test_trackers_that_begin_alike_are_still_in_order() -> None:
    names = np.random.default_rng(0).integers(0, 2, (60, 32), dtype=np.uint8)
    found = [t.tobytes() for t in names[ascending(names)]]
    assert found == sorted(found)


def test_rows_stand_in_ascending_tracker() -> None:
    names = [t.tobytes() for t in cases.prepared().submission.records.tracker]
    assert names == sorted(names)
    assert len(set(names)) == len(names)
