"""What was measured on Spark, as Markdown."""

from typing import Any

__all__ = ["render", "ways"]

GB = 1e9
HEADING = (
    "| phase | passes over the records | seconds | tasks | seconds of tasks | read | shuffled"
    " | spilled |"
)
RULE = "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
MEASURED = (
    "{rows:,} records of {columns} quasi-identifiers, positions of numbers of full precision, under"
    " importance-spread; two executors of one core and 1 GiB, a driver of 1 GiB, at most"
    " {task_rows:,} records in a task. The root is the local engine's."
)
HELD = (
    "The command took {seconds:.0f} s. All its processes together held at most {peak:.2f} GB (the"
    " sum of what each holds, shared pages counted again; aim {most:.2f} GB), the driver's Python"
    " {driver:.2f} GB of it. Before it began the load of the machine was {load:.1f}."
)
SOURCES = (
    "Passes, seconds, tasks and shuffled bytes are from Spark's event log; bytes read are the sizes"
    " of what a pass reads, times the passes."
)
ESTIMATED = (
    "Not run: arithmetic from the passes, bytes and seconds of tasks above. Assumed of each worker:"
    " {cores} cores like these, {executor_gigabytes} GB for its executor, {disk:,.0f} MB/s of disk,"
    " {network:.2f} GB/s of network; nothing overlaps, nothing waits, and records are spread"
    " evenly."
)
COMPARED = (
    "In passes over the records and bytes shuffled for the same table, one shuffle of which is"
    " {one:.2f} GB. mosaicrown's are counted in its source, with Parquet for its input and no"
    " measures asked for; it was not run."
)
FRAGMENTS = 16
ROUNDS = FRAGMENTS.bit_length() - 1


def render(result: dict[str, Any]) -> list[str]:
    """The figures as tables."""
    return [*_measured(result), *_estimated(result), *_compared(result)]


def _measured(result: dict[str, Any]) -> list[str]:
    table = [HEADING, RULE]
    for name, phase in result["phases"].items():
        read = read_bytes(result, name) / GB
        moved = f"{phase['shuffled_bytes'] / GB:.3f} GB | {phase['spilled_bytes'] / GB:.2f} GB"
        table.append(
            f"| {name} | {phase['passes']} | {phase['seconds']:.1f} | {phase['tasks']}"
            f" | {phase['task_seconds']:.1f} | {read:.2f} GB | {moved} |"
        )
    return [
        MEASURED.format(**result),
        "",
        HELD.format(**_gigabytes(result)),
        "",
        *table,
        "",
        SOURCES,
        "",
    ]


def _gigabytes(result: dict[str, Any]) -> dict[str, float]:
    return {
        "seconds": result["seconds"],
        "load": result["load_average"],
        "peak": result["peak_bytes"] / GB,
        "driver": result["driver_bytes"] / GB,
        "most": result["most_bytes"] / GB,
    }


def read_bytes(result: dict[str, Any], phase: str) -> float:
    """What a phase reads of files."""
    size = {"split": result["split_bytes"], "write": result["delivered_bytes"]}
    passes: float = result["phases"][phase]["passes"]
    return passes * float(size.get(phase, result["read_bytes"]))


def _estimated(result: dict[str, Any]) -> list[str]:
    e = result["estimate"]
    disk, network = e["disk_bytes_per_second"] / 1e6, e["network_bytes_per_second"] / GB
    facts = {
        "records that a task finishes": f"{e['task_rows']:,}",
        "levels of the top": f"{e['levels']}",
        "passes over the submission's files": f"{e['passes']}",
        "read": f"{e['read_bytes'] / 1e12:.2f} TB",
        "shuffled": f"{e['shuffled_bytes'] / 1e12:.2f} TB",
        "cores busy": f"{e['task_seconds'] / 60:,.1f} min",
        "disks busy": f"{e['disk_seconds'] / 60:,.1f} min",
        "network busy": f"{e['network_seconds'] / 60:,.1f} min",
        "in all": f"{60 * e['hours']:.0f} min",
    }
    table = ["| what | how much |", "| --- | ---: |", *(f"| {n} | {v} |" for n, v in facts.items())]
    assumed = ESTIMATED.format(**e, disk=disk, network=network)
    return [
        f"## {e['rows']:,} records on {e['workers']} workers, on paper",
        "",
        assumed,
        "",
        *table,
        "",
    ]


def ways(result: dict[str, Any]) -> list[tuple[str, str, float, str]]:
    """Ways to k-anonymize a table on a cluster: passes over it, bytes shuffled, and the outcome."""
    ours = sum(phase["passes"] for phase in result["phases"].values())
    shuffled = sum(phase["shuffled_bytes"] for phase in result["phases"].values())
    table = result["phases"]["grow"]["shuffled_bytes"]
    return [
        ("this engine", f"{ours}", shuffled, "the tree of one machine, to the bit, with a root"),
        (
            "and plain re-execution of it, to check",
            f"{2 * ours}",
            2 * shuffled,
            "the same tree twice, by an owner with such a cluster",
        ),
        (
            "mosaicrown, quantiles",
            "4",
            table,
            "first cuts by quantiles of one column; the driver holds all records",
        ),
        (
            "mosaicrown, quantiles of a sample",
            "4",
            table,
            "first cuts by quantiles of the sample: another tree for another sample",
        ),
        (
            f"mosaicrown, median cuts in parallel, {FRAGMENTS} fragments",
            f"{2 + ROUNDS} or more",
            (1 + ROUNDS) * table,
            "the first cut has the whole table in one task",
        ),
    ]


def _compared(result: dict[str, Any]) -> list[str]:
    """Passes over the files, and bytes shuffled."""
    one = result["phases"]["grow"]["shuffled_bytes"] / GB
    table = ["| way | passes | shuffled | what it gives |", "| --- | ---: | ---: | --- |"]
    table += [f"| {n} | {p} | {b / GB:.2f} GB | {given} |" for n, p, b, given in ways(result)]
    return ["## Beside other ways", "", COMPARED.format(one=one), "", *table, ""]
