"""verix on a table as the peers get it, in a process of its own; prints its times as JSON.

python -m experiments.studies.peers.job TABLE.csv K OUT.csv
"""

import json
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa
import pyarrow.csv

from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.release import Released, ReleaseOptions, release
from verix_anon.client.verify import verify
from verix_anon.protocol.contract import Commitment
from verix_anon.provider.local import LocalProvider

TIMES = 3
T = TypeVar("T")


def main(source: str, k: int, out: str) -> dict[str, object]:
    """The engine alone, table to table without proof, and the whole way, cold and warm."""
    table = pyarrow.csv.read_csv(source)
    _, cold = _whole(table, k)
    runs = [_whole(table, k) for _ in range(TIMES)]
    released, whole = min(runs, key=lambda run: sum(run[1].values()))
    plain = min(_timed(lambda: _plain(table, k))[1] for _ in range(TIMES))
    submission = _bare(table, k).submission
    engine = min(_timed(lambda: LocalProvider().anonymize(submission))[1] for _ in range(TIMES))
    published = released.table.drop_columns(["target"])
    row = pa.array(released.rows)
    pyarrow.csv.write_csv(published.append_column("row", row), out)
    return {
        "engine": engine,
        "plain": plain,
        "seconds": sum(whole.values()),
        "parts": whole,
        "cold": sum(cold.values()),
        "sheet": {"k": released.sheet.k, "classes": released.n_classes, "ncp": released.sheet.ncp},
    }


def _bare(table: pa.Table, k: int) -> Prepared:
    bare = PrepareOptions.paper(traps=Traps.NONE, commitment=Commitment.BINDING, witnesses=0)
    return prepare(table, target="target", quasi="all", k=k, options=bare)


def _plain(table: pa.Table, k: int) -> Released[pa.Table]:
    """What the peers do: from a table to what is published, with no traps and no proof."""
    prepared = _bare(table, k)
    delivery = LocalProvider().anonymize(prepared.submission)
    options = ReleaseOptions(force=True)
    return release(delivery, prepared.manifest, None, table=table, options=options)


def _whole(table: pa.Table, k: int) -> tuple[Released[pa.Table], dict[str, float]]:
    options = PrepareOptions.paper(traps=Traps.ADAPTIVE, commitment=Commitment.BINDING)
    prepared, t_prepare = _timed(
        lambda: prepare(table, target="target", quasi="all", k=k, options=options)
    )
    delivery, t_anonymize = _timed(lambda: LocalProvider().anonymize(prepared.submission))
    verdict, t_verify = _timed(
        lambda: verify(delivery, prepared.manifest, submission=prepared.submission)
    )
    released, t_release = _timed(lambda: release(delivery, prepared.manifest, verdict, table=table))
    return released, {
        "prepare": t_prepare,
        "anonymize": t_anonymize,
        "verify": t_verify,
        "release": t_release,
    }


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.perf_counter()
    found = work()
    return found, time.perf_counter() - began


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
