"""A delivery's files from a service: names and sizes that a delivery has, and no others.

Which files there are, how large each is and what it hashes to is the provider's word. It bounds
what is taken; the contract bounds the word.
"""

import hmac
import os
import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO
from urllib.parse import quote

from verix_anon.client.remote.answers import Delivered, one_line
from verix_anon.client.remote.connection import Connection, Lost
from verix_anon.client.remote.waiting import Waiting
from verix_anon.errors import ProviderError
from verix_anon.files.deliveries import RECEIPT_FILE, most_bytes
from verix_anon.files.hashed import RECORDS
from verix_anon.files.listing import Listed
from verix_anon.files.store import MAX_PARTS, PART

__all__ = ["check_announced", "download"]

MAX_RECEIPT_BYTES = 1 << 20
STEP_BYTES = 1 << 16
"""How much must come for patience to begin again."""
MOST_BEGINNINGS = 5
"""How often a file is fetched from its first byte."""


def check_announced(files: Sequence[Delivered], sent: Listed) -> None:
    """Raise ProviderError unless these can be the files of a delivery of what was sent."""
    names = [file.name for file in files]
    parts = [file for file in files if file.name.startswith(f"{RECORDS}/")]
    limits = most_bytes(sent.contract, n_rows=sent.n_rows, n_parts=len(parts))
    wanted = limits.keys() - ({RECORDS} if parts else set())
    single = set(names) - {part.name for part in parts}
    others = single - {RECEIPT_FILE}
    if others != wanted or len(set(names)) < len(names) or len(parts) > MAX_PARTS:
        raise ProviderError("the service announces other files than those of a delivery")
    for part in parts:
        _check_part(part.name.removeprefix(f"{RECORDS}/"))
    limits[RECEIPT_FILE] = MAX_RECEIPT_BYTES
    sizes = {file.name: file.size for file in files if file.name in single}
    if parts:
        sizes[RECORDS] = sum(part.size for part in parts)
    for name, size in sizes.items():
        if not 0 < size <= limits[name]:
            raise ProviderError(
                f"the service announces {size:,} bytes of {name}; a delivery of {sent.n_rows:,}"
                f" records has 1 to {limits[name]:,}"
            )


def _check_part(name: str) -> None:
    if not re.fullmatch(PART, name):
        raise ProviderError(f"the service announces a part named {one_line(name, 60)}")


def download(
    connection: Connection,
    path: str,
    file: Delivered,
    folder: Path,
    report: Callable[[int], None],
) -> None:
    """Fetch one file into a folder of ours; `report` is told how many bytes of it came."""
    target = folder / file.name
    target.parent.mkdir(mode=0o700, exist_ok=True)
    fetch = _Fetch(connection, f"{path}/delivery/{quote(file.name)}", file, report)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        fetch.begin(out)
        while fetch.received < file.size:
            fetch.go_on(out)
    if not hmac.compare_digest(fetch.digest.hexdigest(), file.sha256):
        raise ProviderError(f"{file.name} is not of the SHA-256 that the service announces for it")


class _Fetch:
    """One file on its way; a connection that breaks off is made again from where it was."""

    def __init__(
        self, connection: Connection, path: str, file: Delivered, report: Callable[[int], None]
    ) -> None:
        self.connection, self.path, self.file, self.report = connection, path, file, report
        self.waits: Waiting = connection.waiting()
        self.beginnings = 0

    def begin(self, out: IO[bytes]) -> None:
        """From the first byte, though not for ever."""
        self.beginnings += 1
        if self.beginnings > MOST_BEGINNINGS:
            raise ProviderError(f"the service begins {self.file.name} again and again")
        out.seek(0)
        out.truncate()
        self.digest, self.received, self.advanced = sha256(), 0, 0

    def go_on(self, out: IO[bytes]) -> None:
        """Take what one answer gives."""
        headers = {}
        if self.received:
            headers = {"Range": f"bytes={self.received}-", "If-Range": f'"{self.file.sha256}"'}
        try:
            with self.connection.stream("GET", self.path, headers=headers) as answer:
                status, found, pieces = answer
                self._place(status, found.get("Content-Range", ""), out)
                for piece in pieces:
                    self._take(piece, out)
            if self.received < self.file.size:
                raise Lost("its answer broke off")
        except Lost as lost:
            self.connection.pause(lost, self.waits)

    def _place(self, status: int, given: str, out: IO[bytes]) -> None:
        """Where the answer begins: where we are, or at the first byte again."""
        if status == 200:
            if self.received:
                self.begin(out)
        elif status != 206 or not given.startswith(f"bytes {self.received}-"):
            raise ProviderError(f"the service sends another part of {self.file.name}")

    def _take(self, piece: bytes, out: IO[bytes]) -> None:
        self.received += len(piece)
        if self.received > self.file.size:
            raise ProviderError(
                f"the service sends more than the {self.file.size:,} bytes of {self.file.name}"
                " that it announces"
            )
        out.write(piece)
        self.digest.update(piece)
        self.report(self.received)
        if self.received - self.advanced >= STEP_BYTES:
            self.advanced = self.received
            self.waits.advanced()
