"""What is written appears under its name complete and on the disk, or not at all.

Until then it lies beside its name, for the owner's eyes alone; and what is not meant to be
published stays so.
"""

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
"""What the system takes the user's umask from."""


def check_free(path: FilePath, *, overwrite: bool) -> None:
    """Raise unless something can be written under that name; asked before long work."""
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
        if target == source or target in source.parents:
            raise TableError(f"{path} is, or holds, the input {given}; choose another name")


def check_replaces(path: FilePath, marker: str) -> None:
    """Raise if a folder that is not of the kind that is written would be replaced."""
    target = Path(path)
    if os.path.lexists(target) and not (target / marker).is_file():
        raise TableError(f"{path} is not a folder with a {marker}, so it is not overwritten")


class Aside:
    """A place to write to, beside the name that it takes."""

    def __init__(self, target: Path, *, overwrite: bool, folder: bool, private: bool) -> None:
        self.target, self.overwrite = target, overwrite
        self.path = target.parent / f".{target.name}.{secrets.token_hex(4)}.partial"
        self.is_settled = False
        # While it is empty it has the mode that it will have in the end.
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
        """See all of it on the disk; nothing is written to it from here on."""
        with _writing(self.target):
            for place, _, names in os.walk(self.path, topdown=False):
                for name in names:
                    settle(Path(place) / name, self.mode & USUAL_FILE)
                settle(Path(place), self.mode)
            if not self.path.is_dir():
                settle(self.path, self.mode)
        self.is_settled = True

    def free_name(self) -> None:
        """Remove the file that is to be replaced, before others that belong to it are."""
        check_free(self.target, overwrite=self.overwrite)
        with _writing(self.target):
            self.target.unlink(missing_ok=True)
            sync_folder(self.target.parent)

    def take_name(self) -> None:
        """Be what the name names, in place of what was there."""
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
            # Whatever came between, an interruption too: one of the two has the name.
            if os.path.lexists(target):
                _remove(old)
            else:
                old.rename(target)


@contextmanager
def begun(path: FilePath, *, overwrite: bool, folder: bool, private: bool) -> Iterator[Aside]:
    """A place beside `path` that is gone when the block ends, unless it took the name."""
    check_free(path, overwrite=overwrite)
    with _writing(Path(path)):
        aside = Aside(Path(path), overwrite=overwrite, folder=folder, private=private)
        try:
            yield aside
        finally:
            if os.path.lexists(aside.path):
                _remove(aside.path)


def check_writable(path: FilePath, *, overwrite: bool) -> None:
    """Raise unless a file can be made beside that name, to take it later; it is tried."""
    check_free(path, overwrite=overwrite)
    # It has no name where the system knows such files, so that nothing of it can be left behind.
    with _writing(Path(path)), TemporaryFile(dir=Path(path).parent):
        pass


@contextmanager
def written_aside(
    path: FilePath, *, overwrite: bool, folder: bool, private: bool
) -> Iterator[Path]:
    """A place beside `path` to write to, which takes its name when all went well.

    An interrupted run leaves what was there before, and nothing half-written. What is private
    is for its owner alone; the rest is for whom the user's umask lets.
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
    """See the names in a folder on the disk; raises OSError."""
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
