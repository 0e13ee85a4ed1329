"""A folder is read relative to what was opened, and only its content is its owner's fault."""

import errno
import os
from pathlib import Path

import pytest

from verix_anon.errors import MalformedDeliveryError, TableError
from verix_anon.files import store
from verix_anon.files.store import open_folder


def test_what_a_link_is_called() -> None:
    assert store.reason(OSError(errno.ELOOP, "Too many levels")) == "it is a link"
    assert store.reason(OSError("plain words")) == "plain words"


def test_another_folder_under_the_same_name_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    folder = open_folder(tmp_path / "mine", MalformedDeliveryError)
    (tmp_path / "mine").rename(tmp_path / "moved")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("other")
    assert folder.read("file", limit=9) == b"mine"
    assert [entry.name for entry in folder.entries(most=9)] == ["file"]


def test_a_folder_of_parts_that_becomes_a_link(tmp_path: Path) -> None:
    """Between the look at the folder and the opening of its parts."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.parquet").write_text("secret")
    (tmp_path / "mine" / "records.parquet").mkdir(parents=True)
    (tmp_path / "mine" / "records.parquet" / "a.parquet").touch()
    folder = open_folder(tmp_path / "mine", MalformedDeliveryError)
    assert folder.parts("records.parquet") == ["records.parquet/a.parquet"]
    (tmp_path / "mine" / "records.parquet").rename(tmp_path / "old")
    (tmp_path / "mine" / "records.parquet").symlink_to(tmp_path / "secret")
    with pytest.raises(MalformedDeliveryError, match=r"cannot be read"):
        folder.read("records.parquet/a.parquet", limit=99)


def test_a_url_of_a_local_folder_follows_no_link_either(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").symlink_to("/etc/hostname")
    folder = open_folder(f"file://{tmp_path}/mine", MalformedDeliveryError)
    with pytest.raises(MalformedDeliveryError, match="it is a link"):
        folder.read("file", limit=999)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.EMFILE, errno.ENOMEM])
def test_what_the_machine_refuses_accuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    (tmp_path / "file").touch()
    folder = open_folder(tmp_path, MalformedDeliveryError)

    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(TableError, match=rf"file cannot be read \({os.strerror(number)}\)"):
        folder.read("file", limit=9)


def test_a_lack_of_memory_accuses_nobody(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(1 << 43)
    folder = open_folder(tmp_path, MalformedDeliveryError)
    with pytest.raises(TableError, match=r"reading the .* bytes of file needs more memory than"):
        folder.read("file", limit=1 << 44)


def test_a_folder_is_closed_when_nobody_holds_it(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        open_folder(tmp_path, TableError).failing(MalformedDeliveryError)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
