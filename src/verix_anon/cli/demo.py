"""The command `demo`: the whole journey on an embedded table, explained as it goes."""

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from verix_anon.cli.app import app
from verix_anon.cli.options import PageLanguage, Quiet, option, service_option
from verix_anon.cli.output import during, facts, say, tree_line, verdict_lines, write_text
from verix_anon.cli.prepare import planted_lines, prepare_options, sent_lines
from verix_anon.cli.submit import AuthoritiesFile, InsecureHttp, Token, TokenFile, token_of
from verix_anon.cli.verify import EXIT_CODES
from verix_anon.errors import TableError
from verix_anon.fields import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from verix_anon.client.release import Released
    from verix_anon.protocol.providers import Provider


@app.command(epilog="Example: [bold]verix-anon demo --adversary approximate[/bold]")
def demo(
    adversary: Annotated[
        str | None, option("A provider that misbehaves: lazy, dumb, approximate, informed, ...")
    ] = None,
    rows: Annotated[int, option("How many records.", min=200)] = 20_000,
    k: Annotated[int, option("Every class holds at least this many people.", min=2)] = 5,
    preset: Annotated[str | None, option("The paper's system, as published: paper.")] = None,
    report: Annotated[Path | None, option("Write the audit report here: one HTML page.")] = None,
    language: PageLanguage = "en",
    url: Annotated[str | None, service_option("Let the service at this URL anonymize.")] = None,
    token_file: TokenFile = None,
    token: Token = None,
    insecure_http: InsecureHttp = False,
    ca_file: AuthoritiesFile = None,
    quiet: Quiet = False,
) -> None:
    """Walk through prepare, anonymize, verify and release on the embedded census table.

    With an adversary the verdict is VIOLATION and the exit code 1.
    """
    from verix_anon.adversaries import ADVERSARIES, only
    from verix_anon.client.journey import run
    from verix_anon.client.remote import RemoteOptions, RemoteProvider
    from verix_anon.client.report import check_installed, render
    from verix_anon.client.verify import verify
    from verix_anon.datasets import census
    from verix_anon.files.atomic_write import check_free
    from verix_anon.provider.local import LocalProvider
    from verix_anon.translation import known

    if report is not None:
        check_installed()
        known(language)
        check_free(report, overwrite=False)
    if adversary is not None and adversary not in ADVERSARIES:
        raise TableError(f"adversaries are {', '.join(ADVERSARIES)}, not {adversary!r}")
    provider: Provider = ADVERSARIES[adversary](0) if adversary else LocalProvider()
    if url is not None:
        secret = token_of(token, token_file)
        if adversary is not None:
            raise TableError(
                "--url and --adversary exclude each other: a service cannot be told to misbehave"
            )
        remote = RemoteOptions(insecure_http=insecure_http, ca_file=ca_file)
        provider = RemoteProvider(url, secret, options=remote)
    table = census(rows)
    options = prepare_options(preset, None, rule=adversary and only(adversary))
    # The paper's fingerprint accuses honest runs, too; the exact layers decide on the release.
    profile = preset if adversary else None
    journey = partial(run, table, provider, target="income", quasi="all", k=k)
    done = during("journey", quiet, lambda: journey(profile=profile, prepare_options=options))
    manifest, header, verdict = done.manifest, done.delivery.header, done.verdict
    say(f"1. The owner has a table of {rows:,} people and prepares it, k = {k:,}.")
    _say([*planted_lines(manifest), *sent_lines(manifest)])
    say(f"2. A provider ({url or adversary or 'honest'}) anonymizes it.")
    say(f"   {tree_line(header.rows, header.leaves, header.root)}")
    say("3. The owner judges what came back.")
    if preset != profile:
        judge = partial(verify, done.delivery, manifest, submission=done.submission)
        verdict = during("verify", quiet, lambda: judge(profile=preset))
    _say(verdict_lines(verdict))
    if not verdict and done.verdict:
        verdict = done.verdict
        honest = "The provider was honest: the paper's fingerprint accuses honest runs, too."
        _say([honest, list(verdict_lines(verdict))[-1]])
    if (released := done.released) is None:
        say("4. Nothing is released.")
    else:
        say("4. The owner releases the table, traps removed and k checked again.")
        _say(_released_lines(released, table))
    if report is not None:
        page = render(verdict, None if released is None else released.sheet, language)
        write_text(page, report, overwrite=False)
        say(f"The audit report is {report}.")
    if preset is None:
        say("The paper's own system, as published: verix-anon demo --preset paper")
    sys.exit(EXIT_CODES[verdict.outcome.value])


def _say(lines: Iterable[str]) -> None:
    say("\n".join(f"   {line}" for line in lines))


def _released_lines(released: "Released[pa.Table]", table: "pa.Table") -> Iterator[str]:
    """The privacy sheet, the warnings, and what became of the first person."""
    yield from (f"Warning: {printable(warning)}" for warning in released.warnings)
    yield from facts(released.sheet.facts())
    yield "The first person, before and after:"
    at = released.rows.tolist().index(0)
    before, after = table.slice(0, 1).to_pylist()[0], released.table.slice(at, 1).to_pylist()[0]
    yield from (f"  {name}: {before[name]} -> {after[name]}" for name in after)
