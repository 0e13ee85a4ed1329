"""The service as one command runs it: schema, workers, and HTTP until somebody ends it."""

import os
import signal
import ssl
import sys
from collections.abc import Callable
from dataclasses import replace
from threading import Thread

from verix_anon import http_server
from verix_anon.errors import ProviderError
from verix_anon.files.keys import is_sealed, read_signing_key
from verix_anon.files.store import reason
from verix_anon.protocol.providers import is_loopback
from verix_anon.service import daily_counts, jobs
from verix_anon.service.api.app import make_app
from verix_anon.service.api.context import Context, Rates, Readiness, workers
from verix_anon.service.api.gate import LookedUp, Metrics
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database
from verix_anon.service.logs import configure, log
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.supervisor import Supervisor

# Transfers that last longer are cut, and resumed by their clients.
GRACE_SECONDS = 10


def make_context(settings: ServiceSettings) -> Context:
    """What the routes share, with the schema brought up to date and all places reachable."""
    try:
        settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings.staging.mkdir(mode=0o700, exist_ok=True)
        blobs = Blobs(settings.blobs_url, seconds=settings.store_seconds)
        blobs.check()
    except OSError as error:
        raise ProviderError(f"a folder of the service cannot be used ({reason(error)})") from None
    database = Database.opened(settings.database_url)
    return Context(
        settings=settings,
        database=database,
        blobs=blobs,
        rates=Rates(settings.limits.requests_per_minute),
        readiness=Readiness(database, settings.server),
        metrics=Metrics(
            LookedUp("verix_jobs", "Jobs by state", "state", lambda: jobs.counts(database).items()),
            LookedUp(
                "verix_events_today",
                "What happened to jobs since midnight in UTC",
                "event",
                lambda: ((key, n) for key, (n, *_) in daily_counts.totals(database, 1).items()),
            ),
            LookedUp(
                "verix_workers", "Workers alive, by server", "server", lambda: workers(database)
            ),
            LookedUp(
                "verix_disk_bytes",
                "Of the fullest disk: bytes that are free, and the reserve",
                "kind",
                lambda: zip(("free", "reserve"), settings.disk(), strict=True),
            ),
        ),
    )


def with_key(settings: ServiceSettings) -> ServiceSettings:
    """The settings with the key that signs receipts, which is read here and nowhere else."""
    if settings.key_file is None:
        return settings
    if is_sealed(settings.key_file):
        raise ProviderError(
            f"the key {settings.key_file} is sealed; a service needs one that is not"
        )
    key = read_signing_key(settings.key_file).held.private_bytes_raw()
    return replace(settings, signing_key=key.hex())


def serve(settings: ServiceSettings, *, behind_proxy: bool, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is told the address when requests are answered."""
    check_address(settings, behind_proxy=behind_proxy)
    # What tenants send is for this user's eyes alone, wherever it is put.
    os.umask(0o077)
    configure()
    settings = with_key(settings)
    context = make_context(settings)
    with http_server.listener(settings.host, settings.port) as listener:
        http_server.end_by_signal()
        with Supervisor(settings, listener):
            host = f"[{settings.host}]" if ":" in settings.host else settings.host
            scheme = "http" if settings.certificate is None else "https"
            ready(f"{scheme}://{host}:{listener.getsockname()[1]}")
            log.info("serving", workers=settings.workers)
            _answer(context, listener)


def _answer(context: Context, listener: http_server.Listener) -> None:
    """Answer requests until a signal."""
    settings = context.settings
    listener.limit(settings.connections, settings.address_connections)
    tls = (settings.certificate, settings.certificate_key)
    http_server.serve(make_app(context), listener, grace=GRACE_SECONDS, tls=tls)
    context.database.close()


def check_address(settings: ServiceSettings, *, behind_proxy: bool) -> None:
    """Refuse to send tokens and data in clear over a network."""
    if (settings.certificate is None) is not (settings.certificate_key is None):
        raise ProviderError("a certificate and its key go together")
    for path in (settings.certificate, settings.certificate_key):
        if path is not None and not path.is_file():
            raise ProviderError(f"there is no file {path}")
    if settings.certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(settings.certificate, settings.certificate_key)
        except OSError as error:
            raise ProviderError(
                f"{settings.certificate} and {settings.certificate_key} are no certificate in PEM"
                f" and its key ({reason(error)})"
            ) from None
    elif not behind_proxy and not is_loopback(settings.host):
        raise ProviderError(
            f"without TLS, {settings.host} would hear tokens and data in clear: give --certificate"
            " and --certificate-key, or say --behind-proxy if a proxy in front of it speaks TLS"
        )


def main() -> None:
    """One more HTTP process, with the settings from stdin, on a listener of the supervisor's."""
    os.umask(0o077)
    configure()
    settings = ServiceSettings.from_json(sys.stdin.readline())

    def end_with_supervisor() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    http_server.end_by_signal()
    with http_server.Listener(fileno=int(sys.argv[2])) as listener:
        context = make_context(settings)
        Thread(target=end_with_supervisor, daemon=True).start()
        _answer(context, listener)


if __name__ == "__main__":
    main()
