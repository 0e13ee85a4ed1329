"""What people see beside the result."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from verix_anon.cli import output
from verix_anon.progress import Compiling, compiling

FIRST_RUN = """
import sys, numba
from verix_anon import kernels
from verix_anon.cli.output import progress_bar
with progress_bar({quiet}):
    for _ in range(2):
        numba.njit(lambda x: x + 1)(1)
"""


@pytest.mark.parametrize("quiet", [False, True])
def test_compiling_is_announced_once_before_it_begins(quiet: bool) -> None:
    code = FIRST_RUN.format(quiet=quiet)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == ([] if quiet else [output.COMPILING])


def test_compiling_is_timed_from_the_first_kernel_to_the_last() -> None:
    own, told = Compiling(), list[float]()
    own.tell = lambda: told.append(own.seconds)
    own.begin()
    own.begin()
    own.end()
    assert own.seconds == 0
    own.end()
    assert own.seconds > 0
    own.begin()
    own.end()
    assert told == [0.0]


def test_a_kernel_that_is_loaded_is_not_compiled() -> None:
    from verix_anon.kernels import trees

    trees.group_rows(leaf := np.zeros(1, np.int32), 1)
    before = compiling.seconds
    trees.group_rows(leaf, 1)
    assert compiling.seconds == before


@pytest.mark.parametrize(
    ("is_terminal", "variables", "shown"),
    [
        (True, {}, "\x1b[32m\x1b[1mVERIFIED\x1b[0m"),
        (True, {"NO_COLOR": "1"}, "VERIFIED"),
        (True, {"TERM": "dumb"}, "VERIFIED"),
        (False, {}, "VERIFIED"),
    ],
)
def test_verdicts_have_colours_where_somebody_looks(
    is_terminal: bool, variables: dict[str, str], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    assert output.painted("VERIFIED", "VERIFIED") == shown
    assert output.painted("skipped", "skipped") == "skipped"


def test_commands_are_quoted_for_a_shell() -> None:
    assert output.quoted("a b", Path("it's"), "--out") == "'a b' 'it'\"'\"'s' --out"


def test_a_bar_shows_on_a_terminal_and_goes() -> None:
    code = "from verix_anon.cli.output import during; during('read', False, lambda: None)"
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stderr=theirs, check=True)
    os.close(theirs)
    assert b"read" in os.read(ours, 65_536)
    os.close(ours)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands(shell: str) -> None:
    words = {
        "bash": {"COMP_WORDS": "verix-anon ex", "COMP_CWORD": "1"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "verix-anon ex"},
        "fish": {
            "_TYPER_COMPLETE_ARGS": "verix-anon ex",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
    }[shell]
    asked = {**os.environ, **words, "_VERIX_ANON_COMPLETE": f"complete_{shell}"}
    code = "from verix_anon import cli; cli.app([], prog_name='verix-anon')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=asked, capture_output=True, text=True, check=False
    )
    assert "explore" in done.stdout
    assert "prepare" not in done.stdout
