"""No secret leaves the manifest: not in files, verdicts, reprs, logs or errors."""

import json
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tools import cases
from verix_anon.adversaries import ADVERSARIES, only, under
from verix_anon.client import manifest as module
from verix_anon.client.manifest import Manifest
from verix_anon.client.owner_files import write_manifest
from verix_anon.client.prepare import Prepared
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.verdict import Profile
from verix_anon.client.verify import verify
from verix_anon.client.verify.case import Audit, VerifyOptions
from verix_anon.errors import Error
from verix_anon.files.folder_writer import write_delivery, write_submission
from verix_anon.protocol.messages import Delivery

LABELS = ("trackers", "watch", "seed/twins", "seed/sentinels/choice", "seed/sentinels/noise")


pytestmark = pytest.mark.usefixtures("quick_models")


def made() -> Prepared:
    """In clear, so that there are values which could be told."""
    return cases.prepared(clear=True)


def secrets_of(manifest: Manifest) -> list[bytes]:
    """The salt and every key, in the forms in which bytes get printed."""
    secret = Secret(manifest.salt)
    keys = [manifest.salt, *(secret.key(label) for label in LABELS)]
    forms = [form for key in keys for form in (key, key.hex().encode(), key.hex().upper().encode())]
    # Half a key would be a secret too.
    return forms + [str(key)[2:-1].encode() for key in keys] + [key[:16] for key in keys]


def row_lists(manifest: Manifest) -> list[bytes]:
    """The rows of traps and watch records, as texts and as arrays hold them."""
    found = []
    for rows in (
        manifest.sentinel_row,
        manifest.twin_row[:, 0],
        manifest.twin_row[:, 1],
        manifest.watch_row,
        manifest.owner_row[:40],
        np.array([w.row for w in manifest.witnesses]),
    ):
        for kind in ("<i8", "<i4"):
            found += [rows.astype(kind).tobytes(), np.sort(rows).astype(kind).tobytes()]
        # Four in a row are enough to know them by.
        found.append(", ".join(map(str, rows[:4].tolist())).encode())
        found.append(" ".join(map(str, rows[:4].tolist())).encode())
    return found


def assert_clean(data: bytes, manifest: Manifest) -> None:
    for needle in (*secrets_of(manifest), *row_lists(manifest)):
        assert needle not in data


def files_in(folder: Path) -> bytes:
    return b"\0".join(p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file())


def test_the_search_finds_what_it_looks_for(tmp_path: Path) -> None:
    """Or all of the below would prove nothing."""
    manifest = made().manifest
    with pytest.raises(AssertionError):
        assert_clean(b"..." + manifest.salt.hex().encode(), manifest)
    with pytest.raises(AssertionError):
        assert_clean(repr(list(manifest.sentinel_row.tolist())).encode(), manifest)
    write_manifest(manifest, tmp_path / "m")
    import zipfile
    from io import BytesIO

    plain = (tmp_path / "m").read_bytes()[len(module.PLAIN) + 32 :]
    with zipfile.ZipFile(BytesIO(plain)) as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    with pytest.raises(AssertionError):
        assert_clean(content, manifest)


def test_submission_files(tmp_path: Path) -> None:
    prepared = made()
    write_submission(prepared.submission, tmp_path / "submission")
    data = files_in(tmp_path / "submission")
    assert_clean(data, prepared.manifest)
    for word in (b"sentinel", b"twin", b"genuine", b"watch", b"salt", b"seed", b"owner"):
        assert word not in data.lower()


def test_submission_columns_tell_no_role(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    prepared = made()
    write_submission(prepared.submission, tmp_path / "submission")
    schema = pq.read_schema(tmp_path / "submission" / "records.parquet")
    names = [c.name for c in prepared.submission.contract.columns]
    assert schema.names == ["row", "tracker", *names]
    document = json.loads((tmp_path / "submission" / "contract.json").read_text())
    assert set(document) == {
        "format", "submission_id", "k", "min_leaf", "max_depth", "rule", "commitment", "columns",
    }  # fmt: skip


def test_traps_do_not_stand_together() -> None:
    """The order of the rows tells nothing: traps are spread as any random rows are."""
    manifest = cases.prepared(n_rows=2600).manifest
    traps = np.flatnonzero(manifest.owner_row < 0)
    counts = np.histogram(traps, 10, (0, manifest.n_rows))[0]
    mean = traps.size / 10
    assert np.abs(counts - mean).max() < 5 * np.sqrt(mean)
    genuine = manifest.owner_row[manifest.owner_row >= 0]
    assert abs(np.corrcoef(genuine, np.arange(genuine.size))[0, 1]) < 0.1


def test_delivery_files(tmp_path: Path) -> None:
    prepared = made()
    write_delivery(cases.honest(prepared.submission), tmp_path / "delivery")
    assert_clean(files_in(tmp_path / "delivery"), prepared.manifest)


@cache
def deliveries() -> dict[str, Delivery]:
    sent = made().submission
    found = {name: make(0).anonymize(sent) for name, make in under(sent.contract.rule).items()}
    honest = cases.honest(sent)
    leaf = honest.records.leaf.copy()
    leaf[:] = np.roll(leaf, 1)
    found["honest"] = honest
    found["misplaced"] = cases.resealed(sent, honest, records=replace(honest.records, leaf=leaf))
    tracker = honest.records.tracker[::-1].copy()
    found["renamed"] = cases.resealed(
        sent, honest, records=replace(honest.records, tracker=tracker)
    )
    return found


@pytest.mark.parametrize("name", [*ADVERSARIES, "honest", "misplaced", "renamed"])
@pytest.mark.parametrize("profile", list(Profile))
def test_verdicts(name: str, profile: Profile, caplog: pytest.LogCaptureFixture) -> None:
    prepared = made()
    if name not in deliveries():
        pytest.skip(f"{name} misbehaves under {only(name)} alone")
    caplog.set_level(logging.DEBUG)
    verdict = verify(
        deliveries()[name],
        prepared.manifest,
        submission=None if profile is Profile.THIN else prepared.submission,
        profile=profile,
        options=VerifyOptions(audit=Audit.SAMPLE),
    )
    text = verdict.to_json()
    for shown in (text, repr(verdict), str(verdict), verdict._repr_html_(), caplog.text):
        assert_clean(shown.encode(), prepared.manifest)
    for finding in verdict.findings:
        if finding.layer in ("sentinels", "twins"):
            assert "row" not in finding.summary
            assert not any("row" in key for key in finding.evidence)


def test_thin_findings_name_no_watch_record() -> None:
    prepared = made()
    verdict = verify(deliveries()["misplaced"], prepared.manifest)
    text = json.dumps([f.summary for f in verdict.findings]) + verdict.to_json()
    assert "Watch records in a leaf that the tree does not send them to" in text
    assert not re.search(r"\brow \d", text)


def test_reprs() -> None:
    prepared = made()
    manifest = prepared.manifest
    case = cases.case_of(cases.honest(prepared.submission), manifest, prepared.submission)
    for shown in (manifest, prepared, case, Secret(manifest.salt), [manifest], {"m": manifest}):
        for text in (repr(shown), str(shown), f"{shown}", f"{shown!r:>10}"):
            assert_clean(text.encode(), manifest)
            assert "witness" not in text.lower()
            assert "salt" not in text.lower()
    assert repr(Secret(manifest.salt)) == "Secret()"


def test_errors_carry_no_secret(tmp_path: Path) -> None:
    prepared, other = made(), cases.prepared(2)
    write_manifest(prepared.manifest, tmp_path / "m", passphrase="horse")
    attempts: list[Callable[[], object]] = [
        lambda: verify(
            cases.honest(prepared.submission), prepared.manifest, submission=other.submission
        ),
        lambda: verify(tmp_path / "nothing", prepared.manifest),
        lambda: verify(cases.honest(prepared.submission), prepared.manifest, profile=Profile.FULL),
        lambda: module.read_manifest(tmp_path / "m", passphrase="battery"),
        lambda: write_manifest(prepared.manifest, tmp_path / "m"),
        lambda: write_manifest(prepared.manifest, tmp_path / "no" / "m"),
    ]
    for attempt in attempts:
        with pytest.raises(Error) as raised:
            attempt()
        chain: BaseException | None = raised.value
        while chain is not None:
            text = repr(chain) + str(chain)
            assert_clean(text.encode(), prepared.manifest)
            assert "horse" not in text
            assert "battery" not in text
            chain = chain.__cause__ or chain.__context__


def test_sealed_file_holds_no_plaintext(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCRYPT", {"n": 2**4, "r": 8, "p": 1})
    manifest = made().manifest
    write_manifest(manifest, tmp_path / "m", passphrase="horse")
    data = (tmp_path / "m").read_bytes()
    assert_clean(data, manifest)
    for word in (b"manifest.json", b".npy", b"PK\x03\x04", b"NUMPY", b"horse", b"town", b"score"):
        assert word not in data
    assert manifest.contract.submission_id.encode() not in data
    assert bytes(manifest.submission) not in data
    assert not any(t.tobytes() in data for t in manifest.sentinel_tracker)
    # What is left of the first line is as even as random bytes are.
    counts = np.bincount(np.frombuffer(data[len(module.SEALED) :], np.uint8), minlength=256)
    expected = counts.sum() / 256
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < 255 + 6 * np.sqrt(2 * 255)


def test_seed_of_an_experiment_is_not_told() -> None:
    """That it was given is said; what it was would give the salt away."""
    prepared = cases.make(cases.table(100), seed=918_273_645)
    verdict = verify(cases.honest(prepared.submission), prepared.manifest)
    assert verdict.unsafe_seed
    for text in (verdict.to_json(), repr(prepared.manifest), repr(prepared)):
        assert "918273645" not in text
        assert "918_273_645" not in text
