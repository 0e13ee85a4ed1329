"""anjana: one generalization of each column for the whole table, with some records left out.

python run_anjana.py TABLE.csv K OUT.csv
"""

import contextlib
import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from anjana.anonymity import k_anonymity

PARTS = (32, 16, 8, 4, 2)
SUPPRESSED = 5.0
"""At most this share of the records is left out, per cent."""


def hierarchy(values: "pd.Series[Any]") -> dict[int, Any]:
    """Levels of one column: a number in ever fewer equal intervals, then nothing; a text nothing.

    Whoever knows the columns writes better ones; the tool has none of its own.
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


def main(source: str, k: int, out: str) -> None:
    """Anonymize every column but the target."""
    table = pd.read_csv(source)
    names = [name for name in table.columns if name != "target"]
    levels = {name: hierarchy(table[name]) for name in names}
    # Its own word `index` for what is left after suppression is the row each record had.
    began = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        published = k_anonymity(table, [], names, k, SUPPRESSED, levels)
    seconds = time.perf_counter() - began
    if "index" not in published:
        published["index"] = published.index
    published.rename(columns={"index": "row"})[[*names, "row"]].to_csv(out, index=False)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
