"""Who may use a service: token create, list, revoke."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.serve import DatabaseUrl, need_service
from verix_anon.cli.show import AsJson, printable, say
from verix_anon.errors import ProviderError
from verix_anon.fields import to_json

if TYPE_CHECKING:
    from verix_anon.service.database import Database
    from verix_anon.service.tenants import Token

__all__ = ["token"]

DAY = 86_400.0
token = typer.Typer(
    name="token", help="Make, list and revoke the tokens of a service.", no_args_is_help=True
)
app.add_typer(token)

Folder = Annotated[
    Path | None,
    typer.Option("--folder", "-f", help="The folder that `verix-anon serve` was given."),
]


@token.command(epilog="Example: [bold]verix-anon token create acme --folder service[/bold]")
def create(
    name: Annotated[
        str | None, typer.Argument(help="The tenant's name; a new one begins to exist.")
    ] = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="The operator's token, for pages and figures.")
    ] = False,
    days: Annotated[
        float | None,
        typer.Option(min=0.0001, help="After how many days it ends; never by default."),
    ] = None,
    folder: Folder = None,
    database: DatabaseUrl = "",
) -> None:
    """Make a token and print it, this once: the service keeps no more than its digest."""
    need_service()
    from verix_anon.service.tenants import Role, create_token, find

    if (name is None) is not operator:
        raise ProviderError("name a tenant or say --operator, not both")
    role = Role.OPERATOR if operator else Role.TENANT
    with _opened(folder, database, begin=True) as opened:
        made = create_token(opened, name, role, None if days is None else days * DAY)
        known = find(opened, made)
    say(made)
    if known is not None:
        print(f"Its id is {known.id}.", file=sys.stderr)


@token.command("list", epilog="Example: [bold]verix-anon token list --folder service[/bold]")
def list_tokens(folder: Folder = None, database: DatabaseUrl = "", as_json: AsJson = False) -> None:
    """List all tokens by their ids: whose they are, and until when."""
    need_service()
    from verix_anon.service.tenants import tokens

    with _opened(folder, database) as opened:
        known = tokens(opened)
    if as_json:
        say(to_json([_fields(each) for each in known]))
        return
    for each in known:
        who = "the operator" if each.tenant is None else printable(each.tenant)
        say(f"{each.id}  {who}, made {_time(each.created)}, {_end(each)}")


@token.command(epilog="Example: [bold]verix-anon token revoke 3f2a91c4 --folder service[/bold]")
def revoke(
    token_id: Annotated[str, typer.Argument(help="The token's id, as `list` shows it.")],
    folder: Folder = None,
    database: DatabaseUrl = "",
) -> None:
    """End a token at once; jobs that it began go on."""
    need_service()
    from verix_anon.service.tenants import revoke as revoke_token

    with _opened(folder, database) as opened:
        if not revoke_token(opened, token_id):
            raise ProviderError("there is no token of that id, or it is revoked already")
    say("Revoked.")


@contextmanager
def _opened(folder: Path | None, url: str, *, begin: bool = False) -> "Iterator[Database]":
    from verix_anon.service.database import Database
    from verix_anon.service.settings import DATABASE_FILE, Settings

    if folder is None and not url:
        raise ProviderError("say which service's: --folder, or --database if it has one of its own")
    folder = (folder or Path()).absolute()
    settings = Settings(folder=folder, database=url)
    is_new = not url and not (folder / DATABASE_FILE).exists()
    if is_new and not begin:
        raise ProviderError(f"there is no service in {folder}")
    if is_new:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    opened = Database.opened(settings.database_url)
    try:
        yield opened
    finally:
        opened.close()
    if is_new:
        print(f"There was no service in {folder}: its database is begun.", file=sys.stderr)


def _fields(known: "Token") -> dict[str, str | None]:
    return {
        "id": known.id,
        "role": known.role.value,
        "tenant": known.tenant,
        "created": _time(known.created),
        "expires": _time(known.expires),
        "revoked": _time(known.revoked),
    }


def _end(known: "Token") -> str:
    if known.revoked is not None:
        return f"revoked {_time(known.revoked)}"
    if known.expires is None:
        return "never ends"
    return f"{'ended' if known.expires <= time.time() else 'ends'} {_time(known.expires)}"


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
