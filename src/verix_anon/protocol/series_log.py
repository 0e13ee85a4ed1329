"""The public log of a series: one entry for each release, under one Merkle head (spec §15).

The head is the Merkle Tree Hash of RFC 9162, §2.1, over the canonical JSON of the entries. A log
holds all of its entries, so no proofs are needed: a reader who kept an older head computes the head
of so many first entries again. If it is the same, none of them was changed, moved or removed.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256

import rfc8785

from verix_anon.errors import ProofError, ReceiptError, TableError
from verix_anon.fields import Fields, shown, to_json
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.envelopes import PublicKey, keyids_of, open_envelope
from verix_anon.protocol.signing import SigningKey, sign
from verix_anon.protocol.statements import as_said, read_statement, read_time, to_statement

FORMAT = "verix/series/1"
SERIES = "urn:verix:series:1"
HEAD = "head"
"""The name of the subject of a signed head."""
MAX_ENTRIES = 1 << 16
MAX_BYTES = 64 << 20
LEAF, NODE = b"\0", b"\1"


def tree_hash(leaves: Sequence[bytes]) -> Digest:
    """Return the Merkle Tree Hash of RFC 9162, §2.1.1, of a list of data."""
    if not leaves:
        return Digest(sha256().digest())
    level = [sha256(LEAF + data).digest() for data in leaves]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        # The last of an odd number goes up as it is; that splits at the same powers of two.
        odd = level[len(level) & ~1 :]
        level = [*(sha256(NODE + left + right).digest() for left, right in pairs), *odd]
    return Digest(level[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesEntry:
    """One release, as the public log names it."""

    number: int
    """Counts from 1."""
    time: str
    """UTC, such as 2026-01-31T12:00:00+00:00"""
    contract: Digest
    submission: Digest
    root: Digest
    cells: Digest
    """Of all that decides the published cells; another format of the same release shares it."""
    file: Digest
    """SHA-256 of the published file"""

    @property
    def data(self) -> bytes:
        """The entry as canonical JSON: a leaf of the log."""
        return rfc8785.dumps(as_said(self))


@dataclass(frozen=True, slots=True)
class Head:
    """The state of a log: so many entries, and the hash over them."""

    size: int
    hash: Digest

    def __str__(self) -> str:
        return f"{self.size}:{self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """Read a head as it is printed; raises TableError."""
        found = re.fullmatch(r"(0|[1-9][0-9]{0,5}):([0-9a-f]{64})", text.strip(" \t\r\n"))
        if not found:
            raise TableError(
                "a head is a number of releases, a colon and 64 hexadecimal digits, as in 3:0a1b..."
            )
        return cls(int(found[1]), Digest(bytes.fromhex(found[2])))


@dataclass(frozen=True, slots=True)
class SeriesLog:
    """The public log of a series."""

    entries: tuple[SeriesEntry, ...] = ()
    signature: bytes | None = None
    """An envelope with the signed head."""

    def head(self, size: int | None = None) -> Head:
        """The head of the first `size` entries; None: of all."""
        size = len(self.entries) if size is None else size
        return Head(size, tree_hash([entry.data for entry in self.entries[:size]]))

    def signed(self, key: SigningKey) -> "SeriesLog":
        """The same log with its head signed."""
        head = self.head()
        said = to_statement(SERIES, {HEAD: head.hash.hex()}, {"size": head.size})
        return SeriesLog(self.entries, sign(said, key))

    def to_json(self) -> str:
        """The log as it is published."""
        head = self.head()
        document: dict[str, object] = {
            "format": FORMAT,
            "entries": [as_said(entry) for entry in self.entries],
            "size": head.size,
            "head": head.hash.hex(),
        }
        if self.signature is not None:
            envelope = Fields.parse(self.signature, "the signed head", ProofError)
            document["signature"] = envelope.values
        return to_json(document)

    @classmethod
    def parse(cls, data: bytes | str, where: str = "the log of the series") -> "SeriesLog":
        """Read a log.

        Raises:
            ProofError: It is not such a log, or its head is not that of its entries.
        """
        if len(data) > MAX_BYTES:
            raise ProofError(f"{where}: larger than {MAX_BYTES} bytes, the limit")
        document = Fields.parse(data, where, ProofError)
        document.expect("format", FORMAT)
        document.only({"format", "entries", "size", "head"}, {"signature"})
        listed = document.each("entries")
        if len(listed) > MAX_ENTRIES:
            raise ProofError(f"{where}: more than {MAX_ENTRIES} entries")
        signature = None
        if "signature" in document.values:
            signature = _envelope(document.inner("signature"))
        found = cls(tuple(entry_from_json(each, i) for i, each in enumerate(listed, 1)), signature)
        stated = Head(document.whole("size"), Digest(document.digest("head")))
        if stated != found.head():
            raise ProofError(
                f"{where}: its head is not that of its entries, so it was changed by hand"
            )
        return found

    def check_since(self, older: Head) -> None:
        """Raise ProofError unless this log continues the one with that head."""
        if older.size > len(self.entries):
            raise ProofError(
                f"the log has {len(self.entries)} releases, and the older head had {older.size}:"
                " releases were removed, or this is an older copy"
            )
        if self.head(older.size) != older:
            raise ProofError(
                f"the first {older.size} releases are not those of the older head: one was"
                " replaced, moved or removed, or this is another log"
            )

    def check_signature(self, keys: Collection[PublicKey], where: str = "the signed head") -> None:
        """Raise ProofError unless one of the keys has signed this very head."""
        if self.signature is None:
            raise ProofError(f"{where}: the head is not signed")
        head = self.head()
        try:
            payload = open_envelope(self.signature, keys, where).payload
            subjects, said = read_statement(payload, SERIES, where, needed=(HEAD,))
            said.only({"size"})
            is_same = subjects == {HEAD: head.hash.hex()} and said.whole("size") == head.size
        except ReceiptError as error:
            raise ProofError(str(error)) from None
        if not is_same:
            raise ProofError(f"{where}: the signature is about another head")

    def find(self, file: Digest) -> SeriesEntry | None:
        """The release that published a file with this digest, if there is one."""
        return next((entry for entry in self.entries if entry.file == file), None)


def _envelope(found: Fields) -> bytes:
    """An envelope as canonical JSON. Its form is checked, and not who signed it."""
    try:
        data = rfc8785.dumps(dict(found.values))  # type: ignore[arg-type]
        keyids_of(data, found.where)
    except (ValueError, RecursionError, ReceiptError) as error:
        # Not all that JSON can say has a canonical form, such as 1e400.
        raise found.fail(f"{found.where}: not an envelope ({shown(str(error))})") from None
    return data


def entry_from_json(found: Fields, number: int) -> SeriesEntry:
    """Read an entry, which must have this number; raises the error of the fields."""
    names = {field.name for field in fields(SeriesEntry)}
    found.only(names)
    found.expect("number", number)
    digests = {name: Digest(found.digest(name)) for name in names - {"number", "time"}}
    return SeriesEntry(number=number, time=read_time(found, "time"), **digests)
