"""`verix-anon verify`: the journey to a verdict, exit codes, and what is never overwritten."""

import json
import shutil
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from cli.jobs import JOB, Run, release_arguments, verify_arguments


def test_journey(job: Path, run: Run) -> None:
    verdict, released = job / "verdict.json", job / "released.csv"
    code, out, _ = run(*verify_arguments(job), "--out", verdict)
    assert code == 0
    assert "VERIFIED" in out
    assert "UNSAFE SEED" in out
    log = (job / "job/audit.jsonl").read_text().splitlines()
    assert json.loads(log[0])["fired"] == []
    assert json.loads(log[0])["layers"]["splits"] == "pass"
    release = release_arguments(job)
    code, out, err = run(*release, "--out", released, "--round", "age=5")
    assert code == 0, err
    ages = pyarrow.csv.read_csv(released)["age"].to_pylist()
    assert all(int(end) % 5 == 0 for age in ages for end in age.split(".."))
    # The same table again, even under another name, is a second release.
    code, _, err = run(*release, "--out", job / "again.csv")
    assert code == 2
    assert "release" in err
    assert not (job / "again.csv").exists()


def test_json_verdict_and_thin(job: Path, run: Run) -> None:
    code, out, _ = run(*verify_arguments(job)[:4], "--json")
    assert code == 0
    document = json.loads(out)
    assert (document["outcome"], document["profile"]) == ("VERIFIED", "thin")
    assert set(document["files"]) >= {"delivery.json", "records.parquet"}


def test_violation_and_inconclusive_exit_codes(job: Path, run: Run) -> None:
    header = json.loads((job / "job/delivery/delivery.json").read_text())
    header["root"] = "0" * 64
    (job / "job/delivery/delivery.json").write_text(json.dumps(header))
    code, out, _ = run(*verify_arguments(job))
    assert code == 1
    assert "VIOLATION" in out
    (job / "job/delivery/nodes.parquet").unlink()
    assert run(*verify_arguments(job))[0] == 1
    arguments = ["prepare", job / "people.parquet", "--out", job / "bare", "--witnesses", 0, *JOB]
    assert run(*arguments)[0] == 0
    assert run("anonymize", job / "bare/submission", "--out", job / "bare/delivery")[0] == 0
    code, out, _ = run("verify", job / "bare/delivery", "--manifest", job / "bare/manifest.verix")
    assert code == 3
    assert "INCONCLUSIVE" in out


def test_manifest_of_another_submission(job: Path, run: Run) -> None:
    other = ["prepare", job / "people.parquet", "--out", job / "other", "--target", "income"]
    assert run(*other, "--quasi", "all", "--quiet")[0] == 0
    arguments = ["verify", job / "job/delivery", "--manifest", job / "other/manifest.verix"]
    code, _, err = run(*arguments, "--submission", job / "job/submission")
    assert code == 2
    assert "not the one this manifest was made for" in err


def test_sealed_manifest(job: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = job / "secret"
    secret.write_text("correct horse\n")
    sealed = ["prepare", job / "people.parquet", "--out", job / "sealed", *JOB]
    assert run(*sealed, "--passphrase-file", secret)[0] == 0
    manifest = job / "sealed/manifest.verix"
    assert stat.S_IMODE(manifest.stat().st_mode) == 0o600
    assert run("anonymize", job / "sealed/submission", "--out", job / "sealed/delivery")[0] == 0
    verify = ["verify", job / "sealed/delivery", "--manifest", manifest]
    assert run(*verify, "--passphrase-file", secret)[0] == 0
    code, _, err = run(*verify)
    assert code == 2
    assert "sealed" in err
    monkeypatch.setenv("VERIX_PASSPHRASE", "wrong")
    code, _, err = run(*verify)
    assert code == 2
    assert "passphrase is wrong" in err


def test_inputs_are_never_overwritten(job: Path, run: Run) -> None:
    manifest, submission = job / "job/manifest.verix", job / "job/submission"
    table = job / "people.parquet"
    (job / "keep").mkdir()
    (job / "keep/thesis.txt").write_text("years of work")
    before = {path: path.read_bytes() for path in job.rglob("*") if path.is_file()}
    verify = verify_arguments(job)
    attempts = [
        [*verify, "--out", manifest, "--overwrite"],
        [*verify, "--log", manifest],
        [*verify, "--log", table],
        ["anonymize", submission, "--out", submission, "--overwrite"],
        ["anonymize", submission, "--out", job / "job", "--overwrite"],
        ["anonymize", submission, "--out", job / "keep", "--overwrite"],
        ["anonymize", submission, "--out", table, "--overwrite"],
        [*release_arguments(job), "--out", table, "--overwrite"],
    ]
    for attempt in attempts:
        code, _, err = run(*attempt)
        assert code == 2, attempt
        assert err.count("\n") == 1
    assert {path: path.read_bytes() for path in job.rglob("*") if path.is_file()} == before


def test_a_violation_is_final_for_its_submission(job: Path, run: Run) -> None:
    thin = verify_arguments(job)[:4]
    assert run(*thin)[0] == 0
    damaged = job / "job/damaged"
    shutil.copytree(job / "job/delivery", damaged)
    nodes = pq.read_table(damaged / "nodes.parquet")
    moved = [
        t + 1.0 if c >= 0 else t
        for c, t in zip(nodes["column"].to_pylist(), nodes["threshold"].to_pylist(), strict=True)
    ]
    pq.write_table(nodes.set_column(1, "threshold", pa.array(moved)), damaged / "nodes.parquet")
    assert run("verify", damaged, *thin[2:])[0] == 1
    # Another delivery does not take it back, unless everything is looked at.
    code, _, err = run(*thin)
    assert code == 2
    assert "VIOLATION before" in err
    assert run(*verify_arguments(job))[0] == 0


def test_a_log_that_lost_a_line(job: Path, run: Run) -> None:
    """A thin pass goes on with a warning, a release does not, and an exact pass answers it."""
    header = job / "job/delivery/delivery.json"
    honest = header.read_text()
    header.write_text(json.dumps(json.loads(honest) | {"root": "0" * 64}))
    thin, full, verdict = verify_arguments(job)[:4], verify_arguments(job), job / "verdict.json"
    skip = ("--skip", "fingerprint,utility", "--overwrite", "--out", verdict)
    assert run(*full, *skip)[0] == 1
    header.write_text(honest)
    log = job / "job/audit.jsonl"
    log.write_text("")
    code, out, err = run(*thin, *skip, "--report", job / "audit.html")
    assert (code, "VERIFIED" in out) == (0, True)
    lost = f"the audit log {log} lacks 1 line that the ledger remembers for this submission"
    assert f"Warning: {lost}" in err
    (told,) = json.loads(verdict.read_text())["warnings"]
    assert lost in told
    page = (job / "audit.html").read_text()
    assert "The audit log may not be complete." in page
    assert str(log) not in page
    release = (*release_arguments(job), "--out", job / "released.csv")
    code, _, err = run(*release)
    assert code == 2
    assert lost in err
    assert "verify with the submission and audit all" in err
    assert not (job / "released.csv").exists()
    code, _, err = run(*full, *skip)
    assert code == 0
    assert f"Warning: {lost}" in err
    code, _, err = run(*release)
    assert code == 0
    assert f"Warning: {lost}" in err


def test_informing_layers_left_out(job: Path, run: Run) -> None:
    page = job / "audit.html"
    skip = ["--skip", "fingerprint, utility"]
    code, out, err = run(*verify_arguments(job), *skip, "--report", page)
    assert code == 0, err
    assert out.count("Not run: left out by the caller.") == 2
    assert page.exists()
    for options in (["--skip", "splits"], ["--skip", "fingerprint", "--profile", "paper"]):
        code, _, err = run(*verify_arguments(job), *options)
        assert code == 2
        assert "cannot be left out" in err


def test_a_delivery_of_another_job_says_so_first(job: Path, run: Run) -> None:
    people = pq.read_table(job / "people.parquet").drop(["commute_km"])
    pq.write_table(people, job / "fewer.parquet")
    assert run("prepare", job / "fewer.parquet", "--out", job / "fewer", *JOB)[0] == 0
    other = job / "fewer/delivery"
    assert run("anonymize", job / "fewer/submission", "--out", other)[0] == 0
    code, _, err = run("verify", other, *verify_arguments(job)[2:])
    assert code == 2
    assert "answers another submission; are folders mixed up?" in err
    # Of the same shape, so that it can be read.
    assert run("prepare", job / "people.parquet", "--out", job / "again", *JOB[:-3])[0] == 0
    same = job / "again/delivery"
    assert run("anonymize", job / "again/submission", "--out", same)[0] == 0
    verdict = job / "mixed.json"
    code, _, err = run("verify", same, *verify_arguments(job)[2:], "--out", verdict)
    assert code == 2
    assert "answers another submission; are folders mixed up?" in err
    assert not verdict.exists()


def test_a_mix_up_of_folders_does_not_stand_in_the_way(job: Path, run: Run) -> None:
    """It is noted in the log, and the right delivery can be verified thin and released after it."""
    assert run("prepare", job / "people.parquet", "--out", job / "again", *JOB[:-3])[0] == 0
    other = job / "again/delivery"
    assert run("anonymize", job / "again/submission", "--out", other)[0] == 0
    right = verify_arguments(job)
    assert run("verify", other, *right[2:])[0] == 2
    lines = [json.loads(line) for line in (job / "job/audit.jsonl").read_text().splitlines()]
    assert "answers another submission" in lines[-1]["mix_up"]
    assert "outcome" not in lines[-1]
    verdict, out = job / "thin.json", ("--table", job / "people.parquet", "--out", job / "r.csv")
    assert run(*right[:4], "--profile", "thin", "--out", verdict)[0] == 0
    manifest = ("--manifest", job / "job/manifest.verix", "--verdict", verdict)
    code, _, err = run("release", other, *manifest, *out, "--force")
    assert (code, "answers another submission" in err) == (2, True)
    assert run("release", job / "job/delivery", *manifest, *out)[0] == 0


def test_thin_beside_a_submission_is_warned_of(job: Path, run: Run) -> None:
    thin = verify_arguments(job)[:4]
    code, out, err = run(*thin)
    assert code == 0
    assert "Warning: without the submission, less is checked" in err
    assert out.rstrip().endswith("Moved traps are not found.")
    assert "Warning: less" not in run(*thin, "--profile", "thin")[2]
