"""Clients of a service, side by side in a process of their own; prints what they saw as JSON.

python -m tools.bench.clients URL FOLDER CLIENTS, with the token in VERIX_TOKEN; FOLDER holds the
submissions, and each client takes the next as soon as it has a delivery.
"""

import json
import os
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.bench.tables import peak_bytes
from verix_anon.client.remote import RemoteProvider
from verix_anon.errors import Error


class Clients:
    """All clients, what is still to be sent, and how each job went."""

    def __init__(self, url: str, folder: Path) -> None:
        self.provider = RemoteProvider(url, os.environ["VERIX_TOKEN"])
        self.folder = folder
        self.left = deque(sorted(path.name for path in folder.iterdir()))
        self.seconds: list[float] = []
        self.errors: list[str] = []

    def run(self) -> None:
        """One client, until nothing is left."""
        while self.left:
            try:
                name = self.left.popleft()
            except IndexError:
                return
            began = time.perf_counter()
            try:
                self.provider.anonymize_folder(self.folder / name, self.folder / f"{name}.delivery")
            except Error as error:
                self.errors.append(str(error))
            self.seconds.append(time.perf_counter() - began)


def main(url: str, folder: Path, n_clients: int) -> None:
    clients = Clients(url, folder)
    began = time.perf_counter()
    with ThreadPoolExecutor(n_clients) as pool:
        for done in [pool.submit(clients.run) for _ in range(n_clients)]:
            done.result()
    result = {
        "seconds": time.perf_counter() - began,
        "latencies": clients.seconds,
        "errors": clients.errors,
        "peak_bytes": peak_bytes(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
