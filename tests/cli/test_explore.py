"""`verix-anon explore`: a table, JSON, a page, and mistakes."""

import json
import shlex
from pathlib import Path

import pytest

from cli.jobs import Run
from verix_anon.client.explore import basis_of
from verix_anon.datasets import census
from verix_anon.files.tables import write_table

pytestmark = pytest.mark.usefixtures("quick_models")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explore")
    table = census(1_200)
    write_table(table, folder / "people.csv")
    columns = [f'"{name}" = "quasi"' for name in table.column_names if name != "income"]
    text = "\n".join(["k = 10", 'target = "income"', "[columns]", *columns])
    (folder / "roles.toml").write_text(text)
    return folder


def test_shows_a_table_and_writes_a_page(folder: Path, run: Run, tmp_path: Path) -> None:
    given = ["explore", folder / "people.csv", "--roles", folder / "roles.toml", "--k", "5,10"]
    page = tmp_path / "explore.html"
    code, out, err = run(*given, "--out", page)
    assert code == 0, err
    lines = out.splitlines()
    assert " ".join(lines[0].split()) == "k l classes risk mean risk NCP one label F1 AUC"
    assert [line.split()[0] for line in lines[1:5]] == ["5", "5", "chosen", "10"]
    assert "\x1b" not in out
    assert lines[5].startswith("risk: the greatest chance to pick a person's record.")
    assert lines[6].startswith("one label: the share of the records whose class has a single")
    at = lines.index("What is left of each column with k 10, importance-spread, l 1:")
    assert lines[at + 1].split() == ["column", "exact", "median", "width", "NCP"]
    assert len(lines) > at + 8
    assert lines[-2] == f"Put the k you choose into {folder / 'roles.toml'}, and prepare:"
    prepare = ["prepare", str(folder / "people.csv"), "--roles", str(folder / "roles.toml")]
    assert shlex.split(lines[-1]) == ["verix-anon", *prepare, "--out", "job"]
    assert 'class="bars"' in page.read_text(encoding="utf-8")
    assert "<svg" in page.read_text(encoding="utf-8")
    assert run(*given, "--out", page)[0] == 2
    code, out, _ = run(*given, "--l", "1", "--json")
    assert code == 0
    assert [row["is_chosen"] for row in json.loads(out)["rows"]] == [False, True]
    assert run(*given, "--l", "1", "--out", tmp_path / "explore.json")[0] == 0
    assert (tmp_path / "explore.json").read_text() == out.rstrip("\n")
    assert json.loads(out)["basis"] == basis_of(folder / "roles.toml", folder / "people.csv")
    assert not (tmp_path / "ledger.jsonl").exists()
    code, other, err = run(*given, "--l", "1", "--priority", "age=fine,sex=coarse", "--json")
    assert code == 0, err
    # It is not what the roles file gives, and does not say so.
    assert json.loads(other)["rows"] != json.loads(out)["rows"]
    assert json.loads(other)["basis"] == {}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--k", "five"], "--k takes whole numbers such as 5,10, not 'five'"),
        (["--k", "1"], "k must be 2 or more"),
        (["--rule", "magic"], "rules are variance-reduction"),
    ],
)
def test_mistakes_are_said(folder: Path, run: Run, options: list[str], sentence: str) -> None:
    given = ["explore", folder / "people.csv", "--roles", folder / "roles.toml"]
    code, _, err = run(*given, *options)
    assert code == 2
    assert sentence in err
