"""The statements that get signed: in-toto, about a delivery, by its provider or owner (spec §8).

A statement names its subjects by their SHA-256 and says something about them. A signature proves
who said it, not that it is true. That holds for the times above all.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import rfc8785

from verix_anon.errors import ReceiptError
from verix_anon.fields import Fields
from verix_anon.protocol.contract import Digest

if TYPE_CHECKING:
    # Checking a receipt does not need arrays.
    from verix_anon.protocol.messages import Header

STATEMENT = "https://in-toto.io/Statement/v1"
RECEIPT = "urn:verix:receipt:1"
DELIVERED = ("delivery.json", "leaves.parquet", "nodes.parquet", "records.parquet")
"""The subjects of a receipt: all files of a delivery, and no others."""
ROOT = "root"
"""The name of the subject that is not a file."""
MAX_SUBJECTS = 16
MAX_WORD = 64
COUNTS = range(2**32)
TIME = re.compile(r"[0-9]{4}-\d\d-\d\dT([01]\d|2[0-3]):\d\d:\d\d(\.\d{1,6})?(Z|\+00:00)", re.ASCII)

Said = Mapping[str, str | int | Sequence[Mapping[str, str | bool]]]
"""A predicate as JSON values"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The provider's statement: it made these files and this root from that submission."""

    root: Digest
    files: Mapping[str, str]
    """SHA-256 of the delivery's files, in hexadecimal digits"""
    contract: Digest
    submission: Digest
    engine: str
    version: str
    rows: int
    leaves: int
    nodes: int
    began: str
    finished: str

    @classmethod
    def of(cls, header: "Header", files: Mapping[str, str], began: str, finished: str) -> "Receipt":
        """Make a receipt from a delivery's header and the digests of its files."""
        said = {name: value for name, value in asdict(header).items() if name != "seconds"}
        return cls(**said, files=files, began=began, finished=finished)

    def to_bytes(self) -> bytes:
        """The statement as canonical JSON."""
        said = as_said(self)
        return to_statement(RECEIPT, {**said.pop("files"), ROOT: said.pop("root")}, said)

    @classmethod
    def from_bytes(cls, data: bytes, where: str = "the receipt") -> "Receipt":
        """Read bytes whose signature is already checked; raises ReceiptError."""
        subjects, said = read_statement(data, RECEIPT, where)
        said.only(
            {"contract", "submission", "engine", "version", "rows", "leaves", "nodes"}
            | {"began", "finished"}
        )
        if subjects.keys() != {*DELIVERED, ROOT}:
            raise ReceiptError(f"{where}: its subjects must be {', '.join(DELIVERED)} and {ROOT}")
        return cls(
            root=Digest(bytes.fromhex(subjects.pop(ROOT))),
            files=subjects,
            contract=Digest(said.digest("contract")),
            submission=Digest(said.digest("submission")),
            engine=read_word(said, "engine"),
            version=read_word(said, "version"),
            rows=said.whole("rows", COUNTS),
            leaves=said.whole("leaves", COUNTS),
            nodes=said.whole("nodes", COUNTS),
            began=read_time(said, "began"),
            finished=read_time(said, "finished"),
        )


def as_said(statement: Any) -> dict[str, Any]:
    """Return the fields of a statement as JSON values, digests in hexadecimal."""
    found = asdict(statement)
    return {name: v.hex() if isinstance(v, bytes) else v for name, v in found.items()}


def as_time(moment: datetime) -> str:
    """Write a time as statements do: UTC, to the second."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def to_time(text: str) -> datetime | None:
    """Read a time in UTC, or return None if the text is not one."""
    try:
        return datetime.fromisoformat(text) if TIME.fullmatch(text) else None
    except ValueError:
        return None


def to_statement(kind: str, subjects: Mapping[str, str], predicate: Said) -> bytes:
    """Return a statement as canonical JSON."""
    return rfc8785.dumps(
        {
            "_type": STATEMENT,
            "subject": [
                {"name": name, "digest": {"sha256": subjects[name]}} for name in sorted(subjects)
            ],
            "predicateType": kind,
            "predicate": predicate,
        }
    )


def read_statement(
    data: bytes, kind: str, where: str, needed: Collection[str] = (ROOT,)
) -> tuple[dict[str, str], Fields]:
    """Return the digests of the subjects by name, and the fields of the predicate."""
    fields = Fields.parse(data, where, ReceiptError)
    fields.expect("_type", STATEMENT)
    fields.expect("predicateType", kind)
    fields.only({"_type", "subject", "predicateType", "predicate"})
    subjects: dict[str, str] = {}
    for each in fields.each("subject"):
        each.only({"name", "digest"})
        digest = each.inner("digest")
        digest.only({"sha256"})
        name = read_word(each, "name")
        if name in subjects:
            raise ReceiptError(f"{where}: two subjects are called {name!r}")
        subjects[name] = digest.digest("sha256").hex()
    if missing := set(needed) - subjects.keys():
        raise ReceiptError(f"{where}: there is no subject {min(missing)!r}")
    if len(subjects) > MAX_SUBJECTS:
        raise ReceiptError(f"{where}: more than {MAX_SUBJECTS} subjects")
    return subjects, fields.inner("predicate")


def read_word(fields: Fields, name: str) -> str:
    """Read a short printable text; raises the error of the fields."""
    value = fields.text(name)
    if len(value) > MAX_WORD or not value.isprintable():
        raise fields.wrong(name, f"printable text of at most {MAX_WORD} characters")
    return value


def read_time(fields: Fields, name: str) -> str:
    """Read a time in UTC and return it as written; raises the error of the fields."""
    value = fields.text(name)
    if to_time(value) is None or len(value) > MAX_WORD:
        raise fields.wrong(name, "a time in UTC such as 2026-01-31T12:00:00+00:00")
    return value
