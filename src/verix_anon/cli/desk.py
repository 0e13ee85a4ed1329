"""The command `desk`: serve the pages on this machine, open them, or install a shortcut to them."""

import os
import re
import shlex
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.options import option
from verix_anon.cli.output import say
from verix_anon.errors import TableError

OPENING = '<!doctype html><title>verix-anon</title><meta http-equiv="refresh" content="0;url={}">\n'


@app.command(epilog="Example: [bold]verix-anon desk[/bold], in the folder that holds the table.")
def desk(
    folder: Annotated[
        Path, typer.Argument(help="The folder with tables and jobs. Default: this one.")
    ] = Path(),
    port: Annotated[int, option("The port; 0 for any free one.", min=0, max=65535)] = 0,
    no_browser: Annotated[
        bool, option("Print the address, and open no browser.", "--no-browser")
    ] = False,
    url: Annotated[
        bool, option("Print a new address of the running desk. It works once.", "--url")
    ] = False,
    install: Annotated[
        bool, option("Put a shortcut on your desktop, and do not start the desk.", "--install")
    ] = False,
) -> None:
    """Do the whole journey in a browser, on this machine only.

    The pages work on the folders of the other commands, and show the command of each step. The
    address works once, for one browser. Ctrl-C ends the desk and everything that it runs.
    """
    from verix_anon.files.optional_packages import need

    for package in ("fastapi", "jinja2", "uvicorn"):
        need(package, "desk", "the desk")
    if install:
        path = _install(folder, sys.platform)
        say(f"Wrote {path}. A double-click on it starts the desk for {folder.resolve()}.")
        return
    if url:
        from verix_anon.desk.sessions import link_of

        found = link_of(folder)
        if found is None:
            raise TableError(f"no desk is running for {folder.resolve()}; start it without --url")
        say(found)
        return
    from verix_anon.desk.server import serve
    from verix_anon.provider.local import LocalProvider

    with tempfile.TemporaryDirectory(prefix="verix-desk-") as private:

        def ready(address: str) -> None:
            say(f"The desk is at {address}\nCtrl-C ends it.")
            if not no_browser:
                _open(address, Path(private))

        serve(folder, port, provider=LocalProvider(), ready=ready)


def _open(address: str, private: Path) -> None:
    """Open a file that leads there: a browser's own command is seen in the list of processes."""
    path = private / "desk.html"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(OPENING.format(address))
    webbrowser.open(path.as_uri())


def _install(folder: Path, system: str) -> Path:
    """Write a shortcut that starts the desk of a folder in a terminal, and return its path."""
    from verix_anon.files.atomic_write import written_aside

    folder = folder.resolve()
    if not folder.is_dir():
        raise TableError(f"there is no folder {folder}")
    words = [sys.executable, "-P", "-m", "verix_anon", "desk", str(folder)]
    if any(not each.isprintable() for each in words):
        raise TableError(f"a shortcut cannot name {str(folder)!r}; rename the folder")
    if system == "win32":
        text, ending = _batch(words), ".bat"
    elif system == "darwin":
        text, ending = f"#!/bin/sh\nexec {shlex.join(words)}\n", ".command"
    else:
        text, ending = _entry(words), ".desktop"
    path = _desktop() / f"verix-anon {folder.name or 'desk'}{ending}"
    with written_aside(path, overwrite=True, folder=False, private=False) as aside:
        aside.write_bytes(text.encode())
    path.chmod(0o755)
    return path


def _desktop() -> Path:
    """The folder of this user's desktop, which may have a name in another language."""
    home = Path.home()
    places = [home / "Desktop"]
    if moved := os.environ.get("OneDrive"):  # noqa: SIM112, because Windows writes it so
        places.insert(0, Path(moved) / "Desktop")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "user-dirs.dirs"
    if config.is_file():
        text = config.read_text(encoding="utf-8", errors="replace")
        if said := re.search(r'^XDG_DESKTOP_DIR="(.+)"', text, re.MULTILINE):
            places.insert(0, Path(said[1].replace("$HOME", str(home))))
    if found := [place for place in places if place.is_dir()]:
        return found[0]
    raise TableError(f"there is no desktop folder {places[0]}; run verix-anon desk instead")


def _entry(words: list[str]) -> str:
    """An entry for the desktops of Linux, which show the desk's icon."""
    name, icon = Path(words[-1]).name, Path(__file__).parents[1] / "desk" / "static" / "desk.svg"
    # Quoted for the command line, then escaped as every text in such a file is.
    words = ['"' + re.sub(r'(["`$\\])', r"\\\1", word.replace("%", "%%")) + '"' for word in words]
    text = f"[Desktop Entry]\nType=Application\nName=verix-anon {name}\nExec={' '.join(words)}\n"
    return f"{text}Icon={icon}\nTerminal=true\n".replace("\\", "\\\\")


def _batch(words: list[str]) -> str:
    """A script that Windows runs in its console; the window stays if something fails."""
    # No file name holds a quote there, and % is the only sign that quotes do not protect.
    command = " ".join(f'"{word.replace("%", "%%")}"' for word in words)
    return "\r\n".join(["@echo off", "chcp 65001 >nul", command, "if errorlevel 1 pause", ""])
