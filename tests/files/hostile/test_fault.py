"""Whose fault it is: only what the decoders say of the provider's bytes accuses the provider."""

from pathlib import Path

import pyarrow as pa
import pytest

from cli.jobs import Run, verify_arguments
from files.samples import read, refused
from verix_anon.errors import TableError
from verix_anon.files.hostile import parquet_reader
from verix_anon.files.hostile.parquet_reader import Reader

DECODERS = ["_to_numpy", "Reader._file"]


def broken(monkeypatch: pytest.MonkeyPatch, where: str, error: Exception) -> None:
    def fail(*_: object) -> None:
        raise error

    owner, name = (Reader, "_file") if where == "Reader._file" else (parquet_reader, where)
    monkeypatch.setattr(owner, name, fail)


@pytest.mark.parametrize("where", DECODERS)
@pytest.mark.parametrize("error", [pa.ArrowInvalid("no page"), OSError("no page")])
def test_what_the_decoder_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str, error: Exception
) -> None:
    broken(monkeypatch, where, error)
    with refused(r"is not a readable Parquet file \(no page\)"):
        read(folder)


@pytest.mark.parametrize("where", DECODERS)
@pytest.mark.parametrize("error", [MemoryError(), pa.ArrowMemoryError("malloc failed")])
def test_a_lack_of_memory_is_stated_in_figures(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str, error: Exception
) -> None:
    broken(monkeypatch, where, error)
    sentence = r"decoding \w+\.parquet \([\d,]+ bytes, [\d,]+ rows\) needs more .*B are avail"
    with pytest.raises(TableError, match=sentence):
        read(folder)


@pytest.mark.parametrize("where", DECODERS)
@pytest.mark.parametrize(
    "error", [KeyError("x"), ValueError("x"), AssertionError(), OSError(24, "Too many open files")]
)
def test_a_bug_of_ours_is_our_bug(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str, error: Exception
) -> None:
    broken(monkeypatch, where, error)
    with pytest.raises(type(error)):
        read(folder)


@pytest.mark.parametrize(("error", "code"), [(MemoryError(), 2), (KeyError("x"), 70)])
def test_the_command_gives_no_verdict(
    run: Run, job: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    broken(monkeypatch, "_to_numpy", error)
    assert run(*verify_arguments(job)).code == code
    assert not (job / "job" / "audit.jsonl").exists()


def test_memory_that_ends_elsewhere(run: Run, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("verix_anon.client.verify._check_own", fail)
    outcome = run(*verify_arguments(job))
    assert outcome.code == 2
    assert "needs more memory than there is, and" in outcome.err
