"""A release is made only of a committed tree whose version and changelog agree, and is tried."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import release

CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.0] - 2026-01-31

### Added

- A thing.

## [1.1.0] - 2025-01-31

- Older.
"""


def git(root: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
    subprocess.run(command, cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository that can be released."""
    package = tmp_path / "src" / "verix_anon"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Text."""\n\n__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "All of it")
    return tmp_path


def with_changelog(root: Path, old: str, new: str) -> list[str]:
    assert old in CHANGELOG
    (root / "CHANGELOG.md").write_text(CHANGELOG.replace(old, new))
    git(root, "commit", "-qam", "Another changelog")
    return release.problems(root)


def test_nothing_stands_in_the_way(root: Path) -> None:
    assert release.problems(root) == []


@pytest.mark.parametrize("name", ["CHANGELOG.md", "new.py"])
def test_what_is_not_committed(root: Path, name: str) -> None:
    with (root / name).open("a") as file:
        file.write("\n")
    (problem,) = release.problems(root)
    assert "not committed" in problem
    assert name in problem


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("## [1.2.0] - 2026-01-31", "## [1.3.0] - 2026-01-31", "the newest section is [1.3.0]"),
        ("## [1.2.0] - 2026-01-31", "## [1.2.0]", "the newest section is [1.2.0]"),
        ("## [Unreleased]\n", "## [Unreleased]\n\n- More.\n", "under [Unreleased]"),
        ("## [Unreleased]\n", "", "does not begin with a section [Unreleased]"),
        ("### Added\n\n- A thing.\n", "", "says nothing about [1.2.0]"),
        (CHANGELOG, "# Changelog\n", "the newest section is nothing"),
    ],
)
def test_a_changelog_that_does_not_fit(root: Path, old: str, new: str, said: str) -> None:
    assert any(said in problem for problem in with_changelog(root, old, new))


def test_this_repository_has_a_section_for_its_version() -> None:
    changelog = (release.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (unreleased, _), (newest, _), *_ = release.sections(changelog)
    assert unreleased == "[Unreleased]"
    assert newest.startswith(f"[{release.version(release.ROOT)}] - ")


def test_an_incomplete_build_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "dist").mkdir()
    (root / "dist" / "old.whl").touch()
    names = ["verix_anon-1.2.0.tar.gz", "verix_anon-1.2.0-py3-none-any.whl"]

    def builder(command: list[str], folder: Path) -> str:
        (root / "dist").mkdir()
        for name in names:
            (root / "dist" / name).touch()
        return ""

    monkeypatch.setattr(release, "run", builder)
    assert [path.name for path in release.build(root)] == sorted(names)
    names.pop()
    with pytest.raises(SystemExit, match="holds"):
        release.build(root)


def test_every_package_is_installed_and_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    says = "verix-anon 1.2.0\n"

    def pretend(command: list[str], folder: Path) -> str:
        assert release.ROOT not in (folder, *folder.parents)
        ran.append([Path(command[0]).name, *command[1:]])
        return says

    monkeypatch.setattr(release, "run", pretend)
    monkeypatch.setattr("venv.create", lambda *_, **__: None)
    release.try_out(root / "x.whl", root)
    assert [command[0] for command in ran] == ["python", "verix-anon", "python", "verix-anon"]
    assert ran[0][-1] == str(root / "x.whl")
    assert ran[3][1:] == ["demo", "--rows", "2000"]
    says = "verix-anon 1.1.0\n"
    with pytest.raises(SystemExit, match=r"x\.whl says it is 'verix-anon 1\.1\.0'"):
        release.try_out(root / "x.whl", root)


def test_commands_see_nothing_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(release.ROOT))
    code = "import os; print(os.environ.get('PYTHONPATH'), os.getcwd())"
    assert release.run([sys.executable, "-c", code], tmp_path) == f"None {tmp_path}\n"
    with pytest.raises(SystemExit, match="exit code 3"):
        release.run([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


def test_digests_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n"
    assert release.digests([tmp_path / "a"]) == expected


def answering(
    monkeypatch: pytest.MonkeyPatch, stdout: str, stderr: str = "", code: int = 0
) -> None:
    """Have pip-audit print this, without a network."""

    def pretend(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[1:3] == ["-m", "pip_audit"]
        return subprocess.CompletedProcess(command, code, stdout, stderr)

    monkeypatch.setattr("subprocess.run", pretend)


def answers(*dependencies: dict[str, object]) -> str:
    return json.dumps({"dependencies": dependencies, "fixes": []})


FINE: dict[str, object] = {"name": "a", "version": "1", "vulns": []}
SKIPPED: dict[str, object] = {"name": "b", "skip_reason": "b was not found"}
VULNERABLE: dict[str, object] = {
    "name": "b",
    "version": "2",
    "vulns": [{"id": "X-1", "fix_versions": ["3"]}, {"id": "X-2", "fix_versions": []}],
}


@pytest.fixture
def pinned(root: Path) -> Path:
    (root / "constraints.txt").write_text("# Pins.\na==1\nb==2\n")
    return root


def test_an_audit_that_finds_nothing(pinned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, answers(FINE, {**FINE, "name": "b"}))
    assert release.audit(pinned) == "No known vulnerability in 2 pinned packages."


@pytest.mark.parametrize(
    ("stdout", "code", "said"),
    [
        # Exit code 0 with nothing audited is what pip-audit does behind a mirror.
        (answers(FINE, SKIPPED), 0, "Only 1 of 2 pinned packages were audited.\n- b was not found"),
        (answers(FINE), 0, "Only 1 of 2 pinned packages were audited."),
        ("", 1, "Nothing was audited, because pip-audit got no answer: no route"),
        ("[]", 0, "Nothing was audited"),
        (
            answers(FINE, VULNERABLE),
            1,
            "- b 2: X-1, fixed in 3\n- b 2: X-2, fixed in no version yet",
        ),
    ],
)
def test_an_audit_that_stops_a_release(
    pinned: Path, monkeypatch: pytest.MonkeyPatch, stdout: str, code: int, said: str
) -> None:
    answering(monkeypatch, stdout, "Traceback\nno route\n", code)
    with pytest.raises(SystemExit, match=re.escape(said)):
        release.audit(pinned)
