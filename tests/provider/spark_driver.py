"""One Spark session for a whole suite, in the environment that has Spark: a job per line of stdin.

A line is JSON: the submission's folder, where the delivery goes, and settings. An answer is JSON,
too, on the file descriptor that is named: Spark itself writes to stdout.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from verix_anon.errors import Error
from verix_anon.provider.spark import SparkProvider
from verix_anon.provider.spark.session import session

SOURCE = Path(__file__).resolve().parents[2] / "src"
CONFIGURATION = {
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
    answers = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    session(CONFIGURATION).sparkContext.setLogLevel("ERROR")
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers)


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    stages: list[list[Any]] = []
    provider = SparkProvider(
        configuration=asked.get("configuration", {}),
        task_rows=asked.get("task_rows"),
        progress=lambda *word: stages.append(list(word)),
    )
    try:
        header = provider.anonymize_folder(asked["submission"], asked["out"])
    except Error as error:
        return {"error": type(error).__name__, "sentence": str(error)}
    return {"root": header.root.hex(), "stages": stages}


if __name__ == "__main__":
    main()
