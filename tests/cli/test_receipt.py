"""verix-anon receipt check: what signed words show to who has neither delivery nor secret."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from cli import jobs
from cli.jobs import Outcome, Run, verify_arguments
from files.samples import delivered, digest_of
from files.test_parts import split
from protocol.signing import JUDGEMENT, OTHER, OURS, RECEIPT, THIRD
from verix_anon.client.manifest import read_manifest
from verix_anon.files.folder_writer import write_delivery, write_receipt
from verix_anon.files.keys import pin, revoke, write_key, write_trust
from verix_anon.files.trust import NO_TRUST, Pinned
from verix_anon.protocol.signing import Judged, Judgement, sign
from verix_anon.protocol.statements import Receipt

NOW = datetime(2026, 11, 16, 5, tzinfo=UTC)


class Held:
    """What a third party was handed, and how it asks."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.folder, self.run = folder, run
        self.delivery = folder / "delivery"
        write_delivery(delivered(), self.delivery)
        self.said: Receipt = write_receipt(self.delivery, OURS, NOW, NOW)
        self.receipt = self.delivery / "receipt.dsse.json"
        for name, key in (("provider", OURS), ("owner", OTHER), ("third", THIRD)):
            write_key(key, folder / name)
        self.judged(JUDGEMENT)

    def judged(self, judgement: Judgement, **other: object) -> None:
        said = replace(
            judgement,
            root=self.said.root,
            files=self.said.files,
            contract=self.said.contract,
            submission=self.said.submission,
        )
        said = replace(said, **other)  # type: ignore[arg-type]
        (self.folder / "verdict.dsse.json").write_bytes(sign(said.to_bytes(), OTHER))

    def check(self, *more: object, key: str = "provider.pub") -> Outcome:
        return self.run("receipt", "check", self.receipt, "--key", self.folder / key, *more)

    def both(self, *more: object, owner: str = "owner.pub") -> Outcome:
        verdict = self.folder / "verdict.dsse.json"
        return self.check("--verdict", verdict, "--owner-key", self.folder / owner, *more)


@pytest.fixture
def held(tmp_path: Path, run: Run) -> Held:
    return Held(tmp_path, run)


def test_a_receipt_alone(held: Held) -> None:
    found = held.check()
    assert found.code == 0
    assert f"The holder of the key {OURS.public.keyid} signed that verix-local" in found.out
    assert f"with the root {held.said.root.hex()}" in found.out
    assert "Whether the work is right: a receipt says whose it is." in found.out
    assert "NOT SO" not in found.out


def test_receipt_and_verdict(held: Held) -> None:
    found = held.both("--json")
    assert found.code == 0
    said = json.loads(found.out)
    assert said["ok"] is True
    assert said["problems"] == []
    assert said["receipt"]["root"] == said["verdict"]["root"] == held.said.root.hex()
    assert said["verdict"]["outcome"] == "VERIFIED"
    assert any("its verdict was VERIFIED" in line for line in said["shown"])
    assert any("about the same files and the same root" in line for line in said["shown"])
    assert any(line.startswith("Whether the work is right, except") for line in said["not_shown"])


def test_the_root_and_the_files(held: Held) -> None:
    given = [f"{name}={held.delivery / name}" for name in held.said.files]
    files = [word for pair in given for word in ("--file", pair)]
    found = held.check("--root", held.said.root.hex(), *files)
    assert found.code == 0
    assert "The root is the one that was asked about." in found.out
    assert found.out.count("that the receipt names.") == 4
    assert "which were not compared" not in found.out


def test_records_as_a_folder_of_parts(held: Held) -> None:
    split(held.delivery, [100], lambda table: table)
    write_receipt(held.delivery, OURS, NOW, NOW)
    assert held.check("--file", f"records.parquet={held.delivery / 'records.parquet'}").code == 0


def test_the_verdicts_own_file(held: Held) -> None:
    (held.folder / "verdict.json").write_text("{}")
    pair = ("--file", f"verdict.json={held.folder / 'verdict.json'}")
    assert "is not the verdict.json that the signed verdict names." in held.both(*pair).out
    held.judged(JUDGEMENT, verdict=digest_of(held.folder / "verdict.json"))
    found = held.both(*pair)
    assert (found.code, "that the signed verdict names." in found.out) == (0, True)
    alone = held.check(*pair)
    assert (alone.code, "names a file verdict.json" in alone.out) == (1, True)


def test_what_is_not_so_exits_with_1(held: Held) -> None:
    def refused(found: Outcome, words: str) -> None:
        assert found.code == 1
        assert words in found.out
        assert "NOT SO" in found.out

    refused(held.check(key="third.pub"), "no key that is trusted has signed it")
    refused(held.both(owner="third.pub"), "no key that is trusted has signed it")
    refused(held.check("--root", "0" * 64), "about another root")
    refused(held.check("--file", f"nodes.parquet={held.receipt}"), "is not the nodes.parquet")
    held.judged(JUDGEMENT, root=JUDGEMENT.root)
    refused(held.both(), "another delivery than the receipt: another root")
    held.judged(JUDGEMENT, files={}, contract=JUDGEMENT.contract)
    refused(held.both(), "another files, contract")
    held.judged(JUDGEMENT, outcome="VIOLATION")
    refused(held.both(), "its outcome is not the conjunction of its findings")
    (held.folder / "verdict.dsse.json").write_bytes(sign(held.said.to_bytes(), OTHER))
    refused(held.both(), "it is not a verdict")
    held.receipt.write_bytes(sign(JUDGEMENT.to_bytes(), OURS))
    refused(held.check(), "it is not a receipt")
    for data in (b"", b"{}", b"[" * 9999, b" " * 70_000):
        held.receipt.write_bytes(data)
        refused(held.check(), "receipt.dsse.json")


def test_a_violation_that_was_signed_is_shown_as_such(held: Held) -> None:
    held.judged(JUDGEMENT, outcome="VIOLATION", findings=(Judged("replay", "fail", True),))
    found = held.both()
    assert found.code == 0
    assert "its verdict was VIOLATION" in found.out
    assert "decided by: replay fail." in found.out


def test_a_revoked_key_does_not_count(held: Held) -> None:
    trust = pin(NO_TRUST, Pinned(key=OURS.public, name="the lab"))
    write_trust(trust, held.folder / "keys.json")
    found = held.check(key="keys.json")
    assert found.code == 0
    assert f"the key {OURS.public.keyid} (the lab)" in found.out
    write_trust(revoke(trust, OURS.public.keyid, NOW, "stolen"), held.folder / "keys.json")
    found = held.check(key="keys.json")
    assert found.code == 1
    assert "was revoked on 2026-11-16T05:00:00+00:00: stolen" in found.out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--verdict", "x"), "--verdict and --owner-key belong together"),
        (("--owner-key", "x"), "--verdict and --owner-key belong together"),
        (("--root", "abc"), "a root has 64 hexadecimal digits"),
        (("--file", "records.parquet"), "--file takes NAME=PATH"),
        (("--file", "records.parquet=none"), "none cannot be read"),
        (("--key", "none"), "there is no key none"),
    ],
)
def test_mistakes_exit_with_2(held: Held, more: tuple[str, ...], words: str) -> None:
    found = held.check(*more)
    assert found.code == 2
    assert words in found.err


def test_it_loads_nothing_heavy(held: Held) -> None:
    """So that it takes a fraction of a second, wherever it runs."""
    key = held.folder / "provider.pub"
    code = (
        "import sys\nfrom verix_anon import cli\n"
        f"given = [{str(held.receipt)!r}, '--key', {str(key)!r}]\n"
        "sys.argv = ['verix-anon', 'receipt', 'check', *given]\n"
        "try:\n    cli.main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    heavy = {"numpy", "numba", "pyarrow", "pandas", "fsspec", "xgboost", "boto3", "botocore"}
    assert not loaded & heavy


def test_the_owner_signs_its_verdict(tmp_path: Path, run: Run, signed_job: Path) -> None:
    job = signed_job / "job"
    key = ("--provider-key", signed_job / "provider.pub", "--sign", signed_job / "owner")
    out = ("--out", tmp_path / "verdict.json", "--skip", "fingerprint,utility")
    judged = run(*verify_arguments(signed_job), *key, *out, "--quiet")
    assert judged.code == 0
    assert "receipt      pass          decides" in judged.out
    found = run(
        *("receipt", "check", job / "delivery" / "receipt.dsse.json"),
        *("--key", signed_job / "provider.pub", "--verdict", tmp_path / "verdict.dsse.json"),
        *("--owner-key", signed_job / "owner.pub"),
        *("--file", f"verdict.json={tmp_path / 'verdict.json'}", "--json"),
    )
    assert found.code == 0, found.out
    said = json.loads(found.out)
    assert said["verdict"]["outcome"] == "VERIFIED"
    assert [f["layer"] for f in said["verdict"]["findings"]][-1] == "receipt"
    kept = json.loads((tmp_path / "verdict.json").read_text())
    assert said["verdict"]["files"] == kept["files"]
    assert "evidence" not in found.out
    again = run(*verify_arguments(signed_job), *key, *out, "--quiet")
    assert again.code == 2
    assert "exists already" in again.err


def test_sign_needs_a_file_to_sign(run: Run, signed_job: Path) -> None:
    done = run(*verify_arguments(signed_job), "--sign", signed_job / "owner")
    assert done.code == 2
    assert "add --out FILE" in done.err


def test_without_its_receipt_a_delivery_is_not_accepted(run: Run, signed_job: Path) -> None:
    place = signed_job / "job" / "delivery" / "receipt.dsse.json"
    kept = place.read_bytes()
    key = ("--provider-key", signed_job / "provider.pub", "--skip", "fingerprint,utility")
    try:
        place.unlink()
        judged = run(*verify_arguments(signed_job), *key, "--quiet")
        assert judged.code == 3
        assert "INCONCLUSIVE" in judged.out
        place.write_bytes(kept.replace(b'"sig":"', b'"sig":"AAAA'))
        assert run(*verify_arguments(signed_job), *key, "--quiet").code == 1
        place.write_bytes(kept)
        # An exact pass answers what was found before.
        assert run(*verify_arguments(signed_job), *key, "--quiet").code == 0
    finally:
        place.write_bytes(kept)


@pytest.fixture(scope="module")
def signed_job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job whose delivery was signed by the command."""
    folder = tmp_path_factory.mktemp("signed")
    for name, key in (("provider", OURS), ("owner", OTHER)):
        write_key(key, folder / name)
    jobs.make(folder, 300)
    write_receipt(folder / "job" / "delivery", OURS, NOW, NOW)
    return folder


def test_prepare_pins_the_key_for_the_job(tmp_path: Path, run: Run, signed_job: Path) -> None:
    table, pinned = signed_job / "people.parquet", ("--provider-key", signed_job / "provider.pub")
    made = run("prepare", table, "--out", tmp_path / "job", *jobs.JOB, *pinned)
    assert made.code == 0
    assert "--sign KEY" in made.out
    assert read_manifest(tmp_path / "job" / "manifest.verix").provider_keys == (OURS.public,)
    refused = run("prepare", table, "--out", tmp_path / "other", *jobs.JOB, "--provider-key", "no")
    assert refused.code == 2
    assert "there is no key no" in refused.err


@pytest.mark.parametrize("differing", ["root", "contract", "submission", None])
def test_a_header_that_contradicts_the_receipt_is_not_so(
    tmp_path: Path, run: Run, differing: str | None
) -> None:
    """Its digest is the one that was signed: the signer said two things at once."""
    said = {name: getattr(RECEIPT, name).hex() for name in ("root", "contract", "submission")}
    if differing is not None:
        said[differing] = "ab" * 32
    header = tmp_path / "delivery.json"
    header.write_text(json.dumps(said))
    files = {**RECEIPT.files, "delivery.json": sha256(header.read_bytes()).hexdigest()}
    data = sign(replace(RECEIPT, files=files).to_bytes(), OURS)
    (tmp_path / "receipt").write_bytes(data)
    (tmp_path / "key.pub").write_text(OURS.public.pem)
    given = ("--key", tmp_path / "key.pub", "--file", f"delivery.json={header}")
    found = run("receipt", "check", tmp_path / "receipt", *given)
    assert found.code == (0 if differing is None else 1)
    assert ("contradict each other" in found.out) is (differing is not None)
