"""A local ledger of the tables that were prepared, judged and released, by digest (spec §12).

Two releases of one table under two salts cut it along different lines, and anyone who holds
both can lay them over each other; two submissions of one table show its traps, the rows that
are not in both. Only the owner can notice this, so the owner keeps a list: a file of JSON lines,
only ever appended to, that holds digests and times and no data.

A release is recorded before its table gets its name, and again afterwards, all under a lock. So
every released table has its line. The same release in another format does not count as a second
one, because it publishes the same rows. If each file has them in a random order of its own, the
two together tell nothing that one of them does not tell.

A release also leaves a keyed sketch of the people in its table, so that the ledger can tell how
many people another table shares with it. The key is in a file of its own beside the ledger.

The ledger also remembers where audit logs ended, so that a log that lost its end is noticed.
"""

import hmac
import os
import secrets
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Ints
from verix_anon.client.table.digest import plain_column
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.fields import COUNTS, Fields, counted
from verix_anon.files import json_lines
from verix_anon.files.atomic_write import write_bytes, written_aside
from verix_anon.files.store import path_text
from verix_anon.protocol.contract import Digest

FORMAT = "verix/ledger/2"
PEOPLE_KEPT = 1_024
"""How many codes are kept; the error of a share is about 1 / sqrt(PEOPLE_KEPT)."""
CODE_BYTES = 6


class Event(StrEnum):
    """What was done with a table."""

    PREPARE = "prepare"
    AUDIT = "audit"
    """A delivery was judged, and the audit log got a line."""
    RELEASE = "release"
    NAMED = "named"
    """The released table has its name."""


MADE = dict.fromkeys(Event, "submission") | {Event.RELEASE: "root", Event.NAMED: "release"}
"""The field of an event's line that holds what it made, or what it is about."""


@dataclass(frozen=True, slots=True, eq=False)
class PersonSketch:
    """A keyed sketch of a table's people: few bytes that tell how many people two tables share.

    It holds the smallest keyed codes of the people (a bottom-k sketch). Of the smallest codes of
    two tables together, the share that is in both estimates the share of all people who are in
    both. A code is 48 bits of an HMAC, so without the key a sketch tells nothing about anyone.
    """

    n_people: int
    codes: Ints
    """In ascending order."""

    @classmethod
    def of(cls, persons: pa.Array, key: bytes) -> "PersonSketch":
        """Make the sketch of a column that tells people apart; missing values do not count."""
        names = plain_column(persons).drop_null().unique().to_pylist()
        found = (hmac.digest(key, str(name).encode(), "sha256")[:CODE_BYTES] for name in names)
        codes = np.sort(np.array([int.from_bytes(code, "big") for code in found], np.int64))
        return cls(len(names), codes[:PEOPLE_KEPT])

    def shared(self, other: "PersonSketch") -> int:
        """Estimate how many people are in both tables; exact if both are small."""
        both = np.union1d(self.codes, other.codes)[:PEOPLE_KEPT]
        in_both = np.isin(both, self.codes) & np.isin(both, other.codes)
        similar = float(in_both.mean()) if both.size else 0.0
        return round(similar * (self.n_people + other.n_people) / (1 + similar))

    def to_json(self) -> dict[str, object]:
        """Return the sketch as the ledger writes it."""
        data = b"".join(int(code).to_bytes(CODE_BYTES, "big") for code in self.codes)
        return {"n": self.n_people, "codes": b64encode(data).decode()}

    @classmethod
    def from_json(cls, fields: Fields) -> "PersonSketch":
        """Read it back; raises the error of the fields."""
        try:
            data = b64decode(fields.text("codes"), validate=True)
        except ValueError:
            raise TableError("a sketch of people is damaged") from None
        parts = [data[i : i + CODE_BYTES] for i in range(0, len(data), CODE_BYTES)]
        codes = np.array([int.from_bytes(part, "big") for part in parts], np.int64)
        return cls(fields.whole("n", COUNTS), np.sort(codes)[:PEOPLE_KEPT])


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One event: its table, the submission or root that it made, and its time."""

    event: Event
    table: Digest
    made: Digest
    """The submission's digest, the root of the delivery that was released, or the release's."""
    time: str
    """UTC, ISO 8601"""
    release: Digest | None = None
    """The digest of what was released of that delivery, and how; None in other lines."""
    line: Digest | None = None
    """SHA-256 of the audit log's line; only for the event `audit`."""
    n_lines: int = 0
    """How many lines the audit log had, including this one."""
    people: PersonSketch | None = None
    """The sketch of a release's people, if a column tells them apart."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A release: its table, the root it comes from, and the digest of all that decides its rows.

    Two releases with one digest publish the same cells, in the table's order or in a random one.
    """

    table: Digest
    root: Digest
    release: Digest
    people: PersonSketch | None = None

    def others(self, entries: Sequence[LedgerEntry | None]) -> tuple[LedgerEntry, ...]:
        """Return the releases of this table that published something else, oldest first."""
        found = _of(entries, self.table, Event.RELEASE)
        return tuple(entry for entry in found if entry.release != self.release)


@dataclass(frozen=True, slots=True, init=False)
class Ledger:
    """The ledger at a path; the file and its folder are made when first written to.

    Examples:
        >>> ledger = verix_anon.Ledger("ledger.jsonl")
        >>> job = ("job/delivery", "job/manifest.verix", "job/verdict.json")
        >>> released = verix_anon.release(*job, table="people.csv", ledger=ledger)
    """

    path: Path

    def __init__(self, path: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "path", Path(path_text(path)))

    @classmethod
    def default(cls) -> "Ledger":
        """Return the user's own ledger: $VERIX_LEDGER, else $XDG_DATA_HOME, else ~/.local/share."""
        if chosen := os.environ.get("VERIX_LEDGER"):
            return cls(Path(chosen))
        home = os.environ.get("XDG_DATA_HOME")
        # The XDG specification: a relative path is invalid and must be ignored.
        data = Path(home) if home and Path(home).is_absolute() else Path.home() / ".local" / "share"
        return cls(data / "verix-anon" / "ledger.jsonl")

    def seen(self, table: Digest) -> tuple[LedgerEntry, ...]:
        """Return the earlier releases of a table, oldest first."""
        return _of(self._entries(), table, Event.RELEASE)

    def prepared(self, table: Digest) -> tuple[LedgerEntry, ...]:
        """Return the earlier submissions of a table, oldest first."""
        return _of(self._entries(), table, Event.PREPARE)

    def audited(self, table: Digest) -> tuple[LedgerEntry, ...]:
        """Return what is remembered of audit logs for a table's submissions, oldest first."""
        return _of(self._entries(), table, Event.AUDIT)

    def others(self, claim: Claim) -> tuple[LedgerEntry, ...]:
        """Return the earlier releases of the table that published something else than this one."""
        return claim.others(self._entries())

    def sketch(self, persons: pa.Array) -> PersonSketch:
        """Make the sketch of a table's people, with the key in the file beside the ledger."""
        path = self.path.with_name(f"{self.path.name}.key")
        try:
            if not path.exists():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with written_aside(path, overwrite=True, folder=False, private=True) as aside:
                    write_bytes(aside, secrets.token_bytes(32))
            return PersonSketch.of(persons, path.read_bytes())
        except OSError as error:
            raise self._unusable(error) from None

    def sharing(self, claim: Claim, besides: Collection[Digest]) -> tuple[str, ...]:
        """Warn of each other released table that shares people, except those in `besides`."""
        others = {
            entry.table: entry
            for entry in self._entries()
            if entry is not None and entry.people is not None and entry.table not in besides
        }
        others.pop(claim.table, None)
        found = []
        for entry in others.values():
            assert entry.people is not None
            if claim.people is not None and (n_both := claim.people.shared(entry.people)):
                found.append(
                    f"about {n_both:,} of the {claim.people.n_people:,} people of this table are in"
                    f" the table that was released on {entry.time[:10]}: both releases together may"
                    " tell more than each; publish such tables as a series (--series)"
                )
        return tuple(found)

    def warnings(self) -> tuple[str, ...]:
        """Warn of damaged lines, because one of them may have been about this table."""
        n_damaged = sum(entry is None for entry in self._entries())
        lines = counted(n_damaged, "line")
        found = [f"{lines} of the ledger {self.path} cannot be read"] * bool(n_damaged)
        if json_lines.is_cut_short(self.path):
            found.append(
                f"the last line of the ledger {self.path} was cut short: its event was not"
                " completed, so it does not count"
            )
        return tuple(found)

    def record(
        self, event: Event, table: Digest, made: Digest, **more: object
    ) -> tuple[LedgerEntry, ...]:
        """Append an event, and return the earlier ones of its kind and table, oldest first."""
        # Read and append under one lock, so that the later of two processes sees the other's event.
        with self._held() as held:
            earlier = _of([_entry(fields) for fields in held.read()], table, event)
            held.append({**_line(event, table, made), **more})
        return earlier

    @contextmanager
    def releasing(self, claim: Claim, after: Sequence[LedgerEntry]) -> Iterator[None]:
        """Record a release, and keep the ledger locked while the block gives the table its name.

        Raises:
            NotAcceptedError: The ledger has other releases of the table than those in `after`.
        """
        with self._held() as held:
            entries = [_entry(fields) for fields in held.read()]
            if claim.others(entries) != tuple(after):
                raise NotAcceptedError(
                    f"another release of this table was recorded in the ledger {self.path} in the"
                    " meantime; release again, and you are told about it"
                )
            made: dict[str, object] = {"release": claim.release.hex()}
            if claim.people is not None:
                made["people"] = claim.people.to_json()
            held.append({**_line(Event.RELEASE, claim.table, claim.root), **made})
            yield
            # This line only tells people that the table is there. No decision rests on it.
            with suppress(OSError):
                held.append(_line(Event.NAMED, claim.table, claim.release))

    @contextmanager
    def _held(self) -> Iterator[json_lines.Lines]:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with json_lines.locked(self.path) as held:
                yield held
        except OSError as error:
            raise self._unusable(error) from None

    def _entries(self) -> list[LedgerEntry | None]:
        """Return an entry for every line that is not empty, None for a damaged one."""
        try:
            return [_entry(fields) for fields in json_lines.read(self.path)]
        except OSError as error:
            raise self._unusable(error) from None

    def _unusable(self, error: OSError) -> TableError:
        return TableError(f"the ledger {self.path} cannot be used ({error.strerror or error})")


class LookedAt(Ledger):
    """A ledger that is read but not written, for a preview of a release.

    Earlier releases do not forbid a preview. Its sheet counts them and warns of them.
    """

    __slots__ = ()

    @contextmanager
    def releasing(self, claim: Claim, after: Sequence[LedgerEntry]) -> Iterator[None]:
        """Record nothing, because a preview releases nothing."""
        yield


def _of(
    entries: Sequence[LedgerEntry | None], table: Digest, event: Event
) -> tuple[LedgerEntry, ...]:
    found = (entry for entry in entries if entry is not None)
    return tuple(entry for entry in found if (entry.table, entry.event) == (table, event))


def _line(event: Event, table: Digest, made: Digest) -> dict[str, str]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    names = {"event": event.value, "table": table.hex(), MADE[event]: made.hex()}
    return {"format": FORMAT, **names, "time": now}


def _entry(fields: Fields | None) -> LedgerEntry | None:
    if fields is None:
        return None
    try:
        fields.expect("format", FORMAT)
        event = fields.choice("event", Event)
        table, made = (Digest(fields.digest(name)) for name in ("table", MADE[event]))
        time = fields.text("time")
        if event is Event.AUDIT:
            line, n_lines = Digest(fields.digest("line")), fields.whole("lines", COUNTS)
            return LedgerEntry(event, table, made, time, line=line, n_lines=n_lines)
        is_whole = event is Event.RELEASE and fields.has("release")
        release = Digest(fields.digest("release")) if is_whole else None
        has_people = event is Event.RELEASE and fields.has("people")
        people = PersonSketch.from_json(fields.inner("people")) if has_people else None
        return LedgerEntry(event, table, made, time, release, people=people)
    except TableError:
        return None
