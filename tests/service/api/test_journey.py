"""A job's whole way through the service, on both databases, and what is kept of it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import httpx2
import pyarrow.parquet as pq
import pytest

from files.hostile.test_bombs import first_page, swollen
from files.samples import delivered, read, restate, sent
from service.api.test_jobs import code
from service.running import Service, create, ended, fetch, order, running, send, submit
from tools import crafted_parquet as crafted
from tools.crafted_parquet import packed
from verix_anon.files.folder_writer import write_submission


@pytest.fixture
def either(database_url: str, tmp_path: Path) -> Iterator[Service]:
    """A service on each of the databases."""
    with running(tmp_path / "folder", database=database_url) as service:
        yield service


def test_the_delivery_is_the_local_engines(
    either: Service, submission: Path, tmp_path: Path
) -> None:
    with either.client() as client:
        job = ended(client, submit(client, submission))
        assert job["state"] == "done", job
        assert job["root"] == delivered().header.root.hex()
        folder = fetch(client, job, tmp_path / "delivery")
        assert read(folder).delivery.header.root == delivered().header.root
        assert "retry-after" not in client.get(f"/v1/jobs/{job['id']}").headers
        assert client.delete(f"/v1/jobs/{job['id']}").status_code == 204
        assert not list(either.folder.glob(f"**/{job['id']}/**/*.parquet"))


def test_ranges(client: httpx2.Client, submission: Path) -> None:
    job = ended(client, submit(client, submission))
    file = next(file for file in job["delivery"] if file["name"] == "records.parquet")
    url = f"/v1/jobs/{job['id']}/delivery/records.parquet"
    whole = client.get(url)
    data, size = whole.content, file["size"]
    assert whole.status_code == 200
    assert sha256(data).hexdigest() == file["sha256"]
    assert whole.headers["etag"] == f'"{file["sha256"]}"'
    assert whole.headers["accept-ranges"] == "bytes"
    for asked, part in {
        "bytes=0-0": data[:1],
        "bytes=100-": data[100:],
        "bytes=-7": data[-7:],
        f"bytes=5-{10 * size}": data[5:],
        f"bytes=-{10 * size}": data,
    }.items():
        answer = client.get(url, headers={"Range": asked})
        assert answer.status_code == 206
        assert answer.content == part
        start = len(data) - len(part) if asked != "bytes=0-0" else 0
        assert answer.headers["content-range"] == f"bytes {start}-{start + len(part) - 1}/{size}"
    for odd in ("bytes=", "bytes=-", "lines=1-2", "bytes=5-1", "bytes=0-1,3-4", "bytes=a-b"):
        answer = client.get(url, headers={"Range": odd})
        assert (answer.status_code, answer.content) == (200, data)
    for beyond in (f"bytes={size}-", "bytes=-0", f"bytes={10**17}-"):
        answer = client.get(url, headers={"Range": beyond})
        assert code(answer, 416) == "range-not-satisfiable"
        assert answer.headers["content-range"] == f"bytes */{size}"
    for tag, status in ((whole.headers["etag"], 206), ('"other"', 200)):
        answer = client.get(url, headers={"Range": "bytes=1-2", "If-Range": tag})
        assert answer.status_code == status


def test_no_delivery_before_it_is_done(client: httpx2.Client, submission: Path) -> None:
    job = create(client, order(submission))["id"]
    answer = client.get(f"/v1/jobs/{job}/delivery/delivery.json")
    assert code(answer, 409) == "wrong-state"


def test_a_job_that_is_done_has_no_other_files(client: httpx2.Client, submission: Path) -> None:
    job = ended(client, submit(client, submission))["id"]
    assert client.get(f"/v1/jobs/{job}/delivery/delivery.json").status_code == 200
    odd = ("delivery.json%0a", "delivery.json%0D", "%0adelivery.json", "delivery.json%7f")
    for name in ("contract.json", "..", "../upload/contract.json", "nodes.parquet/x", *odd):
        answer = client.get(f"/v1/jobs/{job}/delivery/{name.replace('..', '%2e%2e')}")
        assert code(answer, 404) == "not-found"


def test_records_in_parts(client: httpx2.Client, tmp_path: Path) -> None:
    """A folder of parts goes the same way as a file."""
    folder = tmp_path / "submission"
    write_submission(sent(), folder)
    table = pq.read_table(folder / "records.parquet")
    (folder / "records.parquet").unlink()
    (folder / "records.parquet").mkdir()
    for i in range(2):
        pq.write_table(table.slice(150 * i, 150), folder / "records.parquet" / f"p{i}.parquet")
    restate(folder)
    job = ended(client, submit(client, folder))
    assert job["root"] == delivered().header.root.hex(), job


def test_damaged_submissions_fail_with_their_reason(
    client: httpx2.Client, submission: Path
) -> None:
    asked = order(submission)
    records = next(file for file in asked["files"] if file["name"] == "records.parquet")
    data = b"PAR1" + bytes(records["size"] - 4)
    records["sha256"] = sha256(data).hexdigest()
    job = create(client, asked)["id"]
    for file in asked["files"]:
        name = file["name"]
        body = data if name == "records.parquet" else (submission / name).read_bytes()
        assert send(client, job, name, body).status_code == 204
    found = ended(client, job)
    assert found["state"] == "failed"
    assert found["reason"]["code"] == "damaged-submission"
    assert found["delivery"] is None


@pytest.mark.long
def test_a_bomb_harms_no_worker(tmp_path: Path) -> None:
    """A page of a few bytes that says it unfolds to gigabytes; the worker lives, and works on."""
    honest, bomb = tmp_path / "honest", tmp_path / "bomb"
    for folder in (honest, bomb):
        write_submission(sent(), folder)
    data = packed(pq.read_table(bomb / "records.parquet"), compression="zstd")
    (bomb / "records.parquet").write_bytes(crafted.rebuilt(data, first_page(swollen)))
    restate(bomb)
    with running(tmp_path / "folder", "--worker-memory", "500") as service:
        with service.client() as client:
            found = ended(client, submit(client, bomb))
            assert found["reason"]["code"] == "damaged-submission", found
            assert found["attempts"] == 1
            assert ended(client, submit(client, honest))["state"] == "done"
        assert "a worker died" not in service.log.read_text()


def test_one_job_of_many_requests_with_a_key(either: Service, submission: Path) -> None:
    """Those that come while the first is answered wait for it, and all see its job."""
    asked = order(submission)
    with either.client() as client, ThreadPoolExecutor(12) as pool:

        def ask(_: int) -> httpx2.Response:
            return client.post("/v1/jobs", json=asked, headers={"Idempotency-Key": "one"})

        answers = list(pool.map(ask, range(36)))
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.json()["id"] for answer in answers}) == 1
        assert len(client.get("/v1/jobs").json()["jobs"]) == 1
