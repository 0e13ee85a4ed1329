"""`verix-anon desk`: how a browser is opened, and every mistake at the start."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cli.jobs import Run
from verix_anon.cli import desk
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


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with a desktop, and a program that prints what it was given."""
    (tmp_path / "Desktop").mkdir()
    echo = tmp_path / "python of $HOME"
    echo.write_text(f"#!{sys.executable}\nimport sys\nprint(*sys.argv[1:], sep='\\n')\n")
    echo.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(echo))
    for name in ("XDG_CONFIG_HOME", "OneDrive"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


# What shells, desktops and consoles take for something else.
ODD = "tables \"a\" `b` $HOME 100% \\t 'c' Łódź & more"


def test_a_shortcut_for_linux_starts_the_desk_of_its_folder(home: Path) -> None:
    folder = home / ODD
    folder.mkdir()
    path = desk._install(folder, "linux")
    assert path == home / "Desktop" / f"verix-anon {ODD}.desktop"
    assert path.stat().st_mode & 0o777 == 0o755
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    entry = dict(line.split("=", 1) for line in lines)
    assert (head, entry["Type"], entry["Terminal"]) == ("[Desktop Entry]", "Application", "true")
    assert Path(entry["Icon"]).read_text().startswith("<svg")
    # First the escapes of every value, then quotes, as a shell reads them, then codes of %.
    command = entry["Exec"].replace("\\\\", "\\")
    said = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    words = said.replace("%%", "%").splitlines()
    assert words == ["-P", "-m", "verix_anon", "desk", str(folder)]
    assert entry["Name"].replace("\\\\", "\\") == f"verix-anon {ODD}"
    assert desk._install(folder, "linux") == path


def test_a_shortcut_for_macos_starts_the_desk_of_its_folder(home: Path) -> None:
    folder = home / ODD
    folder.mkdir()
    path = desk._install(folder, "darwin")
    assert path.suffix == ".command"
    said = subprocess.run([path], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["-P", "-m", "verix_anon", "desk", str(folder)]


def test_a_shortcut_for_windows_starts_the_desk_of_its_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "OneDrive" / "Desktop").mkdir(parents=True)
    monkeypatch.setenv("OneDrive", str(home / "OneDrive"))
    folder = home / "100% Łódź & more"
    folder.mkdir()
    path = desk._install(folder, "win32")
    assert path.parent == home / "OneDrive" / "Desktop"
    lines = path.read_bytes().decode().split("\r\n")
    assert "\n" not in "".join(lines)
    assert lines[:2] == ["@echo off", "chcp 65001 >nul"]
    started = f'"{sys.executable}" "-P" "-m" "verix_anon" "desk" "{folder}"'
    assert lines[2] == started.replace("%", "%%")


def test_where_the_desktop_has_another_name(home: Path, run: Run) -> None:
    (home / ".config").mkdir()
    (home / "Schreibtisch").mkdir()
    (home / ".config" / "user-dirs.dirs").write_text('XDG_DESKTOP_DIR="$HOME/Schreibtisch"\n')
    code, out, _ = run("desk", home, "--install")
    assert code == 0
    assert str(home / "Schreibtisch" / f"verix-anon {home.name}.") in out


def test_no_shortcut_without_a_desktop_or_a_folder(home: Path, run: Run) -> None:
    assert "there is no folder" in run("desk", home / "none", "--install").err
    (home / "a\nb").mkdir()
    assert "rename the folder" in run("desk", home / "a\nb", "--install").err
    (home / "Desktop").rmdir()
    assert "there is no desktop folder" in run("desk", home, "--install").err
