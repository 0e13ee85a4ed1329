"""Read and write the owner's memory of a series: who was in which class, and what it published.

The file is for its owner alone (mode 0600), and sealed if there is a passphrase. People stand in it
under codes, HMAC-SHA256 of the person value with the series' own key.
"""

import hmac
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Bytes, Ids, Ints
from verix_anon.client.manifest import unsealed
from verix_anon.client.owner_files import write_secret
from verix_anon.client.series.deduction import SeenRecords
from verix_anon.client.table.digest import plain_column
from verix_anon.errors import Error, TableError
from verix_anon.fields import Fields
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.series_log import SeriesEntry, entry_from_json
from verix_anon.protocol.statements import as_said

PLAIN, SEALED = b"verix/series-memory/1\n", b"verix/series-memory/1 sealed\n"
CODE = 16
"""Bytes of a person's code that are kept."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PastRelease:
    """One release of a series."""

    entry: SeriesEntry
    table: Digest
    """The digest of the owner's table."""
    person: Ints
    """For each published record, the position of its person's code."""
    of_class: Ints
    """The class of each record as the public sees it: classes that look alike are one."""
    values: Mapping[str, Ints]
    """For each chained column, the position of each record's value among the labels."""

    @property
    def seen(self) -> SeenRecords:
        """The release as the intruder sees it."""
        return SeenRecords(self.person, self.of_class, np.zeros_like(self.person), self.values)


@dataclass(frozen=True, eq=False, kw_only=True)
class Memory:
    """All that a series remembers. Its repr says nothing."""

    key: bytes = field(repr=False)
    k: int
    person: str
    roles: Mapping[str, str]
    """The role of every column that has one."""
    diversity: Mapping[str, Mapping[str, float]]
    changes: tuple[str, ...] = ()
    """Columns whose values change between releases: they are not chained."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """The kinds of the quasi-identifiers, from the first release on."""
    coarse: Mapping[str, str] = field(default_factory=dict)
    """How each chained column is made coarser, from the first release on."""
    labels: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    people: Bytes = field(default_factory=lambda: np.empty((0, CODE), np.uint8))
    releases: tuple[PastRelease, ...] = ()

    def __repr__(self) -> str:
        return f"<Memory of {len(self.releases)} releases; content withheld>"

    @cached_property
    def _position(self) -> dict[bytes, int]:
        return {code.tobytes(): i for i, code in enumerate(self.people)}

    @cached_property
    def _position_of_label(self) -> dict[str, dict[str | None, int]]:
        return {name: {t: i for i, t in enumerate(texts)} for name, texts in self.labels.items()}

    def with_people(self, persons: pa.Array, own: bytes) -> tuple["Memory", Ints]:
        """Codes for people, and the position of each record's; `own` is for those without a name.

        A record without a person value is a person of its own.
        """
        encoded = plain_column(persons).dictionary_encode()
        texts = [_text(value) for value in encoded.dictionary.to_pylist()]
        names = [b"\1" + str(text).encode() for text in texts]
        numbers = encoded.indices.to_numpy(zero_copy_only=False)
        is_nobody = np.asarray(encoded.indices.is_null())
        numbers = np.where(is_nobody, 0, numbers).astype(np.int64)
        numbers[is_nobody] = len(names) + np.arange(is_nobody.sum())
        names += [b"\0" + own + str(row).encode() for row in np.flatnonzero(is_nobody)]
        codes = [hmac.digest(self.key, name, "sha256")[:CODE] for name in names]
        known = dict(self._position)
        places = np.array([known.setdefault(code, len(known)) for code in codes], np.int64)
        people = np.frombuffer(b"".join(known), np.uint8).reshape(-1, CODE)
        return replace(self, people=people), places[numbers]

    def with_labels(self, name: str, array: pa.Array) -> tuple["Memory", Ints]:
        """Labels for a column's values, and the position of each record's."""
        encoded = plain_column(array).dictionary_encode()
        known = dict(self._position_of_label.get(name, {}))
        texts = [*map(_text, encoded.dictionary.to_pylist()), None]
        numbers = encoded.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
        found = np.empty(len(texts), np.int64)
        for i in np.unique(numbers):
            found[i] = known.setdefault(texts[i], len(known))
        return replace(self, labels={**self.labels, name: tuple(known)}), found[numbers]

    def write(self, path: Path, passphrase: str | None) -> None:
        """Write the file, sealed if there is a passphrase."""
        write_secret(path, self._pack(), PLAIN, SEALED, passphrase, overwrite=True)

    def _pack(self) -> bytes:
        document = {
            "key": self.key.hex(),
            "k": self.k,
            "person": self.person,
            "roles": dict(self.roles),
            "diversity": {name: dict(asked) for name, asked in self.diversity.items()},
            "changes": list(self.changes),
            "kinds": dict(self.kinds),
            "coarse": dict(self.coarse),
            "labels": {name: list(texts) for name, texts in self.labels.items()},
            "releases": [
                {"entry": as_said(each.entry), "table": each.table.hex(), "columns": [*each.values]}
                for each in self.releases
            ],
        }
        arrays: dict[str, Ids | Bytes] = {"people": self.people}
        for each in self.releases:
            for name, array in zip(
                _names(each.entry.number, len(each.values)),
                (each.person, each.of_class, *each.values.values()),
                strict=True,
            ):
                arrays[name] = array.astype(np.int32)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr("series.json", json.dumps(document))
            for name, held in arrays.items():
                content = io.BytesIO()
                np.lib.format.write_array(content, np.ascontiguousarray(held))
                archive.writestr(f"{name}.npy", content.getvalue())
        return buffer.getvalue()

    @classmethod
    def read(cls, path: Path, passphrase: str | None) -> "Memory":
        """Read the file.

        Raises:
            TableError: There is none, it is damaged, or the passphrase is missing or wrong.
        """
        data = _held(path)
        if data.startswith(SEALED):
            data = unsealed(data, SEALED, passphrase, "series")
        elif data.startswith(PLAIN):
            digest, data = data[len(PLAIN) :][:32], data[len(PLAIN) + 32 :]
            if sha256(data).digest() != digest:
                raise TableError(f"{path} is damaged")
        else:
            raise TableError(f"{path} is not the memory of a series")
        try:
            return _unpack(data)
        except (zipfile.BadZipFile, ValueError, KeyError, EOFError, Error) as error:
            raise TableError(f"{path} is damaged ({type(error).__name__})") from None


def is_sealed(path: Path) -> bool:
    """Whether reading the file takes a passphrase; raises TableError if it cannot be read."""
    return _held(path).startswith(SEALED)


def _held(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TableError(
            f"{path.parent} is not the folder of a series: {path.name} cannot be read"
            f" ({error.strerror}); begin one: verix-anon series new FOLDER --roles roles.toml"
        ) from None


def _text(value: object) -> str | None:
    """A value as text; a whole number reads the same whatever its type is."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return None if value is None else str(value)


def _names(number: int, n_values: int) -> Sequence[str]:
    return [f"{number}/{part}" for part in ("person", "class", *range(n_values))]


def _unpack(data: bytes) -> Memory:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        fields = Fields.parse(archive.read("series.json"), "the series", TableError)

        def array(name: str) -> Ints:
            held = np.lib.format.read_array(
                io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False
            )
            return np.asarray(held)

        releases = []
        for number, each in enumerate(fields.each("releases"), 1):
            columns = each.texts("columns")
            person, of_class, *values = (
                array(name).astype(np.int64) for name in _names(number, len(columns))
            )
            releases.append(
                PastRelease(
                    entry=entry_from_json(each.inner("entry"), number),
                    table=Digest(each.digest("table")),
                    person=person,
                    of_class=of_class,
                    values=dict(zip(columns, values, strict=True)),
                )
            )
        people = array("people").astype(np.uint8)
    roles, kinds, labels, diversity = map(fields.inner, ("roles", "kinds", "labels", "diversity"))
    coarse = fields.inner("coarse")
    return Memory(
        key=fields.digest("key"),
        k=fields.whole("k"),
        person=fields.text("person"),
        roles={name: roles.text(name) for name in roles.values},
        diversity={name: diversity.inner(name).all_numbers() for name in diversity.values},
        changes=fields.texts("changes"),
        kinds={name: kinds.text(name) for name in kinds.values},
        coarse={name: coarse.text(name) for name in coarse.values},
        labels={
            name: tuple(None if v is None else str(v) for v in labels.items(name))
            for name in labels.values
        },
        people=people,
        releases=tuple(releases),
    )
