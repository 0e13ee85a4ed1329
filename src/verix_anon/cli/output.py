"""Write a command's output: progress on stderr, lines of text, and files that appear complete."""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import typer

from verix_anon.errors import TableError
from verix_anon.fields import counted, printable
from verix_anon.parent_process import is_attended, report
from verix_anon.progress import Progress, compiling

if TYPE_CHECKING:
    from rich.progress import TaskID

    from verix_anon.client.privacy_sheet import ColumnLoss
    from verix_anon.client.verdict import Verdict


CLOSED_PIPE = 141


class Step(NamedTuple):
    """A command that is a step of another one, and what it would have said."""

    name: str = ""
    said: list[str] | None = None


STEP = ContextVar("STEP", default=Step())  # noqa: B039, because nothing is added to the default
Result = TypeVar("Result")
COLOURS = {
    "pass": typer.colors.GREEN,
    "VERIFIED": typer.colors.GREEN,
    "fail": typer.colors.RED,
    "VIOLATION": typer.colors.RED,
    "inconclusive": typer.colors.YELLOW,
    "INCONCLUSIVE": typer.colors.YELLOW,
}

COMPILING = (
    "Compiling for this machine, once, which takes about ten seconds; later runs start at once."
)


def say(text: str) -> None:
    """Print to stdout; if no one reads it any more, leave as a killed process would.

    Left to the framework, a closed pipe would end in exit code 1, which means VIOLATION. If this
    is a step of another command, that command gets the text and decides what to print.
    """
    if (said := STEP.get().said) is not None:
        said.append(text)
        return
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(CLOSED_PIPE)
    except OSError as error:
        raise TableError(f"the output cannot be written ({error.strerror})") from None


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Progress]:
    """A progress bar on stderr, one line per stage, gone when the work is done.

    Before kernels are compiled, it says so. If another program started this command, it gets
    lines of JSON instead.
    """
    compiling.tell = None if quiet else lambda: print(COMPILING, file=sys.stderr)
    if is_attended():
        yield report
        return
    from rich import progress as rich
    from rich.console import Console

    bar = rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
    stages: dict[str, TaskID] = {}

    def draw(stage: str, done: int, total: int) -> None:
        if stage not in stages:
            # What is one piece has no length: the bar moves until it is done.
            stages[stage] = bar.add_task(
                STEP.get().name + stage, total=None if total == 1 else total
            )
        bar.update(stages[stage], completed=done, total=total if done else None)

    with bar:
        yield draw


def during(stage: str, quiet: bool, work: Callable[[], Result]) -> Result:
    """Do a single piece of work, with a bar while it lasts, and return its result."""
    with progress_bar(quiet) as progress:
        progress(stage, 0, 1)
        found = work()
        progress(stage, 1, 1)
        return found


def painted(text: str, meaning: str) -> str:
    """Colour the text by its meaning, in a terminal whose user has not declined colours."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if meaning not in COLOURS or is_plain or not sys.stdout.isatty():
        return text
    return typer.style(text, fg=COLOURS[meaning], bold=True)


def tree_line(rows: int, leaves: int, root: bytes) -> str:
    """Say in one line what happened to a submission."""
    return f"{counted(rows, 'record')} in {counted(leaves, 'leaf', 'leaves')}, root {root.hex()}"


def quoted(*words: object) -> str:
    """Words of a command as a shell takes them."""
    return " ".join(shlex.quote(str(word)) for word in words)


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


def loss_lines(losses: "Sequence[ColumnLoss]") -> Iterator[str]:
    """Return a table of what is left of each column; empty if that was not measured."""
    from verix_anon.client.privacy_sheet import LOSS_HEAD

    yield from table_lines([LOSS_HEAD, *(loss.cells for loss in losses)] if losses else [])


def table_lines(rows: "Sequence[Sequence[str]]") -> Iterator[str]:
    """Rows of cells as aligned lines."""
    shown = [[printable(cell, 40) for cell in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*shown, strict=True)]
    yield from ("  ".join(map(str.ljust, row, widths)).rstrip() for row in shown)


def verdict_lines(verdict: "Verdict") -> Iterator[str]:
    """The verdict as a table of one line per layer; what failed is explained below it."""
    for finding in verdict.findings:
        role = "decides" if finding.decides else "informs"
        status = f"{finding.status.value:<13}"
        # What only informs decides nothing, so its colour does not ask for attention.
        status = painted(status, finding.status.value) if finding.decides else status
        line = f"{finding.layer:<12} {status} {role:<8} {finding.seconds:6.2f} s"
        yield f"{line}  {printable(finding.summary)}"
    for finding in verdict.findings:
        if finding.decides and finding.status.value in ("fail", "inconclusive"):
            yield ""
            yield f"{finding.layer}: {printable(finding.summary)}"
            shown = finding.evidence.get("first_deviations") or finding.evidence.get("problems")
            if isinstance(shown, list) and len(shown) > 1:
                yield from (f"  - {printable(str(problem))}" for problem in shown)
    yield ""
    seed = " UNSAFE SEED: anyone who knows it can find the traps." if verdict.unsafe_seed else ""
    outcome = painted(verdict.outcome.value, verdict.outcome.value)
    yield (
        f"{outcome}: profile {verdict.profile.value}, root {verdict.root.hex()},"
        f" {verdict.seconds:.2f} s.{seed}"
    )
    if verdict.guarantee:
        yield verdict.guarantee


def check_outputs(
    outputs: Sequence[str | Path | None], inputs: Iterable[object], *, overwrite: bool
) -> None:
    """Raise unless every output can be written, and replaces no input and no other output."""
    from verix_anon.files.atomic_write import check_apart, check_writable

    for i, output in enumerate(outputs):
        if output is not None:
            check_apart(output, [*inputs, *outputs[:i], *outputs[i + 1 :]])
            check_writable(output, overwrite=overwrite)


def write_text(text: str | bytes, out: Path, *, overwrite: bool) -> None:
    """Write text for its owner alone, which appears under its name when it is complete."""
    from verix_anon.files.atomic_write import write_bytes, written_aside

    with written_aside(out, overwrite=overwrite, folder=False, private=True) as aside:
        write_bytes(aside, text.encode() if isinstance(text, str) else text)
