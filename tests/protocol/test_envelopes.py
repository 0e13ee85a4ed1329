"""Nothing comes out of an envelope but what a trusted key has signed."""

import base64
import json
import random
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from protocol.signing import JUDGEMENT, OTHER, OURS, RECEIPT, THIRD, envelope
from verix_anon.errors import ReceiptError, TableError
from verix_anon.files.trust import trust_in
from verix_anon.protocol.envelopes import (
    FIELD,
    MAX_BYTES,
    MAX_SIGNATURES,
    SMALL_ORDER,
    PublicKey,
    keyids_of,
    open_envelope,
)
from verix_anon.protocol.signing import sign

PAYLOAD = RECEIPT.to_bytes()
WHERE = "the receipt"


def opened(data: bytes, *keys: PublicKey) -> bytes:
    return open_envelope(data, keys or [OURS.public], WHERE).payload


def altered(change: Callable[[dict[str, Any]], object]) -> bytes:
    fields = json.loads(sign(PAYLOAD, OURS))
    change(fields)
    return json.dumps(fields).encode()


def test_what_was_signed_comes_out() -> None:
    assert opened(sign(PAYLOAD, OURS)) == PAYLOAD
    assert opened(envelope(PAYLOAD, OURS)) == PAYLOAD


def test_signatures_and_names_are_those_of_plain_ed25519() -> None:
    """Against the text of DSSE and openssl's encoding of a key, not against the library."""
    assert json.loads(sign(PAYLOAD, OURS)) == json.loads(envelope(PAYLOAD, OURS))
    der = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00" + OURS.public.raw
    done = subprocess.run(["sha256sum"], input=der, capture_output=True, check=True)
    assert done.stdout.decode().split()[0] == OURS.public.keyid


def test_the_url_safe_alphabet_is_read() -> None:
    def recode(fields: dict[str, Any]) -> None:
        raw = base64.b64decode(fields["payload"])
        fields["payload"] = base64.urlsafe_b64encode(raw).decode()

    assert opened(altered(recode)) == PAYLOAD


def test_one_trusted_signature_is_enough_and_others_do_not_matter() -> None:
    both = sign(PAYLOAD, OTHER, OURS)
    assert open_envelope(both, [OURS.public], WHERE).keys == (OURS.public,)
    assert open_envelope(both, [THIRD.public, OTHER.public, OURS.public], WHERE).keys == (
        OTHER.public,
        OURS.public,
    )
    assert keyids_of(both, WHERE) == (OTHER.public.keyid, OURS.public.keyid)


def test_a_spoiled_signature_beside_a_good_one_does_not_matter() -> None:
    def spoil(fields: dict[str, Any]) -> None:
        fields["signatures"].insert(0, {"keyid": OTHER.public.keyid, "sig": "AAAA"})

    found = open_envelope(altered(spoil), [OTHER.public, OURS.public], WHERE)
    assert found.keys == (OURS.public,)


@pytest.mark.parametrize("keys", [(), (OTHER.public,), (OTHER.public, THIRD.public)])
def test_what_no_trusted_key_signed_stays_closed(keys: tuple[PublicKey, ...]) -> None:
    with pytest.raises(ReceiptError, match="no key that is trusted"):
        open_envelope(sign(PAYLOAD, OURS), keys, WHERE)


@pytest.mark.parametrize("at", range(0, len(PAYLOAD), 97))
def test_one_changed_bit_of_the_payload_is_seen(at: int) -> None:
    def flip(fields: dict[str, Any]) -> None:
        raw = bytearray(base64.b64decode(fields["payload"]))
        raw[at] ^= 1
        fields["payload"] = base64.b64encode(raw).decode()

    with pytest.raises(ReceiptError, match="no key that is trusted"):
        opened(altered(flip))


@pytest.mark.parametrize("at", range(64))
def test_one_changed_bit_of_the_signature_is_seen(at: int) -> None:
    def flip(fields: dict[str, Any]) -> None:
        raw = bytearray(base64.b64decode(fields["signatures"][0]["sig"]))
        raw[at] ^= 128
        fields["signatures"][0]["sig"] = base64.b64encode(raw).decode()

    with pytest.raises(ReceiptError, match="no key that is trusted"):
        opened(altered(flip))


def test_a_signature_counts_under_its_own_name_only() -> None:
    def rename(fields: dict[str, Any]) -> None:
        fields["signatures"][0]["keyid"] = OTHER.public.keyid

    with pytest.raises(ReceiptError, match="no key that is trusted"):
        opened(altered(rename), OURS.public, OTHER.public)


def test_a_signature_over_another_type_is_refused_whatever_the_envelope_says() -> None:
    other = envelope(PAYLOAD, OURS, payload_type="application/json")
    with pytest.raises(ReceiptError, match="payloadType must be"):
        opened(other)
    relabelled = {**json.loads(other), "payloadType": "application/vnd.in-toto+json"}
    with pytest.raises(ReceiptError, match="no key that is trusted"):
        opened(json.dumps(relabelled).encode())


def named(**values: object) -> Callable[[dict[str, Any]], object]:
    return lambda fields: fields.update(values)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.pop("payloadType"), "'payloadType' is missing"),
        (lambda f: f.pop("payload"), "'payload' is missing"),
        (named(extra=1), "unknown field 'extra'"),
        (named(payload="%%"), "payload must be Base64"),
        (named(payload="é"), "payload must be Base64"),
        (named(payload="AAA"), "payload must be Base64"),
        (named(payload="AAAA===="), "payload must be Base64"),
        (named(payload=7), "payload must be text"),
        (named(signatures=[]), "from 1 to 16"),
        (named(signatures=[{"keyid": str(i), "sig": ""} for i in range(17)]), "from 1 to 16"),
        (named(signatures={}), "signatures must be a list"),
        (named(signatures=["x"]), "must hold named fields"),
        (named(signatures=[{"keyid": 1, "sig": ""}]), "keyid must be text"),
        (named(signatures=[{"keyid": "a"}]), "'sig' is missing"),
        (lambda f: f["signatures"].append(dict(f["signatures"][0])), "two signatures of the key"),
        (lambda f: f["signatures"][0].pop("keyid"), "no key that is trusted"),
    ],
)
def test_what_is_no_envelope_is_refused(
    change: Callable[[dict[str, Any]], object], words: str
) -> None:
    with pytest.raises(ReceiptError, match=words):
        opened(altered(change))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b"[" * 60_000,
        b'{"payload":' * 5_000,
        b'{"payload": 1, "payload": 2}',
        b'{"payload": NaN}',
        b"1" * 50_000,
        b" " * (MAX_BYTES + 1),
    ],
)
def test_hostile_bytes_are_refused_in_a_short_sentence(data: bytes) -> None:
    with pytest.raises(ReceiptError) as refused:
        opened(data)
    assert len(str(refused.value)) < 300


def test_as_many_signatures_as_are_taken() -> None:
    def fill(fields: dict[str, Any]) -> None:
        fields["signatures"] += [{"keyid": f"{i}", "sig": ""} for i in range(MAX_SIGNATURES - 1)]

    assert opened(altered(fill)) == PAYLOAD


def test_a_key_is_read_back_and_others_are_refused() -> None:
    assert PublicKey.from_pem(OURS.public.pem) == OURS.public
    elliptic = generate_private_key(SECP256R1()).public_key()
    pem = elliptic.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    with pytest.raises(ReceiptError, match=r"not of Ed25519"):
        PublicKey.from_pem(pem)
    for text in ("", "é", OURS.public.pem[:60]):
        with pytest.raises(ReceiptError, match="not a public key"):
            PublicKey.from_pem(text)


def test_a_signing_key_shows_nothing() -> None:
    assert "Private" not in repr(OURS)
    assert OURS.held.private_bytes_raw().hex() not in repr(OURS)


def test_openssl_agrees(tmp_path: Path) -> None:
    """Where openssl is installed, it verifies what was signed, over the bytes that DSSE names."""
    fields = json.loads(sign(PAYLOAD, OURS))
    kind = fields["payloadType"].encode()
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(PAYLOAD), PAYLOAD)
    (tmp_path / "key").write_text(OURS.public.pem)
    (tmp_path / "sig").write_bytes(base64.b64decode(fields["signatures"][0]["sig"]))
    (tmp_path / "data").write_bytes(signed)
    command = "openssl pkeyutl -verify -pubin -inkey key -rawin -sigfile sig -in data"
    try:
        done = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no openssl")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("seed", range(20))
def test_no_spoiled_envelope_gives_anything_else(seed: int) -> None:
    """Bytes flipped, cut, doubled and moved: the very statement that was signed, or an error."""
    rng = random.Random(seed)
    honest = [sign(PAYLOAD, OURS), sign(JUDGEMENT.to_bytes(), OTHER)]
    for _ in range(50):
        data = bytearray(rng.choice(honest))
        for _ in range(rng.choice((1, 1, 2, 8))):
            at, end = sorted(rng.randrange(len(data)) for _ in range(2))
            match rng.randrange(4):
                case 0:
                    data[at] ^= 1 << rng.randrange(8)
                case 1:
                    del data[at : rng.choice((at + 1, end + 1))]
                case 2:
                    data[at:at] = data[at:end]
                case _:
                    data[at:end] = rng.choice(honest)[at:end]
            if not data:
                break
        with suppress(ReceiptError):
            assert opened(bytes(data)) == PAYLOAD


def points_of_small_order() -> set[tuple[int, int]]:
    """All points P of the curve with 8 P = 0, by arithmetic of the test's own."""
    p = FIELD
    d = -121665 * pow(121666, -1, p) % p

    def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        product = d * a[0] * b[0] * a[1] * b[1]
        x = (a[0] * b[1] + a[1] * b[0]) * pow(1 + product, -1, p)
        return x % p, (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, p) % p

    def root(square: int) -> int:
        for found in (
            pow(square, (p + 3) // 8, p),
            pow(square, (p + 3) // 8, p) * pow(2, (p - 1) // 4, p) % p,
        ):
            if found * found % p == square % p:
                return found
        return -1

    order = 2**252 + 27742317777372353535851937790883648493
    found = set[tuple[int, int]]()
    for y in range(2, 60):
        x = root((y * y - 1) * pow(d * y * y + 1, -1, p) % p)
        if x < 0:
            continue
        # A point times the order of the large subgroup is one of the 8.
        sum_, point, left = (0, 1), (x, y), order
        while left:
            sum_ = add(sum_, point) if left & 1 else sum_
            point, left = add(point, point), left >> 1
        found.add(sum_)
    return found


def test_no_key_of_small_order_is_taken() -> None:
    points = points_of_small_order()
    assert len(points) == 8
    assert {y for _, y in points} == SMALL_ORDER
    for y in SMALL_ORDER:
        for bit in (0, 1):
            raw = (y | bit << 255).to_bytes(32, "little")
            with pytest.raises(ReceiptError, match="small order"):
                PublicKey(raw)


@pytest.mark.parametrize("y", [FIELD, FIELD + 1, FIELD + 18])
def test_no_key_in_two_encodings_is_taken(y: int) -> None:
    for bit in (0, 1):
        with pytest.raises(ReceiptError, match="canonical"):
            PublicKey((y | bit << 255).to_bytes(32, "little"))


def test_a_key_of_small_order_is_not_read(tmp_path: Path) -> None:
    weak = Ed25519PublicKey.from_public_bytes(bytes([1, *bytes(31)]))
    pem = weak.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "weak.pub").write_bytes(pem)
    with pytest.raises(TableError, match="small order"):
        trust_in([tmp_path / "weak.pub"])
