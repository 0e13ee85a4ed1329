"""Whose table it is and what of it was sent: kept in manifest and verdict, told to no provider."""

import json
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from tools import cases
from verix_anon.client.audit_subject import SentForm, account_of
from verix_anon.client.manifest import MOST_CHARACTERS, Parties, read_manifest
from verix_anon.client.owner_files import parse_verdict, write_manifest
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.verify import verify
from verix_anon.errors import TableError
from verix_anon.files.folder_writer import write_submission
from verix_anon.protocol.contract import Rule

pytestmark = pytest.mark.usefixtures("quick_models")
NAMES = {
    "table_name": "Zulu admissions <2024>",
    "controller": "Yankee hospital",
    "processor": "Xray & sons",
}


@cache
def named(**given: object) -> Prepared:
    source = cases.table(200)
    source = source.append_column("person", pa.array([f"p{i}" for i in range(200)]))
    options = PrepareOptions(**(NAMES | {"unsafe_seed": 1, "threads": 1} | given))  # type: ignore[arg-type]
    return prepare(
        source,
        target="y",
        quasi=["age", "score", "town"],
        identifier="person",
        kept="since",
        sensitive="rank",
        k=3,
        options=options,
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "value", ["x" * (MOST_CHARACTERS + 1), "two\nlines", "\u202eback", "\ud800", 7, None]
)
def test_names_are_one_short_line_of_text(name: str, value: object) -> None:
    with pytest.raises(TableError, match=f"{name} must be (one line of at most 200|text)"):
        PrepareOptions(**{name: value})  # type: ignore[arg-type]
    assert getattr(PrepareOptions(**{name: "ü" * MOST_CHARACTERS}), name)  # type: ignore[arg-type]


def test_the_manifest_keeps_them(tmp_path: Path) -> None:
    write_manifest(named().manifest, tmp_path / "m")
    assert read_manifest(tmp_path / "m").parties == Parties(**NAMES)
    assert cases.prepared().manifest.parties == Parties()


def test_the_provider_never_sees_them(tmp_path: Path) -> None:
    write_submission(named().submission, tmp_path / "sent")
    files = [path.read_bytes() for path in (tmp_path / "sent").rglob("*") if path.is_file()]
    assert files
    for text in NAMES.values():
        assert not any(text[:5].encode() in data for data in files)


@pytest.mark.parametrize(
    ("given", "quasi", "target"),
    [
        ({}, SentForm.CODED, SentForm.NEVER),
        ({"rule": Rule.VARIANCE_REDUCTION}, SentForm.CODED, SentForm.CODED),
        ({"rule": Rule.VARIANCE_REDUCTION, "clear": True}, SentForm.CLEAR, SentForm.CLEAR),
    ],
)
def test_account_says_what_was_sent(
    given: dict[str, object], quasi: SentForm, target: SentForm
) -> None:
    prepared = named(**given)
    account = account_of(prepared.manifest)
    found = {c.name: (c.role.value, c.form) for c in account.columns}
    assert found == {
        **dict.fromkeys(("age", "score", "town"), ("quasi", quasi)),
        "since": ("kept", SentForm.NEVER),
        "rank": ("sensitive", SentForm.NEVER),
        "y": ("target", target),
        "person": ("identifier", SentForm.NEVER),
    }
    assert [c.name for c in account.columns] == list(prepared.manifest.roles)
    # What is called sent is in the contract, and nothing else.
    n_sent = sum(c.form is not SentForm.NEVER for c in account.columns)
    assert n_sent == len(prepared.submission.contract.columns)
    assert account.genuine == 200
    assert account.sentinels + account.twins == prepared.submission.records.n_rows - 200
    assert account.sentinels == prepared.manifest.planted["sentinels"]


def test_the_verdict_keeps_the_account() -> None:
    prepared = named()
    verdict = verify(
        cases.honest(prepared.submission), prepared.manifest, submission=prepared.submission
    )
    read = parse_verdict(verdict.to_json())
    assert read.account == verdict.account == account_of(prepared.manifest)
    older = {k: v for k, v in json.loads(verdict.to_json()).items() if k != "account"}
    assert parse_verdict(json.dumps(older)).account is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("genuine", -1),
        ("twins", "many"),
        ("columns", [{"name": "a", "role": "king", "form": "coded"}]),
        ("columns", [{"name": "a", "role": "quasi", "form": "shouted"}]),
        ("parties", {**NAMES, "controller": "x" * 10_000}),
        ("seen", 3),
    ],
)
def test_an_altered_account_is_refused(key: str, value: object) -> None:
    prepared = named()
    verdict = verify(cases.honest(prepared.submission), prepared.manifest)
    document = json.loads(verdict.to_json())
    document["account"] |= {key: value}
    with pytest.raises(TableError):
        parse_verdict(json.dumps(document))
