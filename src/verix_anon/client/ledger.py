"""A local ledger of the tables that were prepared and released, by digest (spec §12).

Two releases of one table under two salts cut it along different lines, and whoever holds
both can lay them over each other; two submissions of one table show its traps, the rows that
are not in both. Only the owner can know, so the owner keeps a list: a file of JSON lines, only
ever appended to, that holds digests and times and no data.
"""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files import lines
from verix_anon.files.store import path_text
from verix_anon.protocol.contract import Digest

__all__ = ["Entry", "Event", "Ledger"]

FORMAT = "verix/ledger/2"


class Event(StrEnum):
    """What was done with a table."""

    PREPARE = "prepare"
    RELEASE = "release"


MADE = {Event.PREPARE: "submission", Event.RELEASE: "root"}
"""What comes of an event, as its line names it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event: of which table, which submission or root came of it, and when."""

    event: Event
    table: Digest
    made: Digest
    """The submission's digest, or the root of the delivery that was released."""
    time: str
    """UTC, ISO 8601"""


@dataclass(frozen=True, slots=True, init=False)
class Ledger:
    """The ledger at a path; the file and its folder are made when first written to."""

    path: Path

    def __init__(self, path: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "path", Path(path_text(path)))

    @classmethod
    def default(cls) -> "Ledger":
        """The user's own: $VERIX_LEDGER, else $XDG_DATA_HOME, else ~/.local/share."""
        if chosen := os.environ.get("VERIX_LEDGER"):
            return cls(Path(chosen))
        home = os.environ.get("XDG_DATA_HOME")
        # The XDG specification: a relative path is invalid and must be ignored.
        data = Path(home) if home and Path(home).is_absolute() else Path.home() / ".local" / "share"
        return cls(data / "verix-anon" / "ledger.jsonl")

    def seen(self, table: Digest) -> tuple[Entry, ...]:
        """The earlier releases of a table, oldest first; none if it is new."""
        return self._of(table, Event.RELEASE)

    def prepared(self, table: Digest) -> tuple[Entry, ...]:
        """The earlier submissions of a table, oldest first."""
        return self._of(table, Event.PREPARE)

    def _of(self, table: Digest, event: Event) -> tuple[Entry, ...]:
        found = (entry for entry in self._entries() if entry is not None)
        return tuple(entry for entry in found if (entry.table, entry.event) == (table, event))

    def warnings(self) -> tuple[str, ...]:
        """What the ledger cannot vouch for: a damaged line may have been of this table."""
        n_damaged = sum(entry is None for entry in self._entries())
        if not n_damaged:
            return ()
        return (f"{n_damaged} line(s) of the ledger {self.path} cannot be read",)

    def record(self, event: Event, table: Digest, made: Digest) -> None:
        """Append an event."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        names = {"event": event.value, "table": table.hex(), MADE[event]: made.hex()}
        line = {"format": FORMAT, **names, "time": now}
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lines.append(self.path, line)
        except OSError as error:
            raise self._unusable(error) from None

    def _entries(self) -> list[Entry | None]:
        """Every line that is not empty, None for one that is damaged."""
        try:
            return [_entry(fields) for fields in lines.read(self.path)]
        except OSError as error:
            raise self._unusable(error) from None

    def _unusable(self, error: OSError) -> TableError:
        return TableError(f"the ledger {self.path} cannot be used ({error.strerror or error})")


def _entry(fields: Fields | None) -> Entry | None:
    if fields is None:
        return None
    try:
        fields.expect("format", FORMAT)
        event = fields.choice("event", Event)
        table, made = (Digest(fields.digest(name)) for name in ("table", MADE[event]))
        return Entry(event, table, made, fields.text("time"))
    except TableError:
        return None
