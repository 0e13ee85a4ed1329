"""anonypy: Mondrian, blind to the target.

python run_anonypy.py TABLE.csv K OUT.csv
"""

import json
import sys
import time
from typing import Any

import anonypy
import pandas as pd


def main(source: str, k: int, out: str) -> None:
    """Anonymize every column but the target; its classes are laid out again by record."""
    table = pd.read_csv(source)
    names = [name for name in table.columns if name != "target"]
    for name in names:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = table[name].astype("category")
    # What it publishes is a row for each class and label with a count: to know which record
    # went where, which a model needs, it also keeps the classes as it made them.
    kept: list[list[int]] = []
    began = time.perf_counter()
    preserver = anonypy.Preserver(table, names, "target")
    partition = preserver.modrian.partition

    def partition_and_keep(*arguments: object) -> object:
        kept.extend(partition(*arguments))
        return kept

    preserver.modrian.partition = partition_and_keep
    rows = preserver.anonymize_k_anonymity(k)
    seconds = time.perf_counter() - began
    assert sum(row["count"] for row in rows) == len(table)
    _by_record(rows, kept, names).to_csv(out, index=False)
    print(json.dumps({"seconds": seconds}))


def _by_record(rows: list[dict[str, Any]], kept: list[list[int]], names: list[str]) -> pd.DataFrame:
    """The published values of every record: classes come in the order they were made in."""
    found, at = [], 0
    for members in kept:
        values = [rows[at][name] for name in names]
        n_left = len(members)
        while n_left > 0:
            n_left -= rows[at]["count"]
            at += 1
        assert n_left == 0
        found += [[*(v[0] if isinstance(v, list) else v for v in values), row] for row in members]
    return pd.DataFrame(found, columns=[*names, "row"]).sort_values("row")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
