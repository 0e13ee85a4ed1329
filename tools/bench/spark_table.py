"""A submission too large to hold, written part by part: positions, as `prepare` sends them."""

from pathlib import Path
from typing import Any

import numpy as np
import rfc8785

from tools.bench.tables import SEED
from verix_anon.files.folder_writer import digests_of_folder, write_parquet
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Column, Contract, Digest, Kind, Rule
from verix_anon.protocol.messages import SUBMISSION_FORMAT
from verix_anon.protocol.records import Records

__all__ = ["write"]

PART_ROWS = 4 * merkle.CHUNK_ROWS


def write(folder: Path, n_rows: int, n_quasi: int) -> None:
    """Write so many records of numbers of full precision, which have a position each."""
    (folder / "records.parquet").mkdir(parents=True)
    columns = [
        Column(name=f"q{j}", kind=Kind.RANK, size=n_rows, weight=n_quasi - j)
        for j in range(n_quasi)
    ]
    contract = Contract(
        submission_id="0" * 32,
        k=5,
        min_leaf=5,
        rule=Rule.IMPORTANCE_SPREAD,
        columns=tuple(columns),
    )
    rng = np.random.default_rng(SEED)
    chunks: list[Digest] = []
    for first in range(0, n_rows, PART_ROWS):
        chunks += _write_part(folder, contract, range(first, min(first + PART_ROWS, n_rows)), rng)
    (folder / "contract.json").write_bytes(contract.to_bytes())
    stated: dict[str, Any] = {
        "format": SUBMISSION_FORMAT,
        "contract": contract.digest.hex(),
        "submission": merkle.chunks_digest(contract, n_rows, chunks).hex(),
        "rows": n_rows,
        "files": digests_of_folder(folder, ("contract.json", "records.parquet")),
    }
    (folder / "submission.json").write_bytes(rfc8785.dumps(stated))


def _write_part(
    folder: Path, contract: Contract, rows: range, rng: np.random.Generator
) -> list[Digest]:
    """Write some rows as a file; the digests of their chunks."""
    n_rows, size = len(rows), contract.quasi[0].n_values
    positions = [rng.integers(0, size, n_rows, np.int32) for _ in contract.quasi]
    tracker = rng.integers(0, 256, (n_rows, 32), np.uint8)
    names = [column.name for column in contract.quasi]
    write_parquet(
        folder / "records.parquet" / f"part-{rows.start // PART_ROWS:05}.parquet",
        {
            "row": np.arange(rows.start, rows.stop),
            "tracker": tracker,
            **dict(zip(names, positions, strict=True)),
        },
        {"row": "DELTA_BINARY_PACKED", "tracker": "PLAIN"}
        | dict.fromkeys(names, "DELTA_BINARY_PACKED"),
    )
    digests = []
    for first in range(0, n_rows, merkle.CHUNK_ROWS):
        some = slice(first, first + merkle.CHUNK_ROWS)
        records = Records(
            tracker=tracker[some],
            values=np.array([each[some] for each in positions], np.float64),
            target=np.zeros(len(tracker[some]), np.uint8),
        )
        number = (rows.start + first) // merkle.CHUNK_ROWS
        digests.append(merkle.chunk_digest(contract, number, records))
    return digests
