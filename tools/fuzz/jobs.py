"""Small jobs to be spoiled: what was sent and what came back, as folders packed in many ways."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tools import cases
from tools.crafted_parquet import packed
from verix_anon.client.manifest import Manifest
from verix_anon.files.folder_writer import write_delivery, write_receipt, write_submission
from verix_anon.files.trust import Pinned, Trust
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.protocol.signing import SigningKey

Files = dict[str, bytes]

N_ROWS = 60
NOW = datetime(2026, 11, 16, tzinfo=UTC)
SIGNER = SigningKey(Ed25519PrivateKey.from_private_bytes(sha256(b"fuzz").digest()))
TRUST = Trust((Pinned(key=SIGNER.public),))
"""The key that signs every job's first folder."""
PACKINGS: list[dict[str, Any]] = [
    {"compression": "none"},
    {"compression": "none", "data_page_version": "2.0", "row_group_size": 25},
    {"compression": "none", "use_dictionary": False, "store_schema": False},
    {"compression": "snappy", "data_page_size": 100},
    {"compression": "gzip", "write_page_index": True},
    {"compression": "zstd"},
]


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A job and its honest folders."""

    manifest: Manifest
    submission: Submission
    delivery: Delivery
    sent: Sequence[Files]
    """The submission's folder as it is written, and the same packed in other ways."""
    returned: Sequence[Files]
    """The delivery's, likewise."""


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    score = rng.normal(size=N_ROWS)
    return pa.table(
        {
            "score": score,
            "rank": rng.integers(0, 9, N_ROWS),
            "town": np.array(["ash", "elm", "fir", "oak"])[rng.integers(0, 4, N_ROWS)],
            "y": np.where(score + rng.normal(size=N_ROWS) > 0, "yes", "no"),
        }
    )


@cache
def jobs() -> tuple[Job, ...]:
    """One by the usual rule, coded, and one by the paper's, in clear; and another of each."""
    return tuple(_job(seed, clear=clear) for clear in (False, True) for seed in (1, 2))


def _job(seed: int, *, clear: bool) -> Job:
    made = cases.make(table(seed), seed=seed, witnesses=4, clear=clear)
    delivery = cases.honest(made.submission)
    return Job(
        manifest=made.manifest,
        submission=made.submission,
        delivery=delivery,
        sent=variants(written(lambda path: write_submission(made.submission, path))),
        returned=variants(written(lambda path: write_delivery(delivery, path, finish=_sign))),
    )


def _sign(folder: Path) -> None:
    write_receipt(folder, SIGNER, NOW, NOW)


def written(write: Callable[[Path], None]) -> Files:
    """What is written into a folder, in memory."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "folder"
        write(folder)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def variants(honest: Files) -> list[Files]:
    """A folder as it is, and the same packed in other ways."""
    found = [honest]
    for options in PACKINGS:
        packed_anew = dict(honest)
        for name, data in honest.items():
            if name.endswith(".parquet"):
                packed_anew[name] = packed(pq.read_table(pa.BufferReader(data)), **options)
        found.append(packed_anew)
    return found
