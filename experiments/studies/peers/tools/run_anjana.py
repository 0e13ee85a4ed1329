"""anjana: one generalization of each column for the whole table, with some records left out.

python run_anjana.py --l 1 --suppress 0.05 TABLE.csv K OUT.csv
"""

import argparse
import contextlib
import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from anjana.anonymity import k_anonymity, l_diversity

PARTS = (32, 16, 8, 4, 2)


def hierarchy(values: "pd.Series[Any]") -> dict[int, Any]:
    """Levels of one column: a number in ever fewer equal intervals, then nothing; a text nothing.

    The tool has no hierarchies of its own. Somebody who knows the columns can write better ones.
    """
    distinct = values.unique()
    levels = {0: distinct}
    if pd.api.types.is_numeric_dtype(values):
        low, high = distinct.min(), distinct.max()
        for n_parts in PARTS:
            width = (high - low) / n_parts
            part = np.minimum(((distinct - low) / width).astype(int), n_parts - 1)
            texts = [f"[{low + i * width:g}, {low + (i + 1) * width:g}]" for i in part]
            levels[len(levels)] = np.array(texts)
    levels[len(levels)] = np.array(["*"] * len(distinct))
    return levels


def main(source: str, k: int, out: str, least: int, suppress: float) -> None:
    """Anonymize every column but the target."""
    table = pd.read_csv(source)
    names = [name for name in table.columns if name != "target"]
    levels = {name: hierarchy(table[name]) for name in names}
    # Its own word `index` for what is left after suppression is the row each record had.
    began = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        if least == 1:
            published = k_anonymity(table, [], names, k, 100 * suppress, levels)
        else:
            published = l_diversity(table, [], names, "target", k, least, 100 * suppress, levels)
    seconds = time.perf_counter() - began
    if "index" not in published:
        published["index"] = published.index
    published.rename(columns={"index": "row"})[[*names, "row"]].to_csv(out, index=False)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--l", type=int, required=True)
    parser.add_argument("--suppress", type=float, required=True)
    for name, kind in (("source", str), ("k", int), ("out", str)):
        parser.add_argument(name, type=kind)
    asked = parser.parse_args()
    main(asked.source, asked.k, asked.out, asked.l, asked.suppress)
