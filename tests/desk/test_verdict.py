"""The verdict: green for what passed and nothing else; its report cannot reach the desk."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from desk.browsing import Browser, Given, Shown, wait_for
from verix_anon.client.job import find_job
from verix_anon.client.owner_files import read_verdict, write_verdict
from verix_anon.client.verdict import Outcome, Status, Verdict
from verix_anon.desk.gate import HEADERS, REPORT_HEADERS

SAYS = "import sys; print(*sys.argv[1:], file=sys.stderr); sys.exit({})"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def folder(prepared: Path, given: Given) -> Path:
    """A job with a delivery."""
    shutil.copytree(prepared / "job", given.desk.folder / "job")
    return given.desk.folder / "job"


def judge(browser: Browser, **fields: str) -> int | None:
    """Verify by the page, with the command itself."""
    answer = browser.submit("/jobs/job/verdict", fields)
    assert answer.headers["location"] == "/jobs/job/verdict"
    task = browser.given.desk.tasks.of("job")
    assert task is not None
    wait_for(lambda: not task.is_running)
    return task.code


def states(browser: Browser) -> list[str]:
    shown = Shown(browser.get("/jobs/job/verdict").text)
    return [str(found.get("class")) for found in shown.all("span") if "badge" in str(found)]


@pytest.fixture(scope="module")
def verdict(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """One that accepts the delivery of `folder`; the layers that only inform are left out."""
    from cli import jobs

    home = tmp_path_factory.mktemp("verdict")
    shutil.copytree(prepared, home, dirs_exist_ok=True)
    verify, out = jobs.verify_arguments(home), home / "verdict.json"
    jobs.exit_code(*verify, "--skip", "fingerprint,utility", "--out", out)
    return read_verdict(out)


def spoiled(verdict: Verdict, status: Status) -> Verdict:
    from dataclasses import replace

    first, *others = verdict.findings
    return replace(verdict, findings=(replace(first, status=status, summary=HOSTILE), *others))


def test_a_delivery_that_was_not_judged_has_no_colour(folder: Path, browser: Browser) -> None:
    text = browser.get("/jobs/job/verdict").text
    assert "has not been verified yet" in text
    assert states(browser) == ["badge state-delivered"]
    assert (
        "verify job/delivery --manifest job/manifest.verix --submission job/submission"
        " --out job/verdict.json --report job/verdict.html" in text
    )


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (Status.PASS, Outcome.VERIFIED),
        (Status.FAIL, Outcome.VIOLATION),
        (Status.INCONCLUSIVE, Outcome.INCONCLUSIVE),
        (Status.SKIPPED, Outcome.INCONCLUSIVE),
    ],
)
def test_the_verdict_is_shown_as_it_is(
    folder: Path, browser: Browser, verdict: Verdict, status: Status, outcome: Outcome
) -> None:
    write_verdict(spoiled(verdict, status), folder / "verdict.json")
    answer = browser.get("/jobs/job/verdict")
    shown = Shown(answer.text)
    assert HOSTILE in shown.words
    assert not shown.all("img")
    job, large, *layers = states(browser)
    assert job == large == f"badge state-{outcome.value.lower()}"
    assert len(layers) == len(verdict.findings)
    # What failed comes first, and what was not run last, with the layers that only inform.
    first = len(layers) - layers.count("badge quiet") - 1 if status is Status.SKIPPED else 0
    assert layers[first] == f"badge status-{status.value}"
    is_good = outcome is Outcome.VERIFIED
    assert ("/jobs/job/release" in answer.text) == is_good
    if not is_good:
        assert "state-verified" not in answer.text


@pytest.mark.parametrize("status", [Status.FAIL, Status.INCONCLUSIVE])
def test_a_layer_that_only_informs_raises_no_alarm(
    folder: Path, browser: Browser, verdict: Verdict, status: Status
) -> None:
    from dataclasses import replace

    informing = {"fingerprint", "utility"}
    findings = [replace(f, status=status) if f.layer in informing else f for f in verdict.findings]
    write_verdict(replace(verdict, findings=tuple(findings)), folder / "verdict.json")
    assert {*states(browser)[2:]} == {"badge status-pass", "badge quiet"}
    assert 'class="grave"' not in browser.get("/jobs/job/verdict").text


def test_a_verdict_on_another_delivery_is_not_shown(
    folder: Path, browser: Browser, verdict: Verdict
) -> None:
    from dataclasses import replace

    from verix_anon.protocol.contract import Digest

    write_verdict(replace(verdict, root=Digest(bytes(32))), folder / "verdict.json")
    text = browser.get("/jobs/job/verdict").text
    assert "on another delivery" in text
    assert states(browser) == ["badge state-delivered"]
    assert "--overwrite" in text


def test_what_is_no_delivery_is_judged_so(folder: Path, given: Given, browser: Browser) -> None:
    (folder / "delivery" / "delivery.json").write_text("{}")
    assert judge(browser) == 1
    assert states(browser)[:2] == ["badge state-violation"] * 2
    page = browser.get("/jobs/job/report")
    assert page.status_code == 200
    assert "VIOLATION" in page.text
    # The verdict is a result, and no failure of the command.
    assert "This step failed" not in browser.get("/jobs/job/verdict").text


@pytest.mark.parametrize(("code", "is_well"), [(0, True), (1, True), (3, True), (2, False)])
def test_a_verdict_is_a_result_whichever_it_is(
    folder: Path, browser: Browser, code: int, is_well: bool
) -> None:
    browser.given.desk.tasks.program = (sys.executable, "-c", SAYS.format(code))
    assert judge(browser, profile="thin", passphrase="secret") == code
    task = browser.given.desk.tasks.of("job")
    assert task is not None
    assert "--profile thin" in task.shown
    assert "secret" not in task.shown + "".join(task.lines)
    found = json.loads(browser.get("/jobs/job/task/events").text.split("data: ")[-1].split("\n")[0])
    assert (found["then"] == "/jobs/job/verdict") == is_well
    assert ("This step failed" in browser.get("/jobs/job/verdict").text) != is_well


@pytest.mark.parametrize("key", ["../key.pub", "/etc/passwd", "none.pub", "job"])
def test_a_key_lies_in_the_folder(folder: Path, browser: Browser, key: str) -> None:
    answer = browser.submit("/jobs/job/verdict", {"provider_key": key})
    assert answer.status_code == 400
    assert browser.given.desk.tasks.of("job") is None


def test_a_report_is_served_apart_from_the_desk(
    folder: Path, browser: Browser, verdict: Verdict
) -> None:
    from verix_anon.client.report import render

    assert browser.get("/jobs/job/report").status_code == 404
    write_verdict(verdict, folder / "verdict.json")
    (folder / "verdict.html").write_text(render(spoiled(verdict, Status.FAIL)))
    assert browser.get("/jobs/job/report").status_code == 404, "of another verdict"
    (folder / "verdict.html").write_text(render(verdict))
    for query in ("", "?save=1"):
        answer = browser.get(f"/jobs/job/report{query}")
        assert answer.status_code == 200
        for name, value in REPORT_HEADERS.items():
            assert answer.headers.get_list(name) == [value]
    assert "attachment" in answer.headers["content-disposition"]
    policy = REPORT_HEADERS["Content-Security-Policy"].split("; ")
    assert "sandbox" in policy
    assert not [part for part in policy if "script" in part or "'self'" in part]
    for path in ("/jobs/job/verdict", "/jobs/none/report"):
        found = browser.get(path).headers["content-security-policy"]
        assert found == HEADERS["Content-Security-Policy"]


def test_a_report_can_be_written_anew(folder: Path, browser: Browser, verdict: Verdict) -> None:
    write_verdict(verdict, folder / "verdict.json")
    assert browser.submit("/jobs/job/report", {}).status_code == 303
    task = browser.given.desk.tasks.of("job")
    assert task is not None
    wait_for(lambda: not task.is_running)
    assert task.code == 0, task.lines
    assert browser.get("/jobs/job/report").status_code == 200
    assert find_job(folder.parent, "job").state.value == "verified"


def test_there_is_no_verdict_before_a_delivery(folder: Path, browser: Browser) -> None:
    shutil.rmtree(folder / "delivery")
    assert browser.get("/jobs/job/verdict").status_code == 404
    assert browser.submit("/jobs/job/verdict", {}).status_code == 404
