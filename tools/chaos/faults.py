"""What is broken, for how long, and how soon /readyz says so."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread

from tools import postgres
from tools.chaos.ground import Ground, Server

MOST_SECONDS = 60.0
"""What /readyz may take to tell the truth before it counts as never"""
LASTS, PAUSES = (1.0, 4.0), (1.0, 3.0)
"""Seconds that a fault goes on once it is told, and between two"""
HOUR = 3_600.0

Broken = Iterator[Sequence[Server]]
Fault = Callable[[Ground, random.Random], AbstractContextManager[Sequence[Server]]]


@contextmanager
def workers_killed(ground: Ground, chance: random.Random) -> Broken:
    """kill -9 of a server's workers."""
    for pid in chance.choice(ground.servers).workers():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    yield ()


@contextmanager
def server_killed(ground: Ground, chance: random.Random, clock: float = 0.0) -> Broken:
    """kill -9 of a server, and a new start on the same port and folder."""
    server = chance.choice(ground.servers)
    server.kill()
    try:
        yield (server,)
    finally:
        server.start(clock)


def clock_skewed(ground: Ground, chance: random.Random) -> AbstractContextManager[Sequence[Server]]:
    """A server comes back with a clock that is hours off, and stays so until it is killed."""
    return server_killed(ground, chance, chance.choice((-9 * HOUR, 9 * HOUR)))


@contextmanager
def database_killed(ground: Ground, _: random.Random) -> Broken:
    """The database ends as by a crash."""
    postgres.stop(ground.database)
    try:
        yield ground.servers
    finally:
        postgres.start(ground.database)


@contextmanager
def disk_full(ground: Ground, chance: random.Random) -> Broken:
    """Not one byte is free on a server's disk."""
    server = chance.choice(ground.servers)
    with server.full_disk():
        yield (server,)


@contextmanager
def store_refuses(ground: Ground, _: random.Random) -> Broken:
    """The store takes no connections."""
    ground.store.refuse()
    try:
        yield ground.servers
    finally:
        ground.store.open()


@contextmanager
def store_hangs(ground: Ground, _: random.Random) -> Broken:
    """The store takes connections and does not answer."""
    ground.store.hang()
    try:
        yield ground.servers
    finally:
        ground.store.open()


@contextmanager
def connections_cut(ground: Ground, chance: random.Random) -> Broken:
    """The clients' connections are cut again and again."""
    is_over = Event()
    cutting = random.Random(chance.random())

    def cut() -> None:
        while not is_over.wait(cutting.uniform(0.05, 0.5)):
            cutting.choice(ground.wires).cut()

    thread = Thread(target=cut)
    thread.start()
    try:
        yield ()
    finally:
        is_over.set()
        thread.join()


FAULTS: dict[str, Fault] = {
    "workers killed": workers_killed,
    "a server killed": server_killed,
    "a server killed, its clock 9 hours off": clock_skewed,
    "the database killed": database_killed,
    "a disk full": disk_full,
    "the store refuses": store_refuses,
    "the store hangs": store_hangs,
    "connections cut": connections_cut,
}


@dataclass
class Told:
    """How often a fault was made, and how long /readyz took to say what was so, at the most."""

    times: int = 0
    until_no: list[float] = field(default_factory=list)
    until_yes: list[float] = field(default_factory=list)


def happen(ground: Ground, seconds: float, seed: int) -> dict[str, Told]:
    """One fault after the other for so long, each once at least, in an order from the seed."""
    chance = random.Random(seed)
    has_disks = all(server.has_disk for server in ground.servers)
    found = {name: Told() for name in FAULTS if has_disks or FAULTS[name] is not disk_full}
    until = time.monotonic() + seconds
    while True:
        for name in chance.sample(list(found), len(found)):
            if time.monotonic() > until and all(told.times for told in found.values()):
                return found
            _make(name, found[name], ground, chance)
            time.sleep(chance.uniform(*PAUSES))


def _make(name: str, told: Told, ground: Ground, chance: random.Random) -> None:
    began = time.monotonic()
    with FAULTS[name](ground, chance) as blind:
        told.times += 1
        told.until_no += [each.seconds_until(False, began, MOST_SECONDS) for each in blind]
        time.sleep(chance.uniform(*LASTS))
    ended = time.monotonic()
    told.until_yes += [each.seconds_until(True, ended, MOST_SECONDS) for each in ground.servers]
    print(f"{name}: {_most(told.until_no)} s, {_most(told.until_yes)} s", flush=True)


def _most(seconds: list[float]) -> str:
    return f"{max(seconds):.1f}" if seconds else "-"
