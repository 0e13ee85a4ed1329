"""The reference of the command, made from the command itself: docs/reference/cli.md."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, cast, get_type_hints

import typer.main

from verix_anon.cli import app

HEAD = """# The command

`make reference` makes this page from the command itself. `verix-anon COMMAND --help` says the same.
Results go to stdout, progress and errors to stderr.

| exit code | meaning |
| --- | --- |
| 0 | done, or VERIFIED |
| 1 | VIOLATION, `--require` not met, or a proof, receipt or log that does not hold |
| 2 | a mistake in how the command was called; one sentence on stderr says which |
| 3 | INCONCLUSIVE |
| 70 | a bug in this software; `VERIX_DEBUG=1` shows where |
| 130 | interrupted |

| variable | meaning |
| --- | --- |
| `VERIX_PASSPHRASE` | the passphrase of a manifest or series, if no file is given |
| `VERIX_KEY_PASSPHRASE` | the passphrase of a private key, if no file is given |
| `VERIX_TOKEN` | the token for a provider's service, if no file is given |
| `VERIX_DATABASE` | the service's database, if `--database` is not given |
| `VERIX_LEDGER` | the ledger of releases, in place of the user's own |
| `VERIX_DEBUG` | show where an internal error happened |
"""


def cli_page() -> str:
    """The whole page."""
    # The objects behind typer carry no public types; what is read of them is plain text.
    group = cast(Any, typer.main.get_command(app))
    parts = [HEAD, "| command | what it does |\n| --- | --- |"]
    commands = dict(commands_of(group))
    for name, command in commands.items():
        anchor = name.replace(" ", "-")
        parts[-1] += f"\n| [`{name}`](#verix-anon-{anchor}) | {_first_line(command.help)} |"
    parts += [_command(name, command) for name, command in commands.items()]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def commands_of(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """The commands by all their words; a group stands for what is in it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands_of(command, f"{before}{name} ")
        else:
            yield before + name, command


def _command(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    words = [*(p.name.upper() for p in arguments), "[OPTIONS]"]
    if not command.context_settings.get("allow_interspersed_args", True):
        # What follows the first argument is that argument's.
        words = [*words[-1:], *words[:-1]]
    usage = " ".join(["verix-anon", name, *words])
    parts = [f"## verix-anon {name}", _prose(command.help), f"    {usage}"]
    rows = [f"| `{p.name.upper()}` | {_sentence(p)} |" for p in arguments]
    if rows:
        parts.append("\n".join(["| argument | meaning |", "| --- | --- |", *rows]))
    hints = get_type_hints(inspect.unwrap(command.callback))
    for panel, members in _panels(options):
        rows = [f"| {_names(p, hints)} | {_sentence(p)} |" for p in members]
        parts.append("\n".join([f"| {panel} | meaning |", "| --- | --- |", *rows]))
    parts += list(_epilog(command.epilog or ""))
    return "\n\n".join(parts)


def _panels(options: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    panels: dict[str, list[Any]] = {}
    for option in options:
        if option.name != "help":
            panels.setdefault(option.rich_help_panel or "Options", []).append(option)
    yield from panels.items()


def _names(option: Any, hints: dict[str, Any]) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    hint = str(hints[option.name])
    kinds = {"bool": "", "int": " N", "float": " X", "Path": " PATH"}
    kind = next((kind for word, kind in kinds.items() if word in hint), " TEXT")
    return names + kind + (", repeatable" if "list" in hint else "")


def _sentence(parameter: Any) -> str:
    text = (parameter.help or "").replace("|", "\\|")
    if parameter.required and parameter.param_type_name == "option":
        return f"{text} Required."
    is_shown = parameter.param_type_name == "option" and not parameter.is_flag
    if is_shown and parameter.default not in (None, ""):
        return f"{text} Default: `{parameter.default}`."
    return text


def _first_line(text: str) -> str:
    return _prose(text).split("\n\n")[0]


def _prose(text: str) -> str:
    paragraphs = [" ".join(p.split()) for p in text.strip().split("\n\n")]
    return re.sub(r"\[bold\](.*?)\[/bold\]", r"`\1`", "\n\n".join(paragraphs))


def _epilog(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        example = re.fullmatch(r"Example: \[bold\](.*)\[/bold\]", paragraph.strip(), re.DOTALL)
        if example:
            yield f"Example:\n\n    {' '.join(example.group(1).split())}"
        elif paragraph.strip():
            yield _prose(paragraph)
