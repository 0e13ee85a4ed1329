"""Upload and download files, and continue each one where it was interrupted.

The provider says which files a delivery has, how large each is, and its digest. No more than that
is downloaded. The contract limits what the provider may say: only names and sizes that a delivery
can have.
"""

import hmac
import os
import re
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO
from urllib.parse import quote

from verix_anon.client.remote.connection import Connection, Lost, RefusedError, Response, Waiting
from verix_anon.errors import ProviderError, ReceiptError, TableError
from verix_anon.fields import printable
from verix_anon.files.folder_facts import most_bytes
from verix_anon.files.folder_writer import digests_of_folder
from verix_anon.files.job_folder import RECEIPT_FILE, RECORDS
from verix_anon.files.store import BINARY, MAX_PARTS, PART, Folder, reason
from verix_anon.files.submission_listing import Listed
from verix_anon.protocol.envelopes import PublicKey, open_envelope
from verix_anon.protocol.providers import File
from verix_anon.protocol.statements import DELIVERED, Receipt

MAX_RECEIPT_BYTES = 1 << 20
STEP_BYTES = 1 << 16
"""How many bytes must come before the waiting times start over."""
MOST_BEGINNINGS = 5
"""How often a download may start at the first byte."""
CHUNK_BYTES = 8 << 20
TUS, PIECE_TYPE = {"Tus-Resumable": "1.0.0"}, "application/offset+octet-stream"
STALE = frozenset({"offset-mismatch", "upload-taken-over"})
"""Codes that mean: ask again how much is there."""
MOST_SHORTS = 8
"""How often a service may say that it took less of a file than it was sent."""
MOST_LOSSES = 3
"""How often a service may lose bytes that it had, or find another digest."""


def check_announced(files: Sequence[File], sent: Listed) -> None:
    """Raise ProviderError unless these can be the files of a delivery of what was sent."""
    names = [file.name for file in files]
    parts = [file for file in files if file.name.startswith(f"{RECORDS}/")]
    limits = most_bytes(sent.contract, n_rows=sent.n_rows, n_parts=len(parts))
    wanted = limits.keys() - ({RECORDS} if parts else set())
    single = set(names) - {part.name for part in parts}
    others = single - {RECEIPT_FILE}
    if others != wanted or len(set(names)) < len(names) or len(parts) > MAX_PARTS:
        raise ProviderError("the service announces other files than those of a delivery")
    for name in (part.name.removeprefix(f"{RECORDS}/") for part in parts):
        if not re.fullmatch(PART, name):
            raise ProviderError(f"the service announces a part named {printable(name, 60)}")
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


def download(
    connection: Connection, path: str, file: File, folder: Path, report: Callable[[int], None]
) -> None:
    """Fetch one file into a folder of ours; `report` is told how many bytes of it came."""
    target = folder / file.name
    target.parent.mkdir(mode=0o700, exist_ok=True)
    fetch = _Fetch(connection, f"{path}/delivery/{quote(file.name)}", file, report)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        fetch.begin(out)
        while fetch.received < file.size:
            fetch.go_on(out)
    if not hmac.compare_digest(fetch.digest.hexdigest(), file.sha256):
        raise ProviderError(f"{file.name} is not of the SHA-256 that the service announces for it")


def check_receipt(folder: Path, sent: Listed, keys: Collection[PublicKey]) -> None:
    """Raise ProviderError unless one of the keys signed these files for what was sent."""
    try:
        data = (folder / RECEIPT_FILE).read_bytes()
        said = Receipt.from_bytes(open_envelope(data, keys, RECEIPT_FILE).payload, RECEIPT_FILE)
    except (OSError, ReceiptError) as error:
        why = "there is no receipt" if isinstance(error, FileNotFoundError) else str(error)
    else:
        about = (said.contract.hex(), said.submission.hex(), dict(said.files))
        files = digests_of_folder(folder, DELIVERED)
        if about == (sent.contract.digest.hex(), sent.digest, files):
            return
        why = "the receipt is for other files, another contract or another submission"
    raise ProviderError(
        f"no key that is pinned as the provider's signed this delivery ({why}); nothing was"
        " written, and the job stays at the service"
    )


class _Fetch:
    """One download; after a lost connection it continues where it was."""

    def __init__(
        self, connection: Connection, path: str, file: File, report: Callable[[int], None]
    ) -> None:
        self.connection, self.path, self.file, self.report = connection, path, file, report
        self.waits: Waiting = connection.waiting()
        self.beginnings = 0

    def begin(self, out: IO[bytes]) -> None:
        """Start at the first byte, at most MOST_BEGINNINGS times."""
        self.beginnings += 1
        if self.beginnings > MOST_BEGINNINGS:
            raise ProviderError(f"the service begins {self.file.name} again and again")
        out.seek(0)
        out.truncate()
        self.digest, self.received, self.advanced = sha256(), 0, 0

    def go_on(self, out: IO[bytes]) -> None:
        """Make one request, and take what its answer gives."""
        headers = {}
        if self.received:
            headers = {"Range": f"bytes={self.received}-", "If-Range": f'"{self.file.sha256}"'}
        try:
            with self.connection.stream("GET", self.path, headers=headers) as answer:
                status, found, pieces = answer
                # The answer continues where we are, or starts at the first byte again.
                given = found.get("Content-Range", "") if status == 206 else ""
                if status == 200 and self.received:
                    self.begin(out)
                elif status != 200 and not given.startswith(f"bytes {self.received}-"):
                    raise ProviderError(f"the service sends another part of {self.file.name}")
                for piece in pieces:
                    self._take(piece, out)
            if self.received < self.file.size:
                raise Lost("its answer broke off")
        except Lost as lost:
            self.connection.pause(lost, self.waits)

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


def upload(
    connection: Connection,
    path: str,
    folder: Folder,
    file: File,
    report: Callable[[int], None],
    chunk_bytes: int = CHUNK_BYTES,
) -> None:
    """Send the rest of one file; `report` is told how many bytes the service has."""
    sending = _Upload(connection, f"{path}/files/{quote(file.name)}", folder, file)
    offset = sending.offset()
    report(offset)
    while offset < file.size:
        try:
            offset = sending.append(offset, chunk_bytes)
        except Lost as lost:
            connection.pause(lost, sending.waits)
            offset = sending.offset()
        report(offset)


class _Upload:
    def __init__(self, connection: Connection, path: str, folder: Folder, file: File) -> None:
        self.connection, self.path, self.folder, self.file = connection, path, folder, file
        self.waits: Waiting = connection.waiting()
        self.had = self.advanced = 0
        self.losses = self.shorts = 0

    def offset(self) -> int:
        """Ask how many bytes the service has; it may lose some only a few times."""
        answer = self.connection.insist("HEAD", self.path, self.waits, headers=TUS)
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
        if offset >= min(self.advanced + STEP_BYTES, self.file.size):
            # A few bytes now and then do not count as progress.
            self.advanced = offset
            self.waits.advanced()
        self.had = offset

    def append(self, offset: int, chunk_bytes: int) -> int:
        """Send the next bytes, and return how many the service then has."""
        with self.folder.open(self.file.name) as source:
            try:
                source.seek(offset)
                data = source.read(min(chunk_bytes, self.file.size - offset))
            except OSError as error:
                raise TableError(f"{self.file.name} cannot be read ({reason(error)})") from None
        if not data:
            raise TableError(f"{self.file.name} became shorter while it was sent")
        headers = {**TUS, "Upload-Offset": str(offset), "Content-Type": PIECE_TYPE}
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
        self.shorts += found < offset + len(data)
        if self.shorts > MOST_SHORTS:
            raise ProviderError(f"the service takes only parts of {self.file.name} as it is sent")
        self._had(found)
        return found

    def _lose(self, why: str) -> None:
        self.losses += 1
        if self.losses > MOST_LOSSES:
            raise ProviderError(why)


def _count(answer: Response, name: str) -> int:
    text = answer.headers.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise ProviderError(f"the service's answer has no {name}")
    return int(text)
