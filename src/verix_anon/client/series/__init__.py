"""Publish a growing table again and again, as a series of releases (spec §15).

The folder of a series holds three files. `roles.toml` says what the columns are, and stays as it
is. `series.verix` is the owner's memory, a secret. `series.json` is the public log of the releases.

    memory        what series.verix holds
    deduction     what an intruder deduces from all releases together
    withholding   which people have to wait, so that no one falls below l

A release is remembered before its table gets its name, and enters the public log after that. If a
process dies in between, the same command does it again, at the same place in the series.
"""

import os
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path

import numpy as np

from verix_anon.arrays import Ints
from verix_anon.client.manifest import Manifest
from verix_anon.client.privacy_sheet import OverTime, ReleaseRisk
from verix_anon.client.release.privacy import ClassMembers
from verix_anon.client.release.representation import AUTO
from verix_anon.client.release.source import Source
from verix_anon.client.series.deduction import SeenRecords
from verix_anon.client.series.memory import Memory, PastRelease
from verix_anon.client.series.withholding import Withholding
from verix_anon.client.table.columns import columns_of
from verix_anon.client.table.hierarchies import DATE, PREFIX
from verix_anon.client.table.owner_table import RECORD
from verix_anon.client.table.roles import Measure, check_asked
from verix_anon.client.table.roles_editor import Change, edit, read_choices
from verix_anon.client.table.roles_file import place_from, read_changing, read_roles
from verix_anon.client.table.task import TableRole
from verix_anon.errors import NotAcceptedError, ProofError, TableError
from verix_anon.files import json_lines
from verix_anon.files.atomic_write import begun, write_bytes, written_aside
from verix_anon.files.store import beginning, path_text
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.envelopes import PublicKey
from verix_anon.protocol.series_log import MAX_BYTES, Head, SeriesEntry, SeriesLog
from verix_anon.protocol.signing import SigningKey

__all__ = ["Series", "check_series"]

ROLES, MEMORY, LOG, LOCK = "roles.toml", "series.verix", "series.json", ".lock"
CHAINED = frozenset({TableRole.TARGET, TableRole.SENSITIVE})


@dataclass(frozen=True, slots=True, init=False)
class Series:
    """A series in a folder.

    Examples:
        >>> verix_anon.Series("monthly")
        <Series monthly>
    """

    folder: Path
    passphrase: str | None
    key: SigningKey | None
    """The key that signs the heads of the log."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        passphrase: str | None = None,
        key: SigningKey | None = None,
    ) -> None:
        object.__setattr__(self, "folder", Path(path_text(folder)))
        object.__setattr__(self, "passphrase", passphrase)
        object.__setattr__(self, "key", key)

    def __repr__(self) -> str:
        return f"<Series {self.folder}>"

    @classmethod
    def new(
        cls,
        folder: str | os.PathLike[str],
        *,
        roles: str | os.PathLike[str],
        k: int | None = None,
        l: int = 2,  # noqa: E741
        cap: float | None = None,
        t: float | None = None,
        changes: Collection[str] = (),
        passphrase: str | None = None,
    ) -> "Series":
        """Begin a series: what is fixed here holds for all of its releases.

        Args:
            folder: Where it goes; there must not be such a folder.
            roles: A roles file that names the column that tells people apart.
            k: At least so many people in every class; None: as the roles file says.
            l: At least so many values of the target and of each sensitive column, in every class
                and over all releases, where the roles file asks for nothing.
            cap: The greatest share of one value in a class, likewise.
            t: The greatest distance of a class to the table, likewise.
            changes: Columns whose values change from one release to the next, besides those in
                the section [series] of the roles file.
            passphrase: Seals the memory of the series.

        Raises:
            TableError: The roles do not fit a series.
        """
        made, (drafted, declared) = cls(folder, passphrase=passphrase), read_roles(roles)
        if os.path.lexists(made.folder):
            raise TableError(f"{folder} exists already; choose another name for the series")
        if (k := drafted if k is None else k) < 2:
            raise TableError("k must be a whole number, 2 or more")
        named = {name: role for role, name in declared.named()}
        columns = [name for name, role in named.items() if role in CHAINED]
        if declared.person in (None, RECORD):
            raise TableError(
                "a series needs the column that tells people apart, the same in every release:"
                ' person = "..." in the section [contract] of the roles file'
            )
        changes = dict.fromkeys([*read_changing(roles), *changes])
        if unknown := [name for name in changes if name not in columns]:
            raise TableError(f"column {unknown[0]!r} is neither the target nor sensitive")
        if not {*columns} - {*changes}:
            raise TableError(
                "a series needs a target or a sensitive column whose values stay the same"
            )
        given = {Measure.L: l, Measure.CAP: cap, Measure.T: t}
        usual = {m.value: float(v) for m, v in given.items() if v is not None}
        diversity = {name: usual | dict(declared.diversity.get(name, {})) for name in columns}
        check_asked(diversity, named)
        memory = Memory(
            key=secrets.token_bytes(32),
            k=k,
            person=str(declared.person),
            roles={name: str(role) for name, role in named.items()},
            diversity=diversity,
            changes=tuple(changes),
        )
        with begun(made.folder, overwrite=False, folder=True, private=True) as aside:
            write_bytes(aside.path / ROLES, _copied(Path(path_text(roles)), made.folder).encode())
            memory.write(aside.path / MEMORY, passphrase)
            write_bytes(aside.path / LOG, SeriesLog().to_json().encode() + b"\n")
            aside.take_name()
        return made

    @property
    def roles(self) -> Path:
        """The roles file of all releases."""
        return self.folder / ROLES

    @property
    def log(self) -> SeriesLog:
        """The public log."""
        return read_log(self.folder / LOG)

    def memory(self) -> Memory:
        """What is remembered; raises TableError."""
        return Memory.read(self.folder / MEMORY, self.passphrase)

    def check(self, manifest: Manifest) -> None:
        """Raise TableError, with the difference, unless a job has the roles of the series."""
        _check_terms(self._held_together()[0], manifest)

    def risk(self) -> OverTime | None:
        """What all releases reveal together; None if there are none yet."""
        memory = self.memory()
        if not memory.releases:
            return None
        return _measured(memory, [each.seen for each in memory.releases])[0]

    def releases(self) -> tuple[ReleaseRisk, ...]:
        """The releases with their date, their people, and the share of these who are below l."""
        found = self.risk()
        return () if found is None else found.releases

    def begin(self, manifest: Manifest, source: Source, table: object) -> "GrowingSeries":
        """Begin a release of this series; raises TableError unless it fits."""
        memory, log = self._held_together()
        _check_terms(memory, manifest)
        for each in memory.releases:
            # Of those that were interrupted only the last can take its place again.
            is_open = len(log.entries) < each.entry.number == len(memory.releases)
            if each.table == manifest.table and not is_open:
                raise NotAcceptedError(
                    f"this table is release {each.entry.number} of the series already; verix-anon"
                    " convert makes another format of its file"
                )
        return GrowingSeries(self, memory, log, manifest, source, table)

    def _held_together(self) -> tuple[Memory, SeriesLog]:
        """The memory and the log; raises TableError if they are not of one series and time."""
        memory, log = self.memory(), self.log
        if _entries(memory)[: len(log.entries)] != log.entries:
            raise TableError(
                f"{self.folder / MEMORY} does not remember the releases of {LOG} beside it: one of"
                " them is of another series, or an older copy; put both back as they were after"
                " the last release"
            )
        return memory, log


class GrowingSeries:
    """A series with one more release, which is not published yet."""

    def __init__(
        self,
        series: Series,
        memory: Memory,
        log: SeriesLog,
        manifest: Manifest,
        source: Source,
        table: object,
    ) -> None:
        self.series, self.before, self.manifest = series, memory, manifest
        past = memory.releases
        self.interrupted = None
        if past and past[-1].table == manifest.table:
            # The same release was interrupted, so this one takes its place.
            self.interrupted, past = past[-1].entry, past[:-1]
        # Other releases that were interrupted count as published.
        self.log = SeriesLog((*log.entries, *(e.entry for e in past[len(log.entries) :])))
        if log.signature is not None and series.key is None:
            raise TableError(
                "the log of this series is signed: give the key that signs (--sign, or"
                " --sign-series of run)"
            )
        persons = columns_of(table)[memory.person]
        memory, person = memory.with_people(persons, manifest.submission)
        values, coarse = {}, {}
        least = _least(memory)
        for name in least:
            if name not in source.kept:
                raise TableError(f"column {name!r} is part of the series: it cannot be left out")
            memory, values[name] = memory.with_labels(name, source.kept[name])
            coarse[name] = _coarsening(name, source.changed.get(name, {}))
        if past and (found := [*_differences("coarsening", memory.coarse, coarse)]):
            # Values that are written in another way would count as values that have changed.
            raise TableError(
                f"{'; '.join(found)}: give --round, --bins and --top-code as in the first release"
            )
        kinds = {column.name: column.kind.value for column in manifest.quasi}
        self.memory = replace(memory, kinds=kinds, coarse=coarse, releases=past)
        seen = [each.seen for each in past]
        excused = []
        if seen:
            whole = SeenRecords.of(seen)
            excused = [whole.person[whole.left(name) < n] for name, n in least.items()]
        self.withholding = Withholding(
            seen,
            person,
            values,
            least,
            excused=np.unique(np.concatenate([np.empty(0, int), *excused])),
        )

    @property
    def place(self) -> str:
        """The release's place in the log: the log's head before it, with its number."""
        return str(self.log.head())

    def over_time(self, members: ClassMembers, rows: Ints) -> OverTime:
        """Measure what all releases reveal together, including this one.

        Raises:
            NotAcceptedError: This release would make people fall below l.
        """
        self.seen = self.withholding.seen(rows, members.class_of_row)
        found, below = _measured(self.memory, [*self.withholding.past, self.seen])
        if np.setdiff1d(below, self.withholding.excused).size:
            raise NotAcceptedError("people would fall below l over all releases of the series")
        people = self.withholding.person
        returning = np.unique(people[self.withholding.is_returning()])
        return replace(
            found,
            returning=returning.size,
            withheld=np.unique(people).size - np.unique(self.seen.person).size,
        )

    @contextmanager
    def held(self, cells: Digest) -> Iterator[None]:
        """Let no other process add to the series in the block.

        Raises:
            NotAcceptedError: Something else was added to the series in the meantime, or this
                release was interrupted and now is another one.
        """
        if self.interrupted is not None and self.interrupted.cells != cells:
            raise NotAcceptedError(
                f"release {self.interrupted.number} of the series was interrupted, and may have"
                " been published: release the table as then, or another table"
            )
        with json_lines.locked(self.series.folder / LOCK):
            if _entries(self.series.memory()) != _entries(self.before):
                raise NotAcceptedError(
                    "another release was added to the series in the meantime; release again"
                )
            yield

    @contextmanager
    def adding(self, root: Digest, cells: Digest, file: Path) -> Iterator[None]:
        """Remember the release, let the block name its table, and then add it to the log.

        The series must be held.
        """
        entry = SeriesEntry(
            number=len(self.log.entries) + 1,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            contract=self.manifest.contract.digest,
            submission=self.manifest.submission,
            root=root,
            cells=cells,
            file=_digest_of(file),
        )
        added = PastRelease(
            entry=entry,
            table=self.manifest.table,
            person=self.seen.person,
            of_class=self.seen.of_class,
            values=self.seen.values,
        )
        series = self.series
        memory = replace(self.memory, releases=(*self.memory.releases, added))
        memory.write(series.folder / MEMORY, series.passphrase)
        yield
        log = SeriesLog((*self.log.entries, entry))
        log = log if series.key is None else log.signed(series.key)
        path = series.folder / LOG
        with written_aside(path, overwrite=True, folder=False, private=False) as aside:
            write_bytes(aside, log.to_json().encode() + b"\n")


def check_series(
    log: str | os.PathLike[str] | SeriesLog,
    *,
    file: str | os.PathLike[str] | None = None,
    since: Head | str | None = None,
    keys: Collection[PublicKey] | None = None,
) -> SeriesEntry | None:
    """Check the public log of a series, as its readers do.

    Args:
        log: The log, or its file.
        file: A published file, which must be one of the log's.
        since: An earlier head: the log must be the same up to there.
        keys: One of them must have signed the head. None: signatures are not looked at.

    Returns:
        The release that published the file; None if no file was given.

    Raises:
        ProofError: One of these checks fails.
        TableError: A file cannot be read, or the older head is not written as one.
    """
    # What the caller cannot mean comes before any answer.
    older = Head.parse(since) if isinstance(since, str) else since
    digest = None if file is None else _digest_of(Path(path_text(file)))
    found = log if isinstance(log, SeriesLog) else read_log(Path(path_text(log)))
    if older is not None:
        found.check_since(older)
    if keys is not None:
        found.check_signature(keys)
    if digest is None:
        return None
    entry = found.find(digest)
    if entry is None:
        raise ProofError(f"{file} is not a file of this series: no release has its digest")
    return entry


def _measured(memory: Memory, releases: Sequence[SeenRecords]) -> tuple[OverTime, Ints]:
    """Run the deduction over these releases; return its findings and the people below l."""
    seen, least = SeenRecords.of(releases), _least(memory)
    size = int(seen.person.max()) + 1
    is_below, is_certain = np.zeros((2, size), np.bool_)
    fewest = np.full(size, np.iinfo(np.int64).max)
    least_by = {}
    for name, wanted in least.items():
        left = seen.left(name)
        least_by[name] = int(left.min())
        is_below[seen.person[left < wanted]] = True
        is_certain[seen.person[left == 1]] = True
        np.minimum.at(fewest, seen.person, left)
    found = []
    # A release that comes after those of the memory has no time yet.
    times = [*(entry.time for entry in _entries(memory)), ""]
    for number, each in enumerate(releases, 1):
        people = np.unique(each.person)
        found.append(
            ReleaseRisk(
                number=number,
                time=times[number - 1],
                people=people.size,
                below=float(is_below[people].mean()),
                certain=float(is_certain[people].mean()),
                least=int(fewest[people].min()),
            )
        )
    changing = {name: n for name in least if (n := seen.n_changing(name))}
    told = OverTime(releases=tuple(found), least_by=least_by, changing=changing)
    return told, np.flatnonzero(is_below)


def _copied(roles: Path, folder: Path) -> str:
    """The roles file for that folder, from where it names the same hierarchies."""
    text = roles.read_text(encoding="utf-8")
    for each in read_choices(text).columns:
        if each.hierarchy not in ("", PREFIX, DATE):
            place = place_from(roles.parent / each.hierarchy, folder)
            text = edit(text, [Change(("hierarchies", each.name), place)])
    return text


def _coarsening(name: str, remedies: Mapping[str, object]) -> str:
    if remedies.get("bins") == AUTO:
        raise TableError(
            f"column {name!r} is part of the series: give its bins a width, because auto may choose"
            " another one for the next release"
        )
    return ", ".join(f"{what} {value}" for what, value in remedies.items()) or "none"


def _least(memory: Memory) -> dict[str, int]:
    """How many values must stay possible, by column, of those that are chained."""
    return {
        name: int(asked.get(Measure.L, 1))
        for name, asked in memory.diversity.items()
        if name not in memory.changes
    }


def _entries(memory: Memory) -> tuple[SeriesEntry, ...]:
    return tuple(each.entry for each in memory.releases)


def _check_terms(memory: Memory, manifest: Manifest) -> None:
    kinds = {column.name: column.kind.value for column in manifest.quasi}
    # Columns that others are made of are dropped, and need no role.
    sources = {str(given["from"]) for given in manifest.derived.values()}
    roles = {n: r for n, r in manifest.roles.items() if n in memory.roles or n not in sources}
    found = [
        *_differences("role", memory.roles, roles),
        *(_differences("kind", memory.kinds, kinds) if memory.kinds else ()),
        *_differences("measures", memory.diversity, manifest.diversity),
    ]
    if manifest.contract.k != memory.k:
        found.append(f"k was {memory.k}, and is {manifest.contract.k}")
    if manifest.person != memory.person:
        found.append(f"people were told apart by {memory.person!r}, not by {manifest.person!r}")
    if found:
        raise TableError(
            f"this is not a table of the series: {'; '.join(found)}; prepare it with the roles of"
            " the series, or begin another series"
        )


def _differences(what: str, was: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    for name in sorted({*was, *now}):
        if name not in now:
            yield f"the {what} of column {name!r} is missing (it was {_said(was[name])})"
        elif name not in was:
            yield f"column {name!r} is new ({what} {_said(now[name])})"
        elif was[name] != now[name]:
            yield f"the {what} of column {name!r} was {_said(was[name])}, not {_said(now[name])}"


def _said(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {number:g}" for name, number in value.items())
    return str(value)


def read_log(path: Path) -> SeriesLog:
    """Read a public log; raises TableError or ProofError."""
    return SeriesLog.parse(beginning(path, MAX_BYTES + 1, "log"), str(path))


def _digest_of(path: Path) -> Digest:
    try:
        with path.open("rb") as file:
            return Digest(file_digest(file, "sha256").digest())
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror})") from None
