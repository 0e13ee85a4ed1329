"""The golden envelopes: nothing regenerates differently, and what signs and reads gives each."""

import base64
import json
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tools.signed_vectors import FOLDER, STATEMENTS, render
from verix_anon.protocol.envelopes import PublicKey, open_envelope
from verix_anon.protocol.signing import Judgement, SigningKey, sign
from verix_anon.protocol.statements import Receipt

HERE = Path(__file__).parent / "signed"
READERS: dict[str, type[Receipt] | type[Judgement]] = {"receipt": Receipt, "verdict": Judgement}


def vector(name: str) -> dict[str, str]:
    loaded: dict[str, str] = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def test_the_folder_holds_exactly_these() -> None:
    assert HERE == FOLDER
    assert sorted(path.stem for path in HERE.iterdir()) == sorted(STATEMENTS) == sorted(READERS)


@pytest.mark.parametrize("name", READERS)
def test_regenerates_without_a_difference(name: str) -> None:
    assert render(name) == (HERE / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", READERS)
def test_ours_is_the_vector_to_the_byte(name: str) -> None:
    expected = vector(name)
    payload = expected["statement"].encode()
    assert READERS[name].from_bytes(payload).to_bytes() == payload
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(expected["private"])))
    assert key.public == PublicKey(bytes.fromhex(expected["public"]))
    assert sign(payload, key) == expected["envelope"].encode()
    opened = open_envelope(expected["envelope"].encode(), [key.public], name)
    assert (opened.payload, opened.keys) == (payload, (key.public,))


@pytest.mark.parametrize("name", READERS)
def test_plain_ed25519_accepts_what_we_sign(name: str) -> None:
    """By hand from the text of DSSE: neither our code nor the library that signs is asked."""
    expected = vector(name)
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(expected["private"])))
    made = json.loads(sign(expected["statement"].encode(), key))
    payload = base64.b64decode(made["payload"])
    kind = made["payloadType"].encode()
    signed = b"DSSEv1 " + str(len(kind)).encode() + b" " + kind
    signed += b" " + str(len(payload)).encode() + b" " + payload
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(expected["public"]))
    (signature,) = made["signatures"]
    public.verify(base64.b64decode(signature["sig"]), signed)
    with pytest.raises(InvalidSignature):
        public.verify(base64.b64decode(signature["sig"]), payload)
