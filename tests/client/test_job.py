"""How far a job is, as its folder alone tells, no matter who worked on it."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cli import jobs
from verix_anon.client.job import (
    JourneyState,
    JourneyStep,
    find_job,
    jobs_in,
    look_at,
    new_job,
    released_files,
)
from verix_anon.errors import TableError


def test_a_job_of_the_commands_is_followed_to_its_end(
    job: Path, run: jobs.Run, quick_models: None
) -> None:
    folder = job / "job"
    assert look_at(folder).state is JourneyState.DELIVERED
    shutil.move(folder / "delivery", job / "away")
    assert look_at(folder).state is JourneyState.PREPARED
    assert look_at(folder).step is JourneyStep.SEND
    shutil.move(job / "away", folder / "delivery")
    assert run(*jobs.verify_arguments(job), "--out", folder / "verdict.json").code == 0
    assert look_at(folder).state is JourneyState.VERIFIED
    # Its roles lie beside it, so that there are none to be changed here.
    without = (JourneyStep.TABLE, JourneyStep.SEND, JourneyStep.VERDICT, JourneyStep.RELEASE)
    assert look_at(folder).open_steps == without
    assert replace(look_at(folder), has_roles=True).open_steps == tuple(JourneyStep)
    shutil.copy(folder / "verdict.json", job / "verdict.json")
    assert run(*jobs.release_arguments(job), "--out", folder / "released.csv").code == 0
    done = look_at(folder)
    assert done.state is JourneyState.RELEASED
    # The owner's own table and what others left here are not to be published.
    (folder / "people.schema.json").write_text('{"format": "table-schema"}')
    (folder / "people.csv").touch()
    (folder / "secret.schema.json").symlink_to(folder / "released.schema.json")
    names = ["released.csv", "released.schema.json"]
    assert [path.name for path in released_files(done)] == names
    (folder / "released.parquet").touch()
    assert [path.name for path in released_files(done)] == names[1:]
    own = replace(done, table=folder / "released.parquet")
    assert [path.name for path in released_files(own)] == names
    (folder / "sheet.json").write_text('{"root": "00"}')
    assert look_at(folder).state is JourneyState.VERIFIED
    (folder / "verdict.json").write_text("{}")
    spoiled = look_at(folder)
    assert spoiled.state is JourneyState.DELIVERED
    assert spoiled.problem
    assert [one.name for one in jobs_in(job)] == ["job"]


def test_a_verdict_on_another_delivery_counts_for_nothing(job: Path, run: jobs.Run) -> None:
    folder = job / "job"
    verify = jobs.verify_arguments(job)
    run(*verify, "--skip", "fingerprint,utility", "--out", folder / "verdict.json")
    header = folder / "delivery" / "delivery.json"
    root = look_at(folder)
    assert root.state is JourneyState.VERIFIED
    text = header.read_text()
    at = text.index('"root"') + len('"root":"') + 4
    header.write_text(text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :])
    assert look_at(folder).state is JourneyState.DELIVERED


def test_a_roles_file_says_where_the_table_lies(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    assert look_at(folder).state is JourneyState.NEW
    assert look_at(folder).open_steps == (JourneyStep.TABLE,)
    (folder / "roles.toml").write_text('table = "../people.csv"\n')
    found = look_at(folder)
    assert (found.state, found.table) == (JourneyState.DRAFTED, tmp_path / "people.csv")
    assert found.open_steps == (
        JourneyStep.TABLE,
        JourneyStep.COLUMNS,
        JourneyStep.PRIVACY,
        JourneyStep.SEND,
    )
    (folder / "roles.toml").write_text("table = ")
    assert "cannot be read" in look_at(folder).problem


def test_folders_of_other_things_are_no_jobs(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.png").touch()
    (tmp_path / ".git").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "roles.toml").touch()
    assert [one.name for one in jobs_in(tmp_path)] == ["empty"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "none", ".x", "a\0b", "a" * 300])
def test_a_job_is_found_by_its_own_name_only(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").mkdir()
    (tmp_path / ".x").mkdir()
    with pytest.raises(TableError, match="there is no job"):
        find_job(tmp_path, name)


def test_a_new_job_is_an_empty_folder(tmp_path: Path) -> None:
    made = new_job(tmp_path, "Ämter 2")
    assert find_job(tmp_path, "Ämter 2") == made
    assert made.state is JourneyState.NEW


@pytest.mark.parametrize(
    "text",
    ['table = "a\\u0000b"', "x = " + "[" * 100_000, "k = " + "9" * 5_000, "\ufffe = 1"],
    ids=["nul", "nested", "digits", "sign"],
)
def test_a_hostile_roles_file_hides_no_other_job(tmp_path: Path, text: str) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "roles.toml").write_text(text)
    assert [one.name for one in jobs_in(tmp_path)] == ["a", "b"]


def test_folders_that_cannot_be_read_or_shown_are_no_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "theirs").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/gr\xfcn")).mkdir()
    listed = Path.iterdir

    def denied(path: Path) -> Iterator[Path]:
        if path.name == "theirs":
            raise PermissionError
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", denied)
    assert [one.name for one in jobs_in(tmp_path)] == ["a"]
