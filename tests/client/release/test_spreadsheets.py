"""LibreOffice reads a released CSV as it stands: no date, formula or other number of a cell."""

import csv
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from client.release.classes import days, interval, of_classes
from client.release.test_read_back import odd_job
from verix_anon import write_table
from verix_anon.protocol.contract import Column, Kind, Unit

SOFFICE = shutil.which("soffice")
LABELS = ("10-12", "Mar-12", "sept2", "=1+1", "01067", "1E5", "1/2", "TRUE", "-3", "+49", "1.5")
MORE = ("a, b", "{x}", "1958-09", "50%", "1,000", " a", "x\ny", '"q"', "@x", "", "missing")
FORM = "csv:Text - txt - csv (StarCalc):44,34,76,1"


def opened_and_saved(path: Path, folder: Path) -> list[list[str]]:
    """The cells as LibreOffice shows them after it opened the file and recognised what it could."""
    # Comma, quote, UTF-8, from the first line, English, and special numbers are looked for.
    reading = "Text - txt - csv (StarCalc):44,34,76,1,,1033,false,true,false,false,false,0,true"
    words = [str(SOFFICE), "--headless", f"-env:UserInstallation=file://{folder}/profile"]
    words += [f"--infilter={reading}", "--convert-to", FORM, "--outdir", str(folder / "out")]
    subprocess.run([*words, str(path)], check=True, capture_output=True, timeout=300)
    return cells(folder / "out" / path.name)


def cells(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


needs_office = pytest.mark.skipif(
    SOFFICE is None, reason="LibreOffice is not installed; `make system` does it"
)


@pytest.mark.long
@needs_office
def test_no_cell_of_a_release_changes_its_meaning(tmp_path: Path) -> None:
    path = tmp_path / "released.csv"
    odd_job().release(out=path, top_code={"weight": (60.0, 80.0)})
    written, read = cells(path), opened_and_saved(path, tmp_path)
    assert len(read) == len(written)
    quasi = {"age", "city", "weight", "born", "label", "level", "depth", "zip"}
    for before, after in zip(written, read, strict=True):
        for name, a, b in zip(written[0], before, after, strict=True):
            assert name not in quasi or a == b


@pytest.mark.long
@needs_office
def test_labels_and_numbers_that_look_like_something_else(tmp_path: Path) -> None:
    column = Column(name="x", kind=Kind.CATEGORICAL, categories=LABELS + MORE)
    labels, _ = of_classes([[float(i)] for i in range(len(LABELS + MORE))], column)
    day = Column(name="x", kind=Kind.DATETIME, unit=Unit.DAY)
    spans = [
        interval([-3, 2]),
        interval([-3, -3]),
        interval([1.5, 1.5]),
        interval([10, 12]),
        interval([1.1, 2.2]),
        interval([3, 90], top_code={"x": (20.0, 80.0)}),
        interval(days("1958-09-21"), column=day),
        *(
            interval(days("1958-09-21"), column=day, round_to={"x": p})
            for p in ("month", "quarter")
        ),
    ]
    path = tmp_path / "cells.csv"
    texts = [*labels, *spans]
    write_table(pa.table({"x": texts, "n": range(len(texts))}), path)
    assert [row[0] for row in opened_and_saved(path, tmp_path)[1:]] == texts
    # The test can fail: the bare labels do change.
    bare = tmp_path / "bare.csv"
    write_table(pa.table({"x": ["Mar-12", "=1+1", "1/2"], "n": range(3)}), bare)
    changed = opened_and_saved(bare, tmp_path)[1:]
    assert all(row[0] not in LABELS for row in changed)
