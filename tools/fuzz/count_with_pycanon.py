"""Runs in pycanon's environment: k, and l, alpha and t of each sensitive column, of many tables.

python count_with_pycanon.py TABLES.json
"""

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from pycanon import anonymity


def count(given: dict[str, Any]) -> dict[str, Any]:
    """Count one table; numbers have an order for pycanon, and texts have none."""
    table = pd.DataFrame(given["quasi"], dtype=str)
    names = list(table.columns)
    found: dict[str, Any] = {"k": int(anonymity.k_anonymity(table, names)), "sensitive": {}}
    for name, column in given["sensitive"].items():
        values = column["values"] if column["ordered"] else [f"v{v}" for v in column["values"]]
        with_it = table.assign(**{f"sensitive {name}": values})
        one = [f"sensitive {name}"]
        found["sensitive"][name] = {
            "l": int(anonymity.l_diversity(with_it, names, one)),
            "alpha": float(anonymity.alpha_k_anonymity(with_it, names, one)[0]),
            "t": float(anonymity.t_closeness(with_it, names, one)),
        }
    return found


def tried(given: dict[str, Any]) -> dict[str, Any]:
    """Count one table, or say why pycanon cannot."""
    try:
        return count(given)
    except Exception as error:
        return {"error": repr(error)}


if __name__ == "__main__":
    tables = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(json.dumps([tried(table) for table in tables]))
