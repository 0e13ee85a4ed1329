"""load(): a public table by name, from the first place that has it.

The places, in order: the folder in VERIX_DATA; `../shared/data` seen from the current directory,
then from the checkout this file is in; the cache folder; the public origin, whose table is then
cached. Whatever the place, the table is compared with the catalogue, so neither a damaged copy nor
a changed origin passes for it.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from experiments.data.catalog import DataSet, describe
from experiments.data.origins import Fetch, fetch_https, parse, unpack
from verix_anon.errors import TableError

_BESIDE = Path("..") / "shared" / "data"


def load(name: str, *, fetch: Fetch = fetch_https) -> pa.Table:
    """Return the public table of that name, checked against the catalogue.

    Args:
        name: one of `NAMES`.
        fetch: how to get the bytes behind a URL, for those who have their own way out.

    Raises:
        TableError: the name is unknown, the copy found is damaged, the origin cannot be reached,
            or what it sends is no longer this table.

    """
    dataset = describe(name)
    for folder in _folders():
        path = folder / f"{name}.parquet"
        if path.is_file():
            return _read(path, dataset)
    url = dataset.origin.url
    texts = unpack(fetch(url), dataset.origin)
    table = pa.concat_tables([parse(text, dataset) for text in texts]).combine_chunks()
    _check(table, dataset, f"What {url} sends")
    _store(table, _cache() / f"{name}.parquet")
    return table


def _folders() -> Iterator[Path]:
    """Yield the places on this machine, in order of preference."""
    if given := os.environ.get("VERIX_DATA"):
        yield Path(given).expanduser()
    yield _BESIDE
    yield Path(__file__).resolve().parents[2] / _BESIDE
    yield _cache()


def _cache() -> Path:
    """Return the folder for downloaded tables, by the XDG rule."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "verix-anon"


def _read(path: Path, dataset: DataSet) -> pa.Table:
    """Read the table in a Parquet file, which must be the one the catalogue describes."""
    try:
        with pq.ParquetFile(path) as file:
            table = file.read().replace_schema_metadata(None).combine_chunks()
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{path} cannot be read as Parquet; delete it: {error}") from error
    _check(table, dataset, str(path))
    return table


def _check(table: pa.Table, dataset: DataSet, source: str) -> None:
    """Raise unless columns, rows and positives are those of the catalogue."""
    wrong = f"{source} is not the table {dataset.name!r}:"
    if table.schema != dataset.schema:
        have, want = set(_columns(table.schema)), set(_columns(dataset.schema))
        differ = ", ".join(sorted(have ^ want)) or "their order"
        raise TableError(f"{wrong} its columns differ ({differ}).")
    if table.num_rows != dataset.rows:
        raise TableError(f"{wrong} it has {table.num_rows:,} rows instead of {dataset.rows:,}.")
    counts = Counter(table["target"].to_pylist())
    if counts != {0: dataset.rows - dataset.positives, 1: dataset.positives}:
        raise TableError(f"{wrong} it has {counts[1]:,} positives, not {dataset.positives:,}.")


def _columns(schema: pa.Schema) -> list[str]:
    """Name the columns of a schema with their types."""
    return [f"{field.name} {field.type}" for field in schema]


def _store(table: pa.Table, path: Path) -> None:
    """Write a table aside and rename it, so that no reader meets half a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as aside:
            whole = Path(aside) / path.name
            pq.write_table(table, whole, compression="zstd")
            whole.replace(path)
    except OSError:
        # The table in hand is right all the same; a cache that cannot be written costs the next
        # caller a download and is no reason to refuse this one.
        return
