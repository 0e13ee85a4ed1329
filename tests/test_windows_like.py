"""The owner's side on a system that has no POSIX: every module, and the journey from file to file.

No Windows was at hand. `tests/windows_like` takes away from the package what Windows lacks. What
only Windows itself can show, such as its access lists, is not tried here.
"""

import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import verix_anon
from desk.test_table import digest
from tools.desk_process import serving
from verix_anon import datasets

HERE = Path(__file__).parent
POSIX_ONLY = ("verix_anon.service", "verix_anon.provider.spark", "verix_anon.__main__")
MONTHLY = """k = 5
[columns]
id = "identifier"
age = "quasi"
sex = "quasi"
occupation = "sensitive"
[contract]
task = "none"
person = "id"
"""
TRY = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
from verix_anon import platform
assert not platform.IS_POSIX
"""


def _environment(folder: Path) -> dict[str, str]:
    known = os.environ.get("PYTHONPATH", "")
    own = os.pathsep.join([str(HERE / "windows_like"), *([known] if known else [])])
    icacls = folder / "bin" / "icacls"
    if not icacls.exists():
        icacls.parent.mkdir()
        icacls.write_text(f'#!/bin/sh\necho "$@" >> "{folder}/icacls.log"\n')
        icacls.chmod(0o755)
    named = {
        "PYTHONPATH": own,
        "PYTHONWARNDEFAULTENCODING": "1",
        "USERNAME": "owner",
        "VERIX_LEDGER": str(folder / "ledger.jsonl"),
    }
    return {**os.environ, **named, "PATH": f"{icacls.parent}{os.pathsep}{os.environ['PATH']}"}


def _run(folder: Path, *words: str, code: int = 0) -> str:
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "verix_anon", *words],
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        check=False,
    )
    said = (ended.stdout + ended.stderr).decode("cp1252")
    assert ended.returncode == code, said
    return said


def test_every_module_of_the_owner_is_imported(tmp_path: Path) -> None:
    names = [
        module.name
        for module in pkgutil.walk_packages(verix_anon.__path__, "verix_anon.")
        if not module.name.startswith(POSIX_ONLY)
    ]
    done = subprocess.run(
        [sys.executable, "-c", TRY, *names],
        env=_environment(tmp_path),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert len(names) > 150


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that was walked to its release."""
    folder = tmp_path_factory.mktemp("windows")
    table = datasets.census(600).to_pandas()
    table["town"] = ["Łódź" if n % 2 else "Köln" for n in range(len(table))]
    table.to_csv(
        folder / "people.csv", sep=";", index=False, encoding="utf-8-sig", lineterminator="\r\n"
    )
    table.to_excel(folder / "people.xlsx", index=False)
    _run(folder, "init", "people.csv", "--out", "roles.toml")
    _run(folder, "prepare", "people.csv", "--roles", "roles.toml", "--out", "job")
    _run(folder, "anonymize", "job/submission", "--out", "job/delivery")
    return folder


def _verify(folder: Path, *more: str) -> str:
    manifest = ("--manifest", "job/manifest.verix", "--submission", "job/submission")
    return _run(folder, "verify", "job/delivery", *manifest, *more)


def test_journey_from_file_to_file(job: Path) -> None:
    said = _verify(job, "--out", "job/verdict.json", "--report", "audit.html")
    assert "VERIFIED" in said
    judged = ("--manifest", "job/manifest.verix", "--verdict", "job/verdict.json")
    _run(job, "release", "job/delivery", *judged, "--table", "people.csv", "--out", "released.csv")
    text = (job / "released.csv").read_bytes()
    assert text.count(b"\n") == 601
    _run(job, "convert", "released.csv", "--out", "released.xlsx")
    lines = (job / "ledger.jsonl").read_bytes()
    assert b"\r" not in lines
    assert b"\r" not in (job / "job" / "audit.jsonl").read_bytes()


def test_a_file_that_is_open_elsewhere_is_not_replaced(job: Path) -> None:
    """As a table is in Excel."""
    held = job / "held.toml"
    held.write_text("as it was")
    init = ("init", "people.csv", "--out", "held.toml", "--overwrite")
    with held.open() as file:
        said = _run(job, *init, code=2)
        assert "held.toml cannot be written (The process cannot access the file)" in said
        assert file.read() == "as it was"
    assert not list(job.glob(".held*"))
    _run(job, *init)
    assert held.read_bytes() == (job / "roles.toml").read_bytes()


def test_names_that_windows_does_not_have(job: Path) -> None:
    for name in ("aux.toml", "a?.toml", "ROLES.TOML"):
        said = _run(job, "init", "people.csv", "--out", name, code=2)
        assert f"{name} cannot be written" in said
        assert not (job / name).exists()


def test_what_the_console_cannot_show_is_escaped(job: Path) -> None:
    (job / "Łódź.csv").write_bytes((job / "people.csv").read_bytes())
    said = _run(job, "init", "Łódź.csv", "--out", "Köln Łódź.toml")
    assert "Köln \\u0141ód\\u017a.toml" in said
    assert (job / "Köln Łódź.toml").is_file()


def test_the_desk_runs_commands_and_ends_by_ctrl_c(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in _environment(job).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "people.csv").write_bytes((job / "people.csv").read_bytes())
    with serving(tmp_path) as desk, desk.client() as client:
        assert client.get(desk.url).status_code == 303
        csrf = re.search(r'name="csrf" content="([^"]+)"', client.get("/").text)
        assert csrf is not None

        def send(path: str, **fields: str) -> str:
            sent = {"csrf": csrf[1], **fields}
            answer = client.post(path, data=sent, headers={"Origin": desk.origin})
            assert answer.status_code == 303, answer.text
            return str(answer.headers["location"])

        send("/jobs", name="first")
        assert client.post("/jobs", data={"csrf": csrf[1], "name": "nul"}).status_code >= 400
        page = client.get("/jobs/first/table").text
        fields = {"do": "draft", "digest": digest(page), "table": "people.csv"}
        send("/jobs/first/table", **fields)
        until = time.monotonic() + 60
        while not (tmp_path / "first" / "roles.toml").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        assert "age" in client.get("/jobs/first/columns").text
        code, _ = desk.end(signal.SIGINT)
    assert code in (0, 130)
    assert not list(tmp_path.rglob("*.partial"))


def test_secrets_get_an_access_list(job: Path) -> None:
    lists = (job / "icacls.log").read_text()
    assert "/inheritance:r /grant:r .\\owner:(OI)(CI)F" in lists


def test_links_in_a_delivery_are_refused(job: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "linked"
    shutil.copytree(job / "job" / "delivery", folder)
    (folder / "leaves.parquet").rename(folder / "elsewhere")
    (folder / "leaves.parquet").symlink_to("elsewhere")
    said = _run(
        job,
        *("verify", str(folder), "--manifest", "job/manifest.verix"),
        *("--submission", "job/submission"),
        code=1,
    )
    assert "it is a link" in said


def test_the_providers_side_says_what_it_needs(job: Path) -> None:
    spark = ("anonymize", "job/submission", "--engine", "spark", "--out", "spark")
    for words in (("serve", "service"), ("token", "list", "--folder", "service"), spark):
        assert "needs Linux or macOS; on Windows, use verix-anon in WSL" in _run(
            job, *words, code=2
        )


def test_a_series_from_month_to_month(job: Path) -> None:
    (job / "monthly.toml").write_text(MONTHLY, encoding="utf-8")
    people = datasets.census(300).to_pandas()[["age", "sex", "occupation"]]
    people.insert(0, "id", [f"P{n}" for n in range(300)])
    _run(job, "keys", "new", "owner.key")
    _run(job, "series", "new", "monthly", "--roles", "monthly.toml")
    for month in (1, 2):
        some, out = people[100 * (month - 1) :][:200], ("--out", f"job{month}")
        some.to_csv(job / f"month{month}.csv", index=False, lineterminator="\r\n")
        release = ("--release", f"month{month}.xlsx", "--sign-series", "owner.key")
        _run(job, "run", f"month{month}.csv", "--series", "monthly", *out, *release)
    assert "below l" in _run(job, "series", "risk", "monthly")
    check = ("--file", "month2.xlsx", "--key", "owner.key.pub")
    assert "is release 2 of 2" in _run(job, "series", "check", "monthly/series.json", *check)
    _run(job, "report", "job2/verdict.json", "--out", "month2.html")
    mine = ("--manifest", "job2/manifest.verix", "--table", "month2.csv", "--person", "P150")
    _run(job, "prove", "job2/delivery", *mine, "--out", "proof.json")
    root = json.loads((job / "job2" / "delivery" / "delivery.json").read_bytes())["root"]
    _run(job, "prove", "check", "proof.json", "--root", root)


def test_two_processes_do_not_hold_one_log(job: Path) -> None:
    held = """
import sys, time
from pathlib import Path
from verix_anon.files import json_lines
with json_lines.locked(Path(sys.argv[1])) as lines:
    print("held", flush=True)
    sys.stdin.read()
"""
    log = job / "locked.jsonl"
    with subprocess.Popen(
        [sys.executable, "-c", held, str(log)],
        env=_environment(job),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as first:
        assert first.stdout is not None
        assert first.stdin is not None
        assert first.stdout.readline().strip() == b"held"
        try_it = held.replace("with json_lines", "json_lines.PATIENCE = 0.05\nwith json_lines")
        second = subprocess.run(
            [sys.executable, "-c", try_it, str(log)],
            env=_environment(job),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        first.stdin.close()
    assert b"another process holds it" in second.stderr
