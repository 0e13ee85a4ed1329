"""Runs a page: its commands and scripts in a folder of its own, its Python in one namespace."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.documents.markdown import ROOT, Block, agrees, commands
from verix_anon import cli

WARNINGS = "warnings of one run"
SHOWN = ("output", "output of one run", WARNINGS)
"""The titles of blocks that show what was printed."""
# What only a shell can do; a plain command runs in this process, which spares its start.
SHELL = re.compile(r"[|;&<>()$]")


class Page:
    """One page being run."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.folder = folder
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.printed = ""
        self.warned = ""
        self.by_hand: dict[str, str] = {}
        _write_command(folder / ".bin" / "verix-anon", " -m verix_anon")
        _write_command(folder / ".bin" / "python")
        self.path_variable = f"{folder / '.bin'}:{os.environ['PATH']}"

    def run(self, block: Block) -> None:
        """Run a block, or compare one that shows output with what was printed last."""
        where = f"{self.path.relative_to(ROOT)}:{block.line}"
        with contextlib.chdir(self.folder):
            if block.language == "console":
                self._run_console(block, where)
            elif block.language == "sh":
                self._expect(self._shell(block.text), 0, where)
            elif block.language == "python":
                with self._listening():
                    # Blank lines in front give a traceback the line of the page.
                    code = "\n" * block.line + block.text
                    exec(compile(code, str(self.path), "exec"), self.names)
            elif block.title in SHOWN:
                printed = self.warned if block.title == WARNINGS else self.printed
                self._compare(block.text, where, printed, loosely=block.title != "output")

    def _run_console(self, block: Block, where: str) -> None:
        for command in commands(block):
            if command.by_hand is not None:
                self.by_hand[command.text] = command.by_hand
                continue
            at = f"{where}: {command.text}"
            text = re.sub(r"^\.venv/bin/", "", command.text)
            if text.startswith("make "):
                # The tests run inside what make sets up; that the target is there is checked.
                code = _quietly(["make", "-n", "-C", str(ROOT), *shlex.split(text)[1:]])
            elif text.startswith("verix-anon ") and not SHELL.search(_unquoted(text)):
                code = self._verix(shlex.split(text.replace("\\\n", " ")))
            else:
                code = self._shell(text)
            self._expect(code, command.exit_code, at)
            if command.shown:
                self._compare(command.shown, at, self.printed, loosely=False)

    def _verix(self, arguments: list[str]) -> int:
        with self._listening(), pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", arguments)
            # For the commands that it starts.
            patch.setenv("PATH", self.path_variable)
            try:
                cli.main()
            except SystemExit as stop:
                return int(stop.code or 0)
        return 0

    def _shell(self, script: str) -> int:
        done = subprocess.run(
            ["bash", "-euc", script],
            # A reader of `python -m tools...` is in a clone.
            env={**os.environ, "PATH": self.path_variable, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        self.printed = done.stdout
        return done.returncode

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        heard, warned = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(warned):
                yield
        finally:
            self.printed, self.warned = heard.getvalue(), warned.getvalue()
            sys.stderr.write(self.warned)

    def _expect(self, code: int, wanted: int, where: str) -> None:
        assert code == wanted, f"{where}\nexit code {code}, not {wanted}\n{self.printed}"

    def _compare(self, shown: str, where: str, printed: str, *, loosely: bool) -> None:
        agree = agrees(shown, printed, loosely=loosely)
        assert agree, f"{where}\nshows\n{shown}\nbut this was printed\n{printed}"


def _quietly(arguments: list[str]) -> int:
    return subprocess.run(arguments, capture_output=True, check=False).returncode


def _unquoted(text: str) -> str:
    return re.sub(r"\"[^\"]*\"|'[^']*'", "", text)


def _write_command(path: Path, words: str = "") -> None:
    """A command of the Python that runs the tests, whatever is on the PATH."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n', encoding="utf-8")
    path.chmod(0o700)
