"""The files of a submission or delivery, each read once and hashed (spec §8).

The bytes that are decoded are the bytes that were hashed. Their digests are compared with those
that `submission.json` or `delivery.json` states.
"""

import hmac
import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pyarrow as pa

from verix_anon.fields import Fields
from verix_anon.files.hostile import parquet_reader as parquet
from verix_anon.files.job_folder import RECORDS
from verix_anon.files.scratch import Held, InMemory, InScratch, Kept, Scratch
from verix_anon.files.store import Folder

HELD_BYTES = 1 << 27
"""How much of a folder's files is held in memory as it was read."""


def digest_of_parts(parts: Iterable[tuple[str, bytes]]) -> str:
    """The digest of a folder: the name and the SHA-256 of each part, in ascending name."""
    digest = sha256()
    for name, part in parts:
        written = name.encode()
        digest.update(struct.pack("<Q", len(written)) + written + part)
    return digest.hexdigest()


def stated_digests(fields: Fields, names: Collection[str]) -> dict[str, str]:
    """The field `files`: the digest of each of these files, and of no other."""
    files = fields.inner("files")
    files.only(names)
    return {name: files.digest(name).hex() for name in sorted(names)}


class Files:
    """The files of one folder, and the SHA-256 of each that was read."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.digests: dict[str, str] = {}
        self.room = HELD_BYTES
        self.scratch: Scratch | None = None

    def read(self, name: str, limit: int) -> bytes:
        """A file of at most so many bytes."""
        data = self.folder.read(name, limit=limit)
        self.digests[name] = sha256(data).hexdigest()
        return data

    def hold(self, name: str, limit: int) -> Held:
        """A file of at most so many bytes, which may be large."""
        held, digest = self._held(name, limit)
        self.digests[name] = digest.hex()
        return held

    def hold_records(
        self, columns: Mapping[str, pa.DataType], n_rows: int
    ) -> tuple[parquet.Expected, dict[str, Held]]:
        """The parts of the records by their names, not larger than so many rows may be."""
        names = self.folder.parts(RECORDS)
        if names == [RECORDS]:
            expected = parquet.Expected(columns)
            return expected, {RECORDS: self.hold(RECORDS, expected.bytes_for(n_rows))}
        expected = parquet.Expected(columns, parts=len(names))
        parts, digests, left = dict[str, Held](), [], expected.bytes_for(n_rows)
        for name in names:
            parts[name], digest = self._held(name, left)
            digests.append((name.removeprefix(f"{RECORDS}/"), digest))
            left -= parts[name].size
        self.digests[RECORDS] = digest_of_parts(digests)
        return expected, parts

    def _held(self, name: str, limit: int) -> tuple[Held, bytes]:
        """A file, and its SHA-256; what is more than may be held goes to a scratch file."""
        digest, places = sha256(), list[Kept]()

        def hand(block: bytes) -> None:
            digest.update(block)
            self.scratch = self.scratch or Scratch()
            places.append(self.scratch.put(np.frombuffer(block, np.uint8)))

        data = self.folder.read_or_hand(name, limit=limit, room=self.room, hand=hand)
        if data is not None:
            self.room -= len(data)
            return InMemory(data), sha256(data).digest()
        if not places:
            # The file was cut to nothing after its size was read.
            return InMemory(b""), digest.digest()
        # The blocks follow each other, because nothing else writes to this scratch file.
        first, size = places[0], sum(place.shape[0] for place in places)
        return InScratch(replace(first, shape=(size,))), digest.digest()

    def different(self, stated: Mapping[str, str]) -> tuple[str, ...]:
        """The files read so far that are not those whose digests are stated."""
        return tuple(
            name
            for name, digest in stated.items()
            if name in self.digests and not hmac.compare_digest(digest, self.digests[name])
        )
