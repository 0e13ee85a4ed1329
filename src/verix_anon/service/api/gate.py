"""The gate that every request passes: it limits bodies, turns errors into problems, and logs.

It is plain ASGI, so that a body is counted while it streams, whether or not its length was stated.
It also counts requests by route, and bytes received and sent, for Prometheus.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from verix_anon.service.api.problems import Problem, answer
from verix_anon.service.blobs import NO_ROOM
from verix_anon.service.logs import log, where

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Anybody may send any word as a method: all others count as one.
METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"})


class Metrics:
    """The figures of one HTTP process."""

    def __init__(self, *looked_up: "LookedUp") -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "verix_requests_total",
            "Requests that were answered",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "verix_request_seconds",
            "From the request's first byte to the answer's last",
            ("method", "route"),
            registry=self.registry,
        )
        self.received = Counter(
            "verix_received_bytes_total", "Bytes of requests", registry=self.registry
        )
        self.sent = Counter("verix_sent_bytes_total", "Bytes of answers", registry=self.registry)
        for figures in looked_up:
            self.registry.register(figures)

    def text(self) -> bytes:
        """All figures as Prometheus reads them."""
        return generate_latest(self.registry)


@dataclass(frozen=True, slots=True)
class LookedUp(Collector):
    """Figures by one label, such as jobs by state, that are looked up when somebody asks."""

    name: str
    text: str
    label: str
    look_up: Callable[[], Iterable[tuple[str, int]]]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The figures as they are now."""
        family = GaugeMetricFamily(self.name, self.text, labels=[self.label])
        for value, figure in self.look_up():
            family.add_metric([value], figure)
        yield family


BODIED = frozenset({b"content-length", b"transfer-encoding"})
"""A request with a body has one of these headers"""
LEAST_RATE = 1 << 16
"""Bytes a second at which the body of a request must come, after the first minute"""
EVERYWHERE = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Headers of every answer that does not say otherwise"""
GONE = 499
"""Logged where the client left before an answer."""
RETRY_SECONDS = 5
# After a refusal so much more is read, so that a client that is still sending sees the answer.
LINGER_BYTES, LINGER_SECONDS = 8 << 20, 2.0


@dataclass(slots=True)
class Passage:
    """What is noted about one request."""

    status: int = GONE
    is_started: bool = False
    is_read: bool = False
    is_closing: bool = False
    received: int = 0
    sent: int = 0
    began: float = field(default_factory=time.perf_counter)
    reading: float = 0.0
    """When its body was first asked for"""


class ServiceGate:
    """Around the whole application."""

    def __init__(
        self, app: ASGIApp, *, metrics: Metrics, request_bytes: int, idle_seconds: float
    ) -> None:
        self.app, self.metrics = app, metrics
        self.request_bytes, self.idle_seconds = request_bytes, idle_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        passage = Passage(is_read=not BODIED & {name for name, _ in scope["headers"]})
        scope.setdefault("state", {})

        async def counted_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                passage.status, passage.is_started = message["status"], True
                there = {name.lower() for name, _ in message["headers"]}
                more = [header for header in EVERYWHERE if header[0] not in there]
                message["headers"] = [*message["headers"], *more]
                if not passage.is_read and passage.status >= 400:
                    # A client that sends without end must not hold the connection for ever.
                    passage.is_closing = True
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            passage.sent += len(message.get("body", b""))
            if passage.is_closing and message["type"] == "http.response.body":
                await self._send(send, {**message, "more_body": True})
                await self._linger(receive, passage)
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await self._send(send, message)

        counted = self._counting(scope, receive, passage)
        try:
            _check_form(scope)
            await self.app(scope, counted, counted_send)
        except ClientDisconnect:
            pass
        except Exception as error:
            problem = _problem_of(error)
            if not passage.is_started:
                await answer(problem)(scope, counted, counted_send)
        finally:
            if leave := scope["state"].get("leave"):
                leave()
            self._note(scope, passage)

    async def _send(self, send: Send, message: Message) -> None:
        """Send to a client; disconnect one that does not read."""
        try:
            await asyncio.wait_for(send(message), self.idle_seconds)
        except TimeoutError:
            raise ClientDisconnect from None

    def _counting(self, scope: Scope, receive: Receive, passage: Passage) -> Receive:
        # Only uploads are PATCHed, and each of them ends at the size that was stated.
        most = None if scope["method"] == "PATCH" else self.request_bytes

        async def counted() -> Message:
            if passage.is_read:
                # Only the news that the client has left can still come, and it has no deadline.
                return await receive()
            left = self.idle_seconds
            if most is not None:
                # A body is held in memory while it arrives, so it must not arrive too slowly.
                passage.reading = passage.reading or time.perf_counter()
                spent = time.perf_counter() - passage.reading
                left = min(left, left + passage.received / LEAST_RATE - spent)
            try:
                message = await asyncio.wait_for(receive(), max(0.0, left))
            except TimeoutError:
                raise Problem(
                    "request-timeout", f"Too little came in {self.idle_seconds:g} seconds."
                ) from None
            if message["type"] == "http.request":
                passage.received += len(message.get("body", b""))
                passage.is_read = not message.get("more_body", False)
                if most is not None and passage.received > most:
                    raise Problem("request-too-large", f"A request has at most {most:,} bytes.")
            return message

        return counted

    async def _linger(self, receive: Receive, passage: Passage) -> None:
        """Read on for a moment: closing while bytes arrive could lose the answer on its way."""
        until = passage.received + LINGER_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while not passage.is_read and passage.received < until:
                    message = await receive()
                    passage.received += len(message.get("body", b""))
                    passage.is_read = not message.get("more_body", False)

    def _note(self, scope: Scope, passage: Passage) -> None:
        seconds = time.perf_counter() - passage.began
        method = scope["method"] if scope["method"] in METHODS else "other"
        # The template, never the path: a path is what somebody sent.
        route = getattr(scope.get("route"), "path", None) or "none"
        state: dict[str, Any] = scope["state"]
        log.info(
            "access",
            method=method,
            route=route,
            status=passage.status,
            seconds=round(seconds, 4),
            tenant=state.get("tenant"),
            job=state.get("job"),
        )
        self.metrics.requests.labels(method, route, str(passage.status)).inc()
        self.metrics.seconds.labels(method, route).observe(seconds)
        self.metrics.received.inc(passage.received)
        self.metrics.sent.inc(passage.sent)


def _check_form(scope: Scope) -> None:
    """Refuse requests that two programs could understand in different ways."""
    if {name for name, _ in scope["headers"]} >= BODIED:
        raise Problem("invalid-request", "Content-Length and Transfer-Encoding exclude each other.")
    if any(ord(each) < 32 or ord(each) == 127 for each in scope["path"]):
        raise Problem("not-found", "There is nothing here.")


def _problem_of(error: Exception) -> Problem:
    """Return what a client is told of an error; its text stays here, as it may hold sent values."""
    if isinstance(error, Problem):
        return error
    log.error("failure", error=type(error).__name__, where=where(error.__traceback__))
    wait = {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, OperationalError | InterfaceError | PoolTimeoutError):
        return Problem("unavailable", "The database does not answer; try again.", wait)
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return Problem("storage-full", "There is no room left; the upload can be resumed.")
    if isinstance(error, OSError):
        return Problem("unavailable", "The files cannot be read or written; try again.", wait)
    return Problem("internal", "This is a bug of the service's, and was logged.")
