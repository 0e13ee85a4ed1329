"""A text table recognised and read, beside pyarrow.csv that is told everything."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from tools.bench.tables import SEED, best_of
from verix_anon.files.tables import read_table_as

ROWS, TIMES, AIM = 1_000_000, 15, 3.0


def measure() -> dict[str, object]:
    """The best of several runs of each, on one file of 16 columns of every kind."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        table = _table()
        pyarrow.csv.write_csv(table, path)
        told = pyarrow.csv.ConvertOptions(
            column_types={
                **dict(zip(table.column_names, table.schema.types, strict=True)),
                "birth": pa.timestamp("s"),
            },
            timestamp_parsers=["%d.%m.%Y"],
        )
        # In turn, so that what else the machine does disturbs both alike.
        taken = [
            (
                best_of(1, lambda: pyarrow.csv.read_csv(path, convert_options=told)),
                best_of(1, lambda: read_table_as(path)),
            )
            for _ in range(TIMES)
        ]
        arrow, ours = map(min, zip(*taken, strict=True))
        size = path.stat().st_size
    return {"rows": ROWS, "columns": 16, "bytes": size, "arrow": arrow, "recognised": ours}


def _table() -> pa.Table:
    rng = np.random.default_rng(SEED)
    days = pa.array(np.datetime64("1950-01-01") + rng.integers(0, 20_000, ROWS))
    columns: dict[str, Any] = {f"x{i}": rng.standard_normal(ROWS) for i in range(4)}
    columns |= {f"amount{i}": np.round(rng.normal(50, 20, ROWS), 2) for i in range(4)}
    columns |= {f"count{i}": rng.integers(0, 100_000, ROWS) for i in range(4)}
    columns |= {
        "day": days,
        "birth": pc.strftime(days.cast(pa.timestamp("s")), format="%d.%m.%Y"),
        "sex": rng.choice(["female", "male"], ROWS),
        "code": rng.choice([f"D{i:03}" for i in range(300)], ROWS),
    }
    return pa.table(columns)


def render(result: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    ratio = result["recognised"] / result["arrow"]
    what = f"{result['rows']:,} x {result['columns']} as CSV, {result['bytes'] / 1e6:.0f} MB"
    return [
        f"{what}; the best of {TIMES} runs, seconds:",
        "",
        "| pyarrow.csv, told every type | recognised and read | ratio | aim |",
        "| ---: | ---: | ---: | ---: |",
        f"| {result['arrow']:.2f} | {result['recognised']:.2f} | {ratio:.2f} | {AIM:.1f} |",
        "",
    ]
