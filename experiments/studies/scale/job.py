"""One party's part of a job, in a process of its own; prints what it cost as JSON.

python -m experiments.studies.scale.job prepare|provide|verify ROWS COLUMNS K TIMES FOLDER
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from verix_anon.client.manifest import read_manifest
from verix_anon.client.owner_files import write_manifest
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.verify import verify
from verix_anon.errors import Error
from verix_anon.files.deliveries import Snapshot, read_delivery
from verix_anon.files.folder_writer import write_delivery, write_submission
from verix_anon.files.submissions import read_submission
from verix_anon.kernels import trees
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Commitment
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.provider.engine import EngineSettings
from verix_anon.provider.local import LocalProvider, grow, warm_up

Result = dict[str, object]
T = TypeVar("T")

SEED = 20_250_101
MODELS = ("fingerprint", "utility")
"""The layers that only inform."""
PAPERS_RULE = PrepareOptions.paper(traps=Traps.ADAPTIVE, commitment=Commitment.BINDING)


def synthetic(n_rows: int, n_columns: int) -> pa.Table:
    """The table of tools/bench/tables.py: standard normal, with signal in three columns."""
    rng = np.random.default_rng(SEED)
    values = np.empty((n_columns, n_rows))
    for column in values:
        rng.standard_normal(out=column)
    noise = rng.standard_normal(n_rows)
    target = (values[0] + values[1] * values[2] + noise > 0).astype(np.uint8)
    return pa.table({**{f"x{j}": column for j, column in enumerate(values)}, "target": target})


def main(part: str, size: tuple[int, int], k: int, times: int, folder: Path) -> Result:
    """Run one part, on the files that the one before has left."""
    if part == "prepare":
        return _prepare(size, k, folder)
    if part == "provide":
        return _provide(folder, times)
    return _verify(folder, times)


def _prepare(size: tuple[int, int], k: int, folder: Path) -> Result:
    _rehearse()
    table = synthetic(*size)
    began = time.perf_counter()
    prepared = prepare(table, target="target", quasi="all", k=k, options=PAPERS_RULE)
    seconds = time.perf_counter() - began
    peak = peak_bytes()
    _, write_seconds = timed(lambda: write_submission(prepared.submission, folder / "submission"))
    write_manifest(prepared.manifest, folder / "manifest.verix")
    records = prepared.submission.records
    return {
        "seconds": seconds,
        "write": write_seconds,
        "peak": peak,
        "encoded_bytes": records.nbytes,
        "n_rows": records.n_rows,
        "bytes": sizes(folder / "submission"),
        "manifest_bytes": (folder / "manifest.verix").stat().st_size,
    }


def _provide(folder: Path, times: int) -> Result:
    warm_up()
    libraries = peak_bytes()
    submission, read_seconds = timed(lambda: read_submission(folder / "submission"))
    read_peak = peak_bytes()
    LocalProvider().anonymize(submission)
    peak = peak_bytes()
    _, grow_seconds = best_of(times, lambda: grow(submission, EngineSettings()))
    delivery, seconds = best_of(times, lambda: LocalProvider().anonymize(submission))
    commit = _commit_seconds(submission, delivery, times)
    _, write_seconds = timed(lambda: write_delivery(delivery, folder / "delivery"))
    return {
        "read": read_seconds,
        "grow": grow_seconds,
        "anonymize": seconds,
        **commit,
        "write": write_seconds,
        "libraries_peak": libraries,
        "read_peak": read_peak,
        "peak": peak,
        "depth": delivery.tree.depth(),
        "nodes": delivery.tree.n_nodes,
        "leaves": delivery.tree.n_leaves,
        "bytes": sizes(folder / "delivery"),
    }


def _commit_seconds(submission: Submission, delivery: Delivery, times: int) -> Result:
    """What each part of the commitment takes: the sent records, the leaves, the nodes."""
    contract, records = submission.contract, delivery.records
    threads = EngineSettings().threads
    digest, digest_seconds = best_of(times, lambda: submission.digest(threads=threads))

    def group() -> merkle.Members:
        grouped = trees.group_rows(records.leaf, delivery.tree.n_leaves)
        return merkle.Members(*grouped, records.row, records.tracker)

    tree, leaves = delivery.tree, delivery.leaves
    _, members_seconds = best_of(times, lambda: merkle.leaf_digests(leaves, group()))
    root, all_seconds = best_of(
        times, lambda: merkle.root_of(contract, digest, tree, leaves, group())
    )
    assert root == delivery.header.root
    paper = replace(contract, commitment=Commitment.PAPER)
    _, paper_seconds = timed(lambda: merkle.root_of(paper, digest, tree, leaves, group()))
    return {
        "commit": {
            "submission": digest_seconds,
            "members": members_seconds,
            "nodes": all_seconds - members_seconds,
        },
        "paper_commit": paper_seconds,
    }


def _verify(folder: Path, times: int) -> Result:
    _rehearse()
    manifest = read_manifest(folder / "manifest.verix")
    snapshot, read_delivery_seconds = timed(
        lambda: read_delivery(folder / "delivery", manifest.contract, n_rows=manifest.n_rows)
    )

    def judge(submission: Submission | None) -> Result:
        found = [verify(snapshot, manifest, submission=submission) for _ in range(times)]
        assert all(verdict.accepted for verdict in found), found[0]
        best = min(found, key=lambda verdict: verdict.seconds)
        layers = {finding.layer: finding.seconds for finding in best.findings}
        # The models run beside the layers that decide, so these are measured without them.
        alone = [
            verify(snapshot, manifest, submission=submission, skip=MODELS) for _ in range(times)
        ]
        least = min(alone, key=lambda verdict: verdict.seconds)
        layers |= {each.layer: each.seconds for each in least.findings if each.layer not in MODELS}
        seconds = {"whole": best.seconds, "decides": least.seconds}
        return {"layers": layers, **seconds, "peak": peak_bytes()}

    # The thin one first: what the full one needs on top must not count for it.
    thin = judge(None)
    submission, read_submission_seconds = timed(lambda: read_submission(folder / "submission"))
    full = judge(submission)
    again, seconds = best_of(times, lambda: LocalProvider().anonymize(submission))
    assert again.header.root == snapshot.delivery.header.root
    return {
        "read_delivery": read_delivery_seconds,
        "read_submission": read_submission_seconds,
        "thin": thin,
        "full": full,
        "reexecute": seconds,
    }


def _rehearse() -> None:
    """A whole job on a small table: what is compiled or imported on first use is not measured."""
    warm_up()
    made: Prepared = prepare(
        synthetic(500, 4), target="target", quasi="all", k=5, options=PAPERS_RULE
    )
    delivery = LocalProvider().anonymize(made.submission)
    for sent in (None, made.submission):
        verify(Snapshot(delivery=delivery, files={}), made.manifest, submission=sent)


def sizes(folder: Path) -> dict[str, int]:
    """Bytes of every file of a folder; those of records by column, as they lie in the file."""
    found = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    metadata = pq.ParquetFile(folder / "records.parquet").metadata
    by_column: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        for j in range(metadata.num_columns):
            column = metadata.row_group(group).column(j)
            name = column.path_in_schema
            kind = name if name in ("row", "tracker", "leaf", "target") else "values"
            by_column[kind] = by_column.get(kind, 0) + column.total_compressed_size
    rest = found.pop("records.parquet") - sum(by_column.values())
    found |= {f"records/{name}": size for name, size in by_column.items()}
    return found | {"records/footer": rest}


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What some work gives, and how many seconds it took."""
    began = time.perf_counter()
    found = work()
    return found, time.perf_counter() - began


def best_of(times: int, work: Callable[[], T]) -> tuple[T, float]:
    """The same for the fastest of several: what the machine can do undisturbed."""
    found, best = timed(work)
    for _ in range(times - 1):
        found, seconds = timed(work)
        best = min(best, seconds)
    return found, best


def peak_bytes() -> int:
    """The most memory this process has held."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    part, rows, columns, k, times, folder = sys.argv[1:]
    try:
        result = main(part, (int(rows), int(columns)), int(k), int(times), Path(folder))
    except Error as error:
        result = {"refused": str(error)}
    print(json.dumps(result))
