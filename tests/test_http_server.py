"""Connections that say nothing, or too little, leave room for others."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from verix_anon import http_server

SERVED = """
from verix_anon import http_server

async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})

http_server.HEADER_SECONDS = 0.5
with http_server.listener("127.0.0.1", 0) as listener:
    listener.limit(4, 0)
    print(listener.getsockname()[1], flush=True)
    http_server.serve(app, listener, grace=1)
"""
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def port() -> Iterator[int]:
    """A server that takes four connections, and headers within half a second."""
    with subprocess.Popen([sys.executable, "-c", SERVED], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def said(connection: socket.socket) -> bytes:
    """What comes next; nothing if the server has closed it."""
    try:
        return connection.recv(1000)
    except ConnectionResetError:
        return b""


def test_silent_connections_are_bounded_and_let_go(port: int) -> None:
    silent = [connected(port) for _ in range(4)]
    # Served once, so that all four are taken before the next comes.
    silent[0].sendall(REQUEST)
    assert said(silent[0]).startswith(b"HTTP/1.1 204")
    with connected(port) as more:
        assert said(more) == b""
    for connection in silent[1:]:
        assert said(connection) == b""
    with connected(port) as again:
        again.sendall(REQUEST)
        assert said(again).startswith(b"HTTP/1.1 204")
    for connection in silent:
        connection.close()


def trickle(connection: socket.socket) -> None:
    for byte in b"GET / HTTP/1.1\r\n" + b"x" * 1000:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


@pytest.mark.parametrize("before", [b"", REQUEST])
def test_headers_that_trickle_are_cut_off(port: int, before: bytes) -> None:
    """The first request's, and those of one on a connection that was kept."""
    with connected(port) as connection:
        if before:
            connection.sendall(before)
            assert said(connection).startswith(b"HTTP/1.1 204")
        began = time.monotonic()
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            trickle(connection)
        assert time.monotonic() - began < 15


def test_one_address_cannot_take_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "192.0.2.1"

    def accept(_: socket.socket) -> tuple[socket.socket, tuple[str, int]]:
        return socket.socket(), (address, 1)

    with http_server.listener("127.0.0.1", 0) as listener:
        listener.limit(100, 2)
        monkeypatch.setattr(socket.socket, "accept", accept)
        taken = [listener.accept()[0] for _ in range(2)]
        with pytest.raises(ConnectionAbortedError):
            listener.accept()
        address = "192.0.2.2"
        taken.append(listener.accept()[0])
        address = "192.0.2.1"
        taken[0].close()
        taken[0].close()
        taken.append(listener.accept()[0])
        # A proxy on this machine has as many as it needs.
        address = "127.0.0.1"
        taken += [listener.accept()[0] for _ in range(3)]
        for connection in taken:
            connection.close()
