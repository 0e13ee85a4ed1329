"""What tests of several folders are run with."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import settings

from cli import jobs
from client.release import releases
from client.table.tables import MAKERS, Make
from conform.in_process import of_side
from files.samples import delivered
from tools import cases
from verix_anon.client import models
from verix_anon.conform.kit import Kit, unpack_kit
from verix_anon.files.folder_writer import write_delivery

# pytest keeps the tests that it rewrote only if bytecode is kept; else each run rewrites them all,
# in each worker, which takes longer than the rest of collecting.
sys.dont_write_bytecode = False
# The same examples in every run, and a busy machine does not fail a test.
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def _ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test writes into the ledger of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERIX_LEDGER", str(tmp_path_factory.mktemp("ledger") / "ledger.jsonl"))
        yield


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Make:
    """Make a table of named columns, in each of the libraries."""
    return MAKERS[request.param]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An honest delivery, to be spoiled."""
    write_delivery(delivered(), tmp_path / "delivery")
    return tmp_path / "delivery"


@pytest.fixture(scope="module")
def quick_models() -> Iterator[None]:
    """For tests in which fingerprint and utility only inform: a model of two trees costs less."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "ROUNDS", 2)
        yield
    # What such a model measured must not be kept: other tests in this process want the real one.
    cases.prepared.cache_clear()


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> jobs.Run:
    """Run the command in this process, with a ledger of its own."""
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "ledger.jsonl"))
    monkeypatch.delenv("VERIX_PASSPHRASE", raising=False)

    def call(*arguments: object) -> jobs.Outcome:
        code = jobs.exit_code(*arguments)
        return jobs.Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a table, a prepared job and an honest delivery; not to be changed."""
    folder = tmp_path_factory.mktemp("prepared")
    jobs.make(folder, 1_500)
    made = sorted(folder.rglob("*"))
    yield folder
    assert sorted(folder.rglob("*")) == made


@pytest.fixture
def job(prepared: Path, tmp_path: Path) -> Path:
    """The same, to be spoiled."""
    shutil.copytree(prepared, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture(scope="session")
def case() -> releases.Job:
    """A table, its honest delivery, and the verdict that accepts it."""
    return releases.job(pa.table(releases.columns()))


@pytest.fixture(scope="session")
def package_kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """The kit that the package holds; not to be changed."""
    return unpack_kit(tmp_path_factory.mktemp("kit") / "kit")


@pytest.fixture(scope="session")
def small_kit(package_kit: Kit) -> Kit:
    """What a provider is shown; not to be changed."""
    return of_side(package_kit, "provider")
