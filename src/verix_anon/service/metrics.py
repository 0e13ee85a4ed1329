"""Figures for Prometheus: requests by route, bytes that came and went, jobs by state."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

__all__ = ["METHODS", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# A method is a word that anybody may send; others than these are one.
METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"})


class Metrics:
    """The figures of one HTTP process."""

    def __init__(self, count_jobs: Callable[[], Iterable[tuple[str, int]]]) -> None:
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
        self.registry.register(_Jobs(count_jobs))

    def text(self) -> bytes:
        """All figures as Prometheus reads them."""
        return generate_latest(self.registry)


class _Jobs(Collector):
    """Jobs by state, counted in the database when somebody asks."""

    def __init__(self, count: Callable[[], Iterable[tuple[str, int]]]) -> None:
        self.count = count

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily("verix_jobs", "Jobs by state", labels=["state"])

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily("verix_jobs", "Jobs by state", labels=["state"])
        for state, count in self.count():
            family.add_metric([state], count)
        yield family
