"""Folders of spoiled files, and of links, pipes, holes and parts in their place."""

import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tools.crafted_parquet import packed
from tools.fuzz.damage import spoil
from tools.fuzz.jobs import PACKINGS, Files
from verix_anon.errors import Error
from verix_anon.files.hashed_files import digest_of_parts
from verix_anon.protocol.contract import Contract

Odd = Callable[[Path], None]
Folder = dict[str, bytes | Odd]
"""What to write under each name: bytes, or something that is no file."""

RECORDS = "records.parquet"
HEADERS = ("delivery.json", "submission.json")
HOLE = 1 << 40
STRANGERS = (
    *("_SUCCESS", ".crc", "notes.txt", "contract.json", "submission.json", "delivery.json"),
    *("records.parquet.crc", "a\nb", "\x1b[2J", "\udcff", "x" * 250),
)


def _link(target: str) -> Odd:
    return lambda path: path.symlink_to(target)


def _hole(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HOLE)


ODD_FILES: list[Odd] = [
    *map(_link, ("/dev/zero", "/etc/passwd", "nothing", ".", "delivery.json", "/proc/self/mem")),
    *(os.mkfifo, Path.mkdir, Path.touch, _hole),
]


def replaced(rng: random.Random, files: Files) -> Folder:
    """A file gone, or something else in its place."""
    folder: Folder = dict(files)
    name = rng.choice(list(files))
    if rng.random() < 0.3:
        del folder[name]
    else:
        folder[name] = rng.choice(ODD_FILES)
    return folder


def beside(rng: random.Random, files: Files) -> Folder:
    """Something beside the files that does not belong there."""
    name = rng.choice(STRANGERS)
    odd: bytes | Odd = rng.choice([b"", b"{}", *files.values()])
    if rng.random() < 0.3:
        odd = rng.choice(ODD_FILES)
    return {name: odd, **files}


def in_parts(rng: random.Random, files: Files) -> Folder:
    """The records as a folder of parts: well, or with one that is not."""
    table = pq.read_table(pa.BufferReader(files[RECORDS]))
    n_parts = rng.choice([1, 2, 3, 3, 20])
    edges = [0, *sorted(rng.choices(range(table.num_rows + 1), k=n_parts - 1)), table.num_rows]
    parts: Folder = {
        f"part-{i:05}.parquet": packed(table.slice(a, b - a), **rng.choice(PACKINGS))
        for i, (a, b) in enumerate(zip(edges, edges[1:], strict=False))
    }
    way = rng.randrange(7)
    chosen = rng.choice(list(parts))
    if way == 0:
        part = parts[chosen]
        assert isinstance(part, bytes)
        parts[chosen] = spoil(rng, part, files[RECORDS])
    elif way == 1:
        del parts[chosen]
    elif way == 2:
        parts["again.parquet"] = parts[chosen]
    elif way == 3:
        parts[chosen] = rng.choice(ODD_FILES)
    elif way == 4:
        parts |= beside(rng, files)
    elif way == 5 and rng.random() < 0.01:
        # More than are allowed.
        parts |= {f"{i}.parquet": b"" for i in range(10_001)}
    rest = {name: data for name, data in files.items() if name != RECORDS}
    return {**rest, **{f"{RECORDS}/{name}": data for name, data in parts.items()}}


def mixed(rng: random.Random, files: Files, others: Files) -> Folder:
    """A file of another job, or one in the place of another."""
    name = rng.choice(list(files))
    taken = rng.choice([name, rng.choice(list(others))])
    return {**files, name: others.get(taken, b"")}


def spoiled(rng: random.Random, files: Files, others: Files) -> Folder:
    """A folder with something wrong in it; `others` is the same of another job."""
    chance = rng.random()
    if chance < 0.80:
        name = rng.choice(list(files))
        return {**files, name: spoil(rng, files[name], others[name])}
    if chance < 0.85:
        return mixed(rng, files, others)
    if chance < 0.90:
        return replaced(rng, files)
    if chance < 0.93:
        return beside(rng, files)
    return in_parts(rng, files)


def restated(folder: Folder) -> Folder:
    """With the digests of the spoiled files, as whoever spoils them would state them."""
    header = next((name for name in HEADERS if isinstance(folder.get(name), bytes)), None)
    if header is None:
        return folder
    try:
        said = json.loads(folder[header])  # type: ignore[arg-type]
        for name in said["files"]:
            said["files"][name] = _digest(folder, name) or said["files"][name]
        contract = folder.get("contract.json")
        if header == "submission.json" and isinstance(contract, bytes):
            with suppress(Error):
                said["contract"] = Contract.from_bytes(contract).digest.hex()
        return {**folder, header: json.dumps(said).encode()}
    except (ValueError, LookupError, TypeError, RecursionError):
        # The header itself is spoiled.
        return folder


def _digest(folder: Folder, name: str) -> str | None:
    found = folder.get(name)
    if isinstance(found, bytes):
        return sha256(found).hexdigest()
    parts = {
        inner.removeprefix(f"{name}/"): data
        for inner, data in folder.items()
        if inner.startswith(f"{name}/") and inner.endswith(".parquet") and isinstance(data, bytes)
    }
    if not parts:
        return None
    return digest_of_parts((inner, sha256(parts[inner]).digest()) for inner in sorted(parts))


def write(folder: Folder, path: Path) -> None:
    """Make the folder anew."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    for name, found in folder.items():
        place = path / name
        place.parent.mkdir(exist_ok=True)
        if isinstance(found, bytes):
            place.write_bytes(found)
        else:
            found(place)
