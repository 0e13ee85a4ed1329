"""What is written appears complete or not at all; what was there stays until then."""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from verix_anon.errors import TableError
from verix_anon.files.atomic_write import check_apart, check_free, write_bytes, written_aside


class Interrupted(BaseException):
    """What an impatient user does."""


def interrupt() -> None:
    raise Interrupted


def tree(path: Path) -> dict[str, str]:
    """Every file under a folder, hidden ones too."""
    return {
        str(file.relative_to(path)): file.read_text() for file in path.rglob("*") if file.is_file()
    }


@contextmanager
def interrupted(kind: type[BaseException] = Interrupted) -> Iterator[None]:
    with pytest.raises(kind):
        yield


@pytest.fixture
def old(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    return tmp_path / "out"


def write(path: Path, text: str = "new", *, overwrite: bool = False) -> None:
    with written_aside(path, overwrite=overwrite, folder=True, private=True) as aside:
        (aside / "new").write_text(text)


def test_a_new_folder(tmp_path: Path) -> None:
    write(tmp_path / "out")
    assert tree(tmp_path) == {"out/new": "new"}


def test_a_new_file(tmp_path: Path) -> None:
    with written_aside(tmp_path / "file", overwrite=False, folder=False, private=True) as aside:
        aside.write_text("new")
        assert not (tmp_path / "file").exists()
    assert tree(tmp_path) == {"file": "new"}


def test_an_interruption_leaves_nothing(tmp_path: Path) -> None:
    with (
        interrupted(),
        written_aside(tmp_path / "out", overwrite=False, folder=True, private=True) as aside,
    ):
        (aside / "half").write_text("half")
        interrupt()
    assert not list(tmp_path.iterdir())


def test_an_interruption_leaves_what_was_there(tmp_path: Path, old: Path) -> None:
    with interrupted(), written_aside(old, overwrite=True, folder=True, private=True) as aside:
        (aside / "half").write_text("half")
        interrupt()
    assert tree(tmp_path) == {"out/old": "old"}
    (tmp_path / "file").write_text("old")
    with (
        interrupted(),
        written_aside(tmp_path / "file", overwrite=True, folder=False, private=True) as aside,
    ):
        aside.write_text("half")
        interrupt()
    assert tree(tmp_path) == {"out/old": "old", "file": "old"}


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interruption_while_names_are_changed(
    tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    rename = Path.rename

    def impatient(self: Path, target: Path) -> Path:
        if not self.name.endswith(".partial"):
            return rename(self, target)
        if when == "after":
            rename(self, target)
        raise Interrupted

    monkeypatch.setattr(Path, "rename", impatient)
    with interrupted():
        write(old, overwrite=True)
    assert tree(tmp_path) == ({"out/old": "old"} if when == "before" else {"out/new": "new"})


def test_what_is_there_is_refused_before_the_work(tmp_path: Path, old: Path) -> None:
    (tmp_path / "dangling").symlink_to("nothing")
    for path in (old, old / "old", tmp_path / "dangling"):
        with pytest.raises(TableError, match=r"exists already; .*--overwrite"):
            write(path)
    assert tree(tmp_path) == {"out/old": "old"}


def test_overwriting(tmp_path: Path, old: Path) -> None:
    write(old, overwrite=True)
    assert tree(tmp_path) == {"out/new": "new"}
    write(old / "new", "in place of a file", overwrite=True)
    assert tree(tmp_path) == {"out/new/new": "in place of a file"}


def test_overwriting_a_link_leaves_what_it_points_to(tmp_path: Path, old: Path) -> None:
    (tmp_path / "link").symlink_to(old, target_is_directory=True)
    write(tmp_path / "link", overwrite=True)
    assert tree(old) == {"old": "old"}
    assert not (tmp_path / "link").is_symlink()
    assert tree(tmp_path / "link") == {"new": "new"}


def test_a_file_does_not_replace_a_folder(tmp_path: Path, old: Path) -> None:
    with (
        pytest.raises(TableError, match="out cannot be written"),
        written_aside(old, overwrite=True, folder=False, private=True) as aside,
    ):
        aside.write_text("new")
    assert tree(tmp_path) == {"out/old": "old"}


def test_places_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "no" / "out", tmp_path / "file" / "out"):
        with pytest.raises(TableError, match=r"there is no folder .* to write to"):
            write(path)
    with pytest.raises(TableError, match=r"cannot be written \(File name too long\)"):
        write(tmp_path / ("x" * 250))
    with pytest.raises(TableError, match="is a URL"):
        check_free("memory://x", overwrite=False)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_strange_targets(tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(old)
    for path in (Path(), Path("..")):
        with pytest.raises(TableError):
            write(path, overwrite=True)
    assert tree(tmp_path) == {"out/old": "old"}


def test_a_full_disk_is_said_in_a_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(TableError, match=r"out cannot be written \(No space left on device\)"),
        written_aside(tmp_path / "out", overwrite=False, folder=True, private=True),
    ):
        raise OSError(28, os.strerror(28))
    assert not list(tmp_path.iterdir())


def test_two_writers(tmp_path: Path) -> None:
    """Both began before the other was done: one gets the name, the other a sentence."""
    with (
        pytest.raises(TableError, match="out exists already"),
        written_aside(tmp_path / "out", overwrite=False, folder=True, private=True),
    ):
        write(tmp_path / "out", "early")
    assert tree(tmp_path) == {"out/new": "early"}


@pytest.mark.parametrize("turn", range(40))
def test_many_writers(tmp_path: Path, turn: int) -> None:
    refused = []

    def work(i: int) -> None:
        try:
            write(tmp_path / "out", f"{turn}, {i}", overwrite=True)
        except TableError as error:
            refused.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = tree(tmp_path)
    assert list(found) == ["out/new"]
    assert len(refused) < 8


def modes(path: Path) -> dict[str, int]:
    """The mode of all that is at a path and under it."""
    found = {".": path, **{str(p.relative_to(path)): p for p in path.rglob("*")}}
    return {name: stat.S_IMODE(p.stat().st_mode) for name, p in found.items()}


@pytest.fixture(params=[0o022, 0o077, 0o000])
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("private", [True, False])
def test_what_is_private_is_for_its_owner_and_the_rest_as_the_umask_says(
    tmp_path: Path, mask: int, private: bool
) -> None:
    with written_aside(tmp_path / "out", overwrite=False, folder=True, private=private) as aside:
        assert modes(aside) == {".": 0o700}
        (aside / "inner").mkdir()
        (aside / "inner" / "file").write_text("new")
    with written_aside(tmp_path / "file", overwrite=False, folder=False, private=private) as aside:
        assert modes(aside) == {".": 0o600}
        aside.write_text("new")
    folder, file = (0o700, 0o600) if private else (0o777 & ~mask, 0o666 & ~mask)
    assert modes(tmp_path / "out") == {".": folder, "inner": folder, "inner/file": file}
    assert modes(tmp_path / "file") == {".": file}


def test_all_is_on_the_disk_before_it_has_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, bool]] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        synced.append((name.partition(".")[0] or "aside", (tmp_path / "out").exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    write(tmp_path / "out")
    assert synced == [("new", False), ("aside", False), (tmp_path.name, True)]


def test_a_file_that_is_written_in_pieces_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", lambda fd, data, write=os.write: write(fd, data[:2]))
    write_bytes(tmp_path / "file", b"in pieces")
    assert (tmp_path / "file").read_bytes() == b"in pieces"


def test_an_input_is_not_replaced_under_another_name_of_it(tmp_path: Path) -> None:
    """A hard link stands for the same name in another case, on systems that ignore case."""
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "people.csv").touch()
    (tmp_path / "PEOPLE.CSV").hardlink_to(tmp_path / "job" / "people.csv")
    for path in (tmp_path / "PEOPLE.CSV", tmp_path / "job"):
        with pytest.raises(TableError, match="is, or holds, the input"):
            check_apart(path, [tmp_path / "job" / "people.csv"])
    check_apart(tmp_path / "free.csv", [tmp_path / "job" / "people.csv", None])
