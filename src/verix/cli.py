"""The command `verix`: one subcommand per stage; what is heavy is imported where it is used.

Exit codes (spec §10): 0 done, 1 the provider deviated, 2 the caller's mistake, 3
inconclusive, 70 a bug of ours. Results go to stdout, progress and errors to stderr.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix import __version__
from verix.errors import Error

if TYPE_CHECKING:
    from rich.progress import TaskID

    from verix.provider.engine import Progress

__all__ = ["app", "main"]

MISTAKE, OUR_BUG, INTERRUPTED = 2, 70, 130
NOTICEABLE_SECONDS = 2.0

app = typer.Typer(
    name="verix",
    help="Audit an outsourced k-anonymization: what was proved, with what certainty.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command and leave with the exit code that the specification gives."""
    try:
        app()
    except Error as error:
        _complain(str(error))
        sys.exit(MISTAKE)
    except KeyboardInterrupt:
        _complain("interrupted; nothing was written")
        sys.exit(INTERRUPTED)
    except Exception as error:
        _complain(f"internal error, a bug in verix {__version__}: {type(error).__name__}: {error}")
        if os.environ.get("VERIX_DEBUG"):
            traceback.print_exc()
        else:
            print("Set VERIX_DEBUG=1 to see where it happened.", file=sys.stderr)
        sys.exit(OUR_BUG)


def _complain(sentence: str) -> None:
    print(f"verix: {_printable(sentence)}", file=sys.stderr)


def _printable(text: str) -> str:
    """One line whatever a file put into the text, with nothing a terminal would obey."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


@contextmanager
def shown_progress(quiet: bool) -> "Iterator[Progress]":
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


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"verix {__version__}")
        raise typer.Exit


@app.callback()
def verix(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Audit an outsourced k-anonymization: what was proved, with what certainty."""


@app.command(
    epilog="Example: [bold]verix anonymize job/submission --out job/delivery[/bold]",
)
def anonymize(
    submission: Annotated[str, typer.Argument(help="The submission's folder or URL.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the delivery goes.")],
    threads: Annotated[
        int | None, typer.Option(min=1, help="How many threads; all cores by default.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a delivery that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Anonymize a submission: the provider's whole work.

    The delivery appears under its name when it is complete, and is the same to the byte for
    any number of threads, but for the time it took.
    """
    from verix.files.deliveries import write_delivery
    from verix.files.store import check_free
    from verix.files.submissions import read_submission
    from verix.provider.local import LocalProvider

    check_free(out, overwrite=overwrite)
    with shown_progress(quiet) as progress:
        progress("read", 0, 1)
        loaded = read_submission(submission)
        progress("read", 1, 1)
        _load_kernels(progress, quiet)
        delivery = LocalProvider(threads=threads, progress=progress).anonymize(loaded)
        progress("write", 0, 1)
        write_delivery(delivery, out, overwrite=overwrite)
        progress("write", 1, 1)
    header = delivery.header
    if as_json:
        print(
            json.dumps(
                {
                    "delivery": str(out),
                    "rows": header.rows,
                    "leaves": header.leaves,
                    "nodes": header.nodes,
                    "root": header.root.hex(),
                    "seconds": header.seconds,
                }
            )
        )
    else:
        print(f"{header.rows:,} records in {header.leaves:,} leaves, root {header.root.hex()}")
        print(f"Written to {out} after {header.seconds:.2f} s of work.")


def _load_kernels(progress: "Progress", quiet: bool) -> None:
    """Load the compiled kernels, and say so if that took long because they were compiled."""
    from verix.provider.local import warm_up

    progress("load (compiles on the first run)", 0, 1)
    began = time.perf_counter()
    warm_up()
    seconds = time.perf_counter() - began
    progress("load (compiles on the first run)", 1, 1)
    if seconds > NOTICEABLE_SECONDS and not quiet:
        print(
            f"Compiled the engine for this machine in {seconds:.1f} s; later runs start at once.",
            file=sys.stderr,
        )


@app.command(epilog="Example: [bold]verix inspect job/delivery[/bold]")
def inspect(
    path: Annotated[str, typer.Argument(help="A submission's or delivery's folder or URL.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show what a submission or delivery holds: contract, counts, digests, sizes.

    A submission is read whole and checked against its contract. Of a delivery only the
    header is read; that it is well-formed, let alone true, is for `verix verify` to say.
    """
    from verix.files.inspect import inspect_folder

    facts = inspect_folder(path)
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
    else:
        _show(facts)


def _show(facts: dict[str, object], indent: str = "") -> None:
    """Print nested facts, one line each; what files said is printed without control characters."""
    for name, value in facts.items():
        if isinstance(value, dict):
            print(f"{indent}{_printable(name)}:")
            _show(value, indent + "  ")
        elif isinstance(value, int) and not isinstance(value, bool):
            print(f"{indent}{_printable(name)}: {value:,}")
        else:
            print(f"{indent}{_printable(name)}: {_printable(str(value))}")
