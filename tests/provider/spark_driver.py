"""One Spark session for a whole suite, in the environment that has Spark: a job per line of stdin.

A line is JSON: a submission's folder, where the delivery goes, and settings; or a command's words.
Answers are lines of JSON, too, on the file descriptor that is named, since Spark itself writes to
the usual ones: a line for every word of progress, and then one with the result.
"""

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

from verix_anon import cli
from verix_anon.errors import Error
from verix_anon.provider.spark import SparkProvider
from verix_anon.provider.spark.session import session

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
}


def main() -> None:
    with os.fdopen(int(sys.argv[1]), "w", buffering=1) as answers:
        session(CONFIGURATION).sparkContext.setLogLevel("OFF")
        print(json.dumps({"ready": True}), file=answers)
        for line in sys.stdin:
            asked = json.loads(line)
            done = ran(asked["command"]) if "command" in asked else answer(asked, answers)
            print(json.dumps(done), file=answers)


def answer(asked: dict[str, Any], answers: Any) -> dict[str, Any]:
    provider = SparkProvider(
        configuration=asked.get("configuration", {}),
        task_rows=asked.get("task_rows"),
        progress=lambda *word: print(json.dumps({"progress": word}), file=answers),
    )
    try:
        header = provider.anonymize_folder(asked["submission"], asked["out"])
    except Error as error:
        return {"error": type(error).__name__, "sentence": str(error)}
    return {"root": header.root.hex()}


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
