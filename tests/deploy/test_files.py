"""The operator's files: read by the programs that they are for, and true of the command."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.jobs import Run
from deploy import certificates

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
PROGRAM = "/opt/verix-anon/.venv/bin/verix-anon"


def checked(*command: str | Path) -> str:
    """What a program says about a file; it must find nothing wrong."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with a program that is there on any machine."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    text = (DEPLOY / "verix-anon.service").read_text()
    assert PROGRAM in text
    path = tmp_path / "verix-anon.service"
    path.write_text(text.replace(PROGRAM, "/bin/true"))
    return path


def test_systemd_takes_the_unit(unit: Path) -> None:
    assert checked("systemd-analyze", "verify", unit) == ""
    unit.write_text(unit.read_text().replace("ProtectSystem=strict", "ProtectSystm=strict"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert "ProtectSystm" in done.stderr


def test_the_unit_is_confined(unit: Path) -> None:
    said = checked("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    assert "exposure level" in said


def test_nginx_takes_its_configuration(tmp_path: Path) -> None:
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if nginx is None:
        pytest.skip("there is no nginx")
    certificates.write(tmp_path, "anon.example.org")
    text = (DEPLOY / "nginx.conf").read_text().replace("/etc/ssl/verix-anon", str(tmp_path))
    (tmp_path / "site.conf").write_text(text)
    places = "".join(
        f"{name}_temp_path {tmp_path}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = f"pid {tmp_path}/pid; error_log stderr; events {{}} "
    whole += f"http {{ access_log off; {places} include {tmp_path}/site.conf; }}"
    (tmp_path / "nginx.conf").write_text(whole)
    said = checked(nginx, "-t", "-e", "stderr", "-p", tmp_path, "-c", tmp_path / "nginx.conf")
    assert "test is successful" in said
    assert "[warn]" not in said


def test_uploads_go_straight_through_nginx() -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    uploads = re.search(r"location [^{]*/files/ \{(.*?)\}", text, re.DOTALL)
    assert uploads is not None
    assert "proxy_request_buffering off;" in uploads[1]
    assert "client_max_body_size 0;" in uploads[1]


def test_the_image_is_made_of_what_is_here() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    for line in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE):
        for name in line.split():
            assert (ROOT / name).exists(), name
    extras = re.search(r"/src\[(.*?)\]", text)
    assert extras is not None
    known = (ROOT / "pyproject.toml").read_text()
    assert all(f"\n{extra} = [" in known for extra in extras[1].split(","))


def test_the_options_are_those_of_the_command(run: Run) -> None:
    code, out, _ = run("serve", "--help")
    assert code == 0
    for name in ("verix-anon.service", "Containerfile"):
        given = re.findall(r"(?<!\S|-)[\"' ]*(--[a-z-]+)", _command(DEPLOY / name))
        assert given
        for option in given:
            assert option in out, f"{name}: {option}"


def _command(path: Path) -> str:
    text = path.read_text().replace("\\\n", " ")
    found = re.findall(r"^(?:ExecStart|ENTRYPOINT|CMD)(.*)$", text, re.MULTILINE)
    return " ".join(found)
