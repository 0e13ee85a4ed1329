"""A worker whose engine does what VERIX_TEST_ENGINE says: `kill` itself, or `stall` for a file.

It says in the folder of the settings that it has begun, by the file `begun-PID`, and stalls until
there is a file `go`.
"""

import os
import signal
import time
from pathlib import Path

from verix_anon.progress import Progress
from verix_anon.protocol.messages import Delivery, Provider, Submission
from verix_anon.service import engines, worker
from verix_anon.service.settings import Settings

honest = engines.provider


class Odd:
    def __init__(self, real: Provider, folder: Path) -> None:
        self.real, self.folder = real, folder

    def anonymize(self, submission: Submission) -> Delivery:
        (self.folder / f"begun-{os.getpid()}").touch()
        if os.environ["VERIX_TEST_ENGINE"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        while not (self.folder / "go").exists():
            time.sleep(0.02)
        return self.real.anonymize(submission)


def odd(name: str, settings: Settings, progress: Progress) -> Provider:
    return Odd(honest(name, settings, progress), settings.folder)


if __name__ == "__main__":
    engines.provider = odd
    worker.main()
