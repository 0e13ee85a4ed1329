"""The public log of a series: what was changed, moved, removed or replaced is found."""

import json
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from verix_anon.errors import ProofError, TableError
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.series_log import MAX_BYTES, Head, SeriesEntry, SeriesLog, tree_hash
from verix_anon.protocol.signing import SigningKey

LEAVES = (
    *("", "00", "10", "2021", "3031", "40414243", "5051525354555657"),
    "606162636465666768696a6b6c6d6e6f",
)
HASHES = (
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
OTHER = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33))))


def entry(number: int, *, file: int | None = None) -> SeriesEntry:
    digest = Digest(bytes([number]) * 32)
    return SeriesEntry(
        number=number,
        time=f"2026-0{number}-28T12:00:00+00:00",
        contract=digest,
        submission=digest,
        root=digest,
        cells=digest,
        file=Digest(bytes([file or number]) * 32),
    )


LOG = SeriesLog(tuple(map(entry, range(1, 6))))


def test_the_vectors_of_certificate_transparency() -> None:
    data = [bytes.fromhex(leaf) for leaf in LEAVES]
    assert [tree_hash(data[:n]).hex() for n in range(9)] == [*HASHES]


def test_a_log_reads_back_and_continues_each_older_one() -> None:
    assert SeriesLog.parse(LOG.to_json()) == LOG
    for size in range(6):
        head = SeriesLog(LOG.entries[:size]).head()
        LOG.check_since(Head.parse(str(head)))
    assert LOG.find(LOG.entries[2].file) == LOG.entries[2]
    assert LOG.find(Digest(bytes(32))) is None


REPLACED = (*LOG.entries[:1], replace(entry(2), file=Digest(bytes(32))), *LOG.entries[2:])
MOVED = (entry(1, file=2), entry(2, file=1), *LOG.entries[2:])


@pytest.mark.parametrize(
    "forged",
    [REPLACED, MOVED, LOG.entries[:2], (*LOG.entries[:2], entry(3, file=9))],
    ids=["replaced", "moved", "removed", "forked"],
)
def test_another_past_is_found(forged: tuple[SeriesEntry, ...]) -> None:
    older = SeriesLog(LOG.entries[:3]).head()
    with pytest.raises(ProofError):
        SeriesLog.parse(SeriesLog(forged).to_json()).check_since(older)


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log["entries"][1].update(file="00" * 32),
        lambda log: log["entries"].reverse(),
        lambda log: log["entries"].pop(),
        lambda log: log.update(size=4),
        lambda log: log["entries"][0].update(time="yesterday"),
        lambda log: log["entries"][0].update(more=1),
        lambda log: log.update(format="verix/series/2"),
    ],
)
def test_a_log_that_was_changed_by_hand_is_refused(change) -> None:  # type: ignore[no-untyped-def]
    document = json.loads(LOG.to_json())
    change(document)
    with pytest.raises(ProofError):
        SeriesLog.parse(json.dumps(document))


def test_only_the_head_that_was_signed_is_signed() -> None:
    signed = SeriesLog.parse(LOG.signed(KEY).to_json())
    signed.check_signature([OTHER.public, KEY.public])
    with pytest.raises(ProofError, match="no key"):
        signed.check_signature([OTHER.public])
    with pytest.raises(ProofError, match="another head"):
        SeriesLog(LOG.entries[:4], signed.signature).check_signature([KEY.public])
    with pytest.raises(ProofError, match="not signed"):
        LOG.check_signature([KEY.public])


@pytest.mark.parametrize(
    "signature",
    [
        "null",
        "{}",
        '{"a":1e400}',
        '{"a":9007199254740993}',
        f'{{"a":1{"0" * 5000}}}',
        '{"a":"\\ud800"}',
        '{"\\ud800":1}',
        '{"a":1,"a":2}',
        f'{{"a":{"[" * 900}{"]" * 900}}}',
        f'{{"a":{"[" * 9000}{"]" * 9000}}}',
    ],
)
def test_a_signature_that_is_no_envelope_is_refused(signature: str) -> None:
    text = LOG.to_json().replace("{", f'{{"signature": {signature},', 1)
    with pytest.raises(ProofError):
        SeriesLog.parse(text)


def test_a_log_without_end_is_refused() -> None:
    with pytest.raises(ProofError, match="limit"):
        SeriesLog.parse(LOG.to_json().encode() + b" " * MAX_BYTES)


@pytest.mark.parametrize(
    "text", ["", "3", "3:", "03:" + "0" * 64, "3:" + "G" * 64, "-1:" + "0" * 64]
)
def test_what_is_not_a_head_is_a_mistake(text: str) -> None:
    with pytest.raises(TableError):
        Head.parse(text)
