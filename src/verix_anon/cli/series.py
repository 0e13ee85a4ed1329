"""The commands `series`: begin a series of releases, measure its risk, and check its log."""

from pathlib import Path
from typing import Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.options import (
    AsJson,
    PassphraseFile,
    load_envelopes,
    load_series,
    option,
    passphrase,
    receipt_option,
    secrets_option,
)
from verix_anon.cli.output import facts, say, table_lines
from verix_anon.fields import to_json

series = typer.Typer(
    help="Publish a table that grows, and know what its releases reveal together.",
    no_args_is_help=True,
)
app.add_typer(series, name="series")

Folder = Annotated[Path, typer.Argument(help="The folder of the series.")]


@series.command(
    epilog="Example: [bold]verix-anon series new monthly --roles roles.toml --k 5 --l 2[/bold]"
)
def new(
    folder: Folder,
    roles: Annotated[Path, option("The roles file of all releases; it is copied.")],
    k: Annotated[
        int | None, option("Every class holds at least this many people. Default: as in the roles.")
    ] = None,
    l: Annotated[  # noqa: E741
        int,
        option(
            "At least this many values of the target and of each sensitive column in every class,"
            " and for every person over all releases. The roles file may ask for another number.",
            "--l",
        ),
    ] = 2,
    cap: Annotated[float | None, option("The greatest share of one value in a class.")] = None,
    t: Annotated[
        float | None, option("The greatest distance of a class to the table.", "--t")
    ] = None,
    changes: Annotated[
        list[str] | None, option("A column whose values change between releases; may be repeated.")
    ] = None,
    seal: Annotated[
        bool, secrets_option("Encrypt series.verix. --passphrase-file does so too.", "--seal")
    ] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Begin a series: roles, k, l, cap and t stay the same in all of its releases."""
    from verix_anon.client.series import Series

    secret = passphrase(passphrase_file, confirm=True) if seal or passphrase_file else None
    Series.new(
        folder, roles=roles, k=k, l=l, cap=cap, t=t, changes=changes or (), passphrase=secret
    )
    say(f"Made {folder}. Keep series.verix to yourself, and publish series.json with each table.")
    say(f"Next: verix-anon run TABLE --series {folder} --out JOB --release RELEASED")


@series.command(epilog="Example: [bold]verix-anon series risk monthly[/bold]")
def risk(folder: Folder, passphrase_file: PassphraseFile = None, as_json: AsJson = False) -> None:
    """Deduce what all releases tell together: how many people are below l, or certain."""
    from dataclasses import asdict

    from verix_anon.translation import share

    found = load_series(folder, passphrase_file).risk()
    if as_json:
        say(to_json(None if found is None else asdict(found)))
    elif found is None:
        say("There are no releases yet.")
    else:
        head = ("release", "people", "below l", "certain", "fewest values")
        rows = [
            (
                f"{each.number} {each.time[:10]}",
                f"{each.people:,}",
                share(each.below),
                share(each.certain),
                f"{each.least:,}",
            )
            for each in found.releases
        ]
        say("\n".join(table_lines([head, *rows])))
        told = found.facts()
        del told["returning"]
        say("\n".join(facts(told)))


@series.command(
    epilog="Example: [bold]verix-anon series check series.json --file released.csv"
    " --since 3:0a1b...[/bold]"
)
def check(
    log: Annotated[Path, typer.Argument(help="The public log, series.json.")],
    file: Annotated[Path | None, option("A published file that must be in the log.")] = None,
    since: Annotated[
        str | None,
        option("A head that you kept. Nothing before it may have changed.", metavar="HEAD"),
    ] = None,
    key: Annotated[
        list[Path] | None,
        receipt_option("The owner's public key, or a file of pinned keys, to require a signature."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a public log: a file is a published one, and nothing older was replaced."""
    from datetime import UTC, datetime

    from verix_anon.client.series import check_series, read_log
    from verix_anon.files.store import beginning
    from verix_anon.files.trust import trust_in
    from verix_anon.protocol.series_log import Head

    load_envelopes()
    keys = trust_in(key).counting(datetime.now(UTC)) if key else None
    older = None if since is None else Head.parse(since)
    if file is not None:
        # A file that cannot be read is a mistake, whatever the log is.
        beginning(file, 0, "file")
    found = read_log(log)
    entry = check_series(found, file=file, since=older, keys=keys)
    head = found.head()
    if as_json:
        number = None if entry is None else entry.number
        say(to_json({"head": str(head), "release": number, "since": since, "signed": bool(keys)}))
        return
    if entry is not None:
        say(f"{file} is release {entry.number} of {head.size}, of {entry.time}.")
    if since is not None:
        say("Nothing up to the older head was changed, moved or removed.")
    if keys:
        say("The head is signed by a key that counts.")
    say(f"Head, to keep for the next time: {head}")
