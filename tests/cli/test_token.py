"""Tokens by the command: made once, listed without their secret, revoked."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import select, update

from cli.jobs import Run
from verix_anon.files import optional_packages
from verix_anon.service.database import Database, TokenRow
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.tenants import TokenRole, find


def test_tokens(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "service"
    made = run("token", "create", "acme", "--days", 2, "--folder", folder)
    assert "There was no service in" in made.err
    token = made.out.strip()
    operator = run("token", "create", "--operator", "--folder", folder).out.strip()
    assert token.startswith("vrx_")
    assert len(token) == 47
    listed = run("token", "list", "--folder", folder)
    assert "acme" in listed.out
    assert "ends 20" in listed.out
    assert "the operator" in listed.out
    assert "never ends" in listed.out
    assert token not in listed.out
    shown = json.loads(run("token", "list", "--folder", folder, "--json").out)
    assert [each["role"] for each in shown] == ["tenant", "operator"]
    assert f"Its id is {shown[0]['id']}." in made.err
    revoked = run("token", "revoke", shown[0]["id"], "--folder", folder)
    assert (revoked.code, revoked.out) == (0, "Revoked.\n")
    assert "revoked 20" in run("token", "list", "--folder", folder).out
    database = Database(ServiceSettings(folder=folder).database_url)
    assert find(database, token) is None
    known = find(database, operator)
    assert known is not None
    assert known.role == TokenRole.OPERATOR
    database.close()


def test_mistakes(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "service"
    assert run("token", "list").code == 2
    for arguments in (("list",), ("revoke", "0000")):
        assert "there is no service in" in run("token", *arguments, "--folder", folder).err
        assert not folder.exists()
    for wrong in (
        ("create",),
        ("create", "acme", "--operator"),
        ("create", "x" * 65),
        ("create", "a\nb"),
        ("revoke", "0000"),
        ("list", "--database", "nonsense"),
    ):
        ended = run("token", *wrong, "--folder", folder)
        assert ended.code == 2
        assert len(ended.err.splitlines()) == 1
    assert run("token", "create", "acme", "--days", 0, "--folder", folder).code == 2


@contextmanager
def small_files() -> Iterator[None]:
    """The system refuses to write files of more than 1000 bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_disk_that_is_full_is_said(run: Run, tmp_path: Path) -> None:
    run("token", "create", "acme", "--folder", tmp_path)
    database = Database(ServiceSettings(folder=tmp_path).database_url)
    # As beside a service that runs, and where none does.
    with database.read() as session:
        assert session.scalars(select(TokenRow)).all()
        with small_files():
            beside = run("token", "create", "beta", "--folder", tmp_path)
    database.close()
    with small_files():
        alone = run("token", "create", "beta", "--folder", tmp_path / "new")
    for ended in (beside, alone):
        assert ended.code == 2
        assert "its disk is full" in ended.err
        assert len(ended.err.splitlines()) == 1
    assert "database cannot be written" in beside.err
    assert "beta" not in run("token", "list", "--folder", tmp_path).out


def test_a_token_that_is_over_is_listed_as_such(run: Run, tmp_path: Path) -> None:
    run("token", "create", "acme", "--days", 1, "--folder", tmp_path)
    database = Database(ServiceSettings(folder=tmp_path).database_url)
    with database.write() as session:
        session.execute(update(TokenRow).values(expires=0.0))
    database.close()
    assert "ended 1970-01-01" in run("token", "list", "--folder", tmp_path).out


@pytest.mark.parametrize(
    ("missing", "arguments"),
    [
        ("uvicorn", ("serve", "folder")),
        ("sqlalchemy", ("token", "create", "acme", "-f", "folder")),
        ("sqlalchemy", ("token", "list", "-f", "folder")),
        ("sqlalchemy", ("token", "revoke", "0000", "-f", "folder")),
        ("s3fs", ("serve", "folder", "--blobs", "s3://bucket/verix")),
    ],
)
def test_an_extra_that_is_not_installed_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, missing: str, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr(
        optional_packages, "find_spec", lambda name: None if name == missing else name
    )
    ended = run(*arguments)
    assert ended.code == 2
    assert f"[{'s3' if missing == 's3fs' else 'service'}]'" in ended.err


def test_help_has_an_example(run: Run) -> None:
    for command in ("create", "list", "revoke"):
        assert f"verix-anon token {command}" in run("token", command, "--help").out
    assert "verix-anon serve" in run("serve", "--help").out
