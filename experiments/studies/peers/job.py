"""verix on a table as the peers get it, in a process of its own; prints its times as JSON.

python -m experiments.studies.peers.job --tool verix --l 1 --suppress 0 TABLE.csv K OUT.csv
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.csv

from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.release import Released, ReleaseOptions, release
from verix_anon.client.verify import verify
from verix_anon.protocol.contract import Commitment
from verix_anon.provider.local import LocalProvider

TIMES = 3
PAPER = "verix_paper"
T = TypeVar("T")


def main(asked: argparse.Namespace) -> dict[str, object]:
    """The engine alone, table to table without proof, and the whole way, cold and warm."""
    table = pyarrow.csv.read_csv(asked.source)
    _, cold = _whole(table, asked)
    runs = [_whole(table, asked) for _ in range(TIMES)]
    released, whole = min(runs, key=lambda run: sum(run[1].values()))
    plain = min(_timed(lambda: _plain(table, asked))[1] for _ in range(TIMES))
    submission = _bare(table, asked).submission
    engine = min(_timed(lambda: LocalProvider().anonymize(submission))[1] for _ in range(TIMES))
    published = released.table.drop_columns(["target"])
    row = pa.array(released.rows)
    pyarrow.csv.write_csv(published.append_column("row", row), asked.out)
    return {
        "engine": engine,
        "plain": plain,
        "seconds": sum(whole.values()),
        "parts": whole,
        "cold": sum(cold.values()),
        "sheet": {"k": released.sheet.k, "classes": released.n_classes, "ncp": released.sheet.ncp},
    }


def _bare(table: pa.Table, asked: argparse.Namespace) -> Prepared:
    bare: dict[str, Any] = {"traps": Traps.NONE, "witnesses": 0}
    if asked.tool == PAPER:
        options = PrepareOptions.paper(commitment=Commitment.BINDING, **bare)
    else:
        options = PrepareOptions(**bare)
    return prepare(table, target="target", quasi="all", k=asked.k, options=options)


def _plain(table: pa.Table, asked: argparse.Namespace) -> Released[pa.Table]:
    """What the peers do: from a table to what is published, with no traps and no proof."""
    prepared = _bare(table, asked)
    delivery = LocalProvider().anonymize(prepared.submission)
    return release(
        delivery, prepared.manifest, None, table=table, options=_wanted(asked, force=True)
    )


def _wanted(asked: argparse.Namespace, *, force: bool = False) -> ReleaseOptions:
    return ReleaseOptions(l=asked.l, suppress=asked.suppress, force=force)


def _whole(
    table: pa.Table, asked: argparse.Namespace
) -> tuple[Released[pa.Table], dict[str, float]]:
    options = PrepareOptions()
    if asked.tool == PAPER:
        options = PrepareOptions.paper(traps=Traps.ADAPTIVE, commitment=Commitment.BINDING)
    prepared, t_prepare = _timed(
        lambda: prepare(table, target="target", quasi="all", k=asked.k, options=options)
    )
    delivery, t_anonymize = _timed(lambda: LocalProvider().anonymize(prepared.submission))
    verdict, t_verify = _timed(
        lambda: verify(delivery, prepared.manifest, submission=prepared.submission)
    )
    released, t_release = _timed(
        lambda: release(delivery, prepared.manifest, verdict, table=table, options=_wanted(asked))
    )
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
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default="verix")
    parser.add_argument("--l", type=int, default=1)
    parser.add_argument("--suppress", type=float, default=0.0)
    for name, kind in (("source", str), ("k", int), ("out", str)):
        parser.add_argument(name, type=kind)
    print(json.dumps(main(parser.parse_args())))
