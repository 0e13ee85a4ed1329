"""Files to a service by tus 1.0: it says how much it has, and gets what is missing."""

from collections.abc import Callable
from urllib.parse import quote

from verix_anon.client.remote.connection import Answer, Connection, Lost, RefusedError
from verix_anon.client.remote.waiting import Waiting
from verix_anon.errors import ProviderError, TableError
from verix_anon.files.listing import Sent
from verix_anon.files.store import Folder, reason

__all__ = ["CHUNK_BYTES", "upload"]

CHUNK_BYTES = 8 << 20
TUS = {"Tus-Resumable": "1.0.0"}
STALE = frozenset({"offset-mismatch", "upload-taken-over"})
"""Codes that mean: ask anew how much is there."""
MOST_LOSSES = 3
"""How often a service may lose what it said to have, or find another digest."""


def upload(
    connection: Connection,
    path: str,
    folder: Folder,
    file: Sent,
    report: Callable[[int], None],
    chunk_bytes: int = CHUNK_BYTES,
) -> None:
    """Send what is missing of one file; `report` is told how many bytes are there."""
    _Upload(connection, f"{path}/files/{quote(file.name)}", folder, file).run(report, chunk_bytes)


class _Upload:
    def __init__(self, connection: Connection, path: str, folder: Folder, file: Sent) -> None:
        self.connection, self.path, self.folder, self.file = connection, path, folder, file
        self.waits: Waiting = connection.waiting()
        self.had = 0
        self.losses = 0

    def run(self, report: Callable[[int], None], chunk_bytes: int) -> None:
        offset = self.offset()
        report(offset)
        while offset < self.file.size:
            try:
                offset = self._append(offset, self._read(offset, chunk_bytes))
                self._had(offset)
            except Lost as lost:
                self.connection.pause(lost, self.waits)
                offset = self.offset()
            report(offset)

    def offset(self) -> int:
        """How much the service has; it may not take back again and again what it had."""
        answer = self.connection.insist(
            lambda: self.connection.ask("HEAD", self.path, headers=TUS), self.waits
        )
        length, offset = _count(answer, "Upload-Length"), _count(answer, "Upload-Offset")
        if length != self.file.size or offset > length:
            raise ProviderError(
                f"the service counts wrongly: {offset:,} of {length:,} bytes of"
                f" {self.file.name}, which has {self.file.size:,}"
            )
        if offset < self.had:
            self._lose("the service has lost again and again what it was sent")
        self._had(offset)
        return offset

    def _had(self, offset: int) -> None:
        if offset > self.had:
            self.waits.advanced()
        self.had = offset

    def _append(self, offset: int, data: bytes) -> int:
        headers = {
            **TUS,
            "Upload-Offset": str(offset),
            "Content-Type": "application/offset+octet-stream",
        }
        try:
            answer = self.connection.ask("PATCH", self.path, headers=headers, content=data)
        except RefusedError as refused:
            if refused.problem.code == "digest-mismatch":
                self.had = 0
                self._lose(f"{self.file.name} changed while it was sent, or on the way")
                raise Lost(str(refused.problem)) from None
            if refused.problem.code in STALE:
                raise Lost(str(refused.problem)) from None
            raise
        found = _count(answer, "Upload-Offset")
        if not offset < found <= offset + len(data):
            raise ProviderError(
                f"the service counts wrongly: {found:,} bytes of {self.file.name} after"
                f" {offset + len(data):,} were sent"
            )
        return found

    def _read(self, offset: int, chunk_bytes: int) -> bytes:
        with self.folder.open(self.file.name) as source:
            try:
                source.seek(offset)
                data = source.read(min(chunk_bytes, self.file.size - offset))
            except OSError as error:
                raise TableError(f"{self.file.name} cannot be read ({reason(error)})") from None
        if not data:
            raise TableError(f"{self.file.name} became shorter while it was sent")
        return data

    def _lose(self, why: str) -> None:
        self.losses += 1
        if self.losses > MOST_LOSSES:
            raise ProviderError(why)


def _count(answer: Answer, name: str) -> int:
    text = answer.headers.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise ProviderError(f"the service's answer has no {name}")
    return int(text)
