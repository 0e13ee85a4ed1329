"""A service that does as a test says: honest but for the faults that it is given.

It is written from the description of the wire alone, and shares no code with the real one.
"""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

TOKEN = "vrx_" + "t" * 43
LIMITS = {
    "upload_bytes": 10**9,
    "file_bytes": 10**9,
    "rows": 10**6,
    "columns": 100,
    "concurrent_jobs": 10,
    "requests_per_minute": 1000,
    "request_bytes": 4096,
    "worker_bytes": 10**9,
    "retention_seconds": 3600,
}
RULES = ["variance-reduction", "importance-spread"]

Fault = Callable[["Handler"], None]
"""What is done in place of the honest answer to one request."""


def files_of(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def listed(files: dict[str, bytes]) -> list[dict[str, object]]:
    return [
        {"name": name, "size": len(data), "sha256": sha256(data).hexdigest()}
        for name, data in files.items()
    ]


@dataclass
class Scripted:
    """What the service holds, what it was asked, and the faults that are still to come."""

    delivery: dict[str, bytes]
    offer: dict[str, Any] = field(default_factory=dict)
    announced: list[dict[str, object]] | None = None
    """The delivery's files, if they are to differ from the truth."""
    page: int = 0
    """Files of the delivery that are listed at once; 0 for all"""
    states: list[str] = field(default_factory=list)
    """What is said of the job before it is done."""
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    uploads: dict[str, bytearray] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    faults: dict[str, list[Fault | None]] = field(default_factory=dict)
    url: str = ""

    def count(self, kind: str) -> int:
        return sum(found == kind for found, _, _ in self.seen)

    def next_fault(self, kind: str) -> Fault | None:
        script = self.faults.get(kind)
        return script.pop(0) if script else None


class Handler(BaseHTTPRequestHandler):
    """One request: a fault if one is due, else the honest answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def script(self) -> Scripted:
        return cast("Any", self.server).script  # type: ignore[no-any-return]

    def log_message(self, *args: object) -> None:
        """Nothing."""

    def handle_any(self) -> None:
        kind = _kind(self.command, self.path)
        self.script.seen.append((kind, self.path, dict(self.headers)))
        fault = self.script.next_fault(kind)
        if fault is not None:
            fault(self)
        elif self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.problem(401, "unauthorized", "no such token")
        else:
            getattr(self, f"serve_{kind}")()

    do_GET = do_POST = do_HEAD = do_PATCH = do_DELETE = handle_any  # noqa: N815

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers and "Transfer_Encoding" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def json(self, value: object, status: int = 200, **headers: str) -> None:
        self.answer(status, json.dumps(value).encode(), Content_Type="application/json", **headers)

    def problem(self, status: int, code: str, detail: str, **headers: str) -> None:
        self.drain()
        text = json.dumps({"code": code, "detail": detail, "status": status})
        kind = "application/problem+json"
        self.answer(status, text.encode(), Content_Type=kind, **headers)

    def drain(self) -> bytes:
        """What is left of the request."""
        length = 0 if getattr(self, "drained", None) is self.headers else self.length()
        self.drained = self.headers
        return self.rfile.read(length)

    def length(self) -> int:
        return int(self.headers.get("Content-Length", 0))

    def cut(self) -> None:
        """End the connection without a word."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def job(self) -> dict[str, Any]:
        return self.script.jobs[self.path.split("/")[3]]

    def file(self) -> str:
        return unquote(self.path.split("/", 5)[5])

    def serve_offer(self) -> None:
        offer = {
            "format": "verix/service/1",
            "version": "1",
            "rules": RULES,
            "engines": ["verix-local"],
            "keys": [{"keyid": "ab" * 32, "public": "PEM"}],
            "limits": LIMITS,
        }
        self.json(offer | self.script.offer)

    def serve_post(self) -> None:
        body, key = json.loads(self.drain()), self.headers["Idempotency-Key"]
        script = self.script
        if key not in script.keys:
            script.keys[key] = f"{len(script.jobs):032x}"
            script.jobs[script.keys[key]] = {
                "id": script.keys[key],
                "state": "uploading",
                "files": body["files"],
                "rows": body["rows"],
            }
            script.uploads |= {file["name"]: bytearray() for file in body["files"]}
        self.json(script.jobs[script.keys[key]], 201)

    def serve_job(self) -> None:
        job, script = self.job(), self.script
        if job["state"] == "queued":
            state = script.states.pop(0) if script.states else "done"
            if state == "done":
                job["state"] = state
                job["delivery"] = script.announced or listed(script.delivery)
            if state == "done" and script.page:
                names = [file["name"] for file in job["delivery"]]
                job["next_delivered"] = names[script.page - 1]
                self.json({**job, "delivery": job["delivery"][: script.page]})
                return
            self.json({**job, "state": state})
        elif "?after=" in self.path:
            after = unquote(self.path.partition("?after=")[2])
            names = [file["name"] for file in job["delivery"]]
            files = job["delivery"][names.index(after) + 1 :][: script.page]
            is_last = files[-1:] == job["delivery"][-1:]
            self.json({"files": files, "next": None if is_last else files[-1]["name"]})
        else:
            self.json(job)

    def serve_delete(self) -> None:
        job = self.job()
        self.script.keys = {k: v for k, v in self.script.keys.items() if v != job["id"]}
        self.answer(204)

    def stated(self) -> dict[str, Any]:
        return next(file for file in self.job()["files"] if file["name"] == self.file())

    def serve_head(self) -> None:
        offset, length = len(self.script.uploads[self.file()]), self.stated()["size"]
        self.answer(200, Upload_Offset=str(offset), Upload_Length=str(length))

    def serve_patch(self) -> None:
        held, offset = self.script.uploads[self.file()], int(self.headers["Upload-Offset"])
        if offset != len(held):
            self.problem(409, "offset-mismatch", "another offset")
            return
        held += self.drain()
        if len(held) == self.stated()["size"]:
            if sha256(held).hexdigest() != self.stated()["sha256"]:
                held.clear()
                self.problem(422, "digest-mismatch", "another digest")
                return
            sizes = {file["name"]: file["size"] for file in self.job()["files"]}
            if all(len(self.script.uploads[name]) == size for name, size in sizes.items()):
                self.job()["state"] = "queued"
        self.answer(204, Upload_Offset=str(len(held)))

    def serve_delivery(self) -> None:
        data = self.script.delivery[self.file()]
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if found is None:
            self.answer(200, data)
            return
        begin = int(found[1])
        span = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        self.answer(206, data[begin:], Content_Range=span)


def _kind(method: str, path: str) -> str:
    if path == "/v1":
        return "offer"
    if "/files/" in path:
        return method.lower()
    if "/delivery/" in path:
        return "delivery"
    return {"POST": "post", "DELETE": "delete"}.get(method, "job")


@contextmanager
def running(script: Scripted) -> Iterator[Scripted]:
    """The service on a free port of this machine, until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.script = script  # type: ignore[attr-defined]
    script.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
