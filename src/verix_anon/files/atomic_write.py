"""Writes files and folders so that they appear complete and on the disk, or not at all.

Until then they lie under another name, where only their owner can read them.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from verix_anon.errors import TableError
from verix_anon.files.store import BINARY, FOLDER, FilePath, is_url, reason
from verix_anon.platform import IS_POSIX, make_private, settle

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
USUAL_FILE, USUAL_FOLDER = 0o666, 0o777
"""The modes from which the system subtracts the user's umask."""
TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST})
"""What renaming a folder fails with if another one has the name."""


def check_free(path: FilePath, *, overwrite: bool) -> None:
    """Raise unless something can be written under that name. Call it before long work."""
    if is_url(path):
        raise TableError(f"{path} is a URL; results are written to local folders")
    target = Path(path)
    if os.path.lexists(target) and not overwrite:
        raise TableError(
            f"{target} exists already; choose another name, or overwrite it (--overwrite)"
        )
    if not os.path.isdir(target.parent):  # noqa: PTH112, because Path.is_dir raises on some names
        raise TableError(f"there is no folder {target.parent} to write to")


def check_apart(path: FilePath, inputs: Iterable[object]) -> None:
    """Raise if writing there would replace one of the inputs, or a folder that holds one."""
    target = Path(path).resolve()
    for given in inputs:
        if given is None or is_url(str(given)):
            continue
        source = Path(str(given)).resolve()
        if any(_is_same(target, each) for each in (source, *source.parents)):
            raise TableError(f"{path} is, or holds, the input {given}; choose another name")


def _is_same(a: Path, b: Path) -> bool:
    """Whether two names lead to one file. On Windows and macOS they may differ in case."""
    return a == b or (os.path.exists(a) and os.path.exists(b) and a.samefile(b))  # noqa: PTH110, because Path.exists raises on some names


def check_replaces(path: FilePath, marker: str) -> None:
    """Raise if this would replace a folder of another kind: one without the marker."""
    target = Path(path)
    if os.path.lexists(target) and not (target / marker).is_file():
        raise TableError(f"{path} is not a folder with a {marker}, so it is not overwritten")


class Aside:
    """A temporary place beside the name that it takes later."""

    def __init__(self, target: Path, *, overwrite: bool, folder: bool, private: bool) -> None:
        self.target, self.overwrite = target, overwrite
        self.path = target.parent / f".{target.name}.{secrets.token_hex(4)}.partial"
        self.is_settled = False
        # The empty file gets its final mode for a moment, so that the umask can be read off.
        if folder:
            self.path.mkdir(PRIVATE_FOLDER if private else USUAL_FOLDER)
        else:
            mode = PRIVATE_FILE if private else USUAL_FILE
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        self.mode = stat.S_IMODE(self.path.stat().st_mode)
        # Windows keeps what is set here; elsewhere `settle` gives the mode that it will have.
        if private or IS_POSIX:
            make_private(self.path)

    def settle(self) -> None:
        """Flush all of it to the disk; nothing may be written to it afterwards."""
        with _writing(self.target):
            for place, _, names in os.walk(self.path, topdown=False):
                for name in names:
                    settle(Path(place) / name, self.mode & USUAL_FILE)
                settle(Path(place), self.mode)
            if not self.path.is_dir():
                settle(self.path, self.mode)
        self.is_settled = True

    def free_name(self) -> None:
        """Remove the file that will be replaced, before the files that belong to it."""
        check_free(self.target, overwrite=self.overwrite)
        with _writing(self.target):
            self.target.unlink(missing_ok=True)
            sync_folder(self.target.parent)

    def take_name(self) -> None:
        """Take the name, and replace what was there."""
        if not self.is_settled:
            self.settle()
        check_free(self.target, overwrite=self.overwrite)  # Somebody else may have been faster.
        with _writing(self.target):
            self._rename()
            sync_folder(self.target.parent)

    def _rename(self) -> None:
        target = self.target
        if self.path.is_file() or not os.path.lexists(target):
            self.path.replace(target)
            return
        # A folder cannot replace one that is not empty: move the old one out of the way first.
        old = target.parent / f".{target.name}.{secrets.token_hex(4)}.old"
        target.rename(old)
        try:
            self.path.rename(target)
        finally:
            # Even after an interruption, one of the two has the name. Other writers may take it or
            # move it away at any moment, so only one that is there may replace the old one.
            while os.path.lexists(old):
                if os.path.lexists(target):
                    _remove(old)
                else:
                    try:
                        old.rename(target)
                    except OSError as error:
                        if error.errno not in TAKEN:
                            raise


@contextmanager
def begun(path: FilePath, *, overwrite: bool, folder: bool, private: bool) -> Iterator[Aside]:
    """Yield a place beside `path`. It is removed at the end, unless it took the name."""
    check_free(path, overwrite=overwrite)
    with _writing(Path(path)):
        aside = Aside(Path(path), overwrite=overwrite, folder=folder, private=private)
        try:
            yield aside
        finally:
            if os.path.lexists(aside.path):
                _remove(aside.path)


def check_writable(path: FilePath, *, overwrite: bool) -> None:
    """Raise unless a file can be made beside that name; it makes one to find out."""
    check_free(path, overwrite=overwrite)
    # Where the system allows, this file has no name, so it cannot be left behind.
    with _writing(Path(path)), TemporaryFile(dir=Path(path).parent):
        pass


@contextmanager
def written_aside(
    path: FilePath, *, overwrite: bool, folder: bool, private: bool
) -> Iterator[Path]:
    """Yield a place beside `path` to write to, which takes the name if all went well.

    An interrupted run leaves what was there before, and nothing half-written. Only the owner can
    read a private file. The user's umask decides who can read the others.
    """
    with begun(path, overwrite=overwrite, folder=folder, private=private) as aside:
        yield aside.path
        aside.take_name()


def write_bytes(path: FilePath, data: bytes) -> None:
    """Write a file of a place aside; raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | BINARY, PRIVATE_FILE)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)


def sync_folder(path: FilePath) -> None:
    """Flush the names in a folder to the disk; raises OSError."""
    if not FOLDER:
        return  # Windows does so by itself.
    descriptor = os.open(path, os.O_RDONLY | FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TableError(f"{target} cannot be written ({reason(error)})") from None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
