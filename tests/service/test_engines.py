"""Which engine takes a job, and what is said of one that fits none."""

import dataclasses
from pathlib import Path

import pytest

from verix_anon.errors import ProviderError
from verix_anon.progress import ignore
from verix_anon.provider.local import LocalProvider
from verix_anon.service import engines
from verix_anon.service.engines import Shape, TooLargeError
from verix_anon.service.settings import Limits, Settings
from verix_anon.service.supervisor import Supervisor

SHAPE = Shape(rows=1_000_000, columns=10, min_leaf=5, file_bytes=50_000_000)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(folder=tmp_path, workers=1)


def test_a_job_that_fits_is_done_here(settings: Settings) -> None:
    assert engines.choose(settings, SHAPE) == engines.LOCAL
    assert engines.names(settings) == (engines.LOCAL,)
    assert isinstance(engines.provider(engines.LOCAL, settings, ignore), LocalProvider)


def test_a_job_that_does_not_fit_is_refused_with_both_figures(settings: Settings) -> None:
    needed = engines.needed_bytes(SHAPE, threads=engines.threads(settings))
    engines.choose(dataclasses.replace(settings, worker_bytes=needed), SHAPE)
    small = dataclasses.replace(settings, worker_bytes=123_000_000)
    with pytest.raises(TooLargeError, match=rf"{needed / 1e9:.2f} GB .* 0\.12 GB"):
        engines.choose(small, SHAPE)


def test_what_is_read_counts_too(settings: Settings) -> None:
    more = dataclasses.replace(SHAPE, file_bytes=10**10)
    assert engines.needed_bytes(more, threads=1) > 10**10


def test_large_jobs_are_for_spark_and_without_it_the_service_does_not_start(
    settings: Settings,
) -> None:
    large = dataclasses.replace(settings, spark_above=999_999)
    assert engines.choose(large, SHAPE) == engines.SPARK
    with pytest.raises(ProviderError, match="Spark"):
        Supervisor(large)
    with pytest.raises(ProviderError, match="no engine verix-spark"):
        engines.provider(engines.SPARK, settings, ignore)


def test_settings_survive_the_way_to_a_worker(tmp_path: Path) -> None:
    settings = Settings(
        folder=tmp_path, key_file=tmp_path / "key", limits=Limits(rows=7), spark_above=9
    )
    text = settings.to_json()
    assert "\n" not in text
    assert Settings.from_json(text) == settings
    assert Settings.from_json(Settings(folder=tmp_path).to_json()) == Settings(folder=tmp_path)
