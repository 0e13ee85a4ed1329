"""A folder as one file to hand over: a zip that is made while it is sent."""

from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

__all__ = ["zipped"]

PIECE = 1 << 20


class _Passed:
    """A file that holds what is written until it is taken."""

    def __init__(self) -> None:
        self.held = bytearray()

    def write(self, data: bytes, /) -> int:
        self.held += data
        return len(data)

    def flush(self) -> None:
        """There is nothing below."""

    def close(self) -> None:
        """What is left is still to be taken."""

    def taken(self) -> bytes:
        found = bytes(self.held)
        self.held.clear()
        return found


def zipped(folder: Path) -> Iterator[bytes]:
    """The files of a folder, not packed, for they are already; links are left out."""
    passed = _Passed()
    with ZipFile(passed, "w", ZIP_STORED) as out:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            inner = f"{folder.name}/{path.relative_to(folder).as_posix()}"
            # A zip file knows no time before 1980, which files have that were unpacked somewhere.
            name = ZipInfo.from_file(path, inner, strict_timestamps=False)
            with path.open("rb") as file, out.open(name, "w", force_zip64=True) as entry:
                while data := file.read(PIECE):
                    entry.write(data)
                    yield passed.taken()
    yield passed.taken()
