"""A service under load, and what a large submission costs those who pass it on.

200 jobs of 20 clients; then one submission of ten times the rows of another, each through a
service of its own, whose server and client should hold no more for it. Then 2,000 clients that ask
how far their job is; and a tenant beside one that asks for as much as it may.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from tools.bench.pollers import Group
from tools.bench.serving import allow_descriptors, serving
from tools.bench.tables import submission
from verix_anon.client.remote import RemoteProvider
from verix_anon.client.remote import _post as post_order
from verix_anon.files.folder_writer import write_submission
from verix_anon.files.job_folder import RECORDS
from verix_anon.files.submission_listing import list_submission
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.providers import File

JOBS, CLIENTS, ROWS, COLUMNS = 200, 20, 2_000, 8
WORKERS = 2
SIZES = (100_000, 1_000_000)
LARGE_COLUMNS = 16
WIDE = ("--max-jobs", "100", "--rate", "1000000")
NARROW = ("--max-jobs", "5", "--rate", "1500")
"""Limits that 20 clients of one tenant run into."""
POLLERS, POLL_SECONDS, TENANTS, CROWD_SECONDS, CROWD_AIM = 2_000, 10.0, 20, 60.0, 1.0
OWN_JOBS, GREEDY_JOBS, OTHERS_AIM = 20, 400, 2.0
"""What a tenant submits one by one, and another meanwhile by 20 clients at once"""
PARTS, GREEDY_POLLERS, OWN_SECONDS = 5_000, 30, 20.0

Result = dict[str, Any]


def measure() -> Result:
    """The load with wide limits and with narrow ones, and the large submissions."""
    return {
        # Of others on the same cores, before this begins.
        "load_average": os.getloadavg()[0],
        "wide": load(JOBS, CLIENTS, WIDE),
        "narrow": load(JOBS, CLIENTS, NARROW),
        "large": [large(n_rows) for n_rows in SIZES],
        "crowd": crowd(POLLERS, CROWD_SECONDS),
        "unfair": unfair(OWN_JOBS, GREEDY_JOBS, OWN_SECONDS),
    }


def load(n_jobs: int, n_clients: int, limits: tuple[str, ...]) -> Result:
    """So many jobs from so many clients of one tenant."""
    with tempfile.TemporaryDirectory(prefix="verix-load-") as scratch:
        sent = Path(scratch) / "sent"
        sent.mkdir()
        made = submission(ROWS, COLUMNS)
        for number in range(n_jobs):
            write_submission(_renamed(made, number), sent / f"{number:04}")
        with serving(Path(scratch) / "service", "--workers", str(WORKERS), *limits) as service:
            found = run_clients(service.url, service.token("acme"), sent, n_clients)
            server, workers = service.peaks()
            statuses = service.statuses()
        whole = sum((sent / f"{n:04}.delivery" / "delivery.json").exists() for n in range(n_jobs))
    latencies = np.sort(found["latencies"])
    return {
        "jobs": n_jobs,
        "clients": n_clients,
        "workers": WORKERS,
        "rows": ROWS,
        "columns": COLUMNS,
        "deliveries": whole,
        "errors": found["errors"],
        "statuses": statuses,
        "seconds": found["seconds"],
        "jobs_per_second": n_jobs / found["seconds"],
        **{f"p{p}": float(np.percentile(latencies, p)) for p in (50, 95, 99)},
        "server_peak_bytes": server,
        "worker_peak_bytes": max(workers, default=0),
        "clients_peak_bytes": found["peak_bytes"],
    }


def _renamed(made: Submission, number: int) -> Submission:
    """The same records under a contract of their own: another job to the service."""
    contract = replace(made.contract, submission_id=f"{number:032x}")
    return Submission(contract=contract, records=made.records)


def run_clients(url: str, token: str, sent: Path, n_clients: int) -> Result:
    """What clients in a process of their own saw."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.bench.clients", url, str(sent), str(n_clients)],
        env={**os.environ, "VERIX_TOKEN": token},
        capture_output=True,
        text=True,
        check=True,
    )
    found: Result = json.loads(done.stdout)
    return found


def crowd(n_clients: int, seconds: float) -> Result:
    """So many clients of 20 tenants, each of which asks how far its job is every 10 seconds."""
    allow_descriptors()
    with tempfile.TemporaryDirectory(prefix="verix-crowd-") as scratch:
        options = ("--workers", "1", "--http-processes", "2")
        with serving(Path(scratch), *options) as service:
            groups = []
            for number in range(TENANTS):
                token = service.token(f"tenant{number}")
                job = _ordered(service.url, token, 1)
                one = (f"{number}", token, job, n_clients // TENANTS, POLL_SECONDS)
                groups.append(Group(*one))
            seen = run_pollers(service.url, groups, seconds)
    times = np.concatenate([each["seconds"] for each in seen.values()])
    statuses = sum((Counter(each["statuses"]) for each in seen.values()), Counter[str]())
    return {
        "clients": n_clients,
        "tenants": TENANTS,
        "answers": times.size,
        "per_second": times.size / (0.8 * seconds),
        "other": {status: n for status, n in statuses.items() if status != "200"},
        **{f"p{p}": float(np.percentile(times, p)) for p in (50, 95, 99)},
        "slowest": float(times.max()),
    }


def unfair(n_own: int, n_greedy: int, seconds: float) -> Result:
    """What a tenant waits for, alone and beside one at its limits.

    The greedy one has 20 jobs at once all the time. Then it has a job of thousands of parts, and 30
    connections that ask for it as often as they may. Its clients run at the lowest priority: they
    would be on other machines.
    """
    with tempfile.TemporaryDirectory(prefix="verix-unfair-") as scratch:
        sent = {name: Path(scratch) / name for name in ("alone", "beside", "greedy")}
        made = submission(ROWS, COLUMNS)
        for start, (name, folder) in enumerate(sent.items()):
            folder.mkdir()
            for number in range(n_greedy if name == "greedy" else n_own):
                write_submission(_renamed(made, 10_000 * start + number), folder / f"{number:04}")
        with serving(Path(scratch) / "service", "--workers", str(WORKERS)) as service:
            own, greedy = service.token("own"), service.token("greedy")
            groups = [Group("own", own, "/v1/jobs", 1, 0.1)]
            job = _ordered(service.url, greedy, PARTS)
            found: dict[str, Result] = {"jobs": {}, "requests": {}}
            found["jobs"]["alone"] = run_clients(service.url, own, sent["alone"], 1)["latencies"]
            found["requests"]["alone"] = run_pollers(service.url, groups, seconds)["own"]["seconds"]
            with _clients(service.url, greedy, sent["greedy"], CLIENTS - 1):
                beside = run_clients(service.url, own, sent["beside"], 1)
                left = sum(1 for path in sent["greedy"].glob("*.delivery"))
            found["jobs"]["beside"] = beside["latencies"]
            many = [Group("greedy", greedy, job, GREEDY_POLLERS, 0.0)]
            asking = _pollers(service.url, many, 2 * seconds)
            with asking:
                beside = run_pollers(service.url, groups, seconds)["own"]
            found["requests"]["beside"] = beside["seconds"]
    medians = {
        what: {when: float(np.median(times)) for when, times in each.items()}
        for what, each in found.items()
    }
    # If none was left, the greedy tenant was not at its limits until the end.
    waiting = {"greedy_clients": CLIENTS - 1, "greedy_left": n_greedy - left}
    return {"medians": medians, "jobs": n_own, "parts": PARTS, **waiting}


def _ordered(url: str, token: str, n_parts: int) -> str:
    """The path of a new job whose records, in so many parts, never come."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "sent"
        write_submission(submission(100, COLUMNS), folder)
        with RemoteProvider(url, token)._connect() as connection:
            sent = list_submission(folder)
            parts = tuple(
                File(name=f"{RECORDS}/part-{i:05}.parquet", size=1, sha256="0" * 64)
                for i in range(n_parts)
            )
            named = (*sent.files[:2], *parts)
            job = post_order(connection, replace(sent, files=named))
    return f"/v1/jobs/{job.id}"


@contextmanager
def _pollers(url: str, groups: list[Group], seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Pollers in a process of their own, which ends with the block."""
    port = url.rsplit(":", 1)[1]
    command = [sys.executable, "-m", "tools.bench.pollers", port, str(seconds)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps([asdict(group) for group in groups]))
        process.stdin.close()
        yield process
        process.kill()


def run_pollers(url: str, groups: list[Group], seconds: float) -> Result:
    """What each group of pollers saw."""
    with _pollers(url, groups, seconds) as process:
        assert process.stdout is not None
        found: Result = json.loads(process.stdout.read())
    return found


@contextmanager
def _clients(url: str, token: str, sent: Path, n_clients: int) -> Iterator[None]:
    """Clients at the lowest priority, which end with the block."""
    command = [sys.executable, "-m", "tools.bench.clients", url, str(sent), str(n_clients)]
    environment = {**os.environ, "VERIX_TOKEN": token}
    with subprocess.Popen(
        ["nice", "-n", "19", *command], env=environment, stdout=subprocess.DEVNULL
    ) as process:
        until = time.monotonic() + 60
        while not any(sent.glob("*.delivery")):
            assert time.monotonic() < until, "the greedy tenant gets no delivery"
            time.sleep(0.1)
        yield
        process.kill()


def large(n_rows: int, n_quasi: int = LARGE_COLUMNS) -> Result:
    """One submission through a service that has seen no other."""
    with tempfile.TemporaryDirectory(prefix="verix-large-") as scratch:
        sent = Path(scratch) / "sent"
        sent.mkdir()
        write_submission(submission(n_rows, n_quasi), sent / "one")
        size = sum(path.stat().st_size for path in (sent / "one").iterdir())
        with serving(Path(scratch) / "service", "--workers", "1") as service:
            found = run_clients(service.url, service.token("acme"), sent, 1)
            server, workers = service.peaks()
        delivery = sum(path.stat().st_size for path in (sent / "one.delivery").iterdir())
    assert not found["errors"], found["errors"]
    return {
        "rows": n_rows,
        "columns": n_quasi,
        "submission_bytes": size,
        "delivery_bytes": delivery,
        "seconds": found["seconds"],
        "client_peak_bytes": found["peak_bytes"],
        "server_peak_bytes": server,
        "worker_peak_bytes": max(workers, default=0),
    }


def render(result: Result) -> list[str]:
    """The figures as Markdown."""
    wide = result["wide"]
    what = f"{wide['jobs']} jobs of {wide['rows']:,} x {wide['columns']}"
    lines = [
        f"{what} from {wide['clients']} clients of one tenant, {wide['workers']} workers, SQLite;",
        "a job's time is from the client's first request to its complete delivery, the queue",
        "included. The clients share the cores with the service. Before it began, others kept",
        f"{result['load_average']:.1f} processes busy on the machine.",
        "",
        "| limits | jobs/s | p50 | p95 | p99 | deliveries | answers with 429 | other errors |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        _load_row("wide", wide),
        _load_row("narrow: 5 jobs at once", result["narrow"]),
        "",
        "Peak memory, MB:",
        "",
        "| limits | server | largest worker | all clients |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {name} | {_mb(result[name]['server_peak_bytes'])}"
            f" | {_mb(result[name]['worker_peak_bytes'])}"
            f" | {_mb(result[name]['clients_peak_bytes'])} |"
            for name in ("wide", "narrow")
        ),
        "",
        "One large submission through a service that has seen no other; peak memory, MB. Server",
        "and client pass the files on; the worker does the work.",
        "",
        "| rows | columns | submission MB | delivery MB | seconds | client | server | worker |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for job in result["large"]:
        lines.append(
            f"| {job['rows']:,} | {job['columns']} | {_mb(job['submission_bytes'])}"
            f" | {_mb(job['delivery_bytes'])} | {job['seconds']:.1f}"
            f" | {_mb(job['client_peak_bytes'])} | {_mb(job['server_peak_bytes'])}"
            f" | {_mb(job['worker_peak_bytes'])} |"
        )
    small, big = result["large"]
    client = big["client_peak_bytes"] - small["client_peak_bytes"]
    server = big["server_peak_bytes"] - small["server_peak_bytes"]
    more = big["submission_bytes"] + big["delivery_bytes"]
    more -= small["submission_bytes"] + small["delivery_bytes"]
    held = f"the client held {_mb(client)} MB more and the server {_mb(server)} MB more"
    lines += ["", f"- With {_mb(more)} MB more to pass on, {held}.", ""]
    return lines + _crowd_lines(result["crowd"]) + _unfair_lines(result["unfair"])


def _crowd_lines(found: Result) -> list[str]:
    other = ", ".join(f"{n} times {status}" for status, n in found["other"].items()) or "none"
    clients = f"{found['clients']:,} clients of {found['tenants']} tenants"
    times = " | ".join(f"{found[name]:.3f} s" for name in ("p50", "p95", "p99", "slowest"))
    return [
        f"{clients}, each of which asks every {POLL_SECONDS:.0f} s how far its job is, on a",
        f"connection of its own; two HTTP processes. The aim is a p95 under {CROWD_AIM:.0f} s.",
        "",
        "| answers/s | p50 | p95 | p99 | slowest | answers that were not 200 |",
        "| ---: | ---: | ---: | ---: | ---: | --- |",
        f"| {found['per_second']:.0f} | {times} | {other} |",
        "",
    ]


def _unfair_lines(found: Result) -> list[str]:
    lines = [
        f"A tenant alone, and beside one at its limits, which has {found['greedy_clients']}",
        f"clients that submit without a pause, or {GREEDY_POLLERS} connections that ask as",
        f"often as they may for its job of {found['parts']:,} files. The aim is at most",
        f"{OTHERS_AIM:.0f} times the median.",
        "",
        "| median of | alone | beside | times |",
        "| --- | ---: | ---: | ---: |",
    ]
    for what, name in (("jobs", "a job"), ("requests", "`GET /v1/jobs`")):
        each = found["medians"][what]
        times = each["beside"] / each["alone"]
        lines.append(f"| {name} | {each['alone']:.3f} s | {each['beside']:.3f} s | {times:.1f} |")
    return [*lines, ""]


def _load_row(name: str, found: Result) -> str:
    refused = sum(n for status, n in found["statuses"].items() if status == "429")
    other = sum(n for status, n in found["statuses"].items() if status >= "400") - refused
    return (
        f"| {name} | {found['jobs_per_second']:.1f} | {found['p50']:.2f} s | {found['p95']:.2f} s"
        f" | {found['p99']:.2f} s | {found['deliveries']} | {refused}"
        f" | {other + len(found['errors'])} |"
    )


def _mb(n_bytes: float) -> str:
    return f"{n_bytes / 1e6:,.0f}"
