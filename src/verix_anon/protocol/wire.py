"""What both ends of the wire between the parties call things."""

from enum import StrEnum
from typing import Final

__all__ = ["SERVICE_FORMAT", "State"]

SERVICE_FORMAT: Final = "verix/service/1"


class State(StrEnum):
    """What may be said of a job; one that was deleted is gone."""

    UPLOADING = "uploading"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
