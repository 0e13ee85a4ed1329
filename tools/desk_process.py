"""The desk as an owner runs it: the real command in a process of its own, on a free port."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2

SECONDS = 60.0
"""How long an answer or an end may take."""


@dataclass
class Served:
    """A desk that runs."""

    folder: Path
    process: subprocess.Popen[str]
    url: str
    """The one-time address that it printed."""

    @property
    def origin(self) -> str:
        return self.url.split("/enter", 1)[0]

    @property
    def port(self) -> int:
        return int(self.origin.rsplit(":", 1)[1])

    def client(self) -> httpx2.Client:
        """A browser that follows no redirect by itself."""
        return httpx2.Client(base_url=self.origin, timeout=SECONDS)

    def most_memory(self) -> int:
        """The most megabytes that it held at any time."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) // 1024

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """End it; how it ended and all that it said since."""
        self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, said


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "verix_anon", "desk", *map(str, words)]


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[Served]:
    """A desk that has ended when the block does."""
    process = subprocess.Popen(
        command(folder, "--no-browser", "--port", port),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert "/enter?token=" in said, said + process.stdout.read()
        yield Served(folder, process, said.split()[-1])
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(ValueError):
            process.communicate(timeout=SECONDS)


def another_url(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(folder, "--url"), capture_output=True, text=True, check=False)
