"""A desk under load: an upload is never held in memory, and no page waits for the work."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from desk.serving import Served, serving

CHUNK = b"17,x,2024-01-31\n" * (1 << 16)
ROOM = 64
"""Megabytes that an upload of any size may take of the desk's memory."""
PAGES = ("/", "/jobs/job/table", "/jobs/job/columns", "/static/desk.css")


@contextmanager
def entered(desk: Served) -> Iterator[httpx2.Client]:
    with desk.client() as client:
        assert client.get(desk.url).status_code == 303
        yield client


def csrf(client: httpx2.Client) -> str:
    found = re.search(r'name="csrf" content="([^"]+)"', client.get("/").text)
    assert found is not None
    return found.group(1)


def body(n_bytes: int) -> Iterator[bytes]:
    for _ in range(n_bytes // len(CHUNK)):
        yield CHUNK


@pytest.mark.parametrize(
    "megabytes", [256, pytest.param(2048, marks=pytest.mark.slow)], ids=["256 MB", "2 GB"]
)
def test_an_upload_is_never_held_in_memory(tmp_path: Path, megabytes: int) -> None:
    (tmp_path / "job").mkdir()
    with serving(tmp_path) as desk, entered(desk) as client:
        client.get("/jobs/job/table")
        before, size = desk.most_memory(), megabytes << 20
        answer = client.put(
            "/jobs/job/upload?name=people.csv",
            content=body(size),
            headers={"Origin": desk.origin, "X-Verix-Csrf": csrf(client)},
        )
        assert answer.json() == {"table": "people.csv"}
        assert (tmp_path / "people.csv").stat().st_size == size
        assert client.get("/jobs/job/table?table=people.csv").status_code == 200
        assert desk.most_memory() < before + ROOM
    (tmp_path / "people.csv").unlink()


def test_an_upload_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    with serving(tmp_path) as desk, entered(desk) as client:

        def broken() -> Iterator[bytes]:
            yield CHUNK * 4
            raise ConnectionError

        headers = {"Origin": desk.origin, "X-Verix-Csrf": csrf(client)}
        with pytest.raises(ConnectionError):
            client.put("/jobs/job/upload?name=x.csv", content=broken(), headers=headers)
        until = time.monotonic() + 30
        while {path.name for path in tmp_path.iterdir()} != {"job", ".verix-desk.json"}:
            assert time.monotonic() < until, list(tmp_path.iterdir())
            time.sleep(0.05)
        assert client.get("/").status_code == 200
        assert "Traceback" not in desk.end()[1]


@pytest.mark.slow
def test_no_page_takes_a_second_while_a_million_rows_are_read(tmp_path: Path) -> None:
    columns = 16
    row = ";".join(["12,5", "31.01.1960", "Berlin", "17"] * (columns // 4))
    with (tmp_path / "people.csv").open("w") as file:
        file.write(";".join(f"c{i}" for i in range(columns)) + "\n")
        for i in range(1_000):
            file.write(f"{row}\n" * 999 + f"{row[:-2]}{i % 10}\n")
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "roles.toml").write_text(
        'table = "../people.csv"\n[columns]\nc0 = "quasi"\n'
    )
    with serving(tmp_path) as desk, entered(desk) as client:
        digest = re.search(r'name="digest" value="(\w+)"', client.get("/jobs/job/table").text)
        assert digest is not None
        fields = {"csrf": csrf(client), "do": "draft", "table": "people.csv"}
        started = client.post(
            "/jobs/job/table",
            data={**fields, "digest": digest.group(1)},
            headers={"Origin": desk.origin},
        )
        assert started.status_code == 303, started.text
        taken: dict[str, list[float]] = {page: [] for page in PAGES}
        while "Work is running" in client.get("/").text:
            for page in PAGES:
                began = time.perf_counter()
                assert client.get(page).status_code == 200
                taken[page].append(time.perf_counter() - began)
        assert "c15" in (tmp_path / "job" / "roles.toml").read_text()
    assert all(len(times) > 2 for times in taken.values())
    # On a machine that others use as well, the middle one is ours.
    middle = {page: sorted(times)[len(times) // 2] for page, times in taken.items()}
    assert max(middle.values()) < 1, middle
    print({page: round(max(times), 3) for page, times in taken.items()})
