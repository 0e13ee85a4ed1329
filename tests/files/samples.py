"""A small job, its folders, and ways to spoil them."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import support
from verix_anon.errors import MalformedDeliveryError
from verix_anon.files.deliveries import Snapshot, read_delivery
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.provider.local import LocalProvider

N_ROWS = 300
FILES = ("delivery.json", "leaves.parquet", "nodes.parquet", "records.parquet")


@cache
def sent(seed: int = 0) -> Submission:
    """300 records with two numeric columns and a categorical one."""
    rng = np.random.default_rng(seed)
    columns = [
        rng.normal(size=N_ROWS).tolist(),
        rng.integers(0, 9, N_ROWS).astype(float).tolist(),
        rng.integers(0, 4, N_ROWS).astype(float).tolist(),
    ]
    described = [support.numeric("x"), support.numeric("n"), support.categorical("c", 4)]
    return support.submission(columns, rng.integers(0, 2, N_ROWS).tolist(), described=described)


@cache
def delivered(seed: int = 0) -> Delivery:
    return LocalProvider(threads=1).anonymize(sent(seed))


def read(folder: Path) -> Snapshot:
    return read_delivery(folder, sent().contract, n_rows=N_ROWS)


def digest_of(path: Path) -> str:
    """SHA-256 of a file, or of the names and digests of a folder's parts (spec §8.3)."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    out = b""
    for part in sorted(path.glob("[!._]*.parquet"), key=lambda part: part.name):
        name = part.name.encode()
        out += len(name).to_bytes(8, "little") + name + hashlib.sha256(part.read_bytes()).digest()
    return hashlib.sha256(out).hexdigest()


def restate(folder: Path, **changed: Any) -> None:
    """State the digests of the files anew: what was spoiled was written so."""
    is_delivery = (folder / "delivery.json").exists()
    path = folder / ("delivery.json" if is_delivery else "submission.json")
    stated = json.loads(path.read_bytes())
    for name in stated["files"]:
        stated["files"][name] = digest_of(folder / name)
    path.write_text(json.dumps(stated | changed), encoding="utf-8")


@contextmanager
def refused(sentence: str) -> Iterator[pytest.ExceptionInfo[MalformedDeliveryError]]:
    """The delivery is refused in one line, which matches the sentence."""
    with pytest.raises(MalformedDeliveryError, match=sentence) as caught:
        yield caught
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table], **options: Any) -> None:
    """Replace a Parquet file by a changed one."""
    pq.write_table(change(pq.read_table(path)), path, **options)


def with_values(name: str, values: Any, arrow_type: pa.DataType | None = None) -> Any:
    """A change of one column: its values replaced, and perhaps its type."""

    def change(table: pa.Table) -> pa.Table:
        i = table.column_names.index(name)
        wanted = arrow_type or table.schema.field(name).type
        return table.set_column(i, name, pa.array(values, wanted, from_pandas=False))

    return change


def with_value(name: str, row: int, value: Any) -> Any:
    """A change of one value."""

    def change(table: pa.Table) -> pa.Table:
        values = table.column(name).to_pylist()
        values[row] = value
        changed: pa.Table = with_values(name, values)(table)
        return changed

    return change
