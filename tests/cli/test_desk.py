"""`verix-anon desk`: how a browser is opened, and every mistake at the start."""

import socket
from pathlib import Path

import pytest

from cli.jobs import Run
from verix_anon.cli.desk import _open


def test_a_browser_gets_a_file_that_only_its_user_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    _open("http://127.0.0.1:1/enter?token=secret", tmp_path)
    (place,) = opened
    assert "secret" not in place, "others see the arguments of a browser"
    path = Path(place.removeprefix("file://"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert 'content="0;url=http://127.0.0.1:1/enter?token=secret"' in path.read_text()


def test_mistakes_at_the_start(tmp_path: Path, run: Run) -> None:
    assert "there is no folder" in run("desk", tmp_path / "none", "--no-browser").err
    code, _, err = run("desk", tmp_path, "--url")
    assert (code, "no desk is running" in err) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run("desk", tmp_path, "--no-browser", "--port", port)
    assert code == 2
    assert f"port {port} cannot be listened on" in err
    assert not list(tmp_path.glob(".verix-desk*"))
