"""A foreign command: what it did is told apart, and nothing of it outlives its limit."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from verix_anon.conform.foreign_command import filled, run
from verix_anon.conform.trials import ProviderOutcome, command_provider
from verix_anon.errors import TableError

PLACES = {"submission": Path("/s"), "delivery": Path("/d")}
BOTH = ["{submission}", "{delivery}"]


def script(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["p"], ["p", "/s", "/d"]),
        (["p", "{submission}", "--out={delivery}"], ["p", "/s", "--out=/d"]),
        (["p", "--in={submission},{delivery}"], ["p", "--in=/s,/d"]),
    ],
)
def test_folders_stand_where_they_are_named(command: Sequence[str], words: list[str]) -> None:
    assert filled(command, PLACES, BOTH) == words


def test_a_place_for_one_folder_alone_is_a_mistake() -> None:
    with pytest.raises(TableError, match=r"a place for \{delivery\} alone"):
        command_provider(["p", "{delivery}"], limit=1)


def test_a_command_that_is_none_is_a_mistake() -> None:
    with pytest.raises(TableError, match="'no-such-command' cannot be started"):
        run(["no-such-command"], limit=1)


def test_the_last_line_is_heard_however_much_is_said() -> None:
    ended = run(script("print('x' * 10**7); print('the end\\x1b[31m')"), limit=60)
    assert (ended.code, ended.said) == (0, "the end\N{REPLACEMENT CHARACTER}[31m")
    ended = run(script("print('y' * 1000)"), limit=60)
    assert ended.said == "y" * 300 + "…"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # What nobody has waited for yet is no longer alive.
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:1]


def until(holds: Callable[[], object]) -> None:
    """Wait for it, however busy the machine is."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < 60
        time.sleep(0.05)


def assert_ends(pid: int) -> None:
    until(lambda: not is_alive(pid))


def test_the_limit_ends_what_the_command_started_too(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    began = time.monotonic()
    limit = 1.0
    ended = run(script(code), limit=limit)
    while not (tmp_path / "pid").exists():
        # A busy machine had not started it yet.
        limit *= 4
        ended = run(script(code), limit=limit)
    assert ended.code is None
    assert time.monotonic() - began < 300
    assert_ends(int((tmp_path / "pid").read_text()))


def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
    )
    assert run(script(code), limit=60).code == 0
    assert_ends(int((tmp_path / "pid").read_text()))


# A shell in the background hands down a SIGINT that is ignored.
CONFORM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from verix_anon import cli; cli.main()"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_what_runs_and_leaves_nothing(
    number: signal.Signals, tmp_path: Path
) -> None:
    folders, begun = tmp_path / "folders", tmp_path / "begun"
    folders.mkdir()
    begun.mkdir()
    stays = f"import os, time; open(f'{begun}/{{os.getpid()}}', 'w'); time.sleep(600)"
    cases = ["--only", "ties", "--only", "pure", "--only", "mixed", "--jobs", "2"]
    words = [*script(CONFORM), "conform", *cases, "--limit", "600", *script(stays)]
    environment = os.environ | {"TMPDIR": str(folders)}
    with subprocess.Popen(words, env=environment) as process:
        try:
            until(lambda: len(list(begun.iterdir())) == 2)
            assert {path.name[:8] for path in folders.iterdir()} == {"verix-co", "verix-ki"}
            process.send_signal(number)
            process.wait(60)
            for path in begun.iterdir():
                assert_ends(int(path.name))
        finally:
            process.kill()
            for path in begun.iterdir():
                with suppress(ProcessLookupError):
                    os.kill(int(path.name), signal.SIGKILL)
    assert process.returncode == 130
    assert list(folders.iterdir()) == []
    # The third was not begun.
    assert len(list(begun.iterdir())) == 2


MAKES = "import os, sys; os.mkdir(sys.argv[2])"
BREAKS = "import sys; print({!r} + 'y' * 10**6); sys.exit(1)"
AFTER_A_CRASH = "exit code 1 after a crash, which is not a refusal"


@pytest.mark.parametrize(
    ("code", "outcome", "said"),
    [
        (MAKES, ProviderOutcome.DELIVERED, "delivered"),
        ("pass", ProviderOutcome.BROKEN, "exit code 0, and no delivery"),
        (
            "import sys; sys.exit('bad k')",
            ProviderOutcome.REFUSED,
            "refused with exit code 1: bad k",
        ),
        (f"{MAKES}; sys.exit(3)", ProviderOutcome.BROKEN, "exit code 3, and something lies at"),
        (
            "import sys; sys.exit(70)",
            ProviderOutcome.BROKEN,
            "exit code 70, which is not a refusal",
        ),
        (
            "import sys; sys.exit(127)",
            ProviderOutcome.BROKEN,
            "exit code 127, which is not a refusal",
        ),
        ("[][1]", ProviderOutcome.BROKEN, f"{AFTER_A_CRASH}: IndexError: list index out of range"),
        (BREAKS.format("x" * 4090 + "thread panicked at"), ProviderOutcome.BROKEN, AFTER_A_CRASH),
        (BREAKS.format("goroutine 1 [running]:"), ProviderOutcome.BROKEN, AFTER_A_CRASH),
        (BREAKS.format('Exception in thread "main" E'), ProviderOutcome.BROKEN, AFTER_A_CRASH),
        (
            f"{MAKES}; print('Traceback (most recent call last)')",
            ProviderOutcome.DELIVERED,
            "delivered",
        ),
        (
            f"import os; os.kill(os.getpid(), {int(signal.SIGSEGV)})",
            ProviderOutcome.BROKEN,
            "ended by signal 11",
        ),
    ],
)
def test_what_a_command_did(code: str, outcome: ProviderOutcome, said: str, tmp_path: Path) -> None:
    answer = command_provider(script(code), limit=60)(tmp_path, tmp_path / "delivery")
    assert answer.outcome is outcome
    assert answer.said.startswith(said)


def test_a_command_that_takes_too_long_has_not_refused(tmp_path: Path) -> None:
    answer = command_provider(script("import time; time.sleep(600)"), limit=0.2)(
        tmp_path, tmp_path / "delivery"
    )
    assert answer.outcome is ProviderOutcome.BROKEN
    assert answer.said == "no answer in 0.2 s, so it was ended"
