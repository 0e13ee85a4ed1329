"""The engine beside scikit-learn, by size and kind of table, and where its time goes."""

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial

import pandas as pd

from tools.bench.tables import best_of, submission, table_of
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.messages import Submission
from verix_anon.provider.engine import EngineSettings
from verix_anon.provider.local import LocalProvider, grow, growth_of, warm_up

Result = dict[str, object]

MILLION, SMALL = 1_000_000, 32_000
"""Rows."""


def measure() -> Result:
    """Everything the engine promises, in one run."""
    warm_up()
    million = submission(MILLION, 16)
    table = submission(SMALL, 16)
    result: Result = {
        "beside_scikit_learn": [_beside_scikit_learn(table, 5), _beside_scikit_learn(million, 3)],
        "ten_million": _peak(10 * MILLION, 16),
        "kinds": [
            {"table": "1,000,000 x 16, continuous", **_grow(million)},
            {
                "table": "1,000,000 x 16, 8 values a column",
                **_grow(submission(MILLION, 16, n_values=8)),
            },
            {"table": "100,000 x 128, continuous", **_grow(submission(MILLION // 10, 128))},
        ],
        "rules": _rules(million),
        "stages": _stages(million),
        "encode_pandas_seconds": _encode(million),
        "first_run_compile_seconds": _first_run(),
        "help_seconds": best_of(5, lambda: _run("-m", "verix_anon", "--help")),
    }
    grown = result["ten_million"]
    assert isinstance(grown, dict)
    one = _seconds(million)
    result["ten_million_growth"] = grown["grow_seconds"] / one
    return result


def _seconds(table: Submission) -> float:
    return best_of(3, lambda: grow(table, EngineSettings()))


def _beside_scikit_learn(table: Submission, times: int) -> Result:
    from sklearn.tree import DecisionTreeClassifier

    ours = best_of(times, lambda: grow(table, EngineSettings()))
    one_thread = best_of(times, lambda: grow(table, EngineSettings(threads=1)))
    rows = table.records.values.T.copy()
    tree = DecisionTreeClassifier(min_samples_leaf=table.contract.min_leaf, random_state=0)
    theirs = best_of(1, lambda: tree.fit(rows, table.records.target))
    return {
        "rows": table.records.n_rows,
        "columns": len(table.contract.quasi),
        "verix_seconds": ours,
        "verix_one_thread_seconds": one_thread,
        "scikit_learn_seconds": theirs,
        "ratio": theirs / ours,
    }


def _grow(table: Submission) -> Result:
    growth = grow(table, EngineSettings())
    return {
        "seconds": _seconds(table),
        "leaves": growth.tree.n_leaves,
        "depth": growth.tree.depth(),
    }


def _rules(table: Submission) -> list[Result]:
    """Growing by each rule from the same table, with the same least leaf."""
    found: list[Result] = []
    for rule, clear in (
        (Rule.VARIANCE_REDUCTION, True),
        (Rule.VARIANCE_REDUCTION, False),
        (Rule.IMPORTANCE_SPREAD, False),
    ):
        options = PrepareOptions(rule=rule, clear=clear, traps="none", witnesses=0)
        sent = prepare(table_of(table), target="y", quasi="all", options=options).submission
        growth = growth_of(sent, EngineSettings())
        found.append(
            {
                "rule": rule.value,
                "sent": "in clear" if clear else "coded",
                "seconds": best_of(3, partial(growth_of, sent, EngineSettings())),
                "leaves": growth.tree.n_leaves,
            }
        )
    return found


def _stages(table: Submission) -> Result:
    """Seconds per stage of a whole anonymization, and what memory bandwidth would allow."""
    runs = []
    for _ in range(3):
        ends: dict[str, float] = {"": time.perf_counter()}

        def note(stage: str, done: int, total: int, ends: dict[str, float] = ends) -> None:
            ends[stage] = time.perf_counter()

        delivery = LocalProvider(progress=note).anonymize(table)
        runs.append(ends)
    ends = min(runs, key=lambda run: run["commit"] - run[""])
    n_quasi, n_rows = table.records.values.shape
    # Sort: five or six passes over 8-byte words, each read and written. Grow: at each level
    # every 4-byte entry is read, and written once or twice, and half of them are summed.
    depth = delivery.tree.depth()
    sort_bytes = n_quasi * n_rows * (8 + 2 * 8 * 6 + 4)
    grow_bytes = n_quasi * n_rows * depth * 4 * (1 + 1.5 + 0.5)
    return {
        "sort_seconds": ends["sort"] - ends[""],
        "grow_seconds": ends["grow"] - ends["sort"],
        "commit_seconds": ends["commit"] - ends["grow"],
        "sort_bytes": sort_bytes,
        "grow_bytes": grow_bytes,
    }


def _encode(table: Submission) -> float:
    frame = pd.DataFrame({f"x{j}": values for j, values in enumerate(table.records.values)})
    frame["y"] = table.records.target
    return best_of(3, lambda: read_owner_table(frame, Declared(target="y", quasi="all")))


def _first_run() -> float:
    """How long an empty cache delays the first run: compiling against loading."""
    code = "from verix_anon.provider.local import warm_up; warm_up()"
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        first = best_of(1, lambda: _run("-c", code, environment=environment))
        second = best_of(1, lambda: _run("-c", code, environment=environment))
    return first - second


def _peak(n_rows: int, n_quasi: int) -> Result:
    output = _run("-m", "tools.bench.peak", str(n_rows), str(n_quasi))
    result: Result = json.loads(output)
    return result


def _run(*arguments: str, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout
