"""`verix-anon release`: what counts as a verdict, and as a release."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.jobs import Run, release_arguments, verify_arguments
from verix_anon.cli.options import bins_by_column
from verix_anon.datasets import census


def test_release_without_a_matching_verdict(job: Path, run: Run) -> None:
    verdict = job / "verdict.json"
    assert run(*verify_arguments(job), "--out", verdict)[0] == 0
    release = [*release_arguments(job)[:-1], job / "other.parquet", "--out", job / "out.csv"]
    pq.write_table(census(1_500, seed=1), job / "other.parquet")
    code, _, err = run(*release)
    assert code == 2
    assert "table" in err
    receipt = job / "job/delivery/nodes.parquet"
    pq.write_table(pq.read_table(receipt), receipt, compression="gzip")
    code, _, err = run(*release_arguments(job), "--out", job / "out.csv")
    assert code == 2
    assert "verdict" in err
    assert not (job / "out.csv").exists()


def test_altered_verdict_is_refused(job: Path, run: Run) -> None:
    verdict = job / "verdict.json"
    assert run(*verify_arguments(job), "--out", verdict)[0] == 0
    document = json.loads(verdict.read_text())
    document["findings"][0]["status"] = "fail"
    verdict.write_text(json.dumps(document))
    code, _, err = run(*release_arguments(job), "--out", job / "out.csv")
    assert code == 2
    assert "conjunction" in err


def test_a_release_counts_when_it_is_written(job: Path, run: Run) -> None:
    assert run(*verify_arguments(job), "--out", job / "verdict.json")[0] == 0
    code, _, err = run(*release_arguments(job), "--out", job / "out.docx")
    assert code == 2
    assert "ends in" in err
    code, _, err = run(*release_arguments(job), "--out", job / "out.csv", "--as", "bounds")
    assert code == 2
    assert "without an order of yours" in err
    dates = ["--top-code", "birth_date=1950-01-01:"]
    code, out, err = run(*release_arguments(job), "--out", job / "out.parquet", *dates)
    assert code == 0, err
    seed, worst, *_ = re.findall(r"^Warning: (.*)", err, re.MULTILINE)
    assert "unsafe seed" in seed
    assert re.match(r"\d+\.\d% of the records .* the target.*, release with --l 2\.$", worst)
    assert "Warning" not in out
    low = {
        text.split("..")[0] for text in pq.read_table(job / "out.parquet")["birth_date"].to_pylist()
    }
    assert min(text.removeprefix("<=") for text in low) == "1950-01-01"
    code, _, err = run(
        *release_arguments(job), "--out", job / "x.csv", "--force", "--top-code", "birth_date=1:"
    )
    assert code == 2
    assert "is not a date" in err


def test_ends_are_capped_unless_it_is_asked_otherwise(job: Path, run: Run) -> None:
    assert run(*verify_arguments(job), "--out", job / "verdict.json")[0] == 0
    look = [*release_arguments(job), "--preview", job / "look.json", "--overwrite"]
    code, out, _ = run(*look)
    assert code == 0
    owners = re.search(r"owners of bounds: (.*)% of the records alone .*; (.*)% if no bound", out)
    assert owners is not None
    assert 0 < float(owners[1]) < float(owners[2])
    code, out, _ = run(*look, "--exact-ends", "--require", "bound-owners=0")
    assert code == 1
    assert f" {owners[2]}% of the records alone" in out
    options = json.loads((job / "look.json").read_text())["options"]
    assert options == {"exact_ends": True, "require": {"bound-owners": 0.0}}


def test_what_is_asked_for_is_enforced(job: Path, run: Run) -> None:
    assert run(*verify_arguments(job), "--out", job / "verdict.json")[0] == 0
    release = [*release_arguments(job), "--out", job / "out.parquet"]
    code, _, err = run(*release, "--l", "region=2")
    assert code == 2
    assert "'region' is declared as quasi" in err
    code, _, err = run(*release, "--cap", "most")
    assert code == 2
    assert "is not a number" in err
    code, out, err = run(
        *release, "--l", "2", "--cap", "income=0.9", "--privacy-sheet", job / "sheet.json"
    )
    assert code == 0, err
    assert out.startswith("enforced: k 5; income: l 2, cap 0.9\n")
    sheet = json.loads((job / "sheet.json").read_text())
    assert sheet["enforced"] == {"income": {"l": 2, "cap": 0.9}}
    assert sheet["diversity"][0]["given_away"] == 0
    assert sheet["joined"]["ncp_before"] < sheet["ncp"]
    lines = [line.split() for line in out.splitlines()]
    head = lines.index(["column", "exact", "median", "width", "NCP"])
    shown = [line[0] for line in lines[head + 1 : head + 1 + len(sheet["losses"])]]
    assert shown == [loss["column"] for loss in sheet["losses"]]


def test_a_sheet_is_one_of_a_spreadsheet(job: Path, run: Run) -> None:
    release = [*release_arguments(job), "--out", job / "out.csv"]
    code, _, err = run(*release, "--sheet", job / "sheet.json")
    assert (code, "--privacy-sheet says where" in err) == (2, True)
    assert not (job / "out.csv").exists()


def test_gates_publish_nothing(job: Path, run: Run) -> None:
    assert run(*verify_arguments(job), "--out", job / "verdict.json")[0] == 0
    release = [*release_arguments(job), "--out", job / "out.csv"]
    code, _, err = run(*release, "--require", "k=10", "--require", "risk=0.1", "--require", "l=2")
    assert code == 1
    assert "k is 5, not at least 10; risk is 0.2, not at most 0.1; l is 1, not at least 2" in err
    assert not (job / "out.csv").exists()
    code, _, err = run(*release, "--require", "privacy=1")
    assert code == 2
    gates = "k, linked-k, l, over-time-l, cap, t, risk, singled-out, bound-owners, ncp"
    assert f"the gates are {gates}\n" in err
    # Nothing was published, so nothing was recorded.
    passed = ["--require", "k=5", "--require", "risk=0.2", "--require", "l=2", "--l", "2"]
    code, _, err = run(*release, *passed)
    assert code == 0, err


def test_a_preview_publishes_nothing(job: Path, run: Run) -> None:
    run(*verify_arguments(job), "--skip", "fingerprint,utility", "--out", job / "verdict.json")
    release, look = release_arguments(job), ["--preview", job / "preview.json"]
    assert run(*release, "--out", job / "out.csv", *look)[0] == 2
    assert run(*release, "--privacy-sheet", job / "sheet.json", *look)[0] == 2
    assert run(*release)[0] == 2
    found = run(*release, *look, "--keep-order", "--require", "k=10")
    assert (found.code, "k is 5, not at least 10" in found.err) == (1, True)
    assert "Nothing is published" in found.out
    preview = json.loads((job / "preview.json").read_text())
    assert preview["missed"] == ["k is 5, not at least 10"]
    assert preview["options"] == {"require": {"k": 10.0}, "keep_order": True}
    assert (job / "preview.json").stat().st_mode & 0o777 == 0o600
    assert {len(column["before"]) for column in preview["columns"]} == {10}
    # It was no release: the first one is still to come.
    found = run(*release, "--out", job / "out.csv")
    assert found.code == 0, found.err
    facts = [f"{n}: {t}" for n, t in preview["facts"].items()]
    lines = found.out.splitlines()
    assert lines[: len(facts)] == facts
    assert lines[-2] == "The target 'income' has two classes; '>50K' is class 1."
    shown = [line.split()[0] for line in lines[len(facts) : -2]]
    assert shown == ["column", *(loss["column"] for loss in preview["losses"])]


def test_a_violation_in_the_log_stands_above_an_older_pass(job: Path, run: Run) -> None:
    assert run(*verify_arguments(job), "--out", job / "verdict.json")[0] == 0
    forged = job / "job/forged"
    shutil.copytree(job / "job/delivery", forged)
    (forged / "delivery.json").write_text("{}")
    assert run("verify", forged, *verify_arguments(job)[2:])[0] == 1
    release = [*release_arguments(job), "--out", job / "out.csv"]
    code, _, err = run(*release)
    assert code == 2
    assert "which stands above an older or weaker pass" in err
    # A weaker pass is refused by verify itself; the exact one answers it.
    assert run(*verify_arguments(job), "--out", job / "verdict.json", "--overwrite")[0] == 0
    code, _, err = run(*release)
    assert code == 0, err


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["auto"], {"age": "auto", "zip": "auto"}),
        (["age=10,zip=2"], {"age": "10", "zip": "2"}),
        (["age=10,auto"], {"age": "10", "zip": "auto"}),
        (["auto,age=10"], {"age": "10", "zip": "auto"}),
        (["a,b=3,age=5"], {"a,b": "3", "age": "5"}),
    ],
)
def test_bins_of_several_columns(options: list[str], found: dict[str, str]) -> None:
    assert bins_by_column(options, ["age", "zip"]) == found
