"""One Spark session for a whole suite, in the environment that has Spark: a job per line of stdin.

A line is JSON: a submission's folder, where the delivery goes, and settings; or a command's words.
With `kill`, an executor is killed in each of these phases while it has a task of it.
Answers are lines of JSON, too, on the file descriptor that is named, since Spark itself writes to
the usual ones: a line for every word of progress, and then one with the result.
"""

import contextlib
import io
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from verix_anon import cli
from verix_anon.errors import Error
from verix_anon.provider.spark import SparkProvider, _told
from verix_anon.provider.spark.session import running_cores, session

SOURCE = Path(__file__).resolve().parents[2] / "src"
CONFIGURATION = {
    # Two executors in processes of their own, with a core and 1 GiB each.
    "spark.master": "local-cluster[2,1,1024]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executorEnv.PYTHONPATH": str(SOURCE),
    "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    # What has run, for tests to count; the folder is where this is run.
    "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": f"file:{Path.cwd()}",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    # What is told of running tasks is true at once.
    "spark.ui.liveUpdate.period": "0",
    # Where S3 is, and who asks.
    **{f"spark.executorEnv.{n}": value for n, value in os.environ.items() if n.startswith("AWS_")},
}
EXECUTOR = b"CoarseGrainedExecutorBackend"
N_EXECUTORS = 2
PATIENCE = 120
PAUSE = 1


def main() -> None:
    with os.fdopen(int(sys.argv[1]), "w", buffering=1) as answers:
        with session(CONFIGURATION) as spark:
            spark.sparkContext.setLogLevel("OFF")
            print(json.dumps({"ready": True}), file=answers)
            for line in sys.stdin:
                asked = json.loads(line)
                print(json.dumps(done(asked, answers)), file=answers)
        assert SparkContext._active_spark_context is None


def done(asked: dict[str, Any], answers: Any) -> dict[str, Any]:
    if "command" in asked:
        return ran(asked["command"])
    return failed() if "fails" in asked else answer(asked, answers)


def failed() -> dict[str, Any]:
    """What is told of a task that fails, as by a full disk, in a session that was there before."""

    def work(batches: Any) -> Any:
        raise OSError(28, "No space left on device")

    context = SparkContext.getOrCreate()
    context.setJobGroup("mine", "what I do")
    try:
        with session({}) as spark, _told():
            spark.sparkContext.setJobGroup("ours", "what we do")
            spark.range(1).mapInArrow(work, "id long").collect()
    except Error as error:
        return {
            "error": type(error).__name__,
            "sentence": str(error),
            "cores": running_cores(context),
            "group": context.getLocalProperty("spark.jobGroup.id"),
        }
    raise AssertionError("the task has not failed")


def answer(asked: dict[str, Any], answers: Any) -> dict[str, Any]:
    killer = Killer(asked.get("kill", []))

    def tell(*word: Any) -> None:
        print(json.dumps({"progress": word}), file=answers)
        killer.hear(word[0])

    provider = SparkProvider(
        configuration=asked.get("configuration", {}),
        task_rows=asked.get("task_rows"),
        progress=tell,
    )
    try:
        header = provider.anonymize_folder(asked["submission"], asked["out"])
    except Error as error:
        return {"error": type(error).__name__, "sentence": str(error)}
    return {"root": header.root.hex(), "killed": killer.killed}


class Killer:
    """Kills an executor in some phases, each given as its name and the number of a stage of it."""

    def __init__(self, phases: list[tuple[str, int]]) -> None:
        self.phases = dict(phases)
        self.killed: list[str] = []

    def hear(self, phase: str) -> None:
        """A phase begins: with all executors, and with one to be killed."""
        if phase in self.phases:
            context = SparkContext.getOrCreate()
            wait(lambda: context._jsc.sc().getExecutorMemoryStatus().size() == 1 + N_EXECUTORS)
            known = set(stages_of(context.statusTracker(), phase))
            given = (context, phase, self.phases.pop(phase), known)
            threading.Thread(target=self.kill, args=given, daemon=True).start()

    def kill(self, context: Any, phase: str, at: int, known: set[int]) -> None:
        tracker = context.statusTracker()

        def idle() -> int | None:
            """How many executors have no task of the stage, while it runs: each has one core.

            It may be a later one: one of few records may be over before it is seen.
            """
            stages = sorted(set(stages_of(tracker, phase)) - known)
            found = [tracker.getStageInfo(stage) for stage in stages]
            ran = [each for each in found if each and each.numActiveTasks + each.numCompletedTasks]
            for each in ran[at:]:
                if each.numCompletedTasks < each.numTasks and each.numTasks >= N_EXECUTORS:
                    is_last = each.numCompletedTasks + 1 == each.numTasks
                    return int(N_EXECUTORS - each.numActiveTasks - is_last)
            return None

        wait(lambda: idle() == 0)
        chosen = executors()[0]
        # One that stands still does not end its task before it is killed. What it sent before that
        # arrives within the pause; if its task was over, it has been given another by then.
        os.kill(chosen, signal.SIGSTOP)
        try:
            time.sleep(PAUSE)
            wait(lambda: idle() == 0)
            self.killed.append(phase)
        finally:
            os.kill(chosen, signal.SIGKILL)


def stages_of(tracker: Any, phase: str) -> list[int]:
    """The stages of a phase, of all jobs so far."""
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(f"verix-anon {phase}")]
    return [stage for job in jobs if job for stage in job.stageIds]


def wait(until: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not until():
        assert time.monotonic() < deadline, "it has not come to it"
        time.sleep(0.01)


def executors() -> list[int]:
    """The processes of executors, which are among this one's descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                status = (entry / "stat").read_text().rpartition(")")[2].split()
                is_executor = EXECUTOR in (entry / "cmdline").read_bytes()
                parents[int(entry.name)] = (int(status[1]), is_executor)

    def is_ours(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid][0]
        return pid == os.getpid()

    return [pid for pid, (_, is_one) in parents.items() if is_one and is_ours(pid)]


def ran(words: list[str]) -> dict[str, Any]:
    """What a command says, and with which code it ends."""
    said = io.StringIO()
    sys.argv = ["verix-anon", *words]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            cli.main()
    except SystemExit as ended:
        return {"code": int(ended.code or 0), "said": said.getvalue()}
    raise AssertionError("a command ends")


if __name__ == "__main__":
    main()
