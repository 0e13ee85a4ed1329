"""The whole journey in one command: as the four commands do it, from any stop on."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from cli import faults
from cli.jobs import JOB, Run, make, release_arguments, verify_arguments
from verix_anon import cli, provider
from verix_anon.adversaries import DropsRows
from verix_anon.client.audit_log import AuditLog
from verix_anon.client.ledger import Ledger
from verix_anon.client.manifest import read_manifest
from verix_anon.client.owner_files import read_verdict
from verix_anon.datasets import census
from verix_anon.errors import ProviderError
from verix_anon.files.folder_writer import write_delivery
from verix_anon.files.submissions import read_submission
from verix_anon.files.tables import read_table, write_table

pytestmark = pytest.mark.usefixtures("quick_models")
SKIP = ("--skip", "fingerprint,utility")
SKIP_LAYERS = ("--skip-layers", SKIP[1])
FILES = {"submission", "manifest.verix", "delivery", "verdict.json", "audit.jsonl", "sheet.json"}
STEPS = ("prepare", "anonymize", "verify", "release")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    pq.write_table(census(300), path)
    return path


def journey(people: Path, *more: object) -> list[object]:
    """The arguments of a run that publishes."""
    at = people.parent
    made = ("--out", at / "job", "--release", at / "released.csv")
    return ["run", people, *made, *JOB, *SKIP_LAYERS, *more]


def lines_of(people: Path) -> tuple[int, int, int]:
    """How often the table was prepared, judged and released."""
    manifest = read_manifest(people.parent / "job" / "manifest.verix")
    ledger = Ledger(people.parent / "ledger.jsonl")
    audited = ledger.audited(manifest.table)
    log = AuditLog(people.parent / "job" / "audit.jsonl")
    assert log.read(manifest.submission, audited).warnings() == ()
    return (*map(len, (ledger.prepared(manifest.table), audited, ledger.seen(manifest.table))),)  # type: ignore[return-value]


def test_it_is_the_four_commands(people: Path, run: Run, tmp_path: Path) -> None:
    ended = run(*journey(people))
    assert ended.code == 0, ended.err
    assert {path.name for path in (tmp_path / "job").iterdir()} == FILES
    assert "VERIFIED: profile full" in ended.out
    assert ended.out.endswith(f"Written to {tmp_path}/released.csv.\n")
    assert lines_of(people) == (1, 1, 1)
    (tmp_path / "ledger.jsonl").unlink()
    other = tmp_path / "other"
    other.mkdir()
    make(other, 300)
    assert run(*verify_arguments(other), *SKIP, "--out", other / "verdict.json").code == 0
    assert run(*release_arguments(other), "--out", other / "released.csv").code == 0
    mine, theirs = (read_verdict(p / "verdict.json") for p in (tmp_path / "job", other))
    assert mine.root == theirs.root
    assert [(f.layer, f.status) for f in mine.findings] == [
        (f.layer, f.status) for f in theirs.findings
    ]
    assert faults.rows(tmp_path / "released.csv") == faults.rows(other / "released.csv")
    for name in ("contract.json", "records.parquet"):
        sent = [p / "submission" / name for p in (tmp_path / "job", other / "job")]
        assert sent[0].read_bytes() == sent[1].read_bytes()


def test_without_release_it_ends_with_the_verdict(people: Path, run: Run, tmp_path: Path) -> None:
    how = ["run", people, "--out", tmp_path / "job", *JOB, *SKIP_LAYERS]
    ended = run(*how)
    assert ended.code == 0
    assert "Release it, with your table:\n  verix-anon release" in ended.out
    assert "--table TABLE" not in ended.out
    assert {path.name for path in (tmp_path / "job").iterdir()} == FILES - {"sheet.json"}
    told = json.loads(run(*journey(people), "--resume", "--json").out)
    assert told["verify"]["root"] == read_verdict(tmp_path / "job" / "verdict.json").root.hex()
    assert told["release"]
    assert "prepare" not in told
    assert lines_of(people) == (1, 1, 1)
    # All is done: nothing is done again.
    again = run(*journey(people), "--resume")
    assert again.code == 0
    assert "is there already, from this delivery" in again.err
    assert lines_of(people) == (1, 1, 1)


def test_a_table_is_read_once(
    people: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the manifest is handed over, so that its passphrase is asked for once."""
    write_table(read_table(people), tmp_path / "people.csv")
    (tmp_path / "word").write_text("secret words\n")
    reads: list[str] = []
    for module, name in ((cli.options, "load_open"), (cli.options, "passphrase")):
        call = getattr(module, name)

        def counted(*given: Any, _call: Any = call, _name: str = name, **named: Any) -> Any:
            reads.append(_name)
            return _call(*given, **named)

        monkeypatch.setattr(module, name, counted)
        monkeypatch.setattr(cli.prepare, name, counted, raising=False)
    ended = run(*journey(tmp_path / "people.csv", "--passphrase-file", tmp_path / "word"))
    assert ended.code == 0, ended.err
    assert sorted(reads) == ["load_open", "passphrase"]


def stop_at(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one step be interrupted before it has done anything."""

    def interrupted(*given: object, **named: object) -> None:
        raise KeyboardInterrupt

    module, name = {
        "prepare": ("verix_anon.client.prepare", "prepare"),
        "anonymize": ("verix_anon.provider", "folder_provider"),
        "verify": ("verix_anon.client.verify", "verify"),
        "release": ("verix_anon.client.release", "release"),
    }[step]
    monkeypatch.setattr(f"{module}.{name}", interrupted)


@pytest.mark.parametrize("step", STEPS)
def test_it_goes_on_where_it_was_interrupted(people: Path, run: Run, step: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_at(step, patch)
        assert run(*journey(people)).code == 130
    if step != "prepare":
        refused = run(*journey(people))
        assert (refused.code, "--resume" in refused.err) == (2, True)
    assert run(*journey(people), "--resume").code == 0
    assert lines_of(people) == (1, 1, 1)


KILLED = """
import os, signal, sys
from pathlib import Path
from verix_anon import cli
from verix_anon.client import models
from verix_anon.files.atomic_write import Aside

models.ROUNDS = 2
step, *sys.argv[1:] = sys.argv[1:]
take_name = Aside.take_name

def end(aside):
    take_name(aside)
    if aside.target.name == step:
        os.kill(os.getpid(), signal.SIGKILL)

Aside.take_name = end
cli.main()
"""


@pytest.mark.parametrize("name", ["job", "delivery", "verdict.json", "sheet.json"])
def test_it_goes_on_where_it_was_killed(people: Path, run: Run, name: str) -> None:
    """Just after something has its name: of the release, that is before the table has its own."""
    # With a report, the verdict is not the last file of its step.
    arguments = journey(people, "--report", people.parent / "report.html")
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, name, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert not (people.parent / "released.csv").exists()
    assert run(*arguments, "--resume").code == 0
    assert len(faults.rows(people.parent / "released.csv")) == 300
    assert (people.parent / "report.html").exists()
    judged = 1 + (name == "verdict.json")
    assert lines_of(people) == (1, judged, 1 + (name == "sheet.json"))


class CheatingProvider:
    """Drops rows, and says nothing of it."""

    def anonymize_folder(self, submission: str, out: str, **_: object) -> Any:
        delivery = DropsRows(fraction=0.2).anonymize(read_submission(submission))
        write_delivery(delivery, out)
        return delivery.header


def cheat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "folder_provider", lambda **_: CheatingProvider())


def test_a_cheat_ends_with_a_violation(
    people: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheat(monkeypatch)
    for more in ((), ("--resume",), ("--resume", "--overwrite")):
        ended = run(*journey(people), *more)
        assert ended.code == 1
        assert "VIOLATION" in ended.out
        assert "Do not release it" in ended.out
        assert not list(tmp_path.glob("released*"))
        assert not (tmp_path / "job" / "sheet.json").exists()
    assert lines_of(people) == (1, 3, 0)
    # An honest delivery in its place is judged anew, and exactly, so that it may be released.
    monkeypatch.undo()
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "ledger.jsonl"))
    shutil.rmtree(tmp_path / "job" / "delivery")
    assert run(*journey(people), "--resume").code == 0
    assert lines_of(people) == (1, 4, 1)


def test_a_cheating_service(
    people: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from verix_anon.client import remote

    def lie(_: object, submission: str, out: str, **__: object) -> Any:
        header = CheatingProvider().anonymize_folder(submission, out)
        told = {"rows": header.rows, "leaves": header.leaves, "root": header.root}
        return SimpleNamespace(job="a-job", kept=False, **told)

    monkeypatch.setattr(remote.RemoteProvider, "anonymize_folder", lie)
    ended = run(*journey(people), "--url", "http://127.0.0.1:1", "--token", "t")
    assert ended.code == 1, ended.err
    assert not list(tmp_path.glob("released*"))


def test_what_changed_since_is_not_passed_over(people: Path, run: Run, tmp_path: Path) -> None:
    how = ["run", people, "--out", tmp_path / "job", *JOB, *SKIP_LAYERS]
    assert run(*how).code == 0
    manifest = (tmp_path / "job" / "manifest.verix").stat()
    later = (manifest.st_atime_ns, manifest.st_mtime_ns + 10**9)
    for more, said in (
        (("--k", "9"), "prepared with --k 5, not 9"),
        (("--target", "sex"), "prepared with --target income, not sex"),
    ):
        ended = run(*journey(people), "--resume", *more)
        assert (ended.code, said in ended.err) == (2, True), ended.err
    pq.write_table(census(299), people)
    os.utime(people, ns=later)
    ended = run(*journey(people), "--resume")
    assert (ended.code, "was changed after the job was prepared" in ended.err) == (2, True)
    # A clock that is set back does not help: release compares the values.
    os.utime(people, ns=(0, 0))
    ended = run(*journey(people), "--resume")
    assert ended.code == 2
    assert not list(tmp_path.glob("released*"))
    # A verdict on other files does not count.
    pq.write_table(census(300), people)
    os.utime(people, ns=(0, 0))
    leaves = tmp_path / "job" / "delivery" / "leaves.parquet"
    leaves.write_bytes(leaves.read_bytes()[:-1])
    assert run(*journey(people), "--resume").code == 1
    assert not list(tmp_path.glob("released*"))
    # Nor does a submission that was altered, with a delivery that is gone.
    shutil.rmtree(tmp_path / "job" / "delivery")
    sent = tmp_path / "job" / "submission" / "records.parquet"
    sent.write_bytes(sent.read_bytes()[:-1])
    assert run(*journey(people), "--resume").code == 2


REFUSED: Sequence[tuple[tuple[object, ...], str]] = [
    (("--k", "five"), "integer"),
    (("--k", "1"), "k must be"),
    (("--release", "released.docx"), "ends in"),
    (("--release", "nowhere/released.csv"), "there is no folder"),
    (("--release", "people.parquet"), "is, or holds, the input"),
    (("--token", "t"), "--token goes with --url"),
    (("--url", "http://127.0.0.1:1"), "needs a token"),
    (("--url", "http://127.0.0.1:1", "--token", "t", "--threads", "2"), "goes without --url"),
    (("--task-rows", "9"), "go with --engine spark"),
    (("--sign-verdict", "no.key"), "no.key"),
    (("--roles", "roles.toml"), "roles"),
]


@pytest.mark.parametrize(("more", "said"), REFUSED)
def test_mistakes(
    people: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: Any, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VERIX_TOKEN", raising=False)
    ended = run(*journey(Path("people.parquet")), *more)
    assert ended.code == 2
    assert said in ended.err
    assert not list(tmp_path.glob("released*"))


def test_what_is_there_is_not_replaced(people: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "released.csv").write_text("of somebody else")
    ended = run(*journey(people))
    assert (ended.code, "exists already" in ended.err) == (2, True)
    assert not (tmp_path / "job").exists()
    (tmp_path / "job").mkdir()
    assert run(*journey(people), "--overwrite").code == 2
    assert (tmp_path / "released.csv").read_text() == "of somebody else"
    (tmp_path / "job").rmdir()
    assert run(*journey(people), "--overwrite").code == 0
    assert len(faults.rows(tmp_path / "released.csv")) == 300


def test_a_gate_that_is_not_passed(people: Path, run: Run, tmp_path: Path) -> None:
    ended = run(*journey(people), "--require", "k=200")
    assert ended.code == 1
    assert "VERIFIED" in ended.out
    assert not list(tmp_path.glob("released*"))
    assert run(*journey(people), "--resume").code == 0


def test_a_provider_that_is_away(people: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(**_: object) -> None:
        raise ProviderError("nobody is there")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provider, "folder_provider", away)
        assert run(*journey(people)).code == 2
    assert run(*journey(people), "--resume").code == 0


def test_extras_that_are_missing(people: Path, run: Run, tmp_path: Path) -> None:
    """Of what is written is said before any work; of Spark, when its step begins."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("xlsxwriter", "jinja2", "pyspark"):
            patch.setitem(sys.modules, name, None)
        for more, extra in (
            (("--release", tmp_path / "released.xlsx"), "excel"),
            (("--report", tmp_path / "report.html"), "report"),
        ):
            ended = run(*journey(people), *more)
            assert (ended.code, extra in ended.err) == (2, True), ended.err
            assert not (tmp_path / "job").exists()
        ended = run(*journey(people), "--engine", "spark")
        assert (ended.code, "spark" in ended.err) == (2, True), ended.err
    assert run(*journey(people), "--resume").code == 0


def test_options_of_one_name_mean_one_thing() -> None:
    """A new option that clashes with one of another step has to be renamed, or listed here."""
    homes: dict[str, list[str]] = {}
    for commands in cli.run.STEPS.values():
        for each in commands:
            for name in {*signature(each).parameters} - cli.run.BY_JOB - cli.run.OWN:
                called = cli.run.RENAMED.get((each, name), name)
                homes.setdefault(called, []).append(each.__name__)
    shared = {name for name, found in homes.items() if len(found) > 1}
    by_name = {"person", "provider_key", "passphrase_file", "key_passphrase_file", "log", "series"}
    assert shared == by_name | {*cli.options.OPTIONS}


def test_help_has_examples_first_and_a_panel_for_each_step(run: Run) -> None:
    text = run("run", "--help").out
    shown = [text.index(word) for word in ("verix-anon run people.csv", "Arguments")]
    shown += [text.index(f"{i}. {step.capitalize()}") for i, step in enumerate(STEPS, 1)]
    assert shown == sorted(shown)
    assert "--force" not in text


def test_the_disk_fails_at_any_write(
    people: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At one of each ten; tests/cli/test_faults.py has them all."""
    folder = people.parent
    monkeypatch.setenv("VERIX_LEDGER", str(folder / "ledger.jsonl"))
    (folder / "job").mkdir()
    for n in range(3, faults.MOST, 10):
        faults.clean(folder)
        with faults.failing(n, faults.full_disk) as struck:
            code = faults.run(folder)
        faults.check_run(folder)
        if struck.left > 0:
            assert code == 0
            break
        assert code in (0, 2)
        assert faults.run(folder) == 0
        faults.check_run(folder)
        assert (folder / "released.csv").exists()
    assert n > 30
