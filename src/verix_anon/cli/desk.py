"""The owner's pages on this machine: desk."""

import os
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
        Path, typer.Argument(help="The folder of tables and jobs; this one if not given.")
    ] = Path(),
    port: Annotated[int, option("The port; 0 for any free one.", min=0, max=65535)] = 0,
    no_browser: Annotated[
        bool, option("Print the address, and open no browser.", "--no-browser")
    ] = False,
    url: Annotated[
        bool, option("Print another address of the desk that runs; good once.", "--url")
    ] = False,
) -> None:
    """Do the whole journey in a browser, on this machine only.

    The pages work on the folders of the other commands, and show the command of each step. The
    address lets one browser in, once; Ctrl-C ends the desk and all that it runs.
    """
    from verix_anon.files.optional_packages import need

    for package in ("fastapi", "jinja2", "uvicorn"):
        need(package, "desk", "the desk")
    if url:
        from verix_anon.desk.sessions import link_of

        found = link_of(folder)
        if found is None:
            raise TableError(f"no desk is running for {folder.resolve()}; start it without --url")
        say(found)
        return
    from verix_anon.desk.server import serve

    with tempfile.TemporaryDirectory(prefix="verix-desk-") as private:

        def ready(address: str) -> None:
            say(f"The desk is at {address}\nCtrl-C ends it.")
            if not no_browser:
                _open(address, Path(private))

        serve(folder, port, ready=ready)


def _open(address: str, private: Path) -> None:
    """Open a file that leads there: a browser's own command is seen in the list of processes."""
    path = private / "desk.html"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(OPENING.format(address))
    webbrowser.open(path.as_uri())
