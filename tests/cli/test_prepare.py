"""`verix-anon init` and `prepare`: what they write, and every mistake people make."""

import json
import re
from importlib import import_module
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pyreadstat
import pytest

from cli.jobs import JOB, Run
from verix_anon.client.job import JourneyState, look_at
from verix_anon.client.manifest import Parties, read_manifest
from verix_anon.files.text_versions import read_version
from verix_anon.parent_process import SEEN


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ({"sex": ["f", "m"], "outcome": ["no", "yes"]}, [], '"outcome"  # named like a target'),
        (
            {"age": [1, 2], "sex": ["f", "m"]},
            [],
            '"sex"  # a guess: the last column with two values; please check',
        ),
        ({"age": [1, 2], "sex": ["f", "m"]}, ["--target", "age"], '"age"  # as you said'),
    ],
)
def test_init_says_why_this_target(
    columns: dict[str, list[object]], options: list[str], reason: str, tmp_path: Path, run: Run
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert f"target = {reason}" in run("init", tmp_path / "t.parquet", *options)[1]


def test_init_refuses_a_target_of_one_value(tmp_path: Path, run: Run) -> None:
    pq.write_table(pa.table({"age": [1, 1, 1], "y": [0, 1, 1]}), tmp_path / "t.parquet")
    code, _, err = run("init", tmp_path / "t.parquet", "--target", "age")
    assert code == 2
    assert "the target must have two values or more; 'age' has 1" in err


def written_during(patch: pytest.MonkeyPatch, step: str, path: Path, text: str) -> None:
    """Somebody else writes a file while a step of a command is done."""
    module, name = step.rsplit(".", 1)
    real = getattr(import_module(module), name)

    def both(*given: object, **named: object) -> object:
        path.write_text(text)
        return real(*given, **named)

    patch.setattr(step, both)


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_draft_that_a_page_began_replaces_what_the_page_showed(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, *, is_changed: bool
) -> None:
    pq.write_table(pa.table({"age": [1, 2], "sex": ["f", "m"]}), tmp_path / "t.parquet")
    roles = tmp_path / "roles.toml"
    roles.write_text("k = 6\n")
    monkeypatch.setenv(SEEN, read_version(roles).digest)
    then = "k = 7\n" if is_changed else "k = 6\n"
    written_during(monkeypatch, "verix_anon.client.table.guess.guess_roles", roles, then)
    code, _, err = run("init", tmp_path / "t.parquet", "--out", roles, "--overwrite")
    assert code == (2 if is_changed else 0)
    assert ("was changed since" in err) == is_changed
    assert (roles.read_text() == "k = 7\n") == is_changed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["roles.toml", "t.parquet"]


@pytest.mark.parametrize("when", ["before", "meanwhile", "never"])
def test_a_job_that_a_page_began_is_made_of_what_the_page_showed(
    job: Path, run: Run, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    roles = drafted(job, "", run)
    text = roles.read_text()
    monkeypatch.setenv(SEEN, read_version(roles).digest)
    if when == "before":
        roles.write_text(text + "# more\n")
    elif when == "meanwhile":
        step = "verix_anon.client.prepare.prepare"
        written_during(monkeypatch, step, roles, text + "# more\n")
    arguments = ["prepare", job / "people.parquet", "--roles", roles]
    code, _, err = run(*arguments, "--out", job / f"seen-{when}")
    is_made = when == "never"
    assert (code, "was changed since" in err) == ((0, False) if is_made else (2, True))
    assert (job / f"seen-{when}").exists() == is_made


def test_init_drafts_a_table_without_a_target(tmp_path: Path, run: Run) -> None:
    table = pa.table({"age": [float(i) for i in range(60)], "zip": [str(i % 7) for i in range(60)]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert run("init", tmp_path / "t.parquet", "--out", tmp_path / "roles.toml")[0] == 0
    arguments = ["prepare", tmp_path / "t.parquet", "--roles", tmp_path / "roles.toml"]
    code, out, err = run(*arguments, "--out", tmp_path / "job", "--json")
    assert code == 0, err
    assert json.loads(out)["target"] == "There is no target to preserve."


def drafted(job: Path, section: str, run: Run) -> Path:
    roles = job / f"roles-{abs(hash(section))}.toml"
    run("init", job / "people.parquet", "--target", "income", "--out", roles)
    text = roles.read_text()
    roles.write_text(text.replace("[contract]", f"[contract]\n{section}"))
    return roles


def test_the_contract_stands_in_the_roles_file(job: Path, run: Run) -> None:
    section = 'rule = "variance-reduction"\nmin_leaf = "3k"\nclear = true\ntraps = "none"'
    arguments = ["prepare", job / "people.parquet", "--roles", drafted(job, section, run)]
    assert run(*arguments, "--out", job / "by-file")[0] == 0
    by_file = json.loads((job / "by-file/submission/contract.json").read_text())
    assert (by_file["rule"], by_file["min_leaf"]) == ("variance-reduction", 15)
    assert "income" in [column["name"] for column in by_file["columns"]]
    # What is said at the prompt wins.
    assert run(*arguments, "--coded", "--min-leaf", 7, "--out", job / "by-both")[0] == 0
    by_both = json.loads((job / "by-both/submission/contract.json").read_text())
    assert (by_both["rule"], by_both["min_leaf"]) == ("variance-reduction", 7)
    assert "income" not in [column["name"] for column in by_both["columns"]]


def test_priorities_in_the_roles_file_and_at_the_prompt(job: Path, run: Run) -> None:
    roles = drafted(job, "", run)
    text = roles.read_text()
    roles.write_text(text.replace('# "postcode" = "coarse"', '"age" = "fine"\n"sex" = 0.5'))
    arguments = ["prepare", job / "people.parquet", "--roles", roles]

    def weighed(*given: object) -> list[float]:
        out = job / f"weighed-{len(given)}"
        code, _, err = run(*arguments, *given, "--traps", "none", "--out", out)
        assert code == 0, err
        columns = json.loads((out / "submission/contract.json").read_text())["columns"]
        return [round(c["weight"] * max(1, c["size"] - 1) / 2**50, 6) for c in columns[:4]]

    names = [line.split('"')[1] for line in text.splitlines() if '"quasi"' in line]
    assert names[:4] == ["age", "birth_date", "sex", "native_born"]
    assert weighed() == [4, 1, 0.5, 1]
    # What is said at the prompt wins, column by column.
    assert weighed("--priority", "sex=coarse,native_born=2") == [4, 1, 0.25, 2]
    assert weighed("--priority", "sex=normal", "--priority", "age=fine") == [4, 1, 1, 1]
    roles.write_text(text.replace('# "postcode" = "coarse"', '"age" = "finer"'))
    code, _, err = run(*arguments, "--out", job / "x")
    assert code == 2
    assert "the priority of column 'age' must be fine, normal, coarse or a number" in err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("agee=fine", "there is no column 'agee'; did you mean 'age'?"),
        ("income=fine", "column 'income' is declared as target; a priority is for"),
        ("age=0", "the priority of column 'age' must be fine, normal, coarse or a number greater"),
        ("age=-1", "the priority of column 'age' must be"),
        ("age=nan", "the priority of column 'age' must be"),
        ("age=2x", "'2x' for 'age' is not a number"),
        ("age", "'age' is not of the form COLUMN=VALUE"),
    ],
)
@pytest.mark.parametrize("command", ["prepare", "explore"])
def test_mistakes_in_priorities(
    command: str, given: str, sentence: str, job: Path, run: Run
) -> None:
    roles = drafted(job, "", run)
    arguments = [command, job / "people.parquet", "--roles", roles, "--priority", given]
    code, _, err = run(*arguments, "--out", job / "x")
    assert code == 2
    assert sentence in err


def test_names_for_the_report(job: Path, run: Run) -> None:
    roles = drafted(job, "", run)
    section = 'table_name = "Wards"\ncontroller = "City hospital"'
    roles.write_text(roles.read_text().replace("[report]", f"[report]\n{section}\n#"))
    arguments = ["prepare", job / "people.parquet", "--roles", roles, "--processor", "Miller"]
    assert run(*arguments, "--controller", "County hospital", "--out", job / "named")[0] == 0
    found = read_manifest(job / "named/manifest.verix").parties
    # What is said at the prompt wins.
    wanted = Parties(table_name="Wards", controller="County hospital", processor="Miller")
    assert found == wanted
    code, _, err = run(*arguments, "--controller", "x" * 201, "--out", job / "long")
    assert code == 2
    assert "controller must be one line of at most 200 characters" in err
    roles.write_text(roles.read_text().replace("[report]", "[report]\nowner = 'me'\n#"))
    code, _, err = run(*arguments, "--out", job / "unknown")
    assert code == 2
    assert "unknown field 'owner'" in err


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ('rule = "best"', "rule must be one of"),
        ("places = 1", "places must be a number from 2"),
        ("importance = { age = 1.0 }", "importance must be one of uniform, auto, not"),
        ('colour = "blue"', "unknown field 'colour'"),
        ('task = "guess"', "task must be one of"),
    ],
)
def test_mistakes_in_the_roles_files_contract(
    section: str, sentence: str, job: Path, run: Run
) -> None:
    roles = drafted(job, section, run)
    code, _, err = run("prepare", job / "people.parquet", "--roles", roles, "--out", job / "x")
    assert code == 2
    assert sentence in err


def test_prepare_says_what_the_provider_sees(job: Path, run: Run) -> None:
    arguments = ["prepare", job / "people.parquet", "--target", "income", "--quasi", "all"]
    _, coded, err = run(*arguments, "--out", job / "coded")
    told = "14 columns as positions, without names and values. It sees no label."
    assert told in coded.replace("\n", " ")
    assert "weights" not in coded
    assert "pseudonymous" in coded
    assert "prepared before" not in err
    _, auto, err = run(*arguments, "--importance", "auto", "--out", job / "auto")
    assert "Warning: this table was prepared before" in err
    assert "It also sees weights, from your priorities or from the target." in auto.replace(
        "\n", " "
    )
    rule = ["--rule", "variance-reduction"]
    _, labels, _ = run(*arguments, *rule, "--out", job / "labels")
    assert "which of two classes each record has" in labels.replace("\n", " ")
    _, clear, _ = run(*arguments, "--preset", "paper", "--out", job / "paper")
    assert "the names and values of 14 columns, and every label" in clear
    (judge,) = re.findall(r"^  verix-anon verify .*", clear, re.MULTILINE)
    assert judge.endswith("--profile paper")
    assert f"--table {job}/people.parquet --out released.csv" in clear


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


def test_init_takes_names_for_identifiers(run: Run, tmp_path: Path) -> None:
    pq.write_table(small(name=["Ann", "Bob"], email=["a@x", "b@x"]), tmp_path / "t.parquet")
    code, out, _ = run("init", tmp_path / "t.parquet", "--target", "y")
    assert code == 0
    assert '"name" = "identifier"' in out
    assert '"email" = "identifier"' in out


def test_init_explains_each_guess(run: Run, tmp_path: Path) -> None:
    pq.write_table(
        small(Vorname=["Ann", "Bob"], b=["p", "q", "r"]).rename_columns(
            ["a", "y", "Vorname", "[b]"]
        ),
        tmp_path / "t.parquet",
    )
    code, out, _ = run("init", tmp_path / "t.parquet", "--explain")
    assert code == 0
    assert "column" in out.splitlines()[0]
    assert "[b]" in out
    row = next(line for line in out.splitlines() if line.startswith("Vorname"))
    assert row.split()[1:3] == ["identifier", "categorical"]
    assert out.rstrip().endswith("'yes' is class 1, of 'no' and 'yes': it means yes.")
    assert "[columns]" not in out
    _, out, _ = run("init", tmp_path / "t.parquet", "--explain", "--out", tmp_path / "roles.toml")
    assert out.count("is class 1") == 1


def test_init_gives_its_guesses_as_json(run: Run, tmp_path: Path) -> None:
    pq.write_table(small(Vorname=["Ann", "Bob"]), tmp_path / "t.parquet")
    arguments = ["init", tmp_path / "t.parquet", "--json", "--out", tmp_path / "roles.toml"]
    code, out, _ = run(*arguments)
    found = json.loads(out)
    assert (code, found["target"], found["positive"]) == (0, "y", "yes")
    roles = {column["name"]: column["role"] for column in found["columns"]}
    assert roles == {"a": "quasi", "y": "target", "Vorname": "identifier"}
    assert all(column["reason"] and column["otherwise"] for column in found["columns"])
    assert 'positive = "yes"' in (tmp_path / "roles.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "sent", "kept"),
    [
        ([], "Sent as positions: a.", "z, y"),
        (["--preset", "paper"], "Sent as they are: a, y.", "z"),
    ],
)
def test_prepare_says_what_becomes_of_each_column(
    run: Run, tmp_path: Path, options: list[str], sent: str, kept: str
) -> None:
    table = small(Vorname=["Ann", "Bob"], z=["p", "q", "r"]).select(["a", "Vorname", "z", "y"])
    pq.write_table(table, tmp_path / "t.parquet")
    named = ["--target", "y", "--quasi", "a", "--kept", "z", "--identifier", "Vorname"]
    arguments = ["prepare", tmp_path / "t.parquet", *named, "--person", "record", *options]
    code, out, err = run(*arguments, "--out", tmp_path / "job")
    assert code == 0, err
    assert "Dropped for good: Vorname." in out
    assert sent in out
    assert f"Kept back, joined at release: {kept}." in out
    assert "'yes' is class 1." in out


MISTAKES: dict[str, tuple[pa.Table, list[str], str]] = {
    "a misspelled column": (small(), ["--target", "y", "--quasi", "aa"], "did you mean 'a'"),
    "a target of three classes": (
        small(z=["p", "q", "r"]),
        ["--target", "z", "--quasi", "all", "--rule", "variance-reduction"],
        "two classes",
    ),
    "k larger than the table": (small(), ["--target", "y", "--quasi", "all", "--k", "99"], "99"),
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
        ("t.csv", b"", "is empty"),
        ("t.docx", b"a,y\n", "docx"),
        ("t.csv", b"a,y\n1,no\n1,2,3\n", "line 3 has 3 fields"),
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


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('target = "income"\ncolumns = "x"', "columns must hold named fields"),
        ('target = "income"\nkinds = 3', "kinds must hold named fields"),
        ('target = "income"\n[columns]\nage = "quazi"', "columns: age must be one of"),
        ('target = "income"\n[columns]\nage = "target"', "the target is named by"),
        ('target = "income"\n[orders]\nage = [1]', "orders: age must be a list of text"),
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


def test_too_few_people_are_said_before_anything_is_written(
    prepared: Path, run: Run, tmp_path: Path
) -> None:
    table = prepared / "people.parquet"
    code, _, err = run("prepare", table, "--out", tmp_path / "job", "--k", 9_000, *JOB)
    assert code == 2
    assert "the table holds 1,500 people, fewer than k = 9,000; choose a smaller k" in err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_before_the_work(
    prepared: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object, **named: object) -> None:
        raise OSError(30, "Read-only file system")

    def work(*given: object, **named: object) -> None:
        pytest.fail("the table was prepared")

    monkeypatch.setattr("verix_anon.files.atomic_write.Aside.__init__", refuse)
    monkeypatch.setattr("verix_anon.client.prepare.prepare", work)
    code, _, err = run("prepare", prepared / "people.parquet", "--out", tmp_path / "job", *JOB)
    assert code == 2
    assert "job cannot be written (Read-only file system)" in err
    assert list(tmp_path.iterdir()) == []


def test_a_job_grows_in_the_folder_of_its_roles_file(
    job: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(job)
    folder = job / "other"
    folder.mkdir()
    assert run("init", "people.parquet", "--out", "other/roles.toml").code == 0
    assert look_at(folder).table == job / "people.parquet"
    command = ("prepare", "people.parquet", "--roles", "other/roles.toml", "--unsafe-seed", "7")
    (job / "unlike").mkdir()
    assert run(*command, "--out", "unlike").code == 2
    assert run(*command, "--out", "other").code == 0
    assert {path.name for path in folder.iterdir()} == {
        *("roles.toml", "submission", "manifest.verix")
    }
    assert (folder / "manifest.verix").stat().st_mode & 0o777 == 0o600
    assert look_at(folder).state is JourneyState.PREPARED
    code, _, err = run(*command, "--out", "other")
    assert code == 2
    assert "submission exists already" in err


NOBODY = "a label that no row has"


def write_with_unused_labels(path: Path, n_rows: int = 60) -> None:
    """A table with an ordered column whose type knows one label more than its rows have."""
    has = {
        "edu": ["school" if i % 2 else "academy" for i in range(n_rows)],
        "outcome": ["yes" if i % 3 else "no" for i in range(n_rows)],
    }
    knows = {"edu": ["school", NOBODY, "academy"], "outcome": ["no", "yes", NOBODY]}
    frame = pd.DataFrame(
        {
            "edu": pd.Categorical(has["edu"], knows["edu"], ordered=True),
            "age": [20 + i % 30 for i in range(n_rows)],
            "outcome": pd.Categorical(has["outcome"], knows["outcome"], ordered=True),
        }
    )
    match path.suffix:
        case ".parquet":
            frame.to_parquet(path)
        case ".feather":
            frame.to_feather(path)
        case ".dta":
            frame.to_stata(path, write_index=False)
        case _:
            codes = {name: [knows[name].index(label) for label in has[name]] for name in has}
            labels = {
                name: {float(i): label for i, label in enumerate(knows[name])} for name in has
            }
            coded = pl.DataFrame({"age": [*frame["age"]], **codes}).select(frame.columns)
            pyreadstat.write_sav(coded, path, variable_value_labels=labels)


@pytest.mark.usefixtures("quick_models")
@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("parquet", "drafted"),
        ("parquet", "order"),
        ("parquet", "hierarchy"),
        ("feather", "order"),
        ("sav", "drafted"),
        ("dta", "drafted"),
    ],
)
def test_a_label_that_no_row_has_is_neither_drafted_nor_sent(
    ending: str, said: str, run: Run, tmp_path: Path
) -> None:
    table, roles = tmp_path / f"t.{ending}", tmp_path / "roles.toml"
    write_with_unused_labels(table)
    assert run("init", table, "--out", roles).code == 0
    text, drafted_order = roles.read_text(), '"edu" = ["school", "academy"]'
    assert drafted_order in text
    assert NOBODY not in text
    if said == "order":
        text = text.replace(drafted_order, f'"edu" = ["{NOBODY}", "school", "academy"]')
    elif said == "hierarchy":
        levels = ["school;low;*", f"{NOBODY};middle;*", "academy;high;*"]
        (tmp_path / "edu.csv").write_text("\n".join(levels))
        text = text.replace(f"{drafted_order}  # the column's own order", "")
        text = text.replace("[hierarchies]", '[hierarchies]\n"edu" = "edu.csv"')
    roles.write_text(text)
    clear = ("--rule", "variance-reduction", "--clear", "--quiet")
    done = run("prepare", table, "--roles", roles, "--out", tmp_path / "job", *clear)
    assert done.code == 0, done.err
    sent = tmp_path / "job/submission"
    columns = json.loads((sent / "contract.json").read_text())["columns"]
    assert [c.get("categories") for c in columns] == [["school", "academy"], None, ["no", "yes"]]
    assert not any(NOBODY.encode() in path.read_bytes() for path in sent.iterdir())
    records = pq.read_table(sent / "records.parquet")
    # Positions and trackers: no column has text, which pages may hold compressed.
    types = [*map(str, records.schema.types)]
    assert types == ["int64", "fixed_size_binary[32]", "int32", "double", "uint8"]
