"""Blobs on the disk and in S3: whole files, or nothing."""

import errno
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import s3_store
from verix_anon.errors import ProviderError
from verix_anon.service import blobs
from verix_anon.service.blobs import Blobs, StorageError


@pytest.fixture
def store(blobs_url: str, monkeypatch: pytest.MonkeyPatch) -> Blobs:
    monkeypatch.setattr(blobs, "CLOUD_PIECE", 1 << 20)
    return Blobs(blobs_url)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(bytes(range(256)) * 9000)
    return path


def test_what_is_put_is_read(store: Blobs, source: Path, tmp_path: Path) -> None:
    name = blobs.upload("j", "records.parquet/part.parquet")
    store.put(name, source)
    store.get(name, tmp_path / "deep" / "back")
    data = source.read_bytes()
    assert (tmp_path / "deep" / "back").read_bytes() == data
    pieces = list(store.pieces(name, 255, len(data) - 1))
    assert len(pieces) > 1
    assert b"".join(pieces) == data[255:-1]
    with pytest.raises(StorageError, match=r"shorter|does not serve"):
        list(store.pieces(name, 0, len(data) + 1))


def test_attempts_are_listed_and_deleted(store: Blobs, source: Path) -> None:
    assert store.attempts() == {}
    for name in (
        blobs.upload("a", "x"),
        blobs.attempt("a", 1, "x"),
        blobs.attempt("a", 12, "y/z"),
        blobs.attempt("b", 3, "x"),
        blobs.upload("c", "x"),
    ):
        store.put(name, source)
    assert store.attempts() == {
        "a": {0, 1, 12},
        "b": {3},
        "c": {0},
    }
    store.delete(blobs.attempt("a", 1))
    store.delete(blobs.attempt("a", 1))
    store.delete(blobs.job("b"))
    assert store.attempts() == {"a": {0, 12}, "c": {0}}
    with pytest.raises(FileNotFoundError):
        store.get(blobs.attempt("a", 1, "x"), source.parent / "none")


def test_a_put_that_fails_leaves_nothing(
    store: Blobs, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk, after half of the file; in S3 as if the source could not be read."""
    name = blobs.attempt("a", 1, "x")

    def half(read: Any, write: Any, length: int = 0) -> None:
        write.write(read.read(1000))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", half)
    is_local = list(store._fs.protocol)[:1] == ["file"]
    missing = source if is_local else source.parent / "missing"
    with pytest.raises(OSError, match=r"No space|No such file"):
        store.put(name, missing)
    monkeypatch.undo()
    with pytest.raises(FileNotFoundError):
        store.pieces(name, 0, 1)
    if is_local:
        assert [path for path in (source.parent / "blobs").rglob("*") if path.is_file()] == []


def test_what_another_process_puts_is_seen(store: Blobs, blobs_url: str, source: Path) -> None:
    code = """
import sys
from pathlib import Path
from verix_anon.service.blobs import Blobs, StorageError
Blobs(sys.argv[1]).put(sys.argv[2], Path(sys.argv[3]))
"""
    store.put(blobs.upload("a", "x"), source)
    assert store.attempts() == {"a": {0}}
    name = blobs.attempt("a", 1, "x")
    with pytest.raises(FileNotFoundError):
        store.pieces(name, 0, 1)
    subprocess.run([sys.executable, "-c", code, blobs_url, name, str(source)], check=True)
    assert store.attempts() == {"a": {0, 1}}
    assert next(store.pieces(name, 0, 1)) == b"\x00"


def test_a_disk_is_tried_with_a_file_that_was_not_there(tmp_path: Path) -> None:
    """On a full disk, one that is kept can be written again in its own room."""
    Blobs(str(tmp_path)).check()
    assert list(tmp_path.iterdir()) == []


def test_a_store_says_whether_it_can_be_reached(store: Blobs, tmp_path: Path) -> None:
    store.check()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        Blobs(str(tmp_path / "file" / "blobs")).check()
    with pytest.raises(ProviderError, match="cannot be opened"):
        Blobs("nosuch://x")


@pytest.fixture(params=["refuses", "hangs"])
def away(request: pytest.FixtureRequest) -> Iterator[Blobs]:
    """A store in S3 that does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        if request.param == "refuses":
            listener.close()
        with s3_store.reached(f"http://127.0.0.1:{port}"):
            yield Blobs("s3://bucket/verix", seconds=1.0)


def test_a_store_that_is_away_raises_one_error_of_ours_in_time(away: Blobs, source: Path) -> None:
    name, began = blobs.upload("a", "x"), time.monotonic()
    for ask in (
        away.attempts,
        away.check,
        lambda: away.put(name, source),
        lambda: away.get(name, source),
        lambda: away.pieces(name, 0, 1),
        lambda: away.delete(blobs.job("a")),
    ):
        with pytest.raises(StorageError, match="does not serve"):
            ask()
    assert time.monotonic() - began < 6 * (1.0 + 9000 * 256 / blobs.LEAST_RATE) + 5


@pytest.mark.parametrize("name", ["../x", "jobs/../../x", "jobs//x", "/x", ""])
def test_no_name_leaves_the_store(tmp_path: Path, name: str) -> None:
    with pytest.raises(AssertionError):
        Blobs(str(tmp_path)).pieces(name, 0, 1)
