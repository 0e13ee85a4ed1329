"""A worker whose engine does what VERIX_TEST_ENGINE says: `kill` itself, or `stall` for a file.

It says in the folder of the settings that it has begun, by the file `begun-PID`, and stalls until
there is a file `go`.
"""

import os
import signal
import time
from pathlib import Path
from typing import Any

from verix_anon.protocol.messages import Header
from verix_anon.service import engines, worker
from verix_anon.service.settings import ServiceSettings

honest = engines.run


def run(name: str, settings: ServiceSettings, *folders: Path, **options: Any) -> Header:
    (settings.folder / f"begun-{os.getpid()}").touch()
    if os.environ["VERIX_TEST_ENGINE"] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    while not (settings.folder / "go").exists():
        time.sleep(0.02)
    return honest(name, settings, *folders, **options)


if __name__ == "__main__":
    engines.run = run
    worker.main()
