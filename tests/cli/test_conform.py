"""The command `conform`: a provider is tried, told about and judged by an exit code."""

import json
import sys
from pathlib import Path

import pytest

from cli.jobs import Run
from tools.kit.writing import VERSION
from verix_anon.conform.kit import KitSize, read_kit

HONEST = """
import sys
from pathlib import Path
from verix_anon.files.folder_writer import write_delivery
from verix_anon.files.submissions import read_submission
from verix_anon.errors import Error
from verix_anon.provider.local import LocalProvider

try:
    write_delivery(LocalProvider().anonymize(read_submission(sys.argv[1])), sys.argv[2])
except Error as error:
    sys.exit(str(error))
"""
CHEAT = HONEST.replace("LocalProvider()", "StopsEarly(1)").replace(
    "verix_anon.provider.local import LocalProvider", "verix_anon.adversaries import StopsEarly"
)
SOME = ("--only", "ties", "--only", "value-nan", "--only", "continuous")


@pytest.fixture
def provider(tmp_path: Path) -> list[object]:
    path = tmp_path / "provider.py"
    path.write_text(HONEST)
    return [sys.executable, path]


@pytest.fixture
def cheat(tmp_path: Path) -> list[object]:
    path = tmp_path / "cheat.py"
    path.write_text(CHEAT)
    return [sys.executable, path, "{submission}", "{delivery}"]


def test_an_honest_provider(run: Run, provider: list[object], tmp_path: Path) -> None:
    found, page = tmp_path / "found.json", tmp_path / "found.html"
    done = run("conform", *SOME, "--json", found, "--html", page, *provider)
    assert done.code == 0, done
    first, *_, last = done.out.splitlines()
    assert first.split()[:3] == ["pass", "continuous", "§4.1"]
    assert last.startswith(f"All 3 cases passed. Kit {VERSION}, small, SHA-256 ")
    told = json.loads(found.read_bytes())
    assert told["format"] == "verix/conformance/1"
    assert (told["side"], told["passed"]) == ("provider", True)
    assert told["subject"] == f"{sys.executable} {provider[1]}"
    assert [case["id"] for case in told["cases"]] == ["continuous", "ties", "value-nan"]
    names = [check["name"] for check in told["cases"][0]["checks"]]
    assert names == ["answer", "files", "header", "tree", "bounds", "records", "root"]
    assert "All cases passed" in page.read_text()


def test_a_cheat(run: Run, cheat: list[object], tmp_path: Path) -> None:
    found, page = tmp_path / "found.json", tmp_path / "found.html"
    done = run("conform", *SOME, "--json", found, "--html", page, *cheat)
    assert done.code == 1
    assert done.out.splitlines()[-1].startswith("1 of 3 cases failed: continuous. Kit")
    assert "\n      tree: node 1 is leaf 0, and not a split of column " in done.out
    told = json.loads(found.read_bytes())
    assert [case["id"] for case in told["cases"] if not case["passed"]] == ["continuous"]
    text = page.read_text()
    assert "1 of 3 cases failed" in text
    assert "node 1 is leaf 0, and not a split of column" in text


def test_nothing_that_is_said_is_obeyed(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "found.html"
    words = [sys.executable, "-c", "import sys; sys.exit('\\x1b[2J<script>alert(1)</script>')"]
    done = run("conform", "--only", "ties", "--html", page, *words)
    assert done.code == 1
    assert "\x1b" not in done.out
    assert "<script>" not in page.read_text()
    assert "&lt;script&gt;" in page.read_text()


def test_a_limit(run: Run) -> None:
    words = [sys.executable, "-c", "import time; time.sleep(600)"]
    done = run("conform", "--only", "ties", "--limit", "0.2", *words)
    assert done.code == 1
    assert "answer: no answer in 0.2 s, so it was ended" in done.out


def test_a_kit_is_exported_and_run(run: Run, provider: list[object], tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    done = run("conform", *SOME, "--export", kit)
    assert done.code == 0
    assert done.out.startswith("3 cases; kit.json has the SHA-256 ")
    assert read_kit(kit).digest in done.out
    done = run("conform", "--kit", kit, "--only", "ties", *provider)
    assert done.code == 0
    assert f"1 case passed. Kit {VERSION}, small, SHA-256 {read_kit(kit).digest}." in done.out
    (kit / "submissions" / "ties" / "contract.json").write_bytes(b"{}")
    done = run("conform", "--kit", kit, *provider)
    assert done.code == 2
    assert "is damaged: submissions/ties/contract.json is not of the SHA-256" in done.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "nothing to test"),
        (("--only", "nonsense", "true"), "--only 'nonsense' fits no case of the kit"),
        (("--only", "ties", "no-such-command"), "'no-such-command' cannot be started"),
        (("--url", "http://127.0.0.1:1", "--token", "t", "true"), "in place of a command"),
        (("--kit", "kit", "--export", "other", "true"), "goes without --export"),
        (("--kit", "nowhere", "true"), "there is no folder nowhere"),
        (("--only", "ties", "true", "{delivery}"), "a place for {delivery} alone"),
        (("--only", "ties", "--url", "http://127.0.0.1:1"), "the service needs a token"),
    ],
)
def test_mistakes(
    run: Run, words: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VERIX_TOKEN", raising=False)
    done = run("conform", *words)
    assert done.code == 2
    assert sentence in done.err


def test_only_a_kit_is_overwritten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    done = run("conform", "--only", "ties", "--export", tmp_path / "mine", "--overwrite")
    assert done.code == 2
    assert "not overwritten" in done.err
    for _ in range(2):
        kit = tmp_path / "kit"
        assert run("conform", "--only", "ties", "--export", kit, "--overwrite").code == 0
    assert read_kit(tmp_path / "kit").size is KitSize.SMALL
