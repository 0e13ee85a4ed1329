"""The provider's service: serve."""

from pathlib import Path
from typing import Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.provide import SparkSettings, spark_settings
from verix_anon.cli.show import say

__all__ = ["DatabaseUrl", "need_service", "serve"]

DAY = 86_400.0
MEGABYTE = 10**6

DatabaseUrl = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="VERIX_DATABASE",
        help="URL of a PostgreSQL in place of SQLite in the folder.",
        show_envvar=False,
        show_default=False,
    ),
]


@app.command(
    epilog="Example: [bold]verix-anon serve /srv/verix --certificate cert.pem"
    " --certificate-key key.pem --host 0.0.0.0[/bold]\n\n"
    "On this machine alone: [bold]verix-anon serve service[/bold], and in another window"
    " [bold]verix-anon token create acme --folder service[/bold]"
)
def serve(
    folder: Annotated[
        Path, typer.Argument(help="Where uploads grow; the database and the files too, by default.")
    ],
    database: DatabaseUrl = "",
    blobs: Annotated[
        str,
        typer.Option(
            help="Folder or fsspec URL, such as s3://bucket/verix, for uploads and deliveries.",
            show_default=False,
        ),
    ] = "",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; as many as cores by default.")
    ] = None,
    worker_memory: Annotated[
        int, typer.Option(min=100, help="Megabytes of memory for the job of a worker.")
    ] = 4_000,
    key_file: Annotated[
        Path | None, typer.Option(help="The private key that signs receipts, not sealed.")
    ] = None,
    spark_above: Annotated[
        int | None,
        typer.Option(
            min=1, help="Give jobs of more rows than this to Spark.", rich_help_panel="Spark"
        ),
    ] = None,
    spark: SparkSettings = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on.", rich_help_panel="Network")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, help="The port; 0 for any free one.", rich_help_panel="Network"
        ),
    ] = 8443,
    certificate: Annotated[
        Path | None,
        typer.Option(help="The TLS certificate, in PEM.", rich_help_panel="Network"),
    ] = None,
    certificate_key: Annotated[
        Path | None,
        typer.Option(help="The certificate's private key, in PEM.", rich_help_panel="Network"),
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy",
            help="Listen beyond this machine without TLS, because a proxy in front speaks it.",
            rich_help_panel="Network",
        ),
    ] = False,
    max_upload: Annotated[
        int, typer.Option(min=1, help="Megabytes of one submission.", rich_help_panel="Limits")
    ] = 20_000,
    max_rows: Annotated[
        int, typer.Option(min=1, help="Rows of one submission.", rich_help_panel="Limits")
    ] = 50_000_000,
    max_columns: Annotated[
        int, typer.Option(min=1, help="Columns of one contract.", rich_help_panel="Limits")
    ] = 1_000,
    max_jobs: Annotated[
        int, typer.Option(min=1, help="Open jobs of one tenant.", rich_help_panel="Limits")
    ] = 20,
    max_request: Annotated[
        int,
        typer.Option(
            min=1, help="Megabytes of one request, uploads aside.", rich_help_panel="Limits"
        ),
    ] = 16,
    rate: Annotated[
        int,
        typer.Option(min=1, help="Requests of one token in a minute.", rich_help_panel="Limits"),
    ] = 1_200,
    retention_days: Annotated[
        float,
        typer.Option(
            min=0.0001,
            help="Delete what ended, and uploads that did not, after so many days.",
            rich_help_panel="Limits",
        ),
    ] = 7.0,
) -> None:
    """Serve the provider over HTTP: uploads, worker processes, deliveries.

    Logs are JSON lines on stderr and hold no data. SIGTERM ends it; jobs that were running are
    taken up at the next start, and transfers are resumed by their clients.
    """
    need_service(blobs)
    from verix_anon.machine import available_cores
    from verix_anon.service.server import serve as serve_until_ended
    from verix_anon.service.settings import Limits, Settings

    settings = Settings(
        folder=folder.absolute(),
        database=database,
        blobs=blobs,
        workers=workers or available_cores(),
        worker_bytes=worker_memory * MEGABYTE,
        retention_seconds=retention_days * DAY,
        key_file=key_file,
        host=host,
        port=port,
        certificate=certificate,
        certificate_key=certificate_key,
        spark_above=spark_above,
        spark=spark_settings(spark or []),
        limits=Limits(
            upload_bytes=max_upload * MEGABYTE,
            file_bytes=max_upload * MEGABYTE,
            rows=max_rows,
            columns=max_columns,
            concurrent_jobs=max_jobs,
            requests_per_minute=rate,
            request_bytes=max_request * MEGABYTE,
        ),
    )
    serve_until_ended(
        settings, behind_proxy=behind_proxy, ready=lambda url: say(f"verix-anon serves at {url}")
    )


def need_service(blobs: str = "") -> None:
    """Raise unless what a service is made of is installed."""
    from verix_anon.files.extras import need

    for package in ("sqlalchemy", "uvicorn"):
        need(package, "service", "a service")
    if blobs.startswith("s3://"):
        need("s3fs", "s3", "a service with its files in S3")
