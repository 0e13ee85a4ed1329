"""The public surface: what `verix_anon` exports, and what it does with what it is given."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import verix_anon
from tools import cases
from verix_anon.errors import Error, TableError

SKIP = ("fingerprint", "utility")


class Given(NamedTuple):
    """A job in memory, and the same in a folder."""

    table: pa.Table
    prepared: verix_anon.Prepared
    delivery: verix_anon.Delivery
    verdict: verix_anon.Verdict
    folder: Path


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory, quick_models: None) -> Given:
    folder = tmp_path_factory.mktemp("job")
    verix_anon.write_table(cases.table(), folder / "table.parquet")
    table = verix_anon.read_table(folder / "table.parquet")
    prepared = verix_anon.prepare(table, target="y", quasi="all", k=3)
    delivery = verix_anon.LocalProvider(threads=1).anonymize(prepared.submission)
    verix_anon.write_submission(prepared.submission, folder / "submission")
    verix_anon.write_manifest(prepared.manifest, folder / "manifest.verix")
    verix_anon.write_delivery(delivery, folder / "delivery")
    verdict = verix_anon.verify(
        folder / "delivery", prepared.manifest, submission=prepared.submission, skip=SKIP
    )
    verix_anon.write_verdict(verdict, folder / "verdict.json")
    other = cases.prepared(2)
    verix_anon.write_manifest(other.manifest, folder / "other.verix")
    verix_anon.write_delivery(cases.honest(other.submission), folder / "other")
    (folder / "empty").mkdir()
    (folder / "text.txt").write_text("no table, no manifest, no verdict")
    (folder / "text.csv").write_bytes(b"\xff\xfe\x00")
    roles = dict.fromkeys(table.column_names, "quasi") | {"age": "kept"}
    lines = [f'{name} = "{role}"' for name, role in roles.items() if name != "y"]
    text = "\n".join(['k = 4\ntarget = "y"', "[columns]", *lines])
    (folder / "roles.toml").write_text(text)
    return Given(table, prepared, delivery, verdict, folder)


def test_every_name_is_there() -> None:
    for name in verix_anon.__all__:
        assert getattr(verix_anon, name) is not None
    assert set(dir(verix_anon)) == set(verix_anon.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(verix_anon, "nonsense")  # noqa: B009, because no type checker knows it
    with pytest.raises(ImportError):
        importlib.import_module("verix_anon.nonsense")


def test_a_journey_by_paths(given: Given, tmp_path: Path) -> None:
    job, kept = given.folder, given.prepared
    prepared = verix_anon.prepare(f"{job}/table.parquet", target="y", quasi="all", k=3)
    assert prepared.manifest.table == kept.manifest.table
    delivery = verix_anon.LocalProvider(threads=1).anonymize(job / "submission")
    assert delivery.header.root == given.delivery.header.root
    verdict = verix_anon.verify(
        str(job / "delivery"),
        job / "manifest.verix",
        submission=str(job / "submission"),
        skip=SKIP,
        log=tmp_path / "audit.jsonl",
    )
    assert (verdict.root, verdict.files) == (given.verdict.root, given.verdict.files)
    assert verdict
    released = verix_anon.release(
        job / "delivery",
        str(job / "manifest.verix"),
        job / "verdict.json",
        table=str(job / "table.parquet"),
        out=tmp_path / "released.parquet",
        ledger=tmp_path / "ledger.jsonl",
    )
    assert verix_anon.read_table(tmp_path / "released.parquet").equals(released.table)
    assert len(verix_anon.Ledger(tmp_path / "ledger.jsonl").seen(kept.manifest.table)) == 1
    assert verix_anon.read_verdict(job / "verdict.json") == given.verdict
    contract, n_rows = kept.manifest.contract, kept.manifest.n_rows
    snapshot = verix_anon.read_delivery(job / "delivery", contract, n_rows=n_rows)
    assert snapshot.delivery.header == given.delivery.header


def test_a_provider_that_takes_paths_is_still_a_provider() -> None:
    provider: verix_anon.Provider = verix_anon.LocalProvider()
    assert isinstance(provider, verix_anon.Provider)


def test_roles_come_from_a_file_or_one_by_one(given: Given) -> None:
    roles = given.folder / "roles.toml"
    manifest = verix_anon.prepare(given.table, roles=roles, missing="error").manifest
    assert manifest.contract.k == 4
    assert manifest.roles["age"] == "kept"
    assert verix_anon.prepare(given.table, roles=str(roles), k=7).manifest.contract.k == 7
    with pytest.raises(TableError, match="in the file or one by one, not both"):
        verix_anon.prepare(given.table, roles=roles, kept=["age"])
    with pytest.raises(TableError, match="name the column to preserve"):
        verix_anon.prepare(given.table, quasi="all")
    with pytest.raises(TableError, match="run verix-anon init first"):
        verix_anon.prepare(given.table, target="y")


def wrong(given: Given) -> list[object]:
    """What a caller may hand over by mistake."""
    names = (
        "empty",
        "text.txt",
        "text.csv",
        "nowhere",
        "submission",
        "delivery",
        "other",
        "other.verix",
    )
    paths = [given.folder / name for name in names]
    held = [*given, given.prepared.manifest, given.prepared.submission, given.prepared.submission]
    plain = [None, 3, -1, 2.5, float("nan"), True, b"x", "", "a\0b", "nowhere", [], [3], {}, {3: 3}]
    return [*plain, *paths, *map(str, paths), *held, object(), print, Error("x")]


VERBS: dict[str, Callable[..., object]] = {
    "prepare": verix_anon.prepare,
    "verify": verix_anon.verify,
    "release": verix_anon.release,
    "prove": verix_anon.prove,
    "check_proof": verix_anon.check_proof,
    "anonymize": verix_anon.LocalProvider(threads=1).anonymize,
}


def right(verb: str, given: Given) -> dict[str, Any]:
    """Arguments with which a verb does its work."""
    manifest, submission = given.prepared.manifest, given.prepared.submission
    if verb == "prepare":
        return {"table": given.table, "target": "y", "quasi": "all", "k": 3}
    if verb == "anonymize":
        return {"submission": submission}
    if verb == "prove":
        delivery = given.folder / "delivery"
        return {"delivery": delivery, "agreed": manifest, "table": given.table, "record": 3}
    if verb == "check_proof":
        tracker = submission.records.tracker[3].tobytes()
        (proof,) = verix_anon.prove(given.delivery, submission, tracker=tracker)
        return {"proof": proof, "root": proof.root, "tracker": tracker}
    judged = {"delivery": given.folder / "delivery", "manifest": manifest}
    if verb == "verify":
        return {**judged, "submission": submission, "skip": SKIP}
    return {**judged, "verdict": given.verdict, "table": given.table}


OPTIONAL = {
    "prepare": (
        "identifier",
        "kept",
        "sensitive",
        "kinds",
        "orders",
        "missing",
        "roles",
        "options",
    ),
    "verify": ("profile", "log", "options"),
    "release": ("out", "sheet", "overwrite", "options", "ledger"),
    "prove": ("tracker", "person"),
    "check_proof": (),
    "anonymize": (),
}


@pytest.mark.parametrize("verb", VERBS)
def test_the_callers_mistake_is_said_in_a_sentence(
    verb: str, given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One wrong argument at a time: the verb does its work, or raises an Error that says why."""
    monkeypatch.chdir(tmp_path)
    fine = right(verb, given)
    VERBS[verb](**fine)
    sentences, strays = [], []
    for name in (*fine, *OPTIONAL[verb]):
        for value in wrong(given):
            try:
                VERBS[verb](**{**fine, name: value})
            except Error as error:
                sentences.append(str(error))
            except Exception as error:
                strays.append((name, value, error))
    assert strays == []
    assert len(sentences) > 20
    assert all(0 < len(sentence) < 1_000 for sentence in sentences)


HOSTILE = "<script>alert(1)</script>"
SHOWN = 2_000


@pytest.fixture(scope="module")
def results() -> dict[str, object]:
    """One of each public object, of a table with many columns, one of them with a hostile name."""
    table = cases.table()
    for i in range(60):
        table = table.append_column(f"column {i} with a long name", table["rank"])
    table = table.append_column(HOSTILE, table["town"])
    prepared = verix_anon.prepare(table, target="y", quasi="all", sensitive=[HOSTILE], k=3)
    delivery = verix_anon.LocalProvider(threads=1).anonymize(prepared.submission)
    verdict = verix_anon.verify(
        delivery, prepared.manifest, submission=prepared.submission, skip=SKIP
    )
    released = verix_anon.release(delivery, prepared.manifest, verdict, table=table)
    return {
        "prepared": prepared,
        "submission": prepared.submission,
        "manifest": prepared.manifest,
        "delivery": delivery,
        "verdict": verdict,
        "finding": verdict.findings[-3],
        "released": released,
        "sheet": released.sheet,
        "log": verix_anon.AuditLog("audit.jsonl"),
        "ledger": verix_anon.Ledger("ledger.jsonl"),
        "provider": verix_anon.LocalProvider(),
        "proof": verix_anon.prove(delivery, prepared.manifest, table=table, record=0),
        "options": (
            verix_anon.PrepareOptions(),
            verix_anon.VerifyOptions(),
            verix_anon.ReleaseOptions(),
        ),
    }


def test_what_is_shown_fits_a_screen_and_tells_no_secret(results: dict[str, Any]) -> None:
    salt = results["manifest"].salt
    tracker = results["manifest"].sentinel_tracker[0].tobytes()
    for name, result in results.items():
        shown = repr(result)
        assert 0 < len(shown) <= SHOWN, name
        for secret in (salt, tracker):
            assert secret.hex() not in shown, name
            assert repr(secret)[2:-1] not in shown, name
    assert repr(results["verdict"]).startswith("<Verdict VERIFIED: profile full, root ")


@pytest.mark.parametrize("name", ["prepared", "verdict", "released", "sheet"])
def test_notebooks_show_small_tables(name: str, results: dict[str, Any]) -> None:
    html = results[name]._repr_html_()
    # What is left of each column is a table of its own.
    assert html.count("<table>") == html.count("</table>") == 1 + (name == "sheet")
    assert len(html) < 20_000
    assert "<script" not in html
    assert ("&lt;script&gt;" in html) == (name in ("released", "sheet"))
    assert results["manifest"].salt.hex() not in html


def test_a_verdict_says_which_layers_did_not_pass() -> None:
    made = cases.prepared()
    bad = verix_anon.adversaries.DropsRows(fraction=0.2).anonymize(made.submission)
    shown = repr(verix_anon.verify(bad, made.manifest, submission=made.submission, skip=SKIP))
    assert shown.startswith("<Verdict VIOLATION: ")
    assert "replay fail" in shown
