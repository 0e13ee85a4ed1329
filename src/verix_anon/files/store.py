"""Reads folders and files that a stranger filled, on disk or behind an fsspec URL, within limits.

A folder is kept open, and its files are opened relative to it. So no one can swap the folder in
between. No link is followed, because it could lead to the owner's own files. Bad content is the
error of the party that filled the folder; a lack of rights or memory is not.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from verix_anon.errors import Error, TableError
from verix_anon.fields import shown
from verix_anon.machine import lacking

MAX_PARTS = 10_000
# Some engines write a checksum beside each part.
MAX_ENTRIES = 3 * MAX_PARTS
PART = r"[A-Za-z0-9][A-Za-z0-9._=-]{0,180}\.parquet"
"""The name of a part: the same in every order, URL, terminal and file system (spec §8.3)"""
BLOCK_BYTES = 1 << 20
# The folder's content explains only these failures: something is missing, or is not a file.
OF_CONTENT = frozenset({errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO})
FilePath = str | os.PathLike[str]
# Windows has none of these but the first, and changes line ends in files opened without it.
BINARY: int = getattr(os, "O_BINARY", 0)
NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
FOLDER: int = getattr(os, "O_DIRECTORY", 0)
# Opening a named pipe must not wait for somebody to write to it.
NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)
_REPARSE: int = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0x400)


def path_text(path: object) -> str:
    """Return a path as text. A value that cannot name a file is the caller's mistake."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise TableError(f"a path is text or a Path, not {shown(path)}")
    return text


def is_url(path: FilePath) -> bool:
    """Whether a path is an fsspec URL such as s3://bucket/folder."""
    return "://" in path_text(path)


class FolderEntry(NamedTuple):
    """One name in a folder."""

    name: str
    is_folder: bool


class Folder:
    """A folder to read from. Bad content raises `fail`."""

    def __init__(self, path: str, fail: type[Error], descriptor: int | None = None) -> None:
        self.path, self.fail = path, fail
        self.descriptor = descriptor
        """The open folder, or None behind a URL and where the system opens no folders."""
        self.is_remote = is_url(path)

    def __del__(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)

    def entries(self, *, most: int) -> list[FolderEntry]:
        """Return the sorted names in the folder, or raise if there are more than `most`."""
        try:
            found = sorted(islice(self._scan(), most + 1))
        except OSError as error:
            raise self._unreadable(self.path, "listed", error) from None
        if len(found) > most:
            raise self.fail(f"{self.path} holds more than {most} files, which is the limit")
        return found

    def failing(self, fail: type[Error]) -> "Folder":
        """Return the same folder, with another error for bad content."""
        held = None if self.descriptor is None else os.dup(self.descriptor)
        return Folder(self.path, fail, held)

    def folder(self, name: str) -> "Folder":
        """Open a folder in this one."""
        try:
            held = self.descriptor
            if held is None and not self.is_remote and not self.is_folder(name):
                raise OSError(errno.ENOTDIR, "it is not a folder")
            inner = None if held is None else _open_within(held, name, FOLDER)
            return Folder(self._within(name), self.fail, inner)
        except OSError as error:
            raise self._unreadable(name, "listed", error) from None

    def _within(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}"

    def read(self, name: str, *, limit: int) -> bytes:
        """Read a whole regular file of at most `limit` bytes."""
        with self._reading(name) as (file, size):
            return self._whole(file, name, size, limit)

    def read_or_hand(
        self, name: str, *, limit: int, room: int, hand: Callable[[bytes], object]
    ) -> bytes | None:
        """Do the same, but pass a file of more than `room` bytes to `hand` and return None."""
        with self._reading(name) as (file, size):
            if size <= room:
                return self._whole(file, name, size, limit)
            left = limit
            while block := file.read(min(BLOCK_BYTES, left + 1)):
                left -= len(block)
                if left < 0:
                    raise self._too_large(name, limit)
                hand(block)
            return None

    @contextmanager
    def _reading(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        """Yield a regular file and its size."""
        with self.open(name) as file:
            try:
                size = file.seek(0, os.SEEK_END)
                file.seek(0)
                yield file, size
            except OSError as error:
                raise self._unreadable(name, "read", error) from None

    def _whole(self, file: IO[bytes], name: str, size: int, limit: int) -> bytes:
        try:
            # Allocate no more than the file's size, whatever the limit is.
            data = file.read(min(limit, size) + 1)
        except MemoryError:
            raise TableError(lacking(f"reading the {size:,} bytes of {name}")) from None
        if len(data) > limit:
            raise self._too_large(name, limit)
        return data

    def open(self, name: str) -> IO[bytes]:
        """Open a regular file without following a link."""
        try:
            if self.is_remote:
                fs, inner = filesystem(self._within(name))
                return fs.open(inner, "rb")  # type: ignore[no-any-return]
            if self.descriptor is None:
                return os.fdopen(_open_unlinked(self.path, name), "rb")
            return _open_regular(self.descriptor, name)
        except FileNotFoundError:
            # The caller may have given the job's folder, which holds this one.
            within = Path(self.path) / Path(name).stem
            hint = f"; did you mean {within}?" if (within / name).is_file() else ""
            raise self.fail(f"{name} is missing in {self.path}{hint}") from None
        except OSError as error:
            raise self._unreadable(name, "read", error) from None

    def size(self, name: str) -> int:
        """How many bytes a regular file has."""
        with self.open(name) as file:
            return file.seek(0, os.SEEK_END)

    def has(self, name: str) -> bool:
        """Whether the folder has an entry of that name."""
        if self.is_remote:
            fs, inner = filesystem(self._within(name))
            return bool(fs.exists(inner))
        return self._mode(name) != 0

    def is_folder(self, name: str) -> bool:
        """Whether that name is a folder, and not a link to a folder."""
        if self.is_remote:
            fs, inner = filesystem(self._within(name))
            return bool(fs.isdir(inner))
        return stat.S_ISDIR(self._mode(name))

    def _mode(self, name: str) -> int:
        """Return the mode of an entry, or 0 if there is none."""
        try:
            if self.descriptor is None:
                return _mode_of(self._within(name))
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False).st_mode
        except OSError:
            return 0

    def _too_large(self, name: str, limit: int) -> Error:
        return self.fail(f"{name} is larger than {limit} bytes, the limit for what it holds")

    def _unreadable(self, name: str, done: str, error: OSError) -> Error:
        # An error without a number was raised in this module.
        is_content = error.errno is None or error.errno in OF_CONTENT
        fail = self.fail if is_content and not self.is_remote else TableError
        return fail(f"{name} cannot be {done} ({reason(error)})")

    def parts(self, name: str) -> list[str]:
        """Return the files of a data set that is one file or a folder of files (spec §8).

        Only files in the folder itself that end in .parquet count. Names that start with a dot or
        an underscore are skipped, because engines use them for their bookkeeping.
        """
        if not self.is_folder(name):
            return [name]
        parts = []
        for entry in self.folder(name).entries(most=MAX_ENTRIES):
            if entry.name.startswith((".", "_")):
                continue
            if entry.is_folder or not entry.name.endswith(".parquet"):
                raise self.fail(f"{name} holds {entry.name!r}, which is not a Parquet file")
            if not re.fullmatch(PART, entry.name):
                raise self.fail(
                    f"{name} holds {entry.name!r}: a part's name has ASCII letters, digits and"
                    " . _ = - alone, at most 189, and begins with a letter or digit"
                )
            parts.append(f"{name}/{entry.name}")
        if not parts:
            raise self.fail(f"{name} is a folder without a Parquet file")
        if len(parts) > MAX_PARTS:
            raise self.fail(
                f"{name} has {len(parts)} parts; the limit is {MAX_PARTS}: write fewer, larger ones"
            )
        return parts

    def _scan(self) -> Iterator[FolderEntry]:
        if not self.is_remote:
            with os.scandir(self.path if self.descriptor is None else self.descriptor) as entries:
                for entry in entries:
                    yield FolderEntry(entry.name, entry.is_dir(follow_symlinks=False))
            return
        fs, inner = filesystem(self.path)
        for info in fs.ls(inner, detail=True):
            yield FolderEntry(str(info["name"]).rsplit("/", 1)[-1], info["type"] == "directory")


def open_folder(path: FilePath, fail: type[Error]) -> Folder:
    """Open the folder at a path or URL. If it is missing, that is the caller's mistake."""
    text = path_text(path)
    if is_url(text):
        fs, inner = filesystem(text)
        if "file" not in (fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,)):
            if not fs.isdir(inner):
                raise TableError(f"there is no folder {text}")
            return Folder(text, fail)
        text = inner
    try:
        # This is the caller's own path, so links in it are allowed.
        if not FOLDER:
            os.scandir(text).close()
            return Folder(text, fail)
        return Folder(text, fail, os.open(text, os.O_RDONLY | FOLDER))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise TableError(f"there is no folder {text}") from None
        raise TableError(f"{text} cannot be opened ({reason(error)})") from None


def small_file(path: FilePath, most: int, what: str) -> bytes:
    """Read a whole small file; raises TableError."""
    data = beginning(path, most + 1, what)
    if len(data) > most:
        raise TableError(f"{path} is larger than {most} bytes, so it is no {what}")
    return data


def beginning(path: FilePath, most: int, what: str) -> bytes:
    """Read up to `most` bytes of a file, or all if that is -1; raises TableError."""
    try:
        with Path(path_text(path)).open("rb") as file:
            return file.read(most)
    except FileNotFoundError:
        raise TableError(f"there is no {what} {path}") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read ({reason(error)})") from None


def filesystem(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and the path in it."""
    import fsspec

    try:
        fs, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise TableError(f"{url} cannot be opened ({error})") from None
    return fs, path


def _open_within(folder: int, name: str, flags: int) -> int:
    """Open a name in an open folder. No part of the name may be a link."""
    *places, last = name.split("/")
    held = os.dup(folder)
    try:
        for place, kind in [*((place, FOLDER) for place in places), (last, flags)]:
            inner = os.open(place, os.O_RDONLY | NO_LINK | NO_WAIT | kind, dir_fd=held)
            os.close(held)
            held = inner
    except BaseException:
        os.close(held)
        raise
    return held


def _open_regular(folder: int, name: str) -> IO[bytes]:
    descriptor = _open_within(folder, name, 0)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is not a regular file")
    return os.fdopen(descriptor, "rb")


def _mode_of(path: str) -> int:
    """Return the mode of what has this name, with every kind of link shown as a link.

    Windows has junctions beside links; they lead elsewhere just the same.

    Raises:
        OSError: There is nothing of this name.
    """
    found = os.lstat(path)
    is_link = getattr(found, "st_file_attributes", 0) & _REPARSE
    return stat.S_IFLNK if is_link else found.st_mode


def _open_unlinked(folder: str, name: str) -> int:
    """Open a file by its name below a folder, for systems that cannot open relative to a folder.

    Every part of the name is looked at first, and a link is refused. Somebody who puts a link in
    place right after that look, and takes it away again, is not noticed.

    Raises:
        OSError: It cannot be opened, or a part of its name is a link.
    """
    places = [os.path.join(folder, *name.split("/")[: n + 1]) for n in range(name.count("/") + 1)]  # noqa: PTH118, because a Path drops what it holds to be superfluous
    for _ in range(2):
        if any(stat.S_ISLNK(_mode_of(place)) for place in places):
            raise OSError(errno.ELOOP, "it is a link")
        if not stat.S_ISREG(_mode_of(places[-1])):
            raise OSError("it is not a regular file")
        descriptor = os.open(places[-1], os.O_RDONLY | BINARY)
        if os.path.samestat(os.fstat(descriptor), os.lstat(places[-1])):
            return descriptor
        os.close(descriptor)
    raise OSError("it changed while it was opened")


def reason(error: OSError) -> str:
    """Return in words why something failed."""
    if error.errno == errno.ELOOP:
        return "it is a link"
    return error.strerror or str(error)
