"""Whether the service can work: database and disk are asked once for all who want to know."""

import time
from pathlib import Path
from threading import Lock

from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database
from verix_anon.service.jobs import database_time
from verix_anon.service.logs import log

__all__ = ["Readiness"]

KEPT_SECONDS = 1.0
"""Anybody may ask, and each look stores a file: an answer counts for so long"""


class Readiness:
    """What was found out last, and when."""

    def __init__(self, database: Database, blobs: Blobs, staging: Path) -> None:
        self.database, self.blobs, self.staging = database, blobs, staging
        self._lock = Lock()
        self._found: tuple[float, bool] | None = None

    def is_ready(self) -> bool:
        """Whether database and files can be reached."""
        with self._lock:
            if self._found is None or time.monotonic() > self._found[0] + KEPT_SECONDS:
                self._found = (time.monotonic(), self._look())
            return self._found[1]

    def _look(self) -> bool:
        try:
            with self.database.read() as session:
                database_time(session)
            self.blobs.check()
            self.staging.stat()
        except Exception as error:
            log.warning("not ready", error=type(error).__name__)
            return False
        return True
