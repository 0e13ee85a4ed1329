"""Grow one table in a process of its own and print its time and peak memory as JSON.

python -m tools.bench.peak ROWS COLUMNS
"""

import json
import sys

from tools.bench.tables import best_of, peak_bytes, submission
from verix_anon.provider.engine import EngineSettings
from verix_anon.provider.local import LocalProvider, grow, warm_up


def main(n_rows: int, n_quasi: int) -> None:
    table = submission(n_rows, n_quasi)
    warm_up()
    # Twice: memory that the host hands to this machine for the first time comes slowly.
    seconds = best_of(2, lambda: grow(table, EngineSettings()))
    delivery = LocalProvider().anonymize(table)
    peak = peak_bytes()
    print(
        json.dumps(
            {
                "rows": n_rows,
                "columns": n_quasi,
                "grow_seconds": seconds,
                "anonymize_seconds": delivery.header.seconds,
                "leaves": delivery.header.leaves,
                "depth": delivery.tree.depth(),
                "table_bytes": table.records.nbytes,
                "peak_bytes": peak,
                "peak_ratio": peak / table.records.nbytes,
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
