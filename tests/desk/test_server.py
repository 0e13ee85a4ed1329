"""The desk as a process: its one address, its end, and what is worth nothing after that."""

import os
import signal
from pathlib import Path

import pytest

from tools.desk_process import another_url, serving
from verix_anon.desk.server import serve
from verix_anon.desk.sessions import FILE, link_file, link_of
from verix_anon.errors import TableError
from verix_anon.provider.local import LocalProvider


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
            serve(tmp_path, 0, provider=LocalProvider(), ready=print)
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
        assert link_of(tmp_path) is None
    with serving(tmp_path):
        assert link_of(tmp_path) is not None


def test_the_link_of_a_desk_that_was_killed_is_not_shown(tmp_path: Path) -> None:
    """Another process may listen on its port."""
    (tmp_path / FILE).touch(0o600)
    (tmp_path / FILE).write_text("http://127.0.0.1:4711/enter?token=old")
    assert link_of(tmp_path) is None
    with link_file(tmp_path) as write:
        write("http://127.0.0.1:4712/enter?token=new")
        assert link_of(tmp_path) == "http://127.0.0.1:4712/enter?token=new"
    assert link_of(tmp_path) is None


def test_a_file_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    with link_file(tmp_path):
        (tmp_path / FILE).chmod(0o644)
        with pytest.raises(TableError, match="not believed"):
            link_of(tmp_path)
        (tmp_path / FILE).chmod(0o600)
        assert link_of(tmp_path) is None
    (tmp_path / FILE).touch(0o644)
    with pytest.raises(TableError, match="not believed"), link_file(tmp_path):
        pass
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).symlink_to(os.devnull)
    with pytest.raises(TableError, match="cannot be read"):
        link_of(tmp_path)
