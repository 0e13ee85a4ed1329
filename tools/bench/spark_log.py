"""What a job on Spark took, phase by phase, from the log that Spark itself writes."""

import json
from pathlib import Path
from typing import Any

__all__ = ["PHASES", "phases"]

PHASES = ("check files", "check records", "split", "grow", "write")
"""As the engine calls them where Spark shows its jobs."""


def phases(log: Path) -> dict[str, dict[str, float]]:
    """Passes, seconds, tasks, processor time and bytes of each phase."""
    found = {name: Phase() for name in PHASES}
    phase_of_stage: dict[int, Phase] = {}
    phase_of_job: dict[int, Phase] = {}
    with log.open() as lines:
        for line in lines:
            event = json.loads(line)
            kind = event["Event"].removeprefix("SparkListener")
            if kind == "JobStart":
                name = event["Properties"].get("spark.jobGroup.id", "")
                phase = found[name.removeprefix("verix-anon ")]
                phase_of_job[event["Job ID"]] = phase
                phase_of_stage |= dict.fromkeys(event["Stage IDs"], phase)
                phase.begins.append(event["Submission Time"])
            elif kind == "JobEnd":
                phase_of_job[event["Job ID"]].ends.append(event["Completion Time"])
            elif kind == "TaskEnd":
                phase_of_stage[event["Stage ID"]].add(event)
    return {name: phase.result() for name, phase in found.items()}


class Phase:
    """The jobs of one phase, and their tasks."""

    def __init__(self) -> None:
        self.begins: list[int] = []
        self.ends: list[int] = []
        self.n_tasks = 0
        self.task_seconds = self.shuffled = self.spilled = 0.0
        self.sending: dict[int, int] = {}
        """The tasks of each stage that sends something on to another"""

    def add(self, event: dict[str, Any]) -> None:
        """Take in that a task has ended."""
        metrics = event.get("Task Metrics") or {}
        written = metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
        self.n_tasks += 1
        self.task_seconds += metrics.get("Executor Run Time", 0) / 1e3
        self.shuffled += written
        self.spilled += metrics.get("Disk Bytes Spilled", 0)
        if written:
            self.sending[event["Stage ID"]] = self.sending.get(event["Stage ID"], 0) + 1

    def result(self) -> dict[str, float]:
        """In numbers; a pass over the records that sends nothing on is one of its own."""
        return {
            "passes": max(1, len(self.sending)) if self.n_tasks else 0,
            "seconds": (max(self.ends) - min(self.begins)) / 1e3 if self.ends else 0.0,
            "tasks": self.n_tasks,
            "sending_tasks": sum(self.sending.values()),
            "task_seconds": self.task_seconds,
            "shuffled_bytes": self.shuffled,
            "spilled_bytes": self.spilled,
        }
