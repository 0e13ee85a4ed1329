"""Links, pipes, devices and folders in place of a delivery's files; nothing hangs."""

import hashlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from files.samples import FILES, delivered, read, refused, sent
from verix_anon.errors import TableError
from verix_anon.files import store
from verix_anon.files.deliveries import read_delivery
from verix_anon.files.folder_writer import write_delivery

NOT_REGULAR = "cannot be read"


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    signal.alarm(20)
    yield
    signal.alarm(0)


def into_folder(folder: Path) -> Path:
    """Make records.parquet a folder with one part."""
    path = folder / "records.parquet"
    aside = folder / "aside"
    path.rename(aside)
    path.mkdir()
    aside.rename(path / "part.parquet")
    return path / "part.parquet"


@pytest.mark.parametrize("name", FILES)
def test_link(folder: Path, name: str) -> None:
    (folder / name).rename(folder / "real")
    (folder / name).symlink_to(folder / "real")
    with refused(rf"{name} cannot be read \(it is a link\)"):
        read(folder)


@pytest.mark.parametrize("name", FILES)
def test_link_to_a_device_or_to_nothing(folder: Path, name: str) -> None:
    for target in ("/dev/zero", "/dev/stdin", "nothing", name):
        (folder / name).unlink()
        (folder / name).symlink_to(target)
        with refused(rf"{name} cannot be read \(it is a link\)"):
            read(folder)


def test_link_to_a_folder_of_parts(folder: Path) -> None:
    into_folder(folder)
    (folder / "records.parquet").rename(folder / "real")
    (folder / "records.parquet").symlink_to(folder / "real", target_is_directory=True)
    with refused(r"records\.parquet cannot be read \(it is a link\)"):
        read(folder)


def test_link_to_a_part(folder: Path) -> None:
    part = into_folder(folder)
    part.rename(folder / "real")
    part.symlink_to(folder / "real")
    with refused(r"records\.parquet/part\.parquet cannot be read \(it is a link\)"):
        read(folder)


def test_the_folder_itself_may_be_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    assert read(tmp_path / "link").delivery.header == delivered().header


@pytest.mark.parametrize("name", FILES)
def test_pipe(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with refused(rf"{name} cannot be read \(it is not a regular file\)"):
        read(folder)


def test_pipe_among_the_parts(folder: Path) -> None:
    os.mkfifo(into_folder(folder).with_name("pipe.parquet"))
    with refused(r"pipe\.parquet cannot be read \(it is not a regular file\)"):
        read(folder)


@pytest.mark.parametrize("name", FILES)
def test_socket(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / name).unlink()
    monkeypatch.chdir(folder)  # The name of a socket may only have about a hundred characters.
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        with refused(f"{name} cannot be read"):
            read(folder)


@pytest.mark.parametrize("name", FILES[:3])
def test_folder_in_place_of_a_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    with refused(rf"{name} cannot be read \(it is not a regular file\)"):
        read(folder)


def test_a_file_nobody_may_read(folder: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (folder / "nodes.parquet").chmod(0)
    with pytest.raises(TableError, match=r"nodes\.parquet cannot be read \(Permission denied\)"):
        read(folder)
    into_folder(folder).parent.chmod(0)
    with pytest.raises(
        TableError, match=r"records\.parquet cannot be listed \(Permission denied\)"
    ):
        read(folder)


@pytest.mark.parametrize("name", ["leaf=3", "deeper", "part.parquet.d", "folder.parquet"])
def test_folders_among_the_parts(folder: Path, name: str) -> None:
    part = into_folder(folder)
    (part.parent / name).mkdir()
    (part.parent / name / "x.parquet").write_bytes(part.read_bytes())
    with refused(f"records.parquet holds '{name}', which is not a Parquet file"):
        read(folder)


@pytest.mark.parametrize("name", ["notes.txt", "leaf=3"])
def test_strangers_among_the_parts(folder: Path, name: str) -> None:
    (into_folder(folder).parent / name).write_bytes(b"")
    with refused("which is not a Parquet file"):
        read(folder)


@pytest.mark.parametrize("name", ["a\nb.parquet", "\x1b[2J.parquet"])
def test_names_that_no_part_has(folder: Path, name: str) -> None:
    (into_folder(folder).parent / name).write_bytes(b"")
    with refused("a part's name has ASCII letters"):
        read(folder)


def test_a_name_that_is_not_text(folder: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(into_folder(folder).parent) + b"/\xff.parquet")).touch()
    except OSError:
        pytest.skip("this file system only takes text")
    with refused(r"holds '\\udcff\.parquet': a part's name has ASCII letters"):
        read(folder)


@pytest.mark.parametrize("name", FILES)
def test_oversized_sparse_file(folder: Path, name: str) -> None:
    with (folder / name).open("r+b") as file:
        file.truncate(1 << 40)
    with refused(rf"{name} is larger than \d+ bytes, the limit for what it holds"):
        read(folder)


def test_oversized_parts(folder: Path) -> None:
    part = into_folder(folder)
    for i in range(3):
        with part.with_name(f"{i}.parquet").open("wb") as file:
            file.truncate(1 << 40)
    with refused(r"0\.parquet is larger than"):
        read(folder)


def test_each_file_is_opened_once_and_judged_from_those_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is replaced by another delivery's as soon as it was opened: nobody notices."""
    honest = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}
    write_delivery(delivered(1), folder.parent / "other")
    opened: list[str] = []
    open_regular = store._open_regular

    def open_and_swap(held: int, name: str) -> object:
        opened.append(name)
        file = open_regular(held, name)
        (folder.parent / "other" / name).replace(folder / name)
        return file

    monkeypatch.setattr(store, "_open_regular", open_and_swap)
    snapshot = read_delivery(folder, sent().contract, n_rows=300)
    assert sorted(opened) == sorted(FILES)
    assert snapshot.files == honest
    assert snapshot.delivery.header == delivered().header
    assert (snapshot.delivery.records.leaf == delivered().records.leaf).all()
