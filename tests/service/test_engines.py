"""Which engine takes a job, and what is said of one that fits none."""

import dataclasses
import resource
from pathlib import Path

import pytest

from verix_anon.errors import ProviderError
from verix_anon.progress import ignore
from verix_anon.protocol.providers import File
from verix_anon.provider.spark import SparkProvider
from verix_anon.service import engines
from verix_anon.service.jobs import NewJob, RequestRefusedError
from verix_anon.service.settings import ServiceLimits, ServiceSettings
from verix_anon.service.supervisor import Supervisor


def job(n_bytes: int = 50_000_000, rows: int = 1_000_000) -> NewJob:
    files = (File(name="a", size=n_bytes, sha256=""),)
    return NewJob(tenant="a", rows=rows, columns=10, min_leaf=5, files=files)


JOB = job()


@pytest.fixture
def settings(tmp_path: Path) -> ServiceSettings:
    return ServiceSettings(folder=tmp_path, workers=1)


def test_a_job_that_fits_is_done_here(settings: ServiceSettings) -> None:
    assert engines.choose(settings, JOB) == engines.LOCAL
    assert engines.names(settings) == (engines.LOCAL,)


def test_a_job_that_does_not_fit_is_refused_with_both_figures(settings: ServiceSettings) -> None:
    needed = engines.needed_bytes(settings, JOB)
    engines.choose(dataclasses.replace(settings, worker_bytes=needed), JOB)
    small = dataclasses.replace(settings, worker_bytes=123_000_000)
    with pytest.raises(RequestRefusedError, match=rf"{needed / 1e9:.2f} GB .* 0\.12 GB"):
        engines.choose(small, JOB)


def test_what_is_read_counts_too(settings: ServiceSettings) -> None:
    assert engines.needed_bytes(settings, job(10**10)) > 10**10


def test_large_jobs_are_for_spark_and_without_it_the_service_does_not_start(
    settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = dataclasses.replace(settings, spark_above=JOB.rows - 1, worker_bytes=1)
    assert engines.choose(large, JOB) == engines.SPARK
    assert engines.names(large) == (engines.LOCAL, engines.SPARK)
    monkeypatch.setattr(engines, "find_spec", lambda _: None)
    with pytest.raises(ProviderError, match=r"Spark.* pip install"):
        Supervisor(large)
    Supervisor(settings)


def test_spark_is_given_folders_its_settings_and_memory_without_the_workers_limit(
    settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster itself is tried where the engine is."""
    own = resource.getrlimit(resource.RLIMIT_AS)
    seen: list[object] = []

    def anonymize(self: SparkProvider, *given: object, finish: object) -> None:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        seen.append((self.configuration, self.progress, given, finish, limit))

    monkeypatch.setattr(SparkProvider, "anonymize_folder", anonymize)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, own[1]))
    try:
        conf = {"spark.master": "local[2]"}
        own_settings = dataclasses.replace(settings, spark=conf)
        folders = (Path("a"), Path("b"))
        engines.run(engines.SPARK, own_settings, *folders, progress=ignore, finish=print)
        assert resource.getrlimit(resource.RLIMIT_AS)[0] == 1 << 40
    finally:
        resource.setrlimit(resource.RLIMIT_AS, own)
    assert seen == [(conf, ignore, (Path("a"), Path("b")), print, own[1])]


def test_settings_survive_the_way_to_a_worker(tmp_path: Path) -> None:
    settings = ServiceSettings(
        folder=tmp_path, key_file=tmp_path / "key", limits=ServiceLimits(rows=7), spark_above=9
    )
    text = settings.to_json()
    assert "\n" not in text
    assert ServiceSettings.from_json(text) == settings
    usual = ServiceSettings(folder=tmp_path)
    assert ServiceSettings.from_json(usual.to_json()) == usual


def test_a_job_that_the_machine_can_never_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is allowed more than there is would put it back for ever."""
    settings = ServiceSettings(folder=tmp_path, worker_bytes=10**15)
    huge = job(10**9, rows=10**9)
    monkeypatch.setattr(engines, "total_memory", lambda: 16 * 10**9)
    with pytest.raises(RequestRefusedError, match=r"a worker here has 16\.00 GB"):
        engines.choose(settings, huge)
    monkeypatch.setattr(engines, "total_memory", lambda: None)
    assert engines.choose(settings, huge) == engines.LOCAL
