"""Nothing is published but what is meant to be: no byte of anything else is in any file."""

import base64
import binascii
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tools import cases, crafted_parquet
from tools.fuzz.odd_tables import OddTable, odd_table
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.release import ReleaseOptions, Representation, release
from verix_anon.client.release.published import schema_path
from verix_anon.client.verify import VerifyOptions, verify
from verix_anon.errors import Error
from verix_anon.files.tables import read_table

CODECS = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd"}
"""Of parquet.thrift, as Arrow calls them."""
SUFFIXES = ("csv", "tsv", "parquet", "pq")


def case(seed: int, number: int, path: Path) -> str:
    """Release an odd table, and look for what must not be published; raises if it is there."""
    rng = random.Random(f"release/{seed}/{number}")
    given = odd_table(rng)
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    table = _perhaps_a_file(rng, given.table, path / "given.parquet")
    out, sheet = path / f"released.{rng.choice(SUFFIXES)}", path / "sheet.json"
    try:
        person = rng.choice([None, "record", *given.roles["identifiers"]])
        made = _prepared(given, table, person, seed=number)
        delivery = cases.honest(made.submission)
        verdict = verify(
            delivery,
            made.manifest,
            submission=made.submission,
            skip=("fingerprint", "utility"),
            options=VerifyOptions(threads=1),
        )
        options = ReleaseOptions(
            representation=rng.choice(list(Representation)),
            keep_order=rng.random() < 0.3,
        )
        released = release(
            delivery,
            made.manifest,
            verdict,
            table=table,
            out=out,
            sheet=sheet,
            options=options,
        )
    except Error as error:
        assert not out.exists(), "refused, and there all the same"
        return type(error).__name__
    _check(given, made, out, sheet)
    _check_in_memory(given, released.table, path)
    return f"released as {out.suffix}"


def _perhaps_a_file(rng: random.Random, table: Any, path: Path) -> Any:
    if isinstance(table, pa.Table) and rng.random() < 0.4:
        try:
            pq.write_table(table, path)
        except pa.ArrowException:
            return table
        return read_table(path)
    return table


def _prepared(given: OddTable, table: Any, person: str | None, *, seed: int) -> Prepared:
    roles = given.roles
    return prepare(
        table,
        target=roles["target"][0] if roles["target"] else None,
        task=None if roles["target"] else "none",
        quasi=roles["quasi"],
        identifier=roles["identifiers"],
        kept=roles["kept"],
        person=person,
        missing=["mark", "impute"][seed % 2],
        k=3,
        options=PrepareOptions(unsafe_seed=seed, importance="uniform", witnesses=0, threads=1),
    )


def _check(given: OddTable, made: Prepared, out: Path, sheet: Path) -> None:
    marks, trackers = given.marks, made.submission.records.tracker
    secret = [
        *marks.secret,
        made.manifest.salt,
        made.manifest.salt.hex().encode(),
        *(found for t in trackers for found in (t.tobytes(), t.tobytes().hex().encode())),
    ]
    published = b"\0".join(everything(out))
    dictionary = json.loads(Path(schema_path(str(out))).read_bytes())
    beside = json.dumps(dictionary, ensure_ascii=False).encode()
    for mark in (*secret, *marks.names):
        assert mark not in published, f"{mark!r} is published in {out.name}"
        assert mark not in beside, f"{mark!r} is published in the dictionary"
    for mark in marks.public:
        # For models the table has codes, and the dictionary what they mean.
        is_found = mark in published or mark in beside
        assert is_found, f"the search does not find {mark!r}, which is published"
    told = json.loads(sheet.read_bytes())
    # The sheet is the owner's, and says who was counted.
    told.pop("counted_by")
    for mark in (*secret, *marks.names):
        assert mark not in json.dumps(told, ensure_ascii=False).encode(), f"{mark!r} in the sheet"


def _check_in_memory(given: OddTable, table: Any, path: Path) -> None:
    """Whoever writes the returned table with its own library publishes no more either."""
    again = path / "again.parquet"
    if isinstance(table, pa.Table):
        try:
            pq.write_table(table, again)
        except pa.ArrowException:
            return
    elif hasattr(table, "to_parquet"):
        try:
            table.to_parquet(again)
        except (pa.ArrowException, ValueError):
            return
    else:
        table.write_parquet(again)
    published = b"\0".join(everything(again))
    for mark in (*given.marks.secret, *given.marks.names):
        assert mark not in published, f"{mark!r} is in the table that is returned"


def everything(path: Path) -> Iterator[bytes]:
    """The bytes of a file, and what they hold packed: pages, and metadata in base64."""
    data = path.read_bytes()
    yield data
    if data[:4] != crafted_parquet.MAGIC:
        return
    metadata = crafted_parquet.footer(data)
    yield data[len(crafted_parquet.body(data)) :]
    for pair in metadata.get(crafted_parquet.KEY_VALUES, (0, (0, [])))[1][1]:
        for _, text in pair.values():
            yield text
            try:
                yield base64.b64decode(text, validate=True)
            except binascii.Error:
                continue
    for chunk in crafted_parquet.chunks(metadata):
        codec = CODECS[chunk[crafted_parquet.CODEC][1]]
        for header, content in crafted_parquet.pages(data, chunk):
            yield from _unpacked(header, content, codec)


def _unpacked(header: crafted_parquet.Struct, content: bytes, codec: str | None) -> Iterator[bytes]:
    size = header[crafted_parquet.PAGE_UNCOMPRESSED][1]
    levels = 0
    if crafted_parquet.DATA_PAGE_V2 in header:
        # The levels stand before what is packed, in the clear.
        v2 = header[crafted_parquet.DATA_PAGE_V2][1]
        levels = v2[5][1] + v2[6][1]
        yield content[:levels]
        if 7 in v2 and v2[7][0] == crafted_parquet.FALSE:
            codec = None
    packed = content[levels:]
    if codec is None or size == levels:
        yield packed
    else:
        yield pa.decompress(packed, size - levels, codec=codec, asbytes=True)
