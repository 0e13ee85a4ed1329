"""The commands `serve` and `token`: run a provider's service, and say who may use it."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix_anon.cli.anonymize import SparkSettings, spark_settings
from verix_anon.cli.app import app
from verix_anon.cli.options import AsJson, option, spark_option
from verix_anon.cli.output import say
from verix_anon.errors import ProviderError
from verix_anon.fields import printable, to_json

if TYPE_CHECKING:
    from verix_anon.service.database import Database

DAY = 86_400.0
MEGABYTE = 10**6

DatabaseUrl = Annotated[
    str,
    option(
        "URL of a PostgreSQL database. Default: SQLite in the folder.",
        "--database",
        envvar="VERIX_DATABASE",
        show_envvar=False,
        show_default=False,
    ),
]

network_option = partial(option, panel="Network")
limits_option = partial(option, panel="Limits")


@app.command(
    epilog="Example: [bold]verix-anon serve /srv/verix --certificate cert.pem"
    " --certificate-key key.pem --host 0.0.0.0[/bold]\n\n"
    "On this machine alone: [bold]verix-anon serve service[/bold], and in another window"
    " [bold]verix-anon token create acme --folder service[/bold]"
)
def serve(
    folder: Annotated[
        Path, typer.Argument(help="The service's folder, for uploads and, by default, all else.")
    ],
    database: DatabaseUrl = "",
    blobs: Annotated[
        str,
        option(
            "Folder or fsspec URL, such as s3://bucket/verix, for uploads and deliveries.",
            show_default=False,
        ),
    ] = "",
    store_timeout: Annotated[
        float, option("Seconds to wait for a store in a cloud before it counts as away.", min=1)
    ] = 30.0,
    workers: Annotated[
        int | None, option("Worker processes; as many as cores by default.", min=1)
    ] = None,
    http_processes: Annotated[int, option("Processes that answer requests.", min=1)] = 1,
    job_timeout: Annotated[
        float, option("Seconds after which a running job fails.", min=1)
    ] = 21_600.0,
    worker_memory: Annotated[
        int, option("Megabytes of memory for the job of one worker.", min=100)
    ] = 4_000,
    key_file: Annotated[
        Path | None, option("The private key that signs receipts, not sealed.")
    ] = None,
    spark_above: Annotated[
        int | None, spark_option("Give jobs of more rows than this to Spark.", min=1)
    ] = None,
    spark: SparkSettings = None,
    host: Annotated[str, network_option("The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, network_option("The port; 0 for any free one.", min=0, max=65535)] = 8443,
    certificate: Annotated[Path | None, network_option("The TLS certificate, in PEM.")] = None,
    certificate_key: Annotated[
        Path | None, network_option("The certificate's private key, in PEM.")
    ] = None,
    behind_proxy: Annotated[
        bool,
        network_option(
            "Listen beyond this machine without TLS, because a proxy in front speaks it.",
            "--behind-proxy",
        ),
    ] = False,
    max_connections: Annotated[
        int, network_option("Connections to each HTTP process.", min=1)
    ] = 4_096,
    max_per_address: Annotated[
        int,
        network_option("Connections from one other machine; no limit with --behind-proxy.", min=1),
    ] = 256,
    max_upload: Annotated[int, limits_option("Megabytes of one submission.", min=1)] = 20_000,
    max_rows: Annotated[int, limits_option("Rows of one submission.", min=1)] = 50_000_000,
    max_columns: Annotated[int, limits_option("Columns of one contract.", min=1)] = 1_000,
    max_jobs: Annotated[int, limits_option("Open jobs of one tenant.", min=1)] = 20,
    max_request: Annotated[
        int, limits_option("Megabytes of one request that is not an upload.", min=1)
    ] = 16,
    tenant_bytes: Annotated[
        int, limits_option("Bytes that one tenant may announce and store.", min=1)
    ] = 100_000_000_000,
    reserve: Annotated[
        int | None,
        limits_option(
            "Megabytes that stay free on the disk; 5 % of it and at most 1074 by default.", min=0
        ),
    ] = None,
    rate: Annotated[int, limits_option("Requests of one token in a minute.", min=1)] = 1_200,
    retention_days: Annotated[
        float,
        limits_option("Delete ended jobs and unfinished uploads after this many days.", min=0.0001),
    ] = 7.0,
) -> None:
    """Serve the provider over HTTP: uploads, worker processes, deliveries.

    Logs are JSON lines on stderr and hold no tenant's data. SIGTERM ends it. At the next start, it
    takes up the jobs that were running, and clients resume their transfers.
    """
    _need_service(blobs)
    from verix_anon.machine import available_cores
    from verix_anon.service.server import serve as serve_until_ended
    from verix_anon.service.settings import ServiceLimits, ServiceSettings

    settings = ServiceSettings(
        folder=folder.absolute(),
        database=database,
        blobs=blobs,
        connections=max_connections,
        address_connections=0 if behind_proxy else max_per_address,
        http_processes=http_processes,
        workers=workers or available_cores(),
        job_seconds=job_timeout,
        worker_bytes=worker_memory * MEGABYTE,
        store_seconds=store_timeout,
        retention_seconds=retention_days * DAY,
        reserve_bytes=None if reserve is None else reserve * MEGABYTE,
        key_file=key_file,
        host=host,
        port=port,
        certificate=certificate,
        certificate_key=certificate_key,
        spark_above=spark_above,
        spark=spark_settings(spark or []),
        limits=ServiceLimits(
            upload_bytes=max_upload * MEGABYTE,
            file_bytes=max_upload * MEGABYTE,
            rows=max_rows,
            columns=max_columns,
            concurrent_jobs=max_jobs,
            tenant_bytes=tenant_bytes,
            requests_per_minute=rate,
            request_bytes=max_request * MEGABYTE,
        ),
    )
    serve_until_ended(
        settings, behind_proxy=behind_proxy, ready=lambda url: say(f"verix-anon serves at {url}")
    )


def _need_service(blobs: str = "") -> None:
    """Raise unless what a service is made of is installed."""
    from verix_anon.files.optional_packages import need

    for package in ("sqlalchemy", "uvicorn"):
        need(package, "service", "a service")
    if blobs.startswith("s3://"):
        need("s3fs", "s3", "a service with its files in S3")


token = typer.Typer(
    name="token", help="Make, list and revoke the tokens of a service.", no_args_is_help=True
)
app.add_typer(token)

Folder = Annotated[
    Path | None, option("The folder that `verix-anon serve` was given.", "--folder", "-f")
]


@token.command(epilog="Example: [bold]verix-anon token create acme --folder service[/bold]")
def create(
    name: Annotated[
        str | None, typer.Argument(help="The tenant's name; a new name makes a new tenant.")
    ] = None,
    operator: Annotated[
        bool, option("Make the operator's token, for /operator and /metrics.", "--operator")
    ] = False,
    days: Annotated[
        float | None, option("After how many days it ends; never by default.", min=0.0001)
    ] = None,
    folder: Folder = None,
    database: DatabaseUrl = "",
) -> None:
    """Make a token and print it. Store it: the service keeps only its digest."""
    _need_service()
    from verix_anon.service.tenants import TokenRole, create_token, find

    if (name is None) is not operator:
        raise ProviderError("give either a tenant's name or --operator")
    role = TokenRole.OPERATOR if operator else TokenRole.TENANT
    with _opened(folder, database, begin=True) as opened:
        made = create_token(opened, name, role, None if days is None else days * DAY)
        known = find(opened, made)
    say(made)
    if known is not None:
        print(f"Its id is {known.id}.", file=sys.stderr)


@token.command("list", epilog="Example: [bold]verix-anon token list --folder service[/bold]")
def list_tokens(folder: Folder = None, database: DatabaseUrl = "", as_json: AsJson = False) -> None:
    """List all tokens: their ids, whose they are, and when they end."""
    _need_service()
    from verix_anon.service.tenants import tokens

    with _opened(folder, database) as opened:
        known = tokens(opened)
    if as_json:
        found = [
            {
                "id": each.id,
                "role": each.role,
                "tenant": each.tenant,
                **{name: _time(getattr(each, name)) for name in ("created", "expires", "revoked")},
            }
            for each in known
        ]
        say(to_json(found))
        return
    for each in known:
        who = "the operator" if each.tenant is None else printable(each.tenant)
        if each.revoked is not None:
            end = f"revoked {_time(each.revoked)}"
        elif each.expires is None:
            end = "never ends"
        else:
            end = f"{'ended' if each.expires <= time.time() else 'ends'} {_time(each.expires)}"
        say(f"{each.id}  {who}, made {_time(each.created)}, {end}")


@token.command(epilog="Example: [bold]verix-anon token revoke 3f2a91c4 --folder service[/bold]")
def revoke(
    token_id: Annotated[str, typer.Argument(help="The token's id, as `list` shows it.")],
    folder: Folder = None,
    database: DatabaseUrl = "",
) -> None:
    """End a token at once. Jobs that were begun with it go on."""
    _need_service()
    from verix_anon.service.tenants import revoke as revoke_token

    with _opened(folder, database) as opened:
        if not revoke_token(opened, token_id):
            raise ProviderError("there is no token of that id, or it is revoked already")
    say("Revoked.")


@contextmanager
def _opened(folder: Path | None, url: str, *, begin: bool = False) -> "Iterator[Database]":
    from verix_anon.service.database import Database, DatabaseError
    from verix_anon.service.settings import DATABASE_FILE, ServiceSettings

    if folder is None and not url:
        raise ProviderError("which service? Add --folder FOLDER, or --database URL")
    folder = (folder or Path()).absolute()
    settings = ServiceSettings(folder=folder, database=url)
    is_new = not url and not (folder / DATABASE_FILE).exists()
    if is_new and not begin:
        raise ProviderError(f"there is no service in {folder}")
    if is_new:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    opened = Database.opened(settings.database_url)
    try:
        yield opened
    except DatabaseError:
        raise ProviderError(
            "the database cannot be written: its disk is full, or it does not answer"
        ) from None
    finally:
        opened.close()
    if is_new:
        print(f"There was no service in {folder}, so its database was made.", file=sys.stderr)


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
