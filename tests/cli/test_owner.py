"""The owner's commands: the journey, its files and exit codes, and every mistake people make."""

import contextlib
import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from verix_anon import cli
from verix_anon.cli import show
from verix_anon.client.verdict import Verdict
from verix_anon.datasets import census
from verix_anon.errors import TableError

Run = Callable[..., tuple[int, str, str]]
JOB = ("--target", "income", "--quasi", "all", "--unsafe-seed", "7", "--quiet")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run the command; gives its exit code, stdout and stderr."""
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "ledger.jsonl"))
    monkeypatch.delenv("VERIX_PASSPHRASE", raising=False)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["verix-anon", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a prepared job and an honest delivery; not to be changed."""
    folder = tmp_path_factory.mktemp("job")
    pq.write_table(census(1_500), folder / "people.parquet")
    with pytest.MonkeyPatch.context() as patch:
        for arguments in (
            ["prepare", str(folder / "people.parquet"), "--out", str(folder / "job"), *JOB],
            ["anonymize", str(folder / "job/submission"), "--out", str(folder / "job/delivery")],
        ):
            patch.setattr("sys.argv", ["verix-anon", *arguments])
            with contextlib.suppress(SystemExit):
                cli.main()
    return folder


def verify_arguments(folder: Path) -> list[object]:
    job = folder / "job"
    manifest, submission = job / "manifest.verix", job / "submission"
    return ["verify", job / "delivery", "--manifest", manifest, "--submission", submission]


@pytest.fixture
def job(prepared: Path, tmp_path: Path) -> Path:
    shutil.copytree(prepared, tmp_path / "copy")
    return tmp_path / "copy"


def test_journey(job: Path, run: Run) -> None:
    verdict, released = job / "verdict.json", job / "released.csv"
    code, out, _ = run(*verify_arguments(job), "--out", verdict)
    assert code == 0
    assert "VERIFIED" in out
    assert "UNSAFE SEED" in out
    log = (job / "job/audit.jsonl").read_text().splitlines()
    assert json.loads(log[0])["fired"] == []
    assert json.loads(log[0])["layers"]["splits"] == "pass"
    release = ["release", job / "job/delivery", "--manifest", job / "job/manifest.verix"]
    release += ["--verdict", verdict, "--table", job / "people.parquet"]
    code, out, err = run(*release, "--out", released, "--as", "bounds", "--round", "age=5")
    assert code == 0, err
    assert "age_min" in pyarrow.csv.read_csv(released).column_names
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


def test_delivery_of_another_job_is_the_providers_deviation(job: Path, run: Run) -> None:
    other = ["prepare", job / "people.parquet", "--out", job / "other", "--target", "income"]
    assert run(*other, "--quasi", "all", "--quiet")[0] == 0
    manifest, submission = job / "other/manifest.verix", job / "other/submission"
    arguments = ["verify", job / "job/delivery", "--manifest", manifest]
    code, out, _ = run(*arguments, "--submission", submission)
    assert code == 1
    assert "another submission" in out


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


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ({"sex": ["f", "m"], "outcome": ["no", "yes"]}, [], '"outcome"  # named like a target'),
        ({"age": [1, 2], "sex": ["f", "m"]}, [], '"sex"  # a mere guess'),
        ({"age": [1, 2], "sex": ["f", "m"]}, ["--target", "age"], '"age"  # as you said'),
    ],
)
def test_init_says_why_this_target(
    columns: dict[str, list[object]], options: list[str], reason: str, tmp_path: Path, run: Run
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert f"target = {reason}" in run("init", tmp_path / "t.parquet", *options)[1]


def test_init_refuses_a_target_without_two_values(tmp_path: Path, run: Run) -> None:
    pq.write_table(pa.table({"age": [1, 2, 3], "y": [0, 1, 1]}), tmp_path / "t.parquet")
    code, _, err = run("init", tmp_path / "t.parquet", "--target", "age")
    assert code == 2
    assert "the target must have two values; 'age' has 3" in err


@pytest.mark.parametrize("misses", [0, 3])
def test_says_why_a_first_run_takes_long(
    misses: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = SimpleNamespace(cache_misses={"some signature": misses})
    kernel = ModuleType("verix_anon.some_kernels")
    setattr(kernel, "sort", SimpleNamespace(stats=stats))  # noqa: B010
    # Only this one: what the tests compiled before is not the question.
    monkeypatch.setattr("sys.modules", {"verix_anon.some_kernels": kernel})
    show.say_compiled()
    assert bool(capsys.readouterr().err) == (misses > 0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}", "the verdict: format must be"),
        ("not JSON", "the verdict: not JSON"),
        ("[1]", "the verdict: not a JSON object"),
    ],
)
def test_a_file_that_is_no_verdict(text: str, complaint: str) -> None:
    with pytest.raises(TableError, match=complaint):
        Verdict.from_json(text)


def test_init_drafts_what_prepare_reads(job: Path, run: Run) -> None:
    roles = job / "roles.toml"
    assert run("init", job / "people.parquet", "--target", "income", "--out", roles)[0] == 0
    assert 'target = "income"' in roles.read_text()
    code, _, err = run("init", job / "people.parquet", "--out", roles)
    assert code == 2
    assert "exists already" in err
    arguments = ["prepare", job / "people.parquet", "--roles", roles, "--out", job / "drafted"]
    code, out, err = run(*arguments, "--json", "--quiet")
    assert code == 0, err
    assert json.loads(out)["genuine"] == 1_500
    roles.write_text(roles.read_text() + "\nunknown = 1\n")
    code, _, err = run("prepare", job / "people.parquet", "--roles", roles, "--out", job / "x")
    assert code == 2


def small(**columns: list[object]) -> pa.Table:
    n = 40
    made = {name: (values * n)[:n] for name, values in columns.items()}
    return pa.table({"a": [float(i) for i in range(n)], "y": ["no", "yes"] * (n // 2), **made})


MISTAKES: dict[str, tuple[pa.Table, list[str], str]] = {
    "a misspelled column": (small(), ["--target", "y", "--quasi", "aa"], "did you mean 'a'"),
    "a target of three classes": (
        small(z=["p", "q", "r"]), ["--target", "z", "--quasi", "all"], "3 classes",
    ),
    "k larger than the table": (small(), ["--target", "y", "--quasi", "all", "--k", "30"], "60"),
    "k of one": (small(), ["--target", "y", "--quasi", "all", "--k", "1"], "k must be"),
    "text that names people": (
        small(name=[f"n{i}" for i in range(40)]), ["--target", "y", "--quasi", "all"], "identifier",
    ),
    "an empty table": (small().slice(0, 0), ["--target", "y", "--quasi", "all"], "no rows"),
    "a column without values": (
        small(z=[None]), ["--target", "y", "--quasi", "all"], "has no values",
    ),
    "an undeclared column": (small(z=[1, 2]), ["--target", "y", "--quasi", "a"], "'z'"),
    "no target": (small(), ["--quasi", "all"], "--target"),
    "no quasi-identifier": (small(), ["--target", "y"], "--quasi"),
    "a wrong choice": (
        small(), ["--target", "y", "--quasi", "all", "--traps", "some"], "adaptive, paper, none",
    ),
    "a reserved name": (small(row=[1, 2]), ["--target", "y", "--quasi", "all"], "row"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_prepare(mistake: str, run: Run, tmp_path: Path) -> None:
    table, arguments, sentence = MISTAKES[mistake]
    pq.write_table(table, tmp_path / "t.parquet")
    code, out, err = run("prepare", tmp_path / "t.parquet", *arguments, "--out", tmp_path / "job")
    assert code == 2, err
    assert sentence in err
    assert err.count("\n") == 1
    assert not out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.parquet"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.csv", b"a,a,y\n1,2,no\n", "occurs twice"),
        ("t.parquet", b"PAR1 not really", "cannot be read"),
        ("t.csv", b"", "cannot be read"),
        ("t.txt", b"a,y\n", "ends in"),
        ("t.csv", b"a,y\n1,no\n1,2,3\n", "cannot be read"),
    ],
)
def test_unreadable_tables(
    name: str, content: bytes, sentence: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    code, _, err = run("prepare", tmp_path / name, "--out", tmp_path / "job", *JOB)
    assert code == 2
    assert sentence in err


def test_nothing_is_overwritten(job: Path, run: Run) -> None:
    before = (job / "job/manifest.verix").read_bytes()
    code, _, err = run("prepare", job / "people.parquet", "--out", job / "job", *JOB)
    assert code == 2
    assert "exists already" in err
    assert (job / "job/manifest.verix").read_bytes() == before


def test_manifest_of_another_submission(job: Path, run: Run) -> None:
    other = ["prepare", job / "people.parquet", "--out", job / "other", "--target", "income"]
    assert run(*other, "--quasi", "all", "--quiet")[0] == 0
    arguments = ["verify", job / "job/delivery", "--manifest", job / "other/manifest.verix"]
    code, _, err = run(*arguments, "--submission", job / "job/submission")
    assert code == 2
    assert "not the one this manifest was made for" in err


def test_release_without_a_matching_verdict(job: Path, run: Run) -> None:
    verdict = job / "verdict.json"
    assert run(*verify_arguments(job), "--out", verdict)[0] == 0
    release = ["release", job / "job/delivery", "--manifest", job / "job/manifest.verix"]
    release += ["--verdict", verdict, "--out", job / "out.csv", "--table"]
    pq.write_table(census(1_500, seed=1), job / "other.parquet")
    code, _, err = run(*release, job / "other.parquet")
    assert code == 2
    assert "table" in err
    receipt = job / "job/delivery/nodes.parquet"
    pq.write_table(pq.read_table(receipt), receipt, compression="gzip")
    code, _, err = run(*release, job / "people.parquet")
    assert code == 2
    assert "verdict" in err
    assert not (job / "out.csv").exists()


def test_altered_verdict_is_refused(job: Path, run: Run) -> None:
    verdict = job / "verdict.json"
    assert run(*verify_arguments(job), "--out", verdict)[0] == 0
    document = json.loads(verdict.read_text())
    document["findings"][0]["status"] = "fail"
    verdict.write_text(json.dumps(document))
    release = ["release", job / "job/delivery", "--manifest", job / "job/manifest.verix"]
    release += ["--verdict", verdict, "--table", job / "people.parquet", "--out", job / "out.csv"]
    code, _, err = run(*release)
    assert code == 2
    assert "conjunction" in err


def release_arguments(job: Path, out: Path) -> list[object]:
    made = ["release", job / "job/delivery", "--manifest", job / "job/manifest.verix"]
    return [*made, "--verdict", job / "v.json", "--table", job / "people.parquet", "--out", out]


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
        [*release_arguments(job, table), "--overwrite"],
    ]
    for attempt in attempts:
        code, _, err = run(*attempt)
        assert code == 2, attempt
        assert err.count("\n") == 1
    assert {path: path.read_bytes() for path in job.rglob("*") if path.is_file()} == before


def test_a_release_counts_when_it_is_written(job: Path, run: Run) -> None:
    assert run(*verify_arguments(job), "--out", job / "v.json")[0] == 0
    code, _, err = run(*release_arguments(job, job / "out.xlsx"))
    assert code == 2
    assert "ends in" in err
    dates = ["--top-code", "birth_date=1950-01-01:", "--as", "bounds"]
    code, _, err = run(*release_arguments(job, job / "out.parquet"), *dates)
    assert code == 0, err
    assert (
        str(min(pq.read_table(job / "out.parquet")["birth_date_min"].to_pylist())) >= "1950-01-01"
    )
    code, _, err = run(
        *release_arguments(job, job / "x.csv"), "--force", "--top-code", "birth_date=1:"
    )
    assert code == 2
    assert "is not a date" in err


def test_a_violation_is_final_only_for_its_own_delivery(job: Path, run: Run) -> None:
    thin = verify_arguments(job)[:4]
    assert run(*thin)[0] == 0
    damaged = job / "job/damaged"
    shutil.copytree(job / "job/delivery", damaged)
    header = json.loads((damaged / "delivery.json").read_text())
    nodes = pq.read_table(damaged / "nodes.parquet")
    moved = [
        t + 1.0 if c >= 0 else t
        for c, t in zip(nodes["column"].to_pylist(), nodes["threshold"].to_pylist(), strict=True)
    ]
    pq.write_table(nodes.set_column(1, "threshold", pa.array(moved)), damaged / "nodes.parquet")
    assert run("verify", damaged, *thin[2:])[0] == 1
    # The damaged copy claimed the honest root; the honest delivery must still pass.
    assert run(*thin)[0] == 0
    entry = {"time": "now", "root": header["root"], "outcome": "VIOLATION"}
    with (job / "job/audit.jsonl").open("a") as log:
        log.write(json.dumps({**entry, "layers": {"commitment": "pass"}}) + "\n")
    code, _, err = run(*thin)
    assert code == 2
    assert "VIOLATION before" in err
    assert run(*verify_arguments(job))[0] == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('target = "income"\ncolumns = "x"', "[columns] must be a section"),
        ('target = "income"\nkinds = 3', "[kinds] must be a section"),
        ('target = "income"\n[columns]\nage = "quazi"', "column 'age'"),
        ("k = 5", "target"),
        ("k = ", "cannot be read"),
    ],
)
def test_roles_files_with_mistakes(text: str, sentence: str, run: Run, job: Path) -> None:
    (job / "r.toml").write_text(text)
    arguments = ["prepare", job / "people.parquet", "--roles", job / "r.toml", "--out", job / "x"]
    code, _, err = run(*arguments)
    assert code == 2
    assert sentence in err


def test_k_of_zero_is_not_the_default(job: Path, run: Run) -> None:
    arguments = ["prepare", job / "people.parquet", "--out", job / "zero", "--k", 0, *JOB]
    code, _, err = run(*arguments)
    assert code == 2
    assert "k must be" in err


def test_init_takes_names_for_identifiers(run: Run, tmp_path: Path) -> None:
    pq.write_table(small(name=["Ann", "Bob"], email=["a@x", "b@x"]), tmp_path / "t.parquet")
    code, out, _ = run("init", tmp_path / "t.parquet", "--target", "y")
    assert code == 0
    assert '"name" = "identifier"' in out
    assert '"email" = "identifier"' in out
