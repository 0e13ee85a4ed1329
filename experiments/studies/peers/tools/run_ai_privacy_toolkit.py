"""ai-privacy-toolkit: a decision tree on the target, a representative for each of its leaves.

python run_ai_privacy_toolkit.py TABLE.csv K OUT.csv
"""

import json
import sys
import time
import warnings

import pandas as pd

warnings.filterwarnings("ignore")

from apt.anonymization import Anonymize  # noqa: E402
from apt.utils.datasets import ArrayDataset  # noqa: E402


def main(source: str, k: int, out: str) -> None:
    """Anonymize every column but the target, as its documentation shows."""
    table = pd.read_csv(source)
    target = table.pop("target").to_numpy()
    names = list(table.columns)
    text = [name for name in names if table[name].dtype == object]
    began = time.perf_counter()
    anonymizer = Anonymize(k, names, categorical_features=text)
    published = anonymizer.anonymize(ArrayDataset(table, target, features_names=names))
    seconds = time.perf_counter() - began
    published["row"] = range(len(published))
    published.to_csv(out, index=False)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
