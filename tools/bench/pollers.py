"""Clients that ask again and again over kept connections; prints what they saw as JSON.

python -m tools.bench.pollers PORT SECONDS, with groups of clients as JSON on stdin. A group has a
token, a path, how many clients it has, and how often each asks. The first fifth of the time counts
for nothing.
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tools.bench.serving import allow_descriptors


@dataclass
class Group:
    """Clients of one tenant that ask for one thing."""

    name: str
    token: str
    path: str
    clients: int
    every: float
    """Seconds between two questions of a client; 0 for as soon as it may ask again"""


@dataclass
class Seen:
    """Seconds of the answers with status 200, and how many came with each status."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)


async def poll(group: Group, port: int, begins: float, ends: float, seen: Seen) -> None:
    """One client."""
    words = f"GET {group.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {group.token}"
    asked = f"{words}\r\n\r\n".encode()
    chance = random.Random(group.path)
    await asyncio.sleep(random.uniform(0, group.every))
    stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    while time.perf_counter() < ends:
        began = time.perf_counter()
        wait = group.every
        # A server may have closed a connection that was kept; clients then open another one.
        for is_kept in (True, False) if stream else (False,):
            try:
                if not is_kept:
                    stream = await asyncio.open_connection("127.0.0.1", port)
                assert stream is not None
                status, pause = await _answer(stream, asked)
                break
            except (OSError, EOFError):
                stream, status, pause = None, "lost", 0.0
        if status == "429":
            wait = max(wait, pause) + chance.random()
        if began >= begins:
            seen.statuses[status] += 1
            if status == "200":
                seen.seconds.append(time.perf_counter() - began)
        await asyncio.sleep(max(0.0, wait - (time.perf_counter() - began)))


async def _answer(
    stream: tuple[asyncio.StreamReader, asyncio.StreamWriter], asked: bytes
) -> tuple[str, float]:
    """The status of one answer, and how long the client should wait before it asks again."""
    stream[1].write(asked)
    head = (await stream[0].readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    lines = dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
    await stream[0].readexactly(int(lines["content-length"]))
    return head.split()[1], float(lines.get("retry-after", "1"))


async def ask(port: int, seconds: float, groups: list[Group]) -> dict[str, Any]:
    """All clients at once, and what each group saw."""
    now = time.perf_counter()
    begins, ends = now + seconds / 5, now + seconds
    seen = {group.name: Seen() for group in groups}
    every = [
        poll(group, port, begins, ends, seen[group.name])
        for group in groups
        for _ in range(group.clients)
    ]
    await asyncio.gather(*every)
    return {
        name: {"seconds": each.seconds, "statuses": each.statuses} for name, each in seen.items()
    }


if __name__ == "__main__":
    allow_descriptors()
    wanted = [Group(**each) for each in json.loads(sys.stdin.read())]
    print(json.dumps(asyncio.run(ask(int(sys.argv[1]), float(sys.argv[2]), wanted))))
