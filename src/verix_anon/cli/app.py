"""The application: exit codes, and what happens to errors (spec §10).

0 done or VERIFIED, 1 VIOLATION, a gate not passed, or a proof or receipt that does not hold,
2 the caller's mistake, 3 INCONCLUSIVE, 70 a bug of ours.
Results go to stdout, progress and errors to stderr.
"""

import gc
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Annotated, Any

import typer
from typer.core import TyperOption

from verix_anon import __version__
from verix_anon.cli.output import CLOSED_PIPE, say
from verix_anon.errors import Error, GateError, ProofError
from verix_anon.fields import printable
from verix_anon.machine import lacking
from verix_anon.parent_process import attend, is_attended
from verix_anon.platform import prepare_console

REFUSED, MISTAKE, OUR_BUG, INTERRUPTED = 1, 2, 70, 130

JOURNEY = """
Start: [bold]verix-anon demo[/bold] shows the whole journey on an embedded table.

On your own table: [bold]verix-anon init people.csv --out roles.toml[/bold]. Each of the owner's \
steps prints the next command. Each --help has an example.

Exit codes: 0 done or VERIFIED, 1 VIOLATION, --require not met, or a proof or \
receipt that does not hold, 3 INCONCLUSIVE, 2 a mistake in the call, 70 a bug.
"""

# A flag takes no value, so its help names no type.
_shown = getattr(TyperOption, "display_type_rich", None)
TyperOption.display_type_rich = lambda own, ctx: "" if own.is_flag else _shown(own, ctx)  # type: ignore

app = typer.Typer(
    name="verix-anon",
    help="Audit an outsourced k-anonymization: what was proved, with what certainty.",
    epilog=JOURNEY,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


@contextmanager
def left_out(*packages: str) -> Iterator[None]:
    """Hide packages that others import where they find them, though no command needs that.

    Only commands do this: in a user's own process, others may need them.
    """

    def find_spec(name: str, *_: object) -> None:
        if name in packages:
            raise ModuleNotFoundError(f"{name} is left out", name=name)

    finder: Any = SimpleNamespace(find_spec=find_spec)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def load_kernels() -> None:
    """Load numba without what it looks for and no kernel uses, such as scipy's linear algebra."""
    with left_out("scipy", "yaml", "cffi"):
        import numba.core.typing.cffi_utils
        import numba.np.arraymath  # noqa: F401


def main() -> None:
    """Run the command and leave with the exit code that the specification gives."""
    prepare_console()
    # Imports make many objects that stay. To look for garbage among them takes 0.1 s.
    gc.set_threshold(10_000)
    try:
        if is_attended():
            attend()
        app()
    except Error as error:
        for reason in error.args:
            _complain(str(reason))
        sys.exit(REFUSED if isinstance(error, GateError | ProofError) else MISTAKE)
    except MemoryError:
        _complain(lacking("this"))
        sys.exit(MISTAKE)
    except (KeyboardInterrupt, SystemExit) as leaving:
        # The framework leaves silently when interrupted. It leaves with 1, which means VIOLATION,
        # when the reader of its help has gone.
        why = leaving.__context__
        if isinstance((why and why.__cause__) or leaving, KeyboardInterrupt):
            _complain("interrupted; no half-written file was left")
            sys.exit(INTERRUPTED)
        if isinstance(why, BrokenPipeError):
            sys.exit(CLOSED_PIPE)
        raise
    except Exception as error:
        _complain(
            f"internal error, a bug in verix-anon {__version__}: {type(error).__name__}: {error}"
        )
        if os.environ.get("VERIX_DEBUG"):
            traceback.print_exc()
        else:
            print("Set VERIX_DEBUG=1 to see where it happened.", file=sys.stderr)
        sys.exit(OUR_BUG)


def _complain(sentence: str) -> None:
    print(f"verix-anon: {printable(sentence)}", file=sys.stderr)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"verix-anon {__version__}")
        raise typer.Exit


@app.callback()
def verix_anon(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Audit an outsourced k-anonymization: what was proved, with what certainty."""
