"""The command that serves: TLS, addresses that are refused, and an end without leftovers."""

import datetime
import ipaddress
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from service.running import SECONDS, Service, running
from verix_anon import http_server
from verix_anon.errors import ProviderError
from verix_anon.service import server
from verix_anon.service.blobs import Blobs
from verix_anon.service.server import check_address, make_context
from verix_anon.service.settings import ServiceSettings


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    paths = (folder / "cert.pem", folder / "key.pem")
    paths[0].write_bytes(made.public_bytes(pem))
    paths[1].write_bytes(secret)
    return paths


def test_tls_and_a_clean_end(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    options = ("--certificate", str(cert), "--certificate-key", str(key))
    with running(tmp_path / "folder", *options) as service:
        assert service.url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=str(cert))
        with service.client(verify=trusted) as client:
            assert client.get("/v1").status_code == 200
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"{service.url}/healthz", timeout=SECONDS)
        assert service.process is not None
        workers = subprocess.run(
            ["pgrep", "-P", str(service.process.pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        assert workers
        assert service.stop() == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_a_kept_connection_does_not_wait_for_acknowledgements(tmp_path: Path) -> None:
    with (
        http_server.listener("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        taken, _ = listener.accept()
        with taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def children(service: Service) -> dict[int, str]:
    """The processes of a server, by what they run."""
    assert service.process is not None
    said = subprocess.run(
        ["pgrep", "-a", "-P", str(service.process.pid)], capture_output=True, text=True, check=False
    ).stdout
    return {int(line.split()[0]): line for line in said.splitlines()}


def test_several_processes_answer_and_are_replaced(tmp_path: Path) -> None:
    with running(tmp_path / "folder", "--http-processes", "2") as service:
        (other,) = [pid for pid, what in children(service).items() if "service.server" in what]
        until = time.monotonic() + SECONDS
        while f"Started server process [{other}]" not in service.log.read_text():
            assert time.monotonic() < until
            time.sleep(0.1)
        assert httpx2.get(f"{service.url}/readyz", timeout=SECONDS).status_code == 200
        os.kill(other, signal.SIGKILL)
        while True:
            found = [pid for pid, what in children(service).items() if "service.server" in what]
            if found and found != [other]:
                break
            assert time.monotonic() < until
            time.sleep(0.1)
        assert httpx2.get(f"{service.url}/healthz", timeout=SECONDS).status_code == 200
        assert service.stop() == 0
        assert not Path(f"/proc/{found[0]}").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org", ""])
def test_nothing_is_sent_in_clear_over_a_network(tmp_path: Path, host: str) -> None:
    settings = ServiceSettings(folder=tmp_path, host=host)
    with pytest.raises(ProviderError, match="--behind-proxy"):
        check_address(settings, behind_proxy=False)
    check_address(settings, behind_proxy=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_needs_no_tls(tmp_path: Path, host: str) -> None:
    check_address(ServiceSettings(folder=tmp_path, host=host), behind_proxy=False)


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with pytest.raises(ProviderError, match="go together"):
        check_address(ServiceSettings(folder=tmp_path, certificate=cert), behind_proxy=False)
    with pytest.raises(ProviderError, match="there is no file"):
        check_address(
            ServiceSettings(folder=tmp_path, certificate=cert, certificate_key=tmp_path / "x"),
            behind_proxy=False,
        )
    settings = ServiceSettings(
        folder=tmp_path, host="0.0.0.0", certificate=cert, certificate_key=key
    )
    check_address(settings, behind_proxy=False)
    key.write_text("none")
    with pytest.raises(ProviderError, match=r"cert\.pem and .*key\.pem are no certificate"):
        check_address(settings, behind_proxy=False)


def test_a_store_that_cannot_be_reached_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoCredentialsError(Exception):
        """As a cloud's client raises it."""

    def unreachable(*_: object, **__: object) -> None:
        raise NoCredentialsError("a secret")

    store = Blobs("memory://blobs")
    monkeypatch.setattr(store._fs, "pipe_file", unreachable)
    monkeypatch.setattr(server, "Blobs", lambda *_, **__: store)
    with pytest.raises(ProviderError, match=r"does not serve \(NoCredentialsError\)\)$"):
        make_context(ServiceSettings(folder=tmp_path))


def refused(*options: str) -> str:
    """What the command says that does not serve."""
    done = subprocess.run(
        [sys.executable, "-m", "verix_anon", "serve", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_what_the_command_refuses(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    assert "--behind-proxy" in refused(str(folder), "--host", "0.0.0.0")
    assert not folder.exists()
    with running(tmp_path / "other") as service:
        assert "cannot be listened on" in refused(str(folder), "--port", str(service.port))
    assert "database" in refused(str(folder), "--database", "nonsense")
    (tmp_path / "file").write_text("")
    assert "folder" in refused(str(tmp_path / "file"), "--port", "0")
