"""Folders and files, here or behind an fsspec URL: read within limits, written aside.

A folder that somebody else filled is read file by file, by name, never through a link and
never past a limit; what is written appears under its name only when it is complete.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from verix_anon.errors import Error, TableError
from verix_anon.fields import shown

MAX_PARTS = 10_000
# Some engines write a checksum beside each part.
MAX_ENTRIES = 3 * MAX_PARTS

__all__ = [
    "Entry",
    "Folder",
    "check_apart",
    "check_free",
    "check_replaces",
    "filesystem",
    "is_url",
    "open_folder",
    "path_text",
    "written_aside",
]


def path_text(path: object) -> str:
    """A path as text; what cannot name a file is the caller's mistake."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise TableError(f"a path is text or a Path, not {shown(path)}")
    return text


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a path is an fsspec URL such as s3://bucket/folder."""
    return "://" in path_text(path)


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder."""

    name: str
    is_folder: bool


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder to read from; `fail` is the error that its content raises."""

    path: str
    fail: type[Error]

    def entries(self, *, most: int) -> list[Entry]:
        """The names in the folder, sorted; more than `most` are refused."""
        found: list[Entry] = []
        try:
            for entry in self._scan():
                if len(found) == most:
                    raise self.fail(f"{self.path} holds more than {most} files, which is the limit")
                found.append(entry)
        except OSError as error:
            raise self.fail(f"{self.path} cannot be listed ({_reason(error)})") from None
        return sorted(found, key=lambda entry: entry.name)

    def folder(self, name: str) -> "Folder":
        """A folder in this one."""
        return Folder(f"{self.path.rstrip('/')}/{name}", self.fail)

    def read(self, name: str, *, limit: int) -> bytes:
        """The whole of a regular file of at most `limit` bytes."""
        with self.open(name) as file:
            try:
                size = file.seek(0, os.SEEK_END)
                file.seek(0)
                # No more room is made than there are bytes, whatever the limit.
                data = file.read(min(limit, size) + 1)
            except OSError as error:
                raise self.fail(f"{name} cannot be read ({_reason(error)})") from None
            except MemoryError:
                raise self.fail(f"{name} has {size} bytes, more than memory holds") from None
        if len(data) > limit:
            raise self.fail(f"{name} is larger than the {limit} bytes it may have")
        return data

    def open(self, name: str) -> IO[bytes]:
        """A regular file, opened without following a link."""
        path = f"{self.path.rstrip('/')}/{name}"
        try:
            if is_url(path):
                fs, inner = filesystem(path)
                return fs.open(inner, "rb")  # type: ignore[no-any-return]
            return _open_regular(path)
        except FileNotFoundError:
            raise self.fail(f"{name} is missing in {self.path}") from None
        except OSError as error:
            raise self.fail(f"{name} cannot be read ({_reason(error)})") from None

    def size(self, name: str) -> int:
        """How many bytes a regular file has."""
        with self.open(name) as file:
            return file.seek(0, os.SEEK_END)

    def has(self, name: str) -> bool:
        """Whether something of that name is there."""
        path = f"{self.path.rstrip('/')}/{name}"
        if is_url(path):
            fs, inner = filesystem(path)
            return bool(fs.exists(inner))
        return os.path.lexists(path)

    def is_folder(self, name: str) -> bool:
        """Whether that name is a folder, and not a link to one."""
        path = f"{self.path.rstrip('/')}/{name}"
        if is_url(path):
            fs, inner = filesystem(path)
            return bool(fs.isdir(inner))
        try:
            return stat.S_ISDIR(os.lstat(path).st_mode)
        except OSError:
            return False

    def parts(self, name: str) -> list[str]:
        """The files of a data set that is one file or a folder of files (spec §8).

        Only what stands in the folder itself, ending in .parquet; names that start with a
        dot or an underscore are how engines mark their own bookkeeping, and are passed over.
        """
        if not self.is_folder(name):
            return [name]
        parts = []
        for entry in self.folder(name).entries(most=MAX_ENTRIES):
            if entry.name.startswith((".", "_")):
                continue
            # A name that is not text, such as bytes of another encoding, has no place in a verdict.
            is_clean = entry.name.isprintable()
            if entry.is_folder or not is_clean or not entry.name.endswith(".parquet"):
                raise self.fail(f"{name} holds {entry.name!r}, which is not a Parquet file")
            parts.append(f"{name}/{entry.name}")
        if not parts:
            raise self.fail(f"{name} is a folder without a Parquet file")
        if len(parts) > MAX_PARTS:
            raise self.fail(
                f"{name} has {len(parts)} parts; the limit is {MAX_PARTS}: write fewer, larger ones"
            )
        return parts

    def _scan(self) -> Iterator[Entry]:
        if not is_url(self.path):
            with os.scandir(self.path) as entries:
                for entry in entries:
                    yield Entry(entry.name, entry.is_dir(follow_symlinks=False))
            return
        fs, inner = filesystem(self.path)
        for info in fs.ls(inner, detail=True):
            yield Entry(str(info["name"]).rsplit("/", 1)[-1], info["type"] == "directory")


def open_folder(path: str | os.PathLike[str], fail: type[Error]) -> Folder:
    """The folder at a path or URL; that there is none is the caller's mistake."""
    text = path_text(path)
    if is_url(text):
        fs, inner = filesystem(text)
        found = fs.isdir(inner)
    else:
        found = os.path.isdir(text)  # noqa: PTH112, because Path.is_dir raises on some names
    if not found:
        raise TableError(f"there is no folder {text}")
    return Folder(text, fail)


def filesystem(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path in it."""
    import fsspec

    try:
        fs, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise TableError(f"{url} cannot be opened ({error})") from None
    return fs, path


def check_free(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise unless something can be written under that name; asked before long work."""
    if is_url(path):
        raise TableError(f"{path} is a URL; results are written to local folders")
    target = Path(path)
    if os.path.lexists(target) and not overwrite:
        raise TableError(
            f"{target} exists already; choose another name, or overwrite it (--overwrite)"
        )
    if not os.path.isdir(target.parent):  # noqa: PTH112, as above
        raise TableError(f"there is no folder {target.parent} to write to")


def check_apart(path: str | os.PathLike[str], inputs: Iterable[object]) -> None:
    """Raise if writing there would replace one of the inputs, or a folder that holds one."""
    target = Path(path).resolve()
    for given in inputs:
        if given is None or is_url(str(given)):
            continue
        source = Path(str(given)).resolve()
        if target == source or target in source.parents:
            raise TableError(f"{path} is, or holds, the input {given}; choose another name")


def check_replaces(path: str | os.PathLike[str], marker: str) -> None:
    """Raise if a folder that is not of the kind that is written would be replaced."""
    target = Path(path)
    if os.path.lexists(target) and not (target / marker).is_file():
        raise TableError(f"{path} is not a folder with a {marker}, so it is not overwritten")


@contextmanager
def written_aside(path: str | os.PathLike[str], *, overwrite: bool, folder: bool) -> Iterator[Path]:
    """A place beside `path` to write to, which takes its name when all went well.

    An interrupted run leaves what was there before, and nothing half-written.
    """
    check_free(path, overwrite=overwrite)
    target = Path(path)
    aside = target.parent / f".{target.name}.{secrets.token_hex(4)}.partial"
    try:
        if folder:
            aside.mkdir()
        yield aside
        check_free(path, overwrite=overwrite)  # Somebody else may have been faster.
        _take_name(aside, target)
    except OSError as error:
        raise TableError(f"{target} cannot be written ({_reason(error)})") from None
    finally:
        if os.path.lexists(aside):
            _remove(aside)


def _take_name(aside: Path, target: Path) -> None:
    if aside.is_file() or not os.path.lexists(target):
        aside.replace(target)
        return
    # A folder cannot replace one that is not empty: move the old one out of the way first.
    old = target.parent / f".{target.name}.{secrets.token_hex(4)}.old"
    target.rename(old)
    try:
        aside.rename(target)
    finally:
        # Whatever came between, an interruption too: one of the two has the name.
        if os.path.lexists(target):
            _remove(old)
        else:
            old.rename(target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _open_regular(path: str) -> IO[bytes]:
    # O_NONBLOCK: opening a named pipe must not wait for somebody to write to it.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is not a regular file")
    return os.fdopen(descriptor, "rb")


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it is a link"
    return error.strerror or str(error)
