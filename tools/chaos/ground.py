"""What a provider runs, on 127.0.0.1: two servers, PostgreSQL, an S3 store, disks of their own.

Each part can be broken and mended. Clients reach servers, and servers the store, over wires that
can be cut. The disks are small file systems in memory, where this user may mount some.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from tools import postgres
from tools.chaos.wire import Wire
from verix_anon.files.keys import new_key, public_path, write_key
from verix_anon.service.database import Database
from verix_anon.service.tenants import TokenRole, create_token

N_SERVERS = 2
DISK_MB, RESERVE_MB = 400, 40
START_SECONDS = 60.0
ASK_SECONDS = 0.1
BUCKET = "chaos"
SKEW = """import os, time
_off = float(os.environ.get("CHAOS_CLOCK", "0"))
if _off:
    _time, _time_ns = time.time, time.time_ns
    time.time = lambda: _time() + _off
    time.time_ns = lambda: _time_ns() + int(_off * 1e9)
"""
"""A clock that is wrong, for one Python process and those that it starts."""


@dataclass
class Server:
    """One `verix-anon serve`, which keeps its port, its folder and its disk when it is killed."""

    folder: Path
    options: tuple[str, ...]
    environment: dict[str, str]
    port: int
    has_disk: bool
    process: subprocess.Popen[str] | None = None
    groups: list[int] = field(default_factory=list)
    answers: list[tuple[float, bool]] = field(default_factory=list)
    """When /readyz was asked, and whether it said yes; what does not answer says no."""

    def start(self, clock: float = 0.0) -> None:
        """Start it, with a clock that is so many seconds off."""
        command = [sys.executable, "-m", "verix_anon", "serve", str(self.folder)]
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), *self.options],
                env=self.environment | {"CHAOS_CLOCK": str(clock)},
                stdout=subprocess.DEVNULL,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self.groups.append(self.process.pid)

    def kill(self) -> None:
        """kill -9 of the server alone: its workers have to notice."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def workers(self) -> list[int]:
        """The processes that the server has started."""
        assert self.process is not None
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        try:
            return [int(pid) for pid in path.read_text().split()]
        except OSError:
            return []

    def close(self) -> None:
        """Nothing that it started is left."""
        for group in self.groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def watch(self, is_over: Event) -> None:
        """Ask /readyz again and again, and keep what it said."""
        while not is_over.wait(ASK_SECONDS):
            asked = time.monotonic()
            try:
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.port}/readyz", timeout=5
                ) as answer:
                    is_ready = answer.status == 200
            except (OSError, urllib.error.HTTPError):
                is_ready = False
            self.answers.append((asked, is_ready))

    def seconds_until(self, said: bool, since: float, most: float) -> float:
        """Seconds from a moment until /readyz said so; infinite if it took more than the most."""
        seen = 0
        while True:
            for asked, is_ready in self.answers[seen:]:
                seen += 1
                if asked >= since and is_ready is said:
                    return asked - since
            if time.monotonic() > since + most:
                return float("inf")
            time.sleep(ASK_SECONDS)

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Leave no byte free on its disk, whatever the server deletes meanwhile."""
        ballast, is_over = self.folder / "ballast", Event()

        def fill() -> None:
            with ballast.open("wb", buffering=0) as file:
                while not is_over.is_set():
                    for size in (1 << 20, 1 << 12):
                        with suppress(OSError):
                            while file.write(bytes(size)) == size:
                                pass
                    time.sleep(0.01)

        thread = Thread(target=fill)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()
            ballast.unlink()


@dataclass
class Ground:
    """All parts, and what was made for the clients."""

    folder: Path
    servers: tuple[Server, ...]
    wires: tuple[Wire, ...]
    store: Wire
    database: Path
    public_key: Path
    tokens: tuple[str, ...]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@contextmanager
def standing(n_tenants: int) -> Iterator[Ground]:
    """Everything, ready for clients, until the block ends."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="verix-chaos-")))
        database = stack.enter_context(postgres.running())
        store = _store(folder, stack)
        environment = os.environ | {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.port}",
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_DEFAULT_REGION": "us-east-1",
            "PYTHONPATH": os.pathsep.join([str(folder / "clock"), *sys.path[:1]]),
        }
        (folder / "clock").mkdir()
        (folder / "clock" / "sitecustomize.py").write_text(SKEW)
        write_key(new_key(), folder / "key")
        options = (
            *("--database", postgres.url(database), "--blobs", f"s3://{BUCKET}/verix"),
            *("--workers", "1", "--worker-memory", "1000", "--store-timeout", "3"),
            *("--rate", "100000", "--max-jobs", "20", "--reserve", str(RESERVE_MB)),
            *("--key-file", str(folder / "key")),
        )
        servers = []
        for i in range(N_SERVERS):
            place = folder / f"server{i}"
            place.mkdir()
            has_disk = _mounted(place, stack)
            servers.append(Server(place, options, environment, _free_port(), has_disk))
            stack.callback(servers[-1].close)
            servers[-1].start()
        is_over = Event()
        stack.callback(is_over.set)
        for server in servers:
            Thread(target=server.watch, args=(is_over,), daemon=True).start()
            log = folder / f"{server.folder.name}.log"
            took = server.seconds_until(True, 0.0, time.monotonic() + START_SECONDS)
            assert took < float("inf"), log.read_text()[-2000:]
        wires = tuple(Wire(server.port) for server in servers)
        for wire in (*wires, store):
            stack.callback(wire.close)
        opened = Database(postgres.url(database))
        try:
            tokens = tuple(
                create_token(opened, f"tenant{i}", TokenRole.TENANT, None) for i in range(n_tenants)
            )
        finally:
            opened.close()
        yield Ground(
            folder=folder,
            servers=tuple(servers),
            wires=wires,
            store=store,
            database=database,
            public_key=public_path(folder / "key"),
            tokens=tokens,
        )


def _store(folder: Path, stack: ExitStack) -> Wire:
    """An S3 in a process of its own, and the wire to it."""
    port = _free_port()
    with (folder / "s3.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    stack.callback(process.wait)
    stack.callback(process.kill)
    until = time.monotonic() + START_SECONDS
    while True:
        with suppress(OSError):
            asked = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
            asked.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=k/1/us-east-1/s3/a")
            urllib.request.urlopen(asked, timeout=5).close()
            return Wire(port)
        assert time.monotonic() < until, (folder / "s3.log").read_text()[-2000:]
        time.sleep(ASK_SECONDS)


def _mounted(place: Path, stack: ExitStack) -> bool:
    """Whether the folder is now a small disk of its own: root alone may mount one."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=700", "chaos", str(place)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    stack.callback(subprocess.run, ["umount", "-l", str(place)], check=False)
    return True
