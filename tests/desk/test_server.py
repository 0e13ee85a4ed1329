"""The desk as a process: its one address, its end, and what is worth nothing after that."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from desk.serving import another_url, serving
from verix_anon.desk.running import FILE, Running, fresh_url, noted
from verix_anon.desk.server import serve
from verix_anon.errors import TableError


def test_a_desk_from_its_start_to_its_end(tmp_path: Path) -> None:
    with serving(tmp_path) as desk:
        cookie = f"verix-desk-{desk.port}"
        with desk.client() as browser:
            assert browser.get("/").status_code == 401
            assert browser.get(desk.url).status_code == 303
            assert browser.get("/").status_code == 200
            session = browser.cookies[cookie]
        with desk.client() as other:
            assert other.get(desk.url).status_code == 403
            printed = another_url(tmp_path)
            assert printed.returncode == 0
            assert other.get(printed.stdout.strip()).status_code == 303
            assert other.get("/").status_code == 200
        unused = another_url(tmp_path).stdout.strip()
        assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
        with pytest.raises(TableError, match="a desk is running"):
            serve(tmp_path, 0, ready=print)
        code, said = desk.end()
    assert code == 0
    for secret in (desk.url.split("=")[1], session, unused.split("=")[1]):
        assert secret not in said
    assert not (tmp_path / FILE).exists()
    assert another_url(tmp_path).returncode == 2
    # After the exit a stolen token or cookie opens nothing, on the same port either.
    with serving(tmp_path, desk.port) as again, again.client() as thief:
        for stolen in (desk.url, unused):
            assert thief.get(f"/enter?{stolen.split('?')[1]}").status_code == 403
        assert again.origin == desk.origin
        headers = {"Cookie": f"{cookie}={session}"}
        assert thief.get("/", headers=headers).status_code == 401


def test_only_this_machine_is_listened_to(tmp_path: Path) -> None:
    with serving(tmp_path) as desk:
        listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
        ours = [line.split()[1] for line in listening.splitlines() if f":{desk.port:04X} " in line]
        assert [place for place in ours if place.endswith(f":{desk.port:04X}")]
        assert {place.split(":")[0] for place in ours if place.endswith(f":{desk.port:04X}")} == {
            "0100007F"
        }


def test_an_interruption_ends_it_too(tmp_path: Path) -> None:
    with serving(tmp_path) as desk:
        assert desk.end(signal.SIGINT)[0] == 0


def test_the_file_of_a_desk_that_was_killed_is_no_desk(tmp_path: Path) -> None:
    with serving(tmp_path) as desk:
        desk.process.kill()
        desk.process.wait()
        assert (tmp_path / FILE).exists()
        assert fresh_url(tmp_path) is None
    with serving(tmp_path):
        assert fresh_url(tmp_path) is not None


@contextmanager
def pretending(said: str) -> Iterator[tuple[int, list[str]]]:
    """Somebody else on a port, who says the same to all; its number, and what was heard there."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(f"{self.requestline} {self.headers}")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(said.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_address[1], heard
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("said", ["", "secret", "A" * 43, "0" * 64])
def test_whoever_took_the_port_of_a_desk_is_not_believed_and_learns_nothing(
    tmp_path: Path, said: str
) -> None:
    with pretending(said) as (port, heard), noted(tmp_path, Running(port, "secret")):
        assert fresh_url(tmp_path) is None
    assert len(heard) == 1
    assert "secret" not in heard[0]


def test_a_file_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    with noted(tmp_path, Running(1, "x")):
        (tmp_path / FILE).chmod(0o644)
        with pytest.raises(TableError, match="not believed"):
            fresh_url(tmp_path)
        (tmp_path / FILE).chmod(0o600)
        assert fresh_url(tmp_path) is None
    (tmp_path / FILE).symlink_to(os.devnull)
    with pytest.raises(TableError, match="cannot be read"):
        fresh_url(tmp_path)
