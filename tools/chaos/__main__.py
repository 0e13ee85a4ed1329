"""Break a service for some minutes while clients submit; writes results/bench-chaos.md.

python -m tools.chaos [--minutes M] [--seed N] [--clients C]

It needs PostgreSQL and the extra `s3`. A disk is filled only if this user may mount a small one.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from tools.bench import machine
from tools.bench.record import record
from tools.chaos.clients import SPOILED_EVERY, Client, Tally, prepared, stuck
from tools.chaos.faults import FAULTS, disk_full, happen
from tools.chaos.ground import N_SERVERS, standing

TENANTS, CLIENTS = 4, 20
DRAIN_SECONDS = 180.0
"""What orders that are under way may take once all is well again"""

Result = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.chaos")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    given = parser.parse_args()
    found: list[Result] = []

    def measured() -> Result:
        found.append(run(given.minutes, given.seed, given.clients))
        return found[0]

    record("chaos", machine.facts(), measured, render)
    return 0 if held(found[0]) else 1


def run(minutes: float, seed: int, n_clients: int) -> Result:
    """All faults by turns while the clients submit, and what became of every order."""
    tally, is_over, until = Tally(), Event(), list[float]()
    load = os.getloadavg()[0]
    with standing(TENANTS) as ground, ThreadPoolExecutor(n_clients) as pool:
        jobs = list(pool.map(partial(prepared, ground.folder), range(n_clients)))
        done = []
        for number, job in enumerate(jobs):
            tenant = number % TENANTS
            # A tenant stays with one server: what it uploads grows there.
            wire = ground.wires[tenant % N_SERVERS]
            done.append(
                pool.submit(
                    Client(
                        url=f"http://127.0.0.1:{wire.port}",
                        token=ground.tokens[tenant],
                        mine=job,
                        key=ground.public_key,
                        tally=tally,
                        is_over=is_over,
                        until=until,
                    ).run
                )
            )
        began = time.monotonic()
        try:
            told = happen(ground, 60 * minutes, seed)
        finally:
            is_over.set()
            until.append(time.monotonic() + DRAIN_SECONDS)
        seconds = time.monotonic() - began
        for each in done:
            each.result()
        tally.lost += stuck(f"http://127.0.0.1:{ground.servers[0].port}", ground.tokens)
        bugs = _bugs(ground.folder)
    took = sorted(tally.seconds)
    return {
        "minutes": seconds / 60,
        "seed": seed,
        "clients": n_clients,
        "tenants": TENANTS,
        "servers": N_SERVERS,
        "load_average": load,
        "submitted": tally.submitted,
        "delivered": tally.delivered,
        "refused": dict(sorted(tally.refused.items())),
        "lost": tally.lost,
        "false_receipts": tally.false_receipts,
        "wrong_bytes": tally.wrong_bytes,
        "again": tally.again,
        "median_seconds": took[len(took) // 2],
        "slowest_seconds": took[-1],
        "faults": {name: asdict(each) for name, each in told.items()},
        "tracebacks": bugs,
    }


def _bugs(folder: Path) -> list[str]:
    """Lines of the servers' logs that no fault explains."""
    lines = [line for log in folder.glob("server*.log") for line in log.read_text().splitlines()]
    return [
        line[:300]
        for line in lines
        if line.strip() and (not line.startswith("{") or '"internal"' in line)
    ]


def held(found: Result) -> bool:
    """Whether nothing was lost or false, and /readyz told the truth about every fault."""
    seconds = [s for each in found["faults"].values() for s in each["until_no"] + each["until_yes"]]
    broken = found["lost"] + found["false_receipts"] + found["wrong_bytes"]
    return not broken and max(seconds) < float("inf")


def render(found: Result) -> list[str]:
    """The figures as Markdown."""
    refused = "; ".join(f"{why}: {n}" for why, n in found["refused"].items())
    who = f"{found['clients']} clients of {found['tenants']} tenants"
    where = f"{found['servers']} servers with one worker each"
    busy = f"others kept {found['load_average']:.1f} processes busy on the machine"
    slowest = f"{found['slowest_seconds']:.1f} s at the most"
    lines = [
        f"{who} submitted for {found['minutes']:.1f} minutes to {where}, PostgreSQL",
        "and an S3 store, all on 127.0.0.1. Every delivery was verified with its receipt. One",
        f"order in {SPOILED_EVERY} had records that nobody can read. Before it began,",
        f"{busy}.",
        "",
        "| what | number |",
        "| --- | ---: |",
        f"| jobs submitted | {found['submitted']:,} |",
        f"| delivered and VERIFIED | {found['delivered']:,} |",
        f"| refused with a reason ({refused}) | {sum(found['refused'].values()):,} |",
        f"| lost | {len(found['lost'])} |",
        f"| false receipts | {len(found['false_receipts'])} |",
        f"| wrong bytes | {len(found['wrong_bytes'])} |",
        "",
        f"Clients gave up {found['again']} times and came again with the same order. An order",
        f"took {found['median_seconds']:.1f} s at the median and {slowest}.",
        "",
        "Seconds until `/readyz` told the truth, at the most:",
        "",
        "| fault | times | until it said no | until it said yes again |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, each in found["faults"].items():
        no, yes = (
            f"{max(each[key]):.1f}" if each[key] else "" for key in ("until_no", "until_yes")
        )
        lines.append(f"| {name} | {each['times']} | {no} | {yes} |")
    if len(found["faults"]) < len(FAULTS):
        name = next(name for name, fault in FAULTS.items() if fault is disk_full)
        lines += ["", f"Not tried, because this user may not mount a disk: {name}."]
    return [*lines, ""]


if __name__ == "__main__":
    sys.exit(main())
