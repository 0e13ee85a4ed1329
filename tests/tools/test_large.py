"""The benchmark of a large table, walked with a small one."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tools.bench import large, spark


def test_the_table_is_made_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "BLOCK", 400)
    large.write_table(tmp_path / "table.parquet", 1000)
    table = pq.read_table(tmp_path / "table.parquet")
    assert (table.num_rows, table.num_columns) == (1000, 17)
    # Full precision: a value that occurs twice would be the same block again.
    assert len(set(table.column("x3").to_pylist())) == 1000
    assert set(table.column("y").to_pylist()) == {"yes", "no"}


def check(found: dict[str, Any], commands: list[str]) -> str:
    """The page of a walk over 2,000 rows."""
    assert list(found["commands"]) == commands
    for took in found["commands"].values():
        assert took["wall"] > 0
        assert took["processor"] > 0
        assert 50e6 < took["peak_bytes"] < 4e9
    assert found["records"] > found["rows"] == 2000
    assert min(found["bytes"].values()) > 1000
    text = "\n".join(large.render(found))
    assert "2,000 rows of 16 numbers" in text
    assert "| verify |" in text
    assert "aim |" in text
    assert "| 10 GB |" not in text
    assert "| 10 GB |" in "\n".join(large.render(found | {"rows": large.ROWS}))
    return text


@pytest.mark.long
def test_a_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "PYTHON", tmp_path / "none")
    text = check(large.walk(tmp_path, 2000), ["prepare", "anonymize", "verify", "release"])
    assert "Spark's environment (`make spark-env`) was not there" in text


@pytest.mark.long
@pytest.mark.skipif(not spark.PYTHON.exists(), reason="there is no environment of Spark's")
def test_a_walk_with_spark(tmp_path: Path) -> None:
    engines = ["anonymize", "anonymize on Spark"]
    text = check(large.walk(tmp_path, 2000), ["prepare", *engines, "verify", "release"])
    assert (tmp_path / "job" / "spark" / "records.parquet").is_dir()
    assert "What Spark wrote was verified and released" in text


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)anonymize failed: .*there is no folder"):
        large.run(tmp_path, large.ANONYMIZE)
