"""The compose file gives the service what it takes; tried here without containers."""

import re
import shlex
from pathlib import Path
from typing import Any, cast

import fsspec
import httpx2
import psycopg
import pytest
import typer.main
import yaml

import cluster
import s3_store
from service.running import Service
from verix_anon.cli import app
from verix_anon.files.keys import new_key, write_key

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
COMPOSE: Any = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICE: Any = COMPOSE["services"]["service"]
IMAGE = (DEPLOY / "Containerfile").read_text()


def entrypoint() -> list[str]:
    found = re.search(r"^ENTRYPOINT (\[.*\])$", IMAGE, re.MULTILINE)
    assert found is not None
    return list(yaml.safe_load(found[1]))


def test_options_and_variables_are_those_of_the_command() -> None:
    group = cast(Any, typer.main.get_command(app))
    parameters = group.commands["serve"].params
    known = {option for each in parameters for option in each.opts}
    given = [*entrypoint(), *SERVICE["command"]]
    assert {word for word in given if word.startswith("--")} <= known
    variables = {each.envvar for each in parameters if each.envvar}
    others = {name for name in SERVICE["environment"] if not name.startswith("AWS_")}
    assert others == variables
    page = (DEPLOY.parent / "docs" / "how-to" / "service.md").read_text()
    asked = set(re.findall(r"\$\{(\w+):\?\}", (DEPLOY / "compose.yaml").read_text()))
    assert asked
    assert all(f"{name}=" in page for name in asked)


def test_what_it_names_is_there() -> None:
    assert (DEPLOY / SERVICE["build"]["context"] / SERVICE["build"]["dockerfile"]).is_file()
    folders = {each.split(":")[1] for each in SERVICE["volumes"]}
    kept = re.search(r"^VOLUME (\[.*\])$", IMAGE, re.MULTILINE)
    assert kept is not None
    assert folders == set(yaml.safe_load(kept[1]))
    assert entrypoint()[2] in folders
    for one in COMPOSE["services"].values():
        assert set(one.get("depends_on", ())) <= COMPOSE["services"].keys()
        named = {each.split(":")[0] for each in one.get("volumes", ())}
        assert named <= COMPOSE["volumes"].keys()
        assert ":" in one["image"] or "build" in one
    # Nobody beyond this machine reaches it without TLS.
    assert all(each.startswith("127.0.0.1:") for each in SERVICE["ports"])
    assert not any("ports" in COMPOSE["services"][name] for name in ("postgres", "minio"))
    port = entrypoint()[entrypoint().index("--port") + 1]
    assert SERVICE["ports"] == [f"127.0.0.1:8443:{port}"]


@pytest.mark.long
def test_the_service_starts_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_key(new_key(), tmp_path / "receipts.key")
    with (
        s3_store.running() as store,
        s3_store.reached(store),
        cluster.running() as server,
    ):
        with psycopg.connect(cluster.url(server), autocommit=True) as connection:
            connection.execute("CREATE DATABASE verix")
        for name, value in SERVICE["environment"].items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", store)
        monkeypatch.setenv("VERIX_DATABASE", cluster.url(server, database="verix"))
        (bucket,) = re.findall(r"mb --ignore-existing store/(\w+)", str(COMPOSE))
        fsspec.filesystem("s3").mkdir(bucket)
        given = shlex.join(SERVICE["command"]).replace("/run/secrets", str(tmp_path))
        service = Service(tmp_path / "service", tuple(shlex.split(given)))
        try:
            service.start()
            assert httpx2.get(f"{service.url}/readyz", timeout=30).status_code == 200
            assert fsspec.filesystem("s3").ls(bucket, refresh=True)
        finally:
            service.close()
