"""pycanon: how anonymous a published table is, by somebody else's code.

python check_pycanon.py PUBLISHED.csv [SENSITIVE ...]
"""

import json
import sys

import pandas as pd
from pycanon import anonymity


def main(source: str, sensitive: list[str]) -> None:
    """The k of all other columns but the row numbers, and l and t of each sensitive one."""
    table = pd.read_csv(source, dtype=str, keep_default_na=False)
    names = [name for name in table.columns if name not in ("row", *sensitive)]
    found: dict[str, object] = {"k": int(anonymity.k_anonymity(table, names))}
    for name in sensitive:
        found[name] = {
            "l": int(anonymity.l_diversity(table, names, [name])),
            "t": float(anonymity.t_closeness(table, names, [name])),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
