"""`verix-anon prove` and `prove check`: by tracker, row and person; exit codes; what is light."""

import json
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import verix_anon
from cli.jobs import JOB, Run
from verix_anon.errors import TableError
from verix_anon.files.keys import read_signing_key
from verix_anon.files.proofs import digest_bytes
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.envelopes import open_envelope
from verix_anon.protocol.signing import sign
from verix_anon.protocol.statements import Receipt


def owners(job: Path) -> list[object]:
    made: list[object] = ["prove", job / "job/delivery", "--manifest", job / "job/manifest.verix"]
    return [*made, "--table", job / "people.parquet"]


def root_of(job: Path) -> str:
    return str(json.loads((job / "job/delivery/delivery.json").read_text())["root"])


def test_journey(job: Path, run: Run) -> None:
    out = job / "proof.json"
    code, said, err = run(*owners(job), "--record", 17, "--out", out)
    assert code == 0, err
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert out.stat().st_size < 8_000
    code, said, err = run("prove", "check", out, "--root", root_of(job))
    assert code == 0, err
    assert "The proof holds under the root" in said
    assert "It does not show whose record this is" in said
    proof = verix_anon.read_proof(out)
    assert f"lies in a class of {proof.count} records; at least 5 were agreed" in said
    assert said.count("at most place") + said.count("more than place") == len(proof.path)
    code, said, _ = run("prove", "check", out, "--root", root_of(job), "--json")
    assert code == 0
    found = json.loads(said)
    assert found["holds"] is True
    assert found["count"] == proof.count
    assert len(found["splits"]) == len(proof.path)


def test_by_tracker_with_nothing_but_delivery_and_contract(job: Path, run: Run) -> None:
    run(*owners(job), "--record", 17, "--out", job / "owner.json")
    tracker = verix_anon.read_proof(job / "owner.json").tracker.hex()
    delivery, submission = job / "job/delivery", job / "job/submission"
    for number, given in enumerate(
        (("--submission", submission), ("--contract", submission / "contract.json"))
    ):
        out = job / f"{number}.json"
        # Options may come first, then the delivery.
        code, _, err = run("prove", "--tracker", tracker, *given, "--out", out, delivery)
        assert code == 0, err
        assert out.read_bytes() == (job / "owner.json").read_bytes()
    code, said, _ = run(
        "prove", "make", delivery, "--tracker", tracker.upper(), "--submission", submission,
        "--out", job / "json.json", "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(said)[0]["tracker"] == tracker


def test_it_is_the_record_of_that_row(job: Path, run: Run) -> None:
    """The class has the row's own values, at their places in the table."""
    table = pq.read_table(job / "people.parquet")
    manifest = verix_anon.read_manifest(job / "job/manifest.verix")
    for row in (0, 700, 1_499):
        run(*owners(job), "--record", row, "--out", job / "proof.json", "--overwrite")
        proof = verix_anon.read_proof(job / "proof.json")
        sent = int(next(r for r, tracker in proof.members if tracker == proof.tracker))
        assert manifest.owner_row[sent] == row
        ages = table["age"].to_pylist()
        place = sorted(set(ages)).index(ages[row])
        position = [column.name for column in manifest.quasi].index("age")
        low, high = proof.bounds[position]
        assert low <= place <= high


def test_all_records_of_a_person(tmp_path: Path, run: Run) -> None:
    table = pq.read_table(people(tmp_path))
    job = tmp_path / "job"
    roles = ("--identifier", "who", "--person", "who")
    assert run("prepare", tmp_path / "people.parquet", "--out", job, *roles, *JOB).code == 0
    assert run("anonymize", job / "submission", "--out", job / "delivery").code == 0
    code, _, err = run(*owners(tmp_path), "--person", "7", "--out", tmp_path / "p.json")
    assert code == 0, err
    rows = [i for i, who in enumerate(table["who"].to_pylist()) if who == 7]
    assert len(rows) == 2
    manifest = verix_anon.read_manifest(job / "manifest.verix")
    for number, row in enumerate(rows):
        proof = verix_anon.read_proof(tmp_path / f"p-{number + 1}.json")
        assert dict(proof.members)[list(manifest.owner_row).index(row)] == proof.tracker
    assert not (tmp_path / "p.json").exists()
    for nobody in ("99999", "x"):
        code, _, err = run(*owners(tmp_path), "--person", nobody, "--out", tmp_path / "q.json")
        assert code == 2
        assert f"no record of the table has '{nobody}' in column 'who'" in err


def people(folder: Path) -> Path:
    table = verix_anon.datasets.census(300)
    who = pa.array([i // 2 for i in range(table.num_rows)])
    pq.write_table(table.append_column("who", who), folder / "people.parquet")
    return folder / "people.parquet"


def test_exit_codes_of_check(job: Path, run: Run) -> None:
    out, root = job / "proof.json", root_of(job)
    run(*owners(job), "--record", 3, "--out", out)
    other = "0" * 64
    code, _, err = run("prove", "check", out, "--root", other)
    assert code == 1
    assert "of another root" in err
    code, said, _ = run("prove", "check", out, "--root", other, "--json")
    assert (code, json.loads(said)["holds"]) == (1, False)
    assert run("prove", "check", out, "--root", root, "--tracker", other).code == 1
    assert run("prove", "check", out, "--root", "abc").code == 2
    assert run("prove", "check", out, "--root", root, "--tracker", "abc").code == 2
    assert run("prove", "check", job / "nothing.json", "--root", root).code == 2
    assert run("prove", "check", job, "--root", root).code == 2
    assert run("prove", "check", "/dev/zero", "--root", root).code == 2
    out.write_bytes(out.read_bytes().replace(b'"count":', b'"count": '))
    assert run("prove", "check", out, "--root", root).code == 1
    out.write_text("{")
    assert run("prove", "check", out, "--root", root).code == 1


def test_the_root_of_a_receipt(job: Path, run: Run) -> None:
    """A data subject has the proof, the receipt and the provider's public key."""
    signed, out = job / "signed", job / "proof.json"
    for name in ("provider.key", "other.key"):
        assert run("keys", "new", job / name).code == 0
    submission = job / "job/submission"
    run("anonymize", submission, "--out", signed, "--sign", job / "provider.key")
    run(*owners(job), "--record", 3, "--out", out)
    check = ("prove", "check", out)
    receipt = ("--receipt", signed / "receipt.dsse.json")
    key = ("--key", job / "provider.key.pub")
    code, said, err = run(*check, *receipt, *key)
    assert code == 0, err
    assert f"made the delivery with the root {root_of(job)}" in said
    # A root that was copied from a letter may have spaces around it.
    code, said, _ = run(*check, *receipt, *key, "--root", f" {root_of(job).upper()}\n", "--json")
    assert code == 0
    assert "signed that verix-local" in json.loads(said)["signed"]
    code, _, err = run(*check, *receipt, "--key", job / "other.key.pub")
    assert code == 1
    assert "the receipt does not count" in err
    code, said, _ = run(*check, *receipt, "--key", job / "other.key.pub", "--json")
    assert (code, json.loads(said)["holds"]) == (1, False)
    assert run(*check, *receipt, *key, "--root", "0" * 64).code == 1
    for words in ((), receipt, key, (*key, "--root", root_of(job))):
        assert run(*check, *words).code == 2
    # A receipt of another delivery, by the right key.
    other = job / "other"
    assert run("prepare", job / "people.parquet", "--out", other, *JOB, "--k", 6).code == 0
    run("anonymize", other / "submission", "--out", job / "else", "--sign", job / "provider.key")
    code, _, err = run(*check, "--receipt", job / "else/receipt.dsse.json", *key)
    assert code == 1
    assert "of another root" in err
    # A receipt for this root that names another contract, which the root contradicts.
    private = read_signing_key(job / "provider.key")
    opened = open_envelope((signed / "receipt.dsse.json").read_bytes(), [private.public], "receipt")
    false = replace(Receipt.from_bytes(opened.payload), contract=Digest(bytes(32)))
    (job / "false.json").write_bytes(sign(false.to_bytes(), private))
    code, _, err = run(*check, "--receipt", job / "false.json", *key)
    assert code == 1
    assert "another contract or submission" in err


def test_mistakes_of_the_caller(job: Path, run: Run) -> None:
    delivery, out = job / "job/delivery", job / "proof.json"
    manifest, submission = job / "job/manifest.verix", job / "job/submission"
    tracker = ("--tracker", "0" * 64)
    for words, problem in (
        ((*tracker,), "one of --manifest, --submission and --contract"),
        ((*tracker, "-s", submission, "-m", manifest), "one of --manifest, --submission and"),
        (("-s", submission), "say which record to prove"),
        (("-s", submission, "--record", 1), "give the manifest and the table"),
        (("-m", manifest, "--record", 1), "give the manifest and the table"),
        ((*tracker, "-s", submission), "no record of the delivery has the tracker"),
        (("--tracker", "ab", "-s", submission), "a tracker has 64 hexadecimal digits"),
        (("-m", manifest, "-t", job / "people.parquet", "--record", 1_500), "0 to 1,499"),
        (("-m", manifest, "-t", job / "people.parquet", "--person", "x"), "names no person column"),
    ):
        code, _, err = run("prove", delivery, "--out", out, *words)
        assert code == 2, words
        assert problem in err
    assert not out.exists()
    run(*owners(job), "--record", 3, "--out", out)
    code, _, err = run(*owners(job), "--record", 3, "--out", out)
    assert code == 2
    assert "exists already" in err


def test_no_proof_of_a_delivery_that_was_changed(job: Path, run: Run, tmp_path: Path) -> None:
    header = job / "job/delivery/delivery.json"
    header.write_text(header.read_text().replace(root_of(job), "0" * 64))
    code, _, err = run(*owners(job), "--record", 3, "--out", tmp_path / "proof.json")
    assert code == 2
    assert "root does not follow" in err


def test_no_proof_by_the_manifest_of_another_job(job: Path, run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert run("prepare", job / "people.parquet", "--out", other, *JOB, "--k", 6).code == 0
    shutil.copy(other / "manifest.verix", job / "job/manifest.verix")
    code, _, err = run(*owners(job), "--record", 3, "--out", tmp_path / "proof.json")
    assert code == 2
    assert "answers another submission" in err


def test_another_table_is_refused(job: Path, run: Run, tmp_path: Path) -> None:
    table = pq.read_table(job / "people.parquet")
    pq.write_table(table.slice(1), job / "people.parquet")
    code, _, err = run(*owners(job), "--record", 3, "--out", tmp_path / "proof.json")
    assert code == 2
    assert "not the one that was prepared" in err


def test_a_folder_may_be_called_check(job: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (job / "job/delivery").rename(job / "check")
    monkeypatch.chdir(job)
    given = ("--manifest", "job/manifest.verix", "--table", "people.parquet", "--record", 3)
    assert run("prove", "make", "check", *given, "--out", "proof.json").code == 0
    assert run("prove", "./check", *given, "--out", "other.json").code == 0


LIGHT = """
import sys
from verix_anon import cli

sys.argv = ["verix-anon", "prove", "check", *sys.argv[1:]]
try:
    cli.main()
except SystemExit as stop:
    assert not stop.code
print("loaded:", *({"numpy", "numba", "pyarrow", "cryptography"} & set(sys.modules)))
"""


def test_check_needs_nothing_heavy(job: Path, run: Run) -> None:
    run(*owners(job), "--record", 3, "--out", job / "proof.json")
    words = [job / "proof.json", "--root", root_of(job)]
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, *map(str, words)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_a_root_may_be_copied_with_any_spaces_around_it() -> None:
    assert digest_bytes("\u00a0" + "Ab" * 32 + "\n", "a root") == bytes.fromhex("ab" * 32)
    with pytest.raises(TableError, match="64 hexadecimal digits"):
        digest_bytes("\u00a0" + "a" * 63, "a root")
