"""An S3 of the tests' own, in this process."""

from collections.abc import Iterator
from contextlib import contextmanager

import fsspec
import pytest


@contextmanager
def running() -> Iterator[str]:
    """The endpoint of an S3 that runs until the block ends."""
    from moto.server import ThreadedMotoServer  # Takes long to load.

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextmanager
def reached(endpoint: str) -> Iterator[None]:
    """Until the block ends, this process and those that it starts find the S3 there."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ACCESS_KEY_ID", "k"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ):
            patch.setenv(name, value)
        # fsspec keeps its clients, and with them the endpoint of an earlier test.
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        try:
            yield
        finally:
            fsspec.get_filesystem_class("s3").clear_instance_cache()
