"""Spoiled deliveries and submissions are read or refused: no other exception, no hang.

`python -m files.test_fuzz SEED N` in tests/ runs a longer campaign.
"""

import random
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files import crafted
from files.samples import FILES, N_ROWS, delivered, packed, restate, sent
from verix_anon.errors import Error
from verix_anon.files.deliveries import read_delivery, write_delivery
from verix_anon.files.submissions import read_submission, write_submission

SECONDS_UNTIL_IT_HANGS = 60
MOST_MEGABYTES = 300
PACKINGS: list[dict[str, Any]] = [
    {"compression": "none"},
    {"compression": "none", "data_page_version": "2.0", "row_group_size": 70},
    {"compression": "none", "use_dictionary": False, "store_schema": False},
    {"compression": "snappy", "data_page_size": 100},
    {"compression": "gzip", "write_page_index": True},
    {"compression": "zstd"},
]
Files = dict[str, bytes]


def variants(read: Callable[[int], Files]) -> list[Files]:
    """Two honest folders as they are written, and the same packed in other ways."""
    found = [read(0), read(1)]
    for options in PACKINGS:
        packed_anew = dict(found[0])
        for name, data in found[0].items():
            if name.endswith(".parquet"):
                packed_anew[name] = packed(pq.read_table(pa.BufferReader(data)), **options)
        found.append(packed_anew)
    return found


def flip(rng: random.Random, data: bytearray, _: bytes) -> None:
    for _i in range(rng.choice([1, 1, 1, 2, 5])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwrite(rng: random.Random, data: bytearray, _: bytes) -> None:
    at = rng.randrange(len(data))
    size = rng.choice([1, 1, 2, 4, 8, 50])
    fill = rng.choice([b"\0" * size, b"\xff" * size, b"\x7f" * size, rng.randbytes(size)])
    data[at : at + size] = fill


def near_the_end(rng: random.Random, data: bytearray, _: bytes) -> None:
    """One byte of the footer, where most of the lies can be told."""
    data[-1 - rng.randrange(min(600, len(data)))] = rng.randrange(256)


def truncate(rng: random.Random, data: bytearray, _: bytes) -> None:
    del data[rng.randrange(len(data)) :]


def cut(rng: random.Random, data: bytearray, _: bytes) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice([1, 1, 4, 100])]


def insert(rng: random.Random, data: bytearray, _: bytes) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.choice([1, 1, 4, 100]))


def swap(rng: random.Random, data: bytearray, _: bytes) -> None:
    size = rng.choice([1, 4, 16])
    one, other = rng.randrange(len(data)), rng.randrange(len(data))
    data[one : one + size], data[other : other + size] = (
        data[other : other + size],
        data[one : one + size],
    )


def splice(rng: random.Random, data: bytearray, other: bytes) -> None:
    """A piece of the other job's file in the same place."""
    at = rng.randrange(len(data))
    size = rng.choice([1, 8, 100, 1000])
    data[at : at + size] = other[at : at + size]


def lie(rng: random.Random, data: bytearray, _: bytes) -> None:
    """Another number in some field of the footer, however deep, the lengths set right."""
    if data[:4] != crafted.MAGIC:
        return flip(rng, data, b"")

    def change(metadata: crafted.Struct) -> None:
        fields = list(_numbers(metadata))
        struct, number = rng.choice(fields)
        old = struct[number][1]
        any_number = rng.choice([0, -1, 1, 2**31 - 1, -(2**31), 2**63 - 1, 2**40, 127])
        crafted.put(struct, number, rng.choice([any_number, old + 1, old - 1, old * 2, -old]))

    data[:] = crafted.lying(bytes(data), change)
    return None


def _numbers(struct: crafted.Struct) -> Iterator[tuple[crafted.Struct, int]]:
    for number, (kind, value) in struct.items():
        if kind in (crafted.I16, crafted.I32, crafted.I64):
            yield struct, number
        elif kind == crafted.STRUCT:
            yield from _numbers(value)
        elif kind == crafted.LIST and value[0] == crafted.STRUCT:
            for member in value[1]:
                yield from _numbers(member)


WAYS = [flip, flip, overwrite, near_the_end, truncate, cut, insert, swap, splice, lie, lie]


@contextmanager
def watched() -> Iterator[None]:
    """No more memory than a small job needs, and an end: what hangs must not stall the tests."""

    def stop(signum: int, frame: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS_UNTIL_IT_HANGS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    signal.alarm(0)
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert megabytes < MOST_MEGABYTES


def spoiled(rng: random.Random, folders: list[Files]) -> Files:
    """One of the folders with one file spoiled, or whole files of two jobs mixed."""
    files = dict(rng.choice(folders))
    name = rng.choice(list(files))
    if rng.random() < 0.05:
        other = rng.choice(folders)
        return files | {name: other[rng.choice([name, rng.choice(list(other))])]}
    data = bytearray(files[name])
    rng.choice(WAYS)(rng, data, folders[1][name])
    return files | {name: bytes(data)}


def outcome(folder: Path, files: Files, read: Callable[[Path], object]) -> str:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    with watched():
        try:
            read(folder)
        except Error as error:
            return type(error).__name__ if len(str(error)) < 1000 else "too long a sentence"
    return "read"


def written(write: Callable[[Path], None], names: tuple[str, ...]) -> Files:
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "folder"
        write(folder)
        return {name: (folder / name).read_bytes() for name in names}


def delivery_files(seed: int) -> Files:
    return written(lambda path: write_delivery(delivered(seed), path), FILES)


def submission_files(seed: int) -> Files:
    names = ("submission.json", "contract.json", "records.parquet")
    return written(lambda path: write_submission(sent(seed), path), names)


def read_and_use(folder: Path) -> None:
    """What was accepted can be used: no value is out of range."""
    delivery = read_delivery(folder, sent().contract, n_rows=N_ROWS).delivery
    assert delivery.records.row.max() < N_ROWS
    assert delivery.records.leaf.max() < delivery.leaves.n_leaves
    assert delivery.tree.route(sent().records.values).max() < delivery.leaves.n_leaves


def read_and_hash(folder: Path) -> None:
    # With digests that fit: else no spoiled file would ever be decoded.
    with suppress(ValueError, LookupError, TypeError, AttributeError):
        restate(folder)
    assert len(read_submission(folder).digest()) == 32


def campaign(folder: Path, seed: int, n: int, kind: str) -> Counter[str]:
    """How often each outcome came, of so many spoiled folders."""
    rng = random.Random(seed)
    files, read = {
        "delivery": (delivery_files, read_and_use),
        "submission": (submission_files, read_and_hash),
    }[kind]
    folders = variants(files)
    for honest in folders:
        assert outcome(folder, honest, read) == "read"
    return Counter(outcome(folder, spoiled(rng, folders), read) for _ in range(n))


@pytest.mark.parametrize("seed", range(4))
def test_deliveries(tmp_path: Path, seed: int) -> None:
    found = campaign(tmp_path, seed, 500, "delivery")
    assert set(found) <= {"read", "MalformedDeliveryError"}
    assert found["MalformedDeliveryError"] > 250


@pytest.mark.parametrize("seed", range(2))
def test_submissions(tmp_path: Path, seed: int) -> None:
    found = campaign(tmp_path, seed, 500, "submission")
    assert set(found) <= {"read", "TableError", "ContractError"}
    assert found["TableError"] > 100


if __name__ == "__main__":
    for kind in ("delivery", "submission"):
        with tempfile.TemporaryDirectory() as scratch:
            print(kind, dict(campaign(Path(scratch), int(sys.argv[1]), int(sys.argv[2]), kind)))
