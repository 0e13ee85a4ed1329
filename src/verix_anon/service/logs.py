"""Logs as JSON lines on stderr: what happened, never with which data.

An access is its method, the template of its route, its status and its time, with the ids of tenant
and job. What other libraries log is reduced to a level and a logger's name, except uvicorn's own
sentences about its start and end: an exception's text may hold a value that somebody sent.
"""

import logging
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType

import structlog

log = structlog.get_logger("verix_anon.service")

# Sentences of uvicorn's about itself; their arguments are ours (addresses, process ids).
SPEAKS = "uvicorn.error"


def configure() -> None:
    """From here on all that this process logs is JSON lines."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers = [_Reduced()]
    root.setLevel(logging.WARNING)
    logging.getLogger(SPEAKS).setLevel(logging.INFO)
    # A traceback's text may hold what was sent; the place where it was raised does not.
    sys.excepthook = lambda kind, _, trace: _ended(kind, trace)
    threading.excepthook = lambda ended: _ended(ended.exc_type, ended.exc_traceback)


def _ended(kind: type[BaseException], trace: TracebackType | None) -> None:
    log.critical("ended by our mistake", error=kind.__name__, where=where(trace))


class _Reduced(logging.Handler):
    """What is left of other libraries' log records."""

    def emit(self, record: logging.LogRecord) -> None:
        fields = {"logger": record.name, "error": None}
        if record.exc_info and record.exc_info[0]:
            fields["error"] = record.exc_info[0].__name__
        is_plain = record.name == SPEAKS and not record.exc_info and record.levelno < logging.ERROR
        said = record.getMessage() if is_plain else "library"
        log.log(record.levelno, said, **{k: v for k, v in fields.items() if v})


def where(trace: TracebackType | None) -> str:
    """File and line at which an exception was raised."""
    last = traceback.extract_tb(trace)[-1:]
    return f"{Path(last[0].filename).name}:{last[0].lineno}" if last else ""
