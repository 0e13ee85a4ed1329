"""A series from its first release on: what is remembered, refused, published and checked."""

import errno
import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli import faults
from cli.jobs import Outcome, Run
from verix_anon.client.series import GrowingSeries, Series, check_series
from verix_anon.client.series.withholding import Withholding
from verix_anon.errors import ProofError, TableError
from verix_anon.protocol.series_log import SeriesLog

ROLES = """k = 3
[columns]
id = "identifier"
age = "quasi"
sex = "quasi"
job = "sensitive"
[contract]
task = "none"
person = "id"
traps = "none"
"""


def write_month(folder: Path, month: int) -> Path:
    """A table of 60 people, two thirds of whom were in the table of the month before."""
    rng = np.random.default_rng(1)
    people = [
        f"P{i},{rng.integers(20, 80)},{rng.choice(['f', 'm'])},job {rng.integers(6)}"
        for i in range(200)
    ]
    path = folder / f"month{month}.csv"
    if path.exists():
        return path
    path.write_text("\n".join(["id,age,sex,job", *people[20 * month : 20 * month + 60]]) + "\n")
    return path


def publish(run: Run, folder: Path, month: int, *more: object) -> int:
    table = write_month(folder, month)
    job, out = folder / f"job{month}", folder / f"released{month}.csv"
    words = ("--series", folder / "monthly", "--out", job, "--release", out, "--quiet")
    return run("run", table, *words, *more).code


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "ledger.jsonl"))
    (tmp_path / "roles.toml").write_text(ROLES)
    return tmp_path


@pytest.fixture
def monthly(folder: Path, run: Run) -> Path:
    assert run("series", "new", folder / "monthly", "--roles", folder / "roles.toml").code == 0
    return folder / "monthly"


def test_months_are_published_with_nobody_below_l(folder: Path, monthly: Path, run: Run) -> None:
    assert stat.S_IMODE((monthly / "series.verix").stat().st_mode) == 0o600
    heads = []
    for month in range(3):
        assert publish(run, folder, month, "--require", "over-time-l=2") == 0
        heads.append(str(Series(monthly).log.head()))
        told = json.loads((folder / f"job{month}" / "sheet.json").read_text())["over_time"]
        assert told["least_by"]["job"] >= 2
        assert told["returning"] == (0 if month == 0 else pytest.approx(40, abs=15))
    assert [each.below for each in Series(monthly).releases()] == [0.0] * 3
    assert "below l" in run("series", "risk", monthly).out
    for language, said in (("en", "below l (wide bars)"), ("de", "unter l (breite Balken)")):
        page = folder / f"{language}.html"
        verdict = folder / "job2" / "verdict.json"
        assert run("report", verdict, "--language", language, "--out", page).code == 0
        assert said in page.read_text(encoding="utf-8")
    log = monthly / "series.json"
    for month, head in enumerate(heads):
        file = folder / f"released{month}.csv"
        found = run("series", "check", log, "--file", file, "--since", head)
        assert found.code == 0
        assert f"release {month + 1} of 3" in found.out
    entry = check_series(log, file=folder / "released1.csv")
    assert entry is not None
    assert entry.number == 2
    (folder / "released1.csv").write_text("another table\n")
    assert run("series", "check", log, "--file", folder / "released1.csv").code == 1
    with pytest.raises(ProofError, match="replaced"):
        check_series(log, since="2:" + "0" * 64)
    assert run("series", "check", log, "--since", "2:" + "0" * 64).code == 1
    # What the caller got wrong is no answer about the log, whatever the log is.
    forged = folder / "forged.json"
    forged.write_text("{}")
    for words in (("--since", "2"), ("--file", folder / "none.csv"), ("--key", log)):
        assert [run("series", "check", each, *words).code for each in (log, forged)] == [2, 2]
    with pytest.raises(ProofError, match="not signed"):
        check_series(log, keys=())
    # Nothing of a person stands in the memory or in the log.
    held = Series(monthly).memory()
    assert all(b"P21" not in code.tobytes() for code in held.people)
    assert publish(run, folder, 3, "--require", "over-time-l=7") == 1
    assert not (folder / "released3.csv").exists()
    assert len(Series(monthly).log.entries) == 3


def test_a_release_is_not_added_twice(folder: Path, monthly: Path, run: Run) -> None:
    assert publish(run, folder, 0) == 0
    job = folder / "job0"
    words = ["release", job / "delivery", "--manifest", job / "manifest.verix", "--table"]
    words += [folder / "month0.csv", "--verdict", job / "verdict.json", "--series", monthly]
    again = run(*words, "--out", folder / "again.csv", "--force")
    assert (again.code, "is release 1 of the series" in again.err) == (2, True)
    table = (folder / "month0.csv").rename(folder / "renamed.csv")
    renamed = ("--out", folder / "job", "--release", folder / "other.csv", "--quiet")
    (folder / "ledger.jsonl").unlink()
    again = run("run", table, "--series", monthly, *renamed)
    assert (again.code, "is release 1 of the series" in again.err) == (2, True)
    assert len(Series(monthly).log.entries) == 1
    # A column of another kind, in a table that is new.
    table = write_month(folder, 1)
    table.write_text(re.sub(r",(\d)\d,", r",about \1,", table.read_text()))
    changed = run("prepare", table, "--series", monthly, "--out", folder / "job1")
    assert (changed.code, "the kind of column 'age' was" in changed.err) == (2, True)
    table.unlink()
    # What is remembered must be what the log says.
    mine, empty = (monthly / "series.verix").read_bytes(), folder / "empty"
    assert run("series", "new", empty, "--roles", folder / "roles.toml").code == 0
    (monthly / "series.verix").write_bytes((empty / "series.verix").read_bytes())
    assert publish(run, folder, 1) == 2
    assert not (folder / "released1.csv").exists()
    (monthly / "series.verix").write_bytes(mine)
    assert publish(run, folder, 1) == 0


def test_an_interrupted_release_keeps_its_place(folder: Path, monthly: Path, run: Run) -> None:
    def end(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    def release(month: int, *more: object) -> Outcome:
        job, out = folder / f"job{month}", folder / f"released{month}.csv"
        words = ["release", job / "delivery", "--manifest", job / "manifest.verix", "--table"]
        words += [write_month(folder, month), "--verdict", job / "verdict.json"]
        return run(*words, "--series", monthly, "--out", out, "--overwrite", *more)

    for month in range(3):
        words = ("--series", monthly, "--out", folder / f"job{month}", "--quiet")
        assert run("run", write_month(folder, month), *words).code == 0
    for month in (0, 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SeriesLog, "to_json", end)
            assert release(month).code == 2
    # The first has lost its place to the second, which takes its own as it was or not at all.
    assert "is release 1 of the series" in release(0, "--force").err
    assert "release 2 of the series was interrupted" in release(1, "--l", "job=3", "--force").err
    assert [len(Series(monthly).memory().releases), Series(monthly).log.entries] == [2, ()]
    assert release(1).code == 0
    assert Series(monthly).log.entries == tuple(e.entry for e in Series(monthly).memory().releases)

    # A release that comes second does not count anywhere, and can be repeated.
    over_time = GrowingSeries.over_time
    with pytest.MonkeyPatch.context() as patch:

        def meanwhile(growing: GrowingSeries, *given: Any) -> Any:
            held = Series(monthly).memory()
            last = replace(held.releases[-1].entry, time="2020-01-01T00:00:00+00:00")
            releases = (*held.releases[:-1], replace(held.releases[-1], entry=last))
            replace(held, releases=releases).write(monthly / "series.verix", None)
            return over_time(growing, *given)

        kept = (monthly / "series.verix").read_bytes()
        patch.setattr(GrowingSeries, "over_time", meanwhile)
        refused = release(2)
    assert (refused.code, "in the meantime" in refused.err) == (2, True)
    (monthly / "series.verix").write_bytes(kept)
    assert release(2).code == 0


def test_other_roles_are_refused_with_the_difference(folder: Path, monthly: Path, run: Run) -> None:
    table, other = write_month(folder, 0), folder / "other.toml"
    other.write_text(ROLES.replace('sex = "quasi"', 'sex = "kept"'))
    words = ("prepare", table, "--series", monthly, "--out", folder / "job")
    changed = run(*words, "--roles", other)
    assert "the role of column 'sex' was quasi, not kept" in changed.err
    assert "k was 3, and is 4" in run(*words, "--k", 4).err
    table.write_text(table.read_text().replace("sex", "gender"))
    assert run(*words).code == 2
    other.write_text(ROLES.replace('person = "id"', 'person = "record"'))
    with pytest.raises(TableError, match="seals nothing"):
        Series.new(folder / "another", roles=folder / "roles.toml", passphrase="")
    with pytest.raises(TableError, match="tells people apart"):
        Series.new(folder / "another", roles=other)
    with pytest.raises(TableError, match="k must be a whole number, 2 or more"):
        Series.new(folder / "another", roles=folder / "roles.toml", k=0)
    for place in (folder, folder / "none"):
        missing = run("series", "risk", place)
        assert "is not the folder of a series" in missing.err
        assert "verix-anon series new FOLDER --roles roles.toml" in missing.err
    missing = run("prepare", table, "--series", folder / "none", "--out", folder / "job")
    assert "is not the folder of a series" in missing.err


def test_a_column_is_made_coarser_alike_in_all_releases(
    folder: Path, monthly: Path, run: Run
) -> None:
    def refused(month: int, *options: str) -> str:
        table, out = write_month(folder, month), folder / f"refused{month}"
        words = ("--series", monthly, "--out", out, "--release", folder / "no.csv")
        done = run("run", table, *words, *options)
        assert done.code == 2
        assert not (folder / "no.csv").exists()
        return done.err

    assert "give its bins a width" in refused(0, "--bins", "job=auto")
    assert publish(run, folder, 0) == 0
    said = refused(1, "--bins", "job=4")
    assert "the coarsening of column 'job' was none, not bins 4" in said
    assert "as in the first release" in said
    assert publish(run, folder, 1) == 0


def test_the_roles_of_a_series_name_files_from_where_they_lie(folder: Path, run: Run) -> None:
    levels = "".join(f"{sex};all\n" for sex in "fm")
    (folder / "sex.csv").write_text(levels)
    (folder / "roles.toml").write_text(f'{ROLES}[hierarchies]\nsex = "sex.csv"\n')
    words = ("series", "new", folder / "monthly", "--roles", folder / "roles.toml")
    assert run(*words).code == 0
    assert publish(run, folder, 0) == 0


def test_the_roles_file_says_which_columns_change(folder: Path, run: Run) -> None:
    roles = folder / "roles.toml"
    roles.write_text(ROLES.replace("quasi", "sensitive", 1) + '[series]\nchanges = ["job"]\n')
    words = ("series", "new", folder / "monthly", "--roles", roles)
    assert run(*words, "--changes", "sex").code == 2
    assert "whose values stay the same" in run(*words, "--changes", "age").err
    assert run(*words, "--changes", "job").code == 0
    again = run(*words, "--changes", "job").err
    assert again.endswith("monthly exists already; choose another name for the series\n")
    assert Series(folder / "monthly").memory().changes == ("job",)
    roles.write_text(roles.read_text().replace("changes", "change"))
    assert "'change'" in run("series", "new", folder / "another", "--roles", roles).err


@pytest.mark.parametrize("n", [0, 2])
def test_a_month_in_which_too_many_people_wait(
    folder: Path, monthly: Path, run: Run, monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    assert publish(run, folder, 0) == 0
    monkeypatch.setattr(Withholding, "kept", lambda self, rows, of_class: np.arange(rows.size) < n)
    words = ("--series", monthly, "--out", folder / "job1", "--release", folder / "r.csv")
    refused = run("run", write_month(folder, 1), *words, "--quiet")
    assert (refused.code, (folder / "r.csv").exists()) == (2, False)
    assert "nothing can be published this time" in refused.err
    assert f"the table holds {n} people, fewer than k = 3)" in refused.err
    assert len(Series(monthly).log.entries) == 1


def test_a_sealed_series_and_a_signed_log(folder: Path, run: Run) -> None:
    secret, key = folder / "secret", folder / "owner.key"
    secret.write_text("correct horse\n")
    sealed = ("--passphrase-file", secret)
    assert run("keys", "new", key).code == 0
    words = ("series", "new", folder / "monthly", "--roles", folder / "roles.toml")
    assert run(*words, *sealed, "--changes", "age").code == 2
    assert run(*words, *sealed).code == 0
    assert b"P21" not in (folder / "monthly" / "series.verix").read_bytes()
    assert publish(run, folder, 0, *sealed, "--sign-series", key) == 0
    log = folder / "monthly" / "series.json"
    assert run("series", "check", log, "--key", folder / "owner.key.pub").code == 0
    assert "the series is sealed; give --passphrase-file" in run("series", "risk", log.parent).err
    assert run("series", "risk", folder / "monthly", *sealed).code == 0
    assert publish(run, folder, 1, *sealed) == 2
    assert publish(run, folder, 1, *sealed, "--sign-series", key, "--resume") == 0


def test_without_a_series_the_ledger_tells_who_is_shared(folder: Path, run: Run) -> None:
    for month in range(2):
        table = write_month(folder, month)
        words = ("--roles", folder / "roles.toml", "--out", folder / f"job{month}")
        found = run("run", table, *words, "--release", folder / f"r{month}.csv", "--quiet")
        assert found.code == 0
        assert ("about 40 of the 60 people" in found.err) == (month == 1)


def killed(folder: Path) -> int:
    """End the second release of the series at each change of the disk; how many there are."""
    import shutil

    from cli.jobs import exit_code

    job, out = folder / "job1", folder / "released1.csv"
    words = ["release", job / "delivery", "--manifest", job / "manifest.verix", "--table"]
    words += [folder / "month1.csv", "--verdict", job / "verdict.json"]
    words += ["--series", folder / "monthly", "--out", out, "--overwrite"]

    def command(_: Path) -> int:
        return exit_code(*words)

    kept = {name: folder / f"{name}.kept" for name in ("monthly", "ledger.jsonl")}
    shutil.copytree(folder / "monthly", kept["monthly"])
    shutil.copy(folder / "ledger.jsonl", kept["ledger.jsonl"])
    faults.COMMANDS["series"] = (command, lambda _: None)
    faults.warm(folder, "series")
    for n in range(1, faults.MOST):
        out.unlink(missing_ok=True)
        shutil.rmtree(folder / "monthly")
        shutil.copytree(kept["monthly"], folder / "monthly")
        shutil.copy(kept["ledger.jsonl"], folder / "ledger.jsonl")
        code = faults.in_a_child(command, folder, n)
        series = Series(folder / "monthly")
        remembered, listed = len(series.memory().releases), len(series.log.entries)
        # No table without a place in the memory, and no place in the log without the table.
        assert remembered - listed in (0, 1), n
        assert remembered == 2 or not out.exists(), n
        assert listed == 1 or out.exists(), n
        if listed == 1:
            assert faults.in_a_child(command, folder) == 0, n
        assert check_series(series.log, file=out) == series.memory().releases[1].entry, n
        if code == 0:
            return n
    raise AssertionError("it never ends")


@pytest.mark.long
def test_a_process_that_is_killed(folder: Path, monthly: Path, run: Run) -> None:
    assert publish(run, folder, 0) == 0
    words = ("--series", monthly, "--out", folder / "job1", "--quiet")
    assert run("run", write_month(folder, 1), *words).code == 0
    tests = Path(__file__).parents[1]
    source = tests.parent / "src"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (source, tests)))}
    code = "import sys; from pathlib import Path; from cli.test_series import killed;"
    ended = subprocess.run(
        [sys.executable, "-c", f"{code} print(killed(Path(sys.argv[1])))", str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert int(ended.stdout.split()[-1]) > 15
