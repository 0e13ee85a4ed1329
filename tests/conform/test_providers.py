"""Honest providers of every kind pass the kit, and one with any adversary's fault does not."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conform.in_process import asked, some_of_each_kind
from service.running import running
from tools.kit.tables import canonical
from verix_anon.adversaries import ADVERSARIES
from verix_anon.client.remote.connection import RemoteOptions
from verix_anon.conform.kit import CaseKind, Kit, chosen, read_kit
from verix_anon.conform.results import Result
from verix_anon.conform.trials import (
    Answer,
    Asked,
    ProviderOutcome,
    command_provider,
    service_provider,
    try_provider,
)
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.provider.local import LocalProvider

ENGINE = [sys.executable, "-m", "verix_anon", "anonymize", "{submission}", "--out", "{delivery}"]

SEEN_BY = dict.fromkeys(ADVERSARIES, "continuous") | {
    "shallow": "many-leaves",
    "sampled-splits": "many-leaves",
    "sampled-scores": "many-leaves",
    "no-weights": "spread",
    "mixed-weights": "spread",
    "no-value-below": "spread",
}
"""Each adversary, and a case that it fails."""


def failures(results: list[Result]) -> dict[str, list[str]]:
    return {r.case.id: [check.name for check in r.failures] for r in results if not r.passed}


def test_the_engine_passes(small_kit: Kit) -> None:
    results = try_provider(small_kit, small_kit.cases, asked(LocalProvider()), jobs=2)
    assert failures(results) == {}
    assert [result.case.id for result in results] == [case.id for case in small_kit.cases]


def test_the_command_passes_some_cases(small_kit: Kit) -> None:
    cases = some_of_each_kind(small_kit)
    assert len(cases) == 8
    ask = command_provider(ENGINE, limit=300)
    assert failures(try_provider(small_kit, cases, ask, jobs=2)) == {}


@pytest.mark.long
def test_the_command_passes(small_kit: Kit) -> None:
    ask = command_provider(ENGINE, limit=300)
    assert failures(try_provider(small_kit, small_kit.cases, ask, jobs=2)) == {}


def test_a_service_passes_some_cases(small_kit: Kit, tmp_path: Path) -> None:
    with running(tmp_path / "service", "--workers", "1") as service:
        ask = service_provider(service.url, service.token(), RemoteOptions(patience=300, wait=300))
        assert failures(try_provider(small_kit, some_of_each_kind(small_kit), ask)) == {}


@pytest.mark.long
def test_a_service_passes(small_kit: Kit, tmp_path: Path) -> None:
    with running(tmp_path / "service", "--workers", "2") as service:
        ask = service_provider(service.url, service.token(), RemoteOptions(patience=300, wait=300))
        assert failures(try_provider(small_kit, small_kit.cases, ask, jobs=2)) == {}
        with service.client() as client:
            assert client.get("/v1/jobs").json()["jobs"] == []


@pytest.mark.parametrize("name", ADVERSARIES)
def test_each_adversary_fails_a_case_by_name(small_kit: Kit, name: str) -> None:
    cases = chosen(small_kit.cases, [SEEN_BY[name]])
    (result,) = try_provider(small_kit, cases, asked(ADVERSARIES[name](0)))
    assert not result.passed
    # It delivered, and what it delivered is not what is demanded.
    assert result.checks[0].name == "answer"
    assert result.checks[0].passed
    assert all(check.detail for check in result.failures)


def refuses_all(submission: Path, delivery: Path) -> Answer:
    return Answer(ProviderOutcome.REFUSED, "no")


def delivers_all(submission: Path, delivery: Path) -> Answer:
    delivery.mkdir()
    return Answer(ProviderOutcome.DELIVERED, "delivered")


@pytest.mark.parametrize(
    ("ask", "passed"), [(refuses_all, CaseKind.REFUSED), (delivers_all, None)], ids=["no", "yes"]
)
def test_a_provider_that_always_does_the_same_fails(
    small_kit: Kit, ask: Asked, passed: CaseKind | None
) -> None:
    results = try_provider(small_kit, small_kit.cases, ask)
    assert {result.case.kind for result in results if result.passed} == (
        {passed} if passed else set()
    )
    assert {result.case.kind for result in results} == {CaseKind.ANSWERED, CaseKind.REFUSED}


def copies_what_is_beside(submission: Path, delivery: Path) -> Answer:
    """What it is shown lies in a kit, so it looks for the rest of it."""
    for place in (submission.parent, submission.parent.parent):
        for found in sorted(place.rglob("delivery.json")):
            shutil.copytree(found.parent, delivery, dirs_exist_ok=True)
    words = {part for part in submission.parts if part in ("submissions", "refused")}
    outcome = ProviderOutcome.DELIVERED if "submissions" in words else ProviderOutcome.REFUSED
    return Answer(outcome, submission.parent.name)


def test_what_is_shown_does_not_tell_what_is_expected(small_kit: Kit) -> None:
    cases = chosen(small_kit.cases, ["ties", "pure"])
    runs = [try_provider(small_kit, cases, copies_what_is_beside) for _ in range(2)]
    assert [result.passed for results in runs for result in results] == [False] * 4
    # Its folder neither names a case nor numbers it: it is another one every time.
    folders = {result.checks[0].detail for results in runs for result in results}
    assert len(folders) == 4
    assert not {"ties", "pure"} & folders


def test_a_provider_that_deletes_what_it_is_shown_harms_no_kit(small_kit: Kit) -> None:
    honest = asked(LocalProvider())

    def ask(submission: Path, delivery: Path) -> Answer:
        answer = honest(submission, delivery)
        shutil.rmtree(submission)
        return answer

    results = try_provider(small_kit, chosen(small_kit.cases, ["ties"]), ask)
    assert failures(results) == {}
    assert read_kit(small_kit.folder).digest == small_kit.digest


def altered(change: Callable[[Delivery], Delivery]) -> Asked:
    @dataclass
    class Altering:
        def anonymize(self, submission: Submission) -> Delivery:
            return change(LocalProvider().anonymize(submission))

    return asked(Altering())


def other_root(made: Delivery) -> Delivery:
    root = bytes(31) + b"\x01"
    return replace(made, header=replace(made.header, root=root))  # type: ignore[arg-type]


def other_bound(made: Delivery) -> Delivery:
    maximum = made.leaves.maximum.copy()
    maximum[3, 1] += 0.5
    return replace(made, leaves=replace(made.leaves, maximum=maximum))


def other_threshold(made: Delivery) -> Delivery:
    threshold = made.tree.threshold.copy()
    threshold[2] += 0.25
    return replace(made, tree=replace(made.tree, threshold=threshold))


def other_leaf(made: Delivery) -> Delivery:
    leaf = made.records.leaf.copy()
    leaf[7] = (leaf[7] + 1) % 13
    return replace(made, records=replace(made.records, leaf=leaf))


def other_label(made: Delivery) -> Delivery:
    target = made.records.target.copy()
    target[9] ^= 1
    return replace(made, records=replace(made.records, target=target))


def twice(made: Delivery) -> Delivery:
    row = made.records.row.copy()
    row[4] = row[5]
    return replace(made, records=replace(made.records, row=row))


def other_contract(made: Delivery) -> Delivery:
    return replace(made, header=replace(made.header, contract=bytes(32)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "check", "where"),
    [
        (other_root, "root", "00000000"),
        (other_bound, "bounds", "leaf 3, column 1: "),
        (other_threshold, "tree", "node 2 is a split of column "),
        (other_leaf, "records", "row 7 has the leaf "),
        (other_label, "records", "row 9 has the target "),
        (twice, "records", "row 4 is there 0 times"),
        (other_contract, "header", "contract 0000"),
    ],
)
def test_what_differs_is_named_with_its_place(
    small_kit: Kit, change: Callable[[Delivery], Delivery], check: str, where: str
) -> None:
    (result,) = try_provider(small_kit, chosen(small_kit.cases, ["continuous"]), altered(change))
    assert [failed.name for failed in result.failures] == [check]
    assert result.failures[0].detail.startswith(where)
    assert ", and not " in result.failures[0].detail


def rewritten(change: Callable[[Path, dict[str, Any]], object]) -> Asked:
    """The engine's delivery, and something done to its files and to what delivery.json says."""
    honest = asked(LocalProvider())

    def ask(submission: Path, delivery: Path) -> Answer:
        answer = honest(submission, delivery)
        header = json.loads((delivery / "delivery.json").read_bytes())
        written = change(delivery, header)
        text = written if isinstance(written, str) else canonical(header).decode()
        (delivery / "delivery.json").write_text(text)
        return answer

    return ask


def minus_zeros(name: str, column: str) -> Callable[[Path, dict[str, Any]], None]:
    """Every zero of a column gets a minus; its file's digest is stated as it then is."""

    def change(delivery: Path, header: dict[str, Any]) -> None:
        table = pq.read_table(delivery / name)
        values = table[column].to_numpy().copy()
        assert (values == 0).any()
        values[values == 0] = -0.0
        at = table.schema.names.index(column)
        pq.write_table(table.set_column(at, column, pa.array(values)), delivery / name)
        header["files"][name] = sha256((delivery / name).read_bytes()).hexdigest()

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _, header: json.dumps(header, indent=1), "delivery.json is not in the form of RFC"),
        (
            lambda _, header: json.dumps(header, separators=(",", ":")) + "\n",
            "delivery.json is not",
        ),
        (minus_zeros("nodes.parquet", "threshold"), "node "),
        (minus_zeros("leaves.parquet", "min_0"), "a leaf's bound is -0.0, not 0.0"),
    ],
    ids=["indented", "newline", "threshold", "bound"],
)
def test_another_form_of_the_same_delivery_is_named(
    small_kit: Kit, change: Callable[[Path, dict[str, Any]], object], said: str
) -> None:
    cases = chosen(small_kit.cases, ["minus-zero"])
    (result,) = try_provider(small_kit, cases, rewritten(change))
    assert [failed.name for failed in result.failures] == ["files"]
    assert result.failures[0].detail.startswith(said)


def test_packing_is_free_and_whole_seconds_are_written_as_integers(small_kit: Kit) -> None:
    def change(delivery: Path, header: dict[str, Any]) -> None:
        header["seconds"] = 12
        for name in header["files"]:
            table = pq.read_table(delivery / name)
            pq.write_table(table, delivery / name, compression="gzip", row_group_size=7)
            header["files"][name] = sha256((delivery / name).read_bytes()).hexdigest()

    cases = chosen(small_kit.cases, ["minus-zero"])
    assert failures(try_provider(small_kit, cases, rewritten(change))) == {}


def test_a_file_that_is_not_of_its_digest_is_named(small_kit: Kit) -> None:
    honest = asked(LocalProvider())

    def ask(submission: Path, delivery: Path) -> Answer:
        answer = honest(submission, delivery)
        text = (delivery / "delivery.json").read_text()
        at = text.index('"nodes.parquet":"') + len('"nodes.parquet":"')
        (delivery / "delivery.json").write_text(text[:at] + "0" * 64 + text[at + 64 :])
        return answer

    (result,) = try_provider(small_kit, chosen(small_kit.cases, ["ties"]), ask)
    assert [failed.name for failed in result.failures] == ["files"]
    assert "nodes.parquet damaged on the way" in result.failures[0].detail
