"""What can be said of the engine on Spark where Spark is not installed."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import support
from cli.jobs import Run
from test_architecture import modules_after
from verix_anon.errors import ProviderError
from verix_anon.provider.spark import SparkProvider
from verix_anon.provider.spark.keys import key_of, keys_of, reach, value_of
from verix_anon.provider.spark.medians import BUCKET_BYTES, MIN_BUCKETS, n_buckets
from verix_anon.provider.spark.session import limits_of, place_for_spark
from verix_anon.provider.spark.top import Limits, Pass, Top, grow_top

HAS_SPARK = importlib.util.find_spec("pyspark") is not None


@pytest.mark.slow
def test_executors_need_few_packages() -> None:
    loaded = modules_after("import verix_anon.provider.spark.tasks")
    assert not loaded & {"sklearn", "xgboost", "pyspark", "rich", "typer", "narwhals"}


def test_keys_are_in_the_order_of_values() -> None:
    column = support.numeric("x")
    most = float(np.finfo(np.float64).max)
    values = [-most, -1e300, -1.0, -5e-324, 0.0, 5e-324, 1.0, np.nextafter(1.0, 2.0), 1e300, most]
    keys = keys_of(column, np.array(values)).tolist()
    assert keys == sorted(set(keys))
    assert [value_of(column, key) for key in keys] == values
    assert reach(column) == (keys[0], keys[-1])
    assert key_of(column, 0.0) == 0
    positions = support.categorical("c", 7)
    assert keys_of(positions, np.array([0.0, 6.0])).tolist() == list(reach(positions)) == [0, 6]


@pytest.mark.parametrize("n_cells", [1, 16, 1000, 16 * 1024, 10**6])
def test_histograms_keep_to_their_budget(n_cells: int) -> None:
    budget = 64 << 20
    found = n_buckets(n_cells, budget)
    assert found & (found - 1) == 0
    assert found == MIN_BUCKETS or n_cells * found * BUCKET_BYTES <= budget


def test_a_leaf_that_no_task_holds_is_an_error() -> None:
    sent = support.submission([[7.0] * 100], [1] * 100)
    top = Top(sent.contract, 100, Limits(task_rows=10, leaf_rows=50, histogram_bytes=1 << 20))
    top.is_leaf[0] = True

    def never(wanted: Pass) -> Any:
        raise AssertionError("a leaf is not counted")

    with pytest.raises(ProviderError, match=r"100 records lie in one leaf .* a task holds 50"):
        list(grow_top(top, never))


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/data/a [1]/x*", r"file:/data/a \[1\]/x\*"),
        ("s3://bucket/job", "s3a://bucket/job"),
        ("hdfs://host/job", "hdfs://host/job"),
    ],
)
def test_spark_takes_no_path_for_a_pattern(path: str, place: str) -> None:
    assert place_for_spark(path) == place


def cluster(master: str, cores: int = 4, **settings: str) -> Any:
    conf = {name.replace("_", "."): value for name, value in settings.items()}
    context = SimpleNamespace(master=master, defaultParallelism=cores, getConf=lambda: conf)
    return SimpleNamespace(sparkContext=context)


def test_a_task_holds_what_its_executors_memory_says() -> None:
    small = limits_of(cluster("spark://head:7077"), 16, None)
    large = limits_of(cluster("yarn", spark_executor_memory="8g"), 16, None)
    shared = limits_of(
        cluster("yarn", spark_executor_memory="8192m", spark_executor_cores="4"), 16, None
    )
    local = limits_of(cluster("local[4]", spark_driver_memory="8G"), 16, None)
    assert large.task_rows == pytest.approx(8 * small.task_rows, rel=1e-4)
    assert shared.task_rows == local.task_rows == pytest.approx(large.task_rows / 4, rel=1e-4)
    assert small.task_rows * (32 * 16 + 256) <= (1 << 30) / 2
    assert small.leaf_rows > small.task_rows
    assert limits_of(cluster("yarn"), 16, 77).task_rows == 77
    with pytest.raises(ProviderError, match="'much' is not an amount of memory"):
        limits_of(cluster("yarn", spark_executor_memory="much"), 16, None)


@pytest.mark.skipif(HAS_SPARK, reason="Spark is installed here")
def test_without_spark_it_says_what_to_install(tmp_path: Path) -> None:
    sent = support.submission([[*range(40)]], [0, 1] * 20)
    with pytest.raises(ProviderError, match=r"pip install -e '\.\[spark\]'"):
        SparkProvider().anonymize(sent)


@pytest.mark.parametrize("words", [["--task-rows", "5"], ["--spark", "spark.master=local"]])
def test_settings_of_spark_are_for_spark(run: Run, tmp_path: Path, words: list[str]) -> None:
    outcome = run("anonymize", tmp_path / "submission", "--out", tmp_path / "out", *words)
    assert outcome.code == 2
    assert "go with --engine spark" in outcome.err


def test_a_setting_has_a_name_and_a_value(run: Run, tmp_path: Path) -> None:
    words = ["--engine", "spark", "--spark", "master"]
    outcome = run("anonymize", tmp_path / "submission", "--out", tmp_path / "out", *words)
    assert outcome.code == 2
    assert "not of the form spark.NAME=VALUE" in outcome.err
