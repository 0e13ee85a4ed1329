"""Lines are added whole and one at a time, whatever happens to the process that adds them."""

import errno
import os
import threading
from pathlib import Path

import pytest

from verix_anon.files import json_lines


def add(path: Path, fields: dict[str, object]) -> None:
    with json_lines.locked(path) as held:
        held.append(fields)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    add(tmp_path / "lines", {"n": 0})
    return tmp_path / "lines"


def numbers(path: Path) -> list[object]:
    return [fields and fields.values["n"] for fields in json_lines.read(path)]


def test_a_line_that_the_disk_cuts_short_is_taken_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, room = os.write, [3, 2]

    def full(descriptor: int, data: memoryview) -> int:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[: room.pop()])

    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            add(path, {"n": 1})
    assert path.read_bytes() == before
    add(path, {"n": 2})
    assert numbers(path) == [0, 2]


def test_a_line_that_the_disk_takes_in_pieces_is_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data, write=os.write: write(fd, data[:2]))
        add(path, {"n": 1})
    assert numbers(path) == [0, 1]


def test_who_holds_the_file_is_waited_for(path: Path) -> None:
    reader = threading.Thread(target=lambda: found.extend(numbers(path)))
    found: list[object] = []
    with json_lines.locked(path) as held:
        reader.start()
        held.append({"n": 1})
        reader.join(0.1)
        assert reader.is_alive()
    reader.join()
    assert found == [0, 1]


def test_who_hangs_is_not_waited_for_forever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "PATIENCE", 0.05)
    with json_lines.locked(path), pytest.raises(OSError, match="another process holds it"):
        add(path, {"n": 1})
    assert numbers(path) == [0]
