"""A zip that is made while it is sent holds the folder, and not more than a piece at a time."""

import io
import os
from pathlib import Path
from zipfile import ZipFile

from verix_anon.files.desk_folder import PIECE, zipped


def test_a_folder_is_the_same_after_unpacking(tmp_path: Path) -> None:
    folder = tmp_path / "submission"
    (folder / "parts").mkdir(parents=True)
    (folder / "a.json").write_text("{}")
    (folder / "parts" / "large").write_bytes(bytes(range(256)) * 20_000)
    os.utime(folder / "a.json", (0, 0))
    (folder / "link").symlink_to("/etc/passwd")
    pieces = list(zipped(folder))
    assert max(map(len, pieces)) < PIECE + 1000
    with ZipFile(io.BytesIO(b"".join(pieces))) as found:
        assert found.testzip() is None
        assert found.namelist() == ["submission/a.json", "submission/parts/large"]
        assert found.read("submission/parts/large") == (folder / "parts/large").read_bytes()
