"""A service under load, and what a large submission costs those who pass it on.

200 jobs of 20 clients; then one submission of ten times the rows of another, each through a
service of its own, whose server and client should hold no more for it.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tools.bench.serving import serving
from tools.bench.tables import submission
from verix_anon.files.folder_writer import write_submission
from verix_anon.protocol.messages import Submission

JOBS, CLIENTS, ROWS, COLUMNS = 200, 20, 2_000, 8
WORKERS = 2
SIZES = (100_000, 1_000_000)
LARGE_COLUMNS = 16
WIDE = ("--max-jobs", "100", "--rate", "1000000")
NARROW = ("--max-jobs", "5", "--rate", "1500")
"""Limits that 20 clients of one tenant run into."""

Result = dict[str, Any]


def measure() -> Result:
    """The load with wide limits and with narrow ones, and the large submissions."""
    return {
        # Of others on the same cores, before this begins.
        "load_average": os.getloadavg()[0],
        "wide": load(JOBS, CLIENTS, WIDE),
        "narrow": load(JOBS, CLIENTS, NARROW),
        "large": [large(n_rows) for n_rows in SIZES],
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
    return [*lines, "", f"- With {_mb(more)} MB more to pass on, {held}.", ""]


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
