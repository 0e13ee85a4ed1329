"""The remote client and the real service: one root wherever the work is done, and nothing lost."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import cluster
import verix_anon
from cli.jobs import Run
from deploy import certificates
from service.running import SECONDS, Service, running
from tools import cases
from tools.bench.tables import submission as bench_submission
from verix_anon import RemoteOptions, RemoteProvider
from verix_anon.errors import ProviderError
from verix_anon.files.keys import new_key, write_key
from verix_anon.files.trust import read_public_key


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One with SQLite, a signing key, and pieces of a megabyte."""
    folder = tmp_path_factory.mktemp("service")
    write_key(new_key(), folder / "key")
    given = ("--key-file", str(folder / "key"), "--max-request", "1")
    with running(folder / "data", *given) as found:
        yield found


@pytest.fixture(scope="module")
def submission(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of several megabytes; each test that needs another job renames it."""
    path = tmp_path_factory.mktemp("sent") / "submission"
    verix_anon.write_submission(bench_submission(60_000, 8), path)
    return path


def root_of(delivery: Path) -> str:
    from verix_anon.files.folder_facts import read_header

    return read_header(delivery).root.hex()


def jobs_of(service: Service, token: str) -> list[str]:
    with service.client(token) as client:
        return [job["id"] for job in client.get("/v1/jobs").json()["jobs"]]


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, service: Service, tmp_path: Path) -> Iterator[Service]:
    """A service on each of the databases."""
    if request.param == "sqlite":
        yield service
        return
    with cluster.running() as server:
        with psycopg.connect(cluster.url(server), autocommit=True) as connection:
            connection.execute("CREATE DATABASE remote")
        url = cluster.url(server, database="remote")
        with running(tmp_path / "service", database=url) as found:
            yield found


def test_every_provider_gives_the_same_root(either: Service) -> None:
    for made in (cases.prepared(), cases.prepared(clear=True)):
        local = verix_anon.LocalProvider(threads=1).anonymize(made.submission)
        remote = RemoteProvider(either.url, either.token()).anonymize(made.submission)
        assert remote.header.root == local.header.root
        verdict = verix_anon.verify(
            remote, made.manifest, submission=made.submission, skip=("fingerprint", "utility")
        )
        assert verdict


@pytest.mark.long
def test_the_demo(service: Service, run: Run) -> None:
    code, out, _ = run("demo", "--url", service.url, "--token", service.token(), "--rows", 1500)
    assert code == 0
    assert f"A provider ({service.url}) anonymizes it" in out
    assert "VERIFIED" in out


def test_a_receipt_comes_along_and_keys_are_compared(
    service: Service, job: Path, run: Run, tmp_path: Path
) -> None:
    key, out = service.folder.parent / "key.pub", tmp_path / "delivery"
    write_key(new_key(), tmp_path / "other")
    # What is put in place of the key while the service runs signs nothing and is not shown.
    (service.folder.parent / "key").write_bytes((tmp_path / "other").read_bytes())
    given = ["submit", job / "job" / "submission", "--url", service.url, "--out", out]
    given += ["--token", service.token("keys"), "--provider-key"]
    code, _, err = run(*given, tmp_path / "other.pub")
    assert code == 2
    assert "none of the keys that are pinned" in err
    code, said, _ = run(*given, key)
    assert code == 0
    assert f"--provider-key {key}" in said.replace("\n", " ")
    assert (out / "receipt.dsse.json").is_file()
    with service.client() as client:
        (shown,) = client.get("/v1").json()["keys"]
    assert shown["keyid"] == read_public_key(key).keyid
    assert root_of(out) == root_of(job / "job" / "delivery")
    assert jobs_of(service, service.token("keys")) == []


def interrupting(
    stage: str, after: int, act: Callable[[], None]
) -> tuple[Callable[[str, int, int], None], threading.Thread]:
    """Progress that has something happen, beside the client, when so many bytes have passed."""
    thread = threading.Thread(target=act)

    def progress(found: str, done: int, total: int) -> None:
        if found == stage and done > after and thread.ident is None:
            thread.start()

    return progress, thread


@pytest.mark.long
@pytest.mark.parametrize(("stage", "after"), [("upload", 1_500_000), ("download", 100_000)])
def test_a_server_killed_in_the_middle(
    service: Service, submission: Path, tmp_path: Path, stage: str, after: int
) -> None:
    def restart() -> None:
        service.kill()
        service.start()

    progress, thread = interrupting(stage, after, restart)
    options = RemoteOptions(seed=1, progress=progress, patience=SECONDS, keep=True)
    token = service.token(f"killed-{stage}")
    provider = RemoteProvider(service.url, token, options=options)
    provider.anonymize_folder(submission, tmp_path / "delivery")
    assert thread.ident is not None
    thread.join()
    assert len(jobs_of(service, token)) == 1
    local = verix_anon.LocalProvider().anonymize(submission)
    assert root_of(tmp_path / "delivery") == local.header.root.hex()


def test_two_clients_with_the_same_submission_make_one_job(
    service: Service, submission: Path, tmp_path: Path
) -> None:
    token, options = service.token("two"), RemoteOptions(keep=True)

    def client(name: str) -> str:
        provider = RemoteProvider(service.url, token, options=options)
        return provider.anonymize_folder(submission, tmp_path / name).job

    with ThreadPoolExecutor(2) as pool:
        found = set(pool.map(client, ["a", "b"]))
    assert found == set(jobs_of(service, token))
    assert len(found) == 1
    assert root_of(tmp_path / "a") == root_of(tmp_path / "b")


@pytest.mark.long
def test_a_client_that_died_goes_on_with_its_job(
    service: Service, submission: Path, tmp_path: Path
) -> None:
    token = service.token("died")
    command = [sys.executable, "-m", "verix_anon", "submit", str(submission), "--keep"]
    command += ["--url", service.url, "--out", str(tmp_path / "delivery")]
    environment = {**os.environ, "VERIX_TOKEN": token}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        until = time.monotonic() + SECONDS
        while not jobs_of(service, token):
            assert time.monotonic() < until
            time.sleep(0.02)
        process.kill()
    (begun,) = jobs_of(service, token)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert jobs_of(service, token) == [begun]
    assert begun in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["delivery"]


def test_a_certificate_that_is_not_trusted_is_said_at_once(tmp_path: Path) -> None:
    certificates.write(tmp_path, "localhost")
    files = ["--certificate", str(tmp_path / "fullchain.pem")]
    files += ["--certificate-key", str(tmp_path / "key.pem")]
    made = cases.prepared().submission
    with running(tmp_path / "service", *files, "--host", "127.0.0.1") as found:
        url, token = found.url.replace("127.0.0.1", "localhost"), found.token()
        with pytest.raises(ProviderError, match="certificate is not trusted"):
            RemoteProvider(url, token).anonymize(made)
        options = RemoteOptions(ca_file=tmp_path / "fullchain.pem")
        delivery = RemoteProvider(url, token, options=options).anonymize(made)
    assert delivery.header.root == cases.honest(made).header.root
