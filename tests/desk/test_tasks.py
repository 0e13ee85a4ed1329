"""A task is a command: its progress, its end, its cancelling; nothing outlives the desk."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from desk.browsing import SECONDS, Browser, Given, wait_for
from verix_anon.desk.tasks import DeskTask, Tasks
from verix_anon.errors import TableError

STEPS = """
import json, os, sys, time
from pathlib import Path
say = lambda done: print(json.dumps({"stage": "grow", "done": done, "total": 4}), file=sys.stderr)
say(1)
print("a word to people", file=sys.stderr, flush=True)
while sys.argv[1] == "wait" and not Path("go").exists():
    time.sleep(0.01)
say(4)
print("the result")
sys.exit(int(sys.argv[2]))
"""
STUBBORN = """
import signal, subprocess, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
Path("child").write_text(str(child.pid))
time.sleep(600)
"""


def running(folder: Path, code: str) -> Tasks:
    return Tasks(folder, (sys.executable, "-c", code))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Who has nobody that waits for it stays as a zombie in a container.
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def ended(task: DeskTask) -> DeskTask:
    wait_for(lambda: not task.is_running)
    return task


def test_what_a_command_says_is_taken_down(tmp_path: Path) -> None:
    task = ended(running(tmp_path, STEPS).start("job", ("go", "0"), then="/next"))
    assert task.stages == {"grow": (4, 4)}
    assert list(task.lines) == ["a word to people"], "and not its result"
    assert task.code == 0
    assert task.shown == "verix-anon go 0"


@pytest.mark.parametrize(
    "line",
    [
        *("[" * 16_000, '{"stage": "x", "done": 1e999, "total": 1}', "[1]", "1" * 5_000, "{}"),
        '{"stage": "x", "done": NaN, "total": 1}',
    ],
)
def test_an_odd_line_is_taken_down_as_it_is(tmp_path: Path, line: str) -> None:
    code = f"import sys; print({line!r}, file=sys.stderr)"
    task = ended(running(tmp_path, code).start("job", (), then="/"))
    assert (list(task.lines), task.stages, task.code) == ([line], {}, 0)


def test_there_is_one_task_at_a_time_for_a_job(tmp_path: Path) -> None:
    tasks = running(tmp_path, STEPS)
    first = tasks.start("job", ("wait", "3"), then="/")
    with pytest.raises(TableError, match="a command runs for this job"):
        tasks.start("job", ("go", "0"), then="/")
    assert ended(tasks.start("other", ("go", "0"), then="/")).code == 0
    assert tasks.of("job") is first
    (tmp_path / "go").touch()
    assert ended(first).code == 3
    assert ended(tasks.start("job", ("go", "0"), then="/")).code == 0


def test_the_whole_group_is_ended_though_it_does_not_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verix_anon.desk.tasks.GRACE_SECONDS", 0.2)
    tasks = running(tmp_path, STUBBORN)
    task = tasks.start("job", (), then="/")
    wait_for(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    tasks.close()
    ended(task)
    assert task.code == -signal.SIGKILL
    child = int((tmp_path / "child").read_text())
    wait_for(lambda: not is_alive(child))


def test_secrets_go_by_the_environment(tmp_path: Path) -> None:
    code = "import os, sys; sys.exit(os.environ['VERIX_TOKEN'] + os.environ['VERIX_ATTENDED'])"
    task = running(tmp_path, code).start("job", (), then="/", environment={"VERIX_TOKEN": "secret"})
    assert list(ended(task).lines) == ["secret1"]
    assert "secret" not in task.shown


def test_a_module_that_lies_in_the_folder_is_not_run(tmp_path: Path) -> None:
    for name in ("verix_anon", "typer", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)")
    task = ended(Tasks(tmp_path).start("job", ("--version",), then="/"))
    assert task.code == 0


def test_progress_comes_as_events(given: Given, browser: Browser) -> None:
    desk = given.desk
    (desk.folder / "job").mkdir()
    desk.tasks.program = (sys.executable, "-c", STEPS)
    assert browser.get("/jobs/job/task/events").status_code == 404
    (desk.folder / "go").touch()
    task = desk.tasks.start("job", ("wait", "0"), then="/jobs/job/columns")
    text = browser.get("/jobs/job/task/events").text
    events = [dict(line.split(": ", 1) for line in part.splitlines()) for part in blocks(text)]
    assert events[-1]["event"] == "end"
    assert json.loads(events[-1]["data"]) == {"code": 0, "then": "/jobs/job/columns"}
    assert ended(task).code == 0
    # Who comes later is told at once.
    assert '"code":0' in browser.get("/jobs/job/task/events").text.replace(" ", "")


def blocks(text: str) -> list[str]:
    found = [part for part in text.replace("\r\n", "\n").split("\n\n") if part.strip()]
    return [part for part in found if not part.startswith(":")]


def test_a_page_shows_the_task_whoever_opens_it(given: Given, browser: Browser) -> None:
    desk = given.desk
    (desk.folder / "job").mkdir()
    desk.tasks.program = (sys.executable, "-c", STEPS)
    task = desk.tasks.start("job", ("wait", "2"), then="/")
    wait_for(lambda: task.stages)
    for one in (browser, Browser(given).entered()):
        assert "Working …" in one.get("/").text
    assert browser.submit("/jobs/job/task/cancel", {}).status_code == 303
    ended(task)
    assert task.is_cancelled
    assert task.code


ATTENDED = """
import sys, time
from pathlib import Path
from verix_anon.parent_process import attend
attend()
try:
    Path("begun").touch()
    time.sleep(600)
except KeyboardInterrupt:
    Path("cleared").touch()
"""
PARENT = """
import subprocess, sys
from pathlib import Path
from verix_anon.desk.tasks import Tasks
task = Tasks(Path.cwd(), (sys.executable, "-c", sys.argv[1])).start("job", (), then="/")
print(task.process.pid, flush=True)
sys.stdin.read()
"""


def test_a_command_ends_with_a_desk_that_was_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, ATTENDED],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    try:
        wait_for((tmp_path / "begun").exists)
        parent.kill()
        wait_for(lambda: not is_alive(pid))
        assert (tmp_path / "cleared").exists()
    finally:
        parent.kill()
        parent.communicate(timeout=SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_attended_command_clears_up_at_a_signal(tmp_path: Path, number: int) -> None:
    code = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{ATTENDED}"
    task = running(tmp_path, code).start("job", (), then="/")
    wait_for((tmp_path / "begun").exists)
    os.killpg(task.process.pid, number)
    assert ended(task).code == 0
    assert (tmp_path / "cleared").exists()


def test_progress_of_a_real_command(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(
        "age,income\n" + "".join(f"{i},{i % 2}\n" for i in range(9))
    )
    task = ended(Tasks(tmp_path).start("job", ("init", "people.csv", "--out", "r.toml"), then="/"))
    assert task.code == 0, task.lines
    assert task.stages == {"read": (1, 1), "guess": (1, 1)}
    assert (tmp_path / "r.toml").exists()
    failed = ended(Tasks(tmp_path).start("job", ("init", "nothing.csv"), then="/"))
    assert failed.code == 2
    assert list(failed.lines)[-1] == "verix-anon: there is no file nothing.csv"
