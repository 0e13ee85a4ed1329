"""What people see: progress on stderr, facts and verdicts as lines of text."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.progress import TaskID

    from verix_anon.client.verdict import Verdict

__all__ = [
    "AsJson",
    "Quiet",
    "facts",
    "printable",
    "progress_bar",
    "say",
    "say_compiled",
    "verdict_lines",
]

CLOSED_PIPE = 141

Progress = Callable[[str, int, int], None]

AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print the result as JSON.", rich_help_panel="Output"),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="No progress on stderr.", rich_help_panel="Output"),
]


def printable(text: str) -> str:
    """One line whatever a file put into the text, with nothing a terminal would obey."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def say(text: str) -> None:
    """Print to stdout; if nobody reads it any more, leave as a killed process would.

    Left to the framework, a closed pipe would end in exit code 1, which means VIOLATION.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(CLOSED_PIPE)


def say_compiled() -> None:
    """Explain on stderr why this run took long, if kernels were compiled in it."""
    modules = [
        module for name, module in list(sys.modules.items()) if name.startswith("verix_anon.")
    ]
    found = (getattr(value, "stats", None) for module in modules for value in vars(module).values())
    # What numba counts of each kernel: found in its cache, or not.
    if any(sum(getattr(stats, "cache_misses", {}).values()) for stats in found):
        print(
            "Kernels were compiled for this machine, once; later runs start at once.",
            file=sys.stderr,
        )


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Progress]:
    """A progress bar on stderr, one line per stage, gone when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
    stages: dict[str, TaskID] = {}

    def report(stage: str, done: int, total: int) -> None:
        if stage not in stages:
            stages[stage] = bar.add_task(stage, total=total)
        bar.update(stages[stage], completed=done)

    with bar:
        yield report


def facts(found: Mapping[str, object], indent: str = "") -> Iterator[str]:
    """Nested facts, one line each."""
    for name, value in found.items():
        if isinstance(value, Mapping):
            yield f"{indent}{printable(name)}:"
            yield from facts(value, indent + "  ")
        elif isinstance(value, int) and not isinstance(value, bool):
            yield f"{indent}{printable(name)}: {value:,}"
        else:
            yield f"{indent}{printable(name)}: {printable(str(value))}"


def verdict_lines(verdict: "Verdict") -> Iterator[str]:
    """The verdict as a table of one line per layer; what failed is explained below it."""
    for finding in verdict.findings:
        role = "decides" if finding.decides else "informs"
        line = f"{finding.layer:<12} {finding.status.value:<13} {role:<8} {finding.seconds:6.2f} s"
        yield f"{line}  {printable(finding.summary)}"
    for finding in verdict.findings:
        if finding.decides and finding.status.value in ("fail", "inconclusive"):
            yield ""
            yield f"{finding.layer}: {printable(finding.summary)}"
            shown = finding.evidence.get("first_deviations") or finding.evidence.get("problems")
            if isinstance(shown, list) and len(shown) > 1:
                yield from (f"  - {printable(str(problem))}" for problem in shown)
    yield ""
    seed = " UNSAFE SEED: anybody who knows it can find the traps." if verdict.unsafe_seed else ""
    yield (
        f"{verdict.outcome.value}: profile {verdict.profile.value}, root {verdict.root.hex()},"
        f" {verdict.seconds:.2f} s.{seed}"
    )
    if verdict.guarantee:
        yield verdict.guarantee
