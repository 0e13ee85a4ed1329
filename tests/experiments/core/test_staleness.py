"""Which results are of this version."""

import json
import subprocess
from pathlib import Path

import pytest

from experiments.core import staleness

STUDY = "from verix_anon.client.join import join\nimport verix_anon\nverix_anon.prepare(join)\n"


class Repository:
    """A small one, with a study, a benchmark and a package."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("src/verix_anon/__init__.py", "")
        self.write("src/verix_anon/__init__.pyi", "from .client.made import prepare as prepare\n")
        for name in ("made", "join", "other"):
            self.write(f"src/verix_anon/client/{name}.py", f'"""Text."""\n{name} = 1\n')
        self.write("experiments/studies/small/study.py", STUDY)
        self.write("src/verix_anon/desk/page.py", "page = 1\n")
        for name in ("fast", "desk", "job"):
            self.write(f"tools/bench/{name}.py", "")
        self.write("tools/bench/owner.py", 'JOB = "tools.bench.job"\n')
        self.write("tools/chaos/faults.py", "")
        self.git("init", "-q")
        self.measured = self.commit()
        self.result("small", self.measured)
        self.result("bench-fast", self.measured)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def result(self, name: str, commit: str) -> None:
        self.write(f"results/{name}.json", json.dumps({"commit": commit}))

    def git(self, *words: str) -> str:
        own = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        command = ["git", *own, *words]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-qm", "All of it")
        return self.git("rev-parse", "--short", "HEAD")

    def changed(self) -> dict[str, tuple[str, ...]]:
        return {each.name: each.changed for each in staleness.statuses(self.root / "results")}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setattr(staleness, "ROOT", tmp_path)
    monkeypatch.setattr(staleness, "HOMES", tmp_path / "src" / "verix_anon" / "__init__.pyi")
    for each in (staleness._homes, staleness._imports):
        each.cache_clear()
    return Repository(tmp_path)


def test_nothing_has_changed(repository: Repository) -> None:
    assert repository.changed() == {"bench-fast": (), "small": ()}


def test_words_do_not_count(repository: Repository) -> None:
    repository.write("src/verix_anon/client/join.py", '"""Other."""\n\n# Why.\njoin = (\n 1)\n')
    repository.commit()
    assert repository.changed() == {"bench-fast": (), "small": ()}
    assert [each.age for each in staleness.statuses(repository.root / "results")] == [1, 1]


@pytest.mark.parametrize(
    ("line", "is_same"),
    [
        ('join = ["two of us are now here", "x"]', True),
        ('join = [f"one of {10:,} is now there", "x"]', True),
        ('join = ["one of us is now here", "y"]', False),
        ('join = ["one of us is now here"]', False),
    ],
)
def test_sentences_do_not_count(line: str, is_same: bool) -> None:
    said = 'join = ["one of us is now here", "x"]'
    assert (staleness._code(said) == staleness._code(line)) is is_same


@pytest.mark.parametrize("name", ["join", "made"])
def test_code_that_a_study_uses(repository: Repository, name: str) -> None:
    path = f"src/verix_anon/client/{name}.py"
    repository.write(path, f"{name} = 2\n")
    stale = {"bench-fast": (path,), "small": (path,)}
    assert repository.changed() == stale
    repository.commit()
    assert repository.changed() == stale
    assert "stale" in staleness.report(staleness.statuses(repository.root / "results"))


def test_other_results_are_left_out(repository: Repository) -> None:
    repository.result("test-times", repository.measured)
    assert repository.changed().keys() == {"bench-fast", "small"}


def test_what_shows_a_study_does_not_count(repository: Repository) -> None:
    for name in ("render", "figures"):
        repository.write(f"experiments/studies/small/{name}.py", "shown = 1\n")
    repository.commit()
    assert repository.changed()["small"] == ()
    repository.write("experiments/studies/small/gaps.py", "gap = 1\n")
    repository.commit()
    assert repository.changed()["small"] == ("experiments/studies/small/gaps.py",)


def test_code_that_only_commands_use(repository: Repository) -> None:
    path = "src/verix_anon/client/other.py"
    repository.write(path, "other = 2\n")
    assert repository.changed() == {"bench-fast": (path,), "small": ()}


@pytest.mark.parametrize(
    ("path", "stale"),
    [
        ("src/verix_anon/desk/page.py", {"bench-chaos", "bench-desk"}),
        ("src/verix_anon/client/other.py", {"bench-chaos", "bench-desk", "bench-fast"}),
        ("tools/bench/job.py", {"bench-owner"}),
        ("tools/chaos/faults.py", {"bench-chaos"}),
    ],
)
def test_what_a_benchmark_starts(repository: Repository, path: str, stale: set[str]) -> None:
    for name in ("bench-chaos", "bench-desk", "bench-owner"):
        repository.result(name, repository.measured)
    repository.write(path, "other = 2\n")
    assert {name for name, changed in repository.changed().items() if changed} == stale


@pytest.mark.parametrize("commit", ["{}-dirty", "0123456"])
def test_code_that_is_not_in_the_history(repository: Repository, commit: str) -> None:
    repository.result("small", commit.format(repository.measured))
    assert "not in the history" in repository.changed()["small"][0]
