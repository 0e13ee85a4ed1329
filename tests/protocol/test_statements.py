"""Statements are read as strictly as everything that comes from somebody else."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from protocol.signing import JUDGEMENT, RECEIPT
from verix_anon.errors import ReceiptError
from verix_anon.files import job_folder
from verix_anon.protocol.signing import VERDICT_FILE, Judgement
from verix_anon.protocol.statements import DELIVERED, Receipt, as_time, to_time


def test_files_are_named_as_in_a_job() -> None:
    names = (job_folder.DELIVERY_HEADER, job_folder.LEAVES, job_folder.NODES, job_folder.RECORDS)
    assert names == DELIVERED
    assert job_folder.VERDICT == VERDICT_FILE


def test_what_is_written_is_read_back() -> None:
    assert Receipt.from_bytes(RECEIPT.to_bytes()) == RECEIPT
    assert Judgement.from_bytes(JUDGEMENT.to_bytes()) == JUDGEMENT


def test_bytes_are_canonical() -> None:
    data = RECEIPT.to_bytes()
    fields = json.loads(data)
    assert data == json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    assert [each["name"] for each in fields["subject"]] == [
        "delivery.json",
        "leaves.parquet",
        "nodes.parquet",
        "records.parquet",
        "root",
    ]


def test_one_kind_is_not_taken_for_the_other() -> None:
    with pytest.raises(ReceiptError, match="predicateType must be"):
        Receipt.from_bytes(JUDGEMENT.to_bytes())
    with pytest.raises(ReceiptError, match="predicateType must be"):
        Judgement.from_bytes(RECEIPT.to_bytes())


def changed(statement: Receipt | Judgement, change: Callable[[dict[str, Any]], object]) -> bytes:
    fields = json.loads(statement.to_bytes())
    change(fields)
    return json.dumps(fields).encode()


def said(**values: object) -> Callable[[dict[str, Any]], object]:
    return lambda fields: fields["predicate"].update(values)


def subject(at: int, **values: object) -> Callable[[dict[str, Any]], object]:
    return lambda fields: fields["subject"][at].update(values)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.update(_type="https://in-toto.io/Statement/v0.1"), "_type must be"),
        (lambda f: f.update(predicateType="urn:verix:receipt:2"), "predicateType must be"),
        (lambda f: f.update(extra=1), "unknown field 'extra'"),
        (lambda f: f.pop("subject"), "'subject' is missing"),
        (lambda f: f["subject"].pop(), "no subject 'root'"),
        (lambda f: f["subject"].pop(0), "its subjects must be delivery.json, "),
        (lambda f: f["subject"].extend(_numbered(1)), "its subjects must be delivery.json, "),
        (subject(0, name="verdict.json"), "its subjects must be delivery.json, "),
        (lambda f: f["subject"].append(f["subject"][0]), "two subjects are called"),
        (lambda f: f["subject"].extend(_numbered(12)), "more than 16"),
        (subject(0, digest={"sha256": "00"}), "sha256 must be 64"),
        (subject(0, digest={"sha256": "A" * 64}), "sha256 must be 64"),
        (subject(0, digest={}), "'sha256' is missing"),
        (subject(0, digest={"sha256": "0" * 64, "md5": "0"}), "unknown field 'md5'"),
        (subject(0, name="a\nb"), "name must be printable"),
        (subject(0, name="a" * 65), "name must be printable"),
        (said(contract="0"), "contract must be 64"),
        (said(rows=True), "rows must be a whole"),
        (said(rows=-1), "rows must be a whole"),
        (said(rows=10**400), "rows must be a whole"),
        (said(engine="\x1b[31m"), "engine must be printable"),
        (said(began="yesterday"), "began must be a time"),
        (said(finished="2026-11-16T05:00:00+01:00"), "finished must be a time in UTC"),
        (said(finished="2026-11-16T05:00:00"), "finished must be a time in UTC"),
        (said(finished="2026-02-30T05:00:00Z"), "finished must be a time in UTC"),
        (said(extra=1), "unknown field 'extra'"),
        (lambda f: f.update(predicate=[]), "must hold named fields"),
    ],
)
def test_what_is_no_receipt_is_refused(
    change: Callable[[dict[str, Any]], object], words: str
) -> None:
    with pytest.raises(ReceiptError, match=words):
        Receipt.from_bytes(changed(RECEIPT, change))


@pytest.mark.parametrize(
    "data",
    [
        RECEIPT.to_bytes().replace(b'"rows":300', b'"rows":300,"rows":301'),
        RECEIPT.to_bytes().replace(b'"rows":300', b'"rows":' + b"9" * 5000),
        b"[" * 50_000,
        b'{"_type":' * 5_000,
        b"\xff",
        b"",
    ],
)
def test_hostile_bytes_are_refused_in_a_short_sentence(data: bytes) -> None:
    with pytest.raises(ReceiptError, match="not JSON") as refused:
        Receipt.from_bytes(data)
    assert len(str(refused.value)) < 300


def _numbered(n: int) -> list[dict[str, object]]:
    return [{"name": str(i), "digest": {"sha256": "0" * 64}} for i in range(n)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f["subject"].pop(), "no subject 'verdict.json'"),
        (said(findings={}), "findings must be a list"),
        (said(findings=[{"layer": "a", "status": "pass"}]), "'decides' is missing"),
        (said(findings=[{"layer": "a", "status": "pass", "decides": 1}]), "decides must be true"),
        (said(time=7), "time must be text"),
    ],
)
def test_what_is_no_signed_verdict_is_refused(
    change: Callable[[dict[str, Any]], object], words: str
) -> None:
    with pytest.raises(ReceiptError, match=words):
        Judgement.from_bytes(changed(JUDGEMENT, change))


def test_times_are_utc() -> None:
    east = timezone(timedelta(hours=2))
    assert as_time(datetime(2026, 1, 31, 14, 0, 0, 999, tzinfo=east)) == RECEIPT_TIME
    assert to_time(RECEIPT_TIME) == to_time("2026-01-31T12:00:00Z")
    assert to_time(RECEIPT_TIME) == datetime(2026, 1, 31, 12, tzinfo=UTC)
    written = replace(RECEIPT, began=RECEIPT_TIME)
    assert Receipt.from_bytes(written.to_bytes()).began == RECEIPT_TIME


RECEIPT_TIME = "2026-01-31T12:00:00+00:00"
