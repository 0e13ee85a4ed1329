"""nginx in front of the service, with the configuration that is shipped: real, on loopback."""

import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

import verix_anon
from deploy import certificates
from service.running import SECONDS, Service, running
from tools import cases
from verix_anon import RemoteOptions, RemoteProvider

CONFIGURATION = Path(__file__).parent.parent.parent / "deploy" / "nginx.conf"
LISTENS = re.compile(r"^    listen 443 ssl http2;\n    listen \[::\]:443 ssl http2;$", re.M)


@pytest.fixture(scope="module")
def nginx() -> str:
    """The program; it is not on everybody's path."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip("there is no nginx: make system installs it")
    return found


def written(folder: Path, text: str, host: str) -> Path:
    """A whole configuration around the one that is shipped, with a certificate of its own."""
    certificates.write(folder, host)
    (folder / "site.conf").write_text(text.replace("/etc/ssl/verix-anon", str(folder)))
    places = "".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = f"pid {folder}/pid; error_log stderr; daemon off; master_process off; events {{}} "
    whole += f"http {{ access_log off; {places} include {folder}/site.conf; }}"
    (folder / "nginx.conf").write_text(whole)
    return folder / "nginx.conf"


def test_nginx_takes_its_configuration(nginx: str, tmp_path: Path) -> None:
    path = written(tmp_path, CONFIGURATION.read_text(), "anon.example.org")
    command = [nginx, "-t", "-e", "stderr", "-p", str(tmp_path), "-c", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "test is successful" in done.stderr
    assert "[warn]" not in done.stderr


def test_uploads_go_straight_through() -> None:
    uploads = re.search(r"location [^{]*/files/ \{(.*?)\}", CONFIGURATION.read_text(), re.DOTALL)
    assert uploads is not None
    assert "proxy_request_buffering off;" in uploads[1]
    assert "client_max_body_size 0;" in uploads[1]


class Wire:
    """A connection to nginx that breaks once, when so many bytes went there."""

    def __init__(self, port: int, breaks_at: int) -> None:
        self.target, self.left, self.sent = port, breaks_at, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in (self.listener, *self.ends):
            _end(each)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
                self.ends += (near, far)
                for pair in ((near, far, True), (far, near, False)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, is_up: bool) -> None:
        with suppress(OSError):
            while data := source.recv(4096):
                target.sendall(data)
                if is_up:
                    self.sent += len(data)
                    self.left -= len(data)
                    if -len(data) < self.left <= 0:
                        break
        for each in (source, target):
            _end(each)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


class Proxied(NamedTuple):
    """A service behind nginx: where nginx listens, and its certificate."""

    service: Service
    port: int
    certificate: Path


@pytest.fixture(scope="module")
def proxied(nginx: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """A service behind nginx."""
    folder = tmp_path_factory.mktemp("proxy")
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = int(one.getsockname()[1])
    with running(folder / "service") as service:
        text = CONFIGURATION.read_text().replace("127.0.0.1:8443", f"127.0.0.1:{service.port}")
        text, changed = LISTENS.subn(f"    listen 127.0.0.1:{port} ssl http2;", text)
        assert changed == 1
        configured = str(written(folder, text, "localhost"))
        command = [nginx, "-e", "stderr", "-p", str(folder), "-c", configured]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stderr=log)
        try:
            until = time.monotonic() + SECONDS
            while time.monotonic() < until and process.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.02)
            assert process.poll() is None, (folder / "log").read_text()
            yield Proxied(service, port, folder / "fullchain.pem")
        finally:
            process.terminate()
            process.wait(SECONDS)


@pytest.mark.long
def test_an_upload_that_is_cut_off_goes_on_through_nginx(proxied: Proxied, tmp_path: Path) -> None:
    made = cases.make(cases.table(20_000), witnesses=2)
    verix_anon.write_submission(made.submission, tmp_path / "submission")
    sizes = [each.stat().st_size for each in (tmp_path / "submission").rglob("*") if each.is_file()]
    wire = Wire(proxied.port, breaks_at=max(sizes) * 7 // 10)
    options = RemoteOptions(ca_file=proxied.certificate, seed=1)
    url, token = f"https://localhost:{wire.port}", proxied.service.token()
    provider = RemoteProvider(url, token, options=options)
    provider.anonymize_folder(tmp_path / "submission", tmp_path / "delivery")
    wire.close()
    # It was cut, and what had come through was not sent again.
    assert wire.left <= 0
    assert wire.sent < 1.4 * sum(sizes)
    skip = ("fingerprint", "utility")
    assert verix_anon.verify(
        tmp_path / "delivery", made.manifest, submission=tmp_path / "submission", skip=skip
    )


@pytest.mark.long
def test_the_operator_comes_in_from_this_machine(proxied: Proxied) -> None:
    trusted = ssl.create_default_context(cafile=proxied.certificate)
    with httpx2.Client(base_url=f"https://localhost:{proxied.port}", verify=trusted) as client:
        assert client.get("/operator").status_code == 401
        given = {"Authorization": f"Bearer {proxied.service.token(None)}"}
        answer = client.get("/operator", headers=given)
    assert answer.status_code == 200
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
