"""pycanon: how anonymous a published table is, by somebody else's code.

python check_pycanon.py PUBLISHED.csv
"""

import json
import sys

import pandas as pd
from pycanon import anonymity


def main(source: str) -> None:
    """The k of all columns but the row numbers."""
    table = pd.read_csv(source, dtype=str, keep_default_na=False)
    names = [name for name in table.columns if name != "row"]
    print(json.dumps({"k": int(anonymity.k_anonymity(table, names))}))


if __name__ == "__main__":
    main(sys.argv[1])
