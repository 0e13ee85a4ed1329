"""`verix-anon submit`: a submission through a service, and every way in which it may not go."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.jobs import Run
from client.remote import clocks
from client.remote.scripted import TOKEN, Handler, Scripted, files_of, running


@pytest.fixture
def service(prepared: Path) -> Iterator[Scripted]:
    """One that delivers what the honest provider did."""
    with clocks.turned(), running(Scripted(files_of(prepared / "job" / "delivery"))) as script:
        yield script


@pytest.fixture
def arguments(prepared: Path, service: Scripted, tmp_path: Path) -> list[object]:
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    submission = prepared / "job" / "submission"
    given = ["submit", submission, "--url", service.url, "--token-file", token]
    return [*given, "--out", tmp_path / "delivery"]


def test_the_delivery_comes(
    run: Run, arguments: list[object], prepared: Path, tmp_path: Path, service: Scripted
) -> None:
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert "was deleted at the service" in out
    assert "The service signed no receipt." in out
    assert f"--manifest {prepared / 'job' / 'manifest.verix'} --submission" in out
    assert files_of(tmp_path / "delivery") == files_of(prepared / "job" / "delivery")
    assert TOKEN not in out
    code, out, err = run(*arguments)
    assert code == 2
    assert "exists already" in err
    code, out, _ = run(*arguments, "--overwrite", "--keep", "--json")
    assert code == 0
    assert json.loads(out)["kept"] is True
    assert json.loads(out)["job"] in service.jobs


def test_where_the_token_comes_from(
    run: Run, arguments: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("VERIX_TOKEN", raising=False)
    bare = [*arguments[:4], *arguments[6:]]
    code, _, err = run(*bare)
    assert code == 2
    assert "needs a token: add --token-file FILE, or set $VERIX_TOKEN" in err
    code, _, err = run(*bare, "--token-file", tmp_path / "nowhere")
    assert code == 2
    assert "cannot be read" in err
    (tmp_path / "empty").write_text("\n")
    assert "is empty" in run(*bare, "--token-file", tmp_path / "empty").err
    assert run(*bare, "--token", TOKEN).code == 0
    monkeypatch.setenv("VERIX_TOKEN", "vrx_wrong")
    code, _, err = run(*bare, "--overwrite")
    assert code == 2
    assert "unauthorized" in err
    assert "vrx_wrong" not in err
    monkeypatch.setenv("VERIX_TOKEN", TOKEN)
    assert run(*bare, "--overwrite").code == 0


def test_an_interruption_leaves_the_job_and_says_how_to_go_on(
    run: Run, arguments: list[object], service: Scripted, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:

        def interrupt(seconds: float) -> None:
            raise KeyboardInterrupt

        patch.setattr("verix_anon.client.remote.connection.sleep", interrupt)
        service.states = ["running"]
        code, _, err = run(*arguments)
    assert code == 130
    (job,) = service.jobs
    assert f"the job {job} stays at the service, and the same command goes on with it" in err
    assert not (tmp_path / "delivery").exists()
    assert run(*arguments).code == 0
    assert list(service.jobs) == [job]


def test_before_there_is_a_job(run: Run, arguments: list[object], service: Scripted) -> None:
    with pytest.MonkeyPatch.context() as patch:

        def interrupt(seconds: float) -> None:
            raise KeyboardInterrupt

        patch.setattr("verix_anon.client.remote.connection.sleep", interrupt)
        service.faults["offer"] = [Handler.cut]
        code, _, err = run(*arguments)
    assert code == 130
    assert "no job was begun" in err


def test_the_demo_goes_through_a_service_and_needs_a_token(run: Run, service: Scripted) -> None:
    code, _, err = run("demo", "--url", service.url, "--token", TOKEN, "--adversary", "lazy")
    assert code == 2
    assert "--url and --adversary exclude each other" in err
    # The scripted service delivers another job's work, which no layer may let pass.
    code, _, err = run("demo", "--url", service.url, "--token", TOKEN, "--rows", 1500)
    assert code in (1, 2)
