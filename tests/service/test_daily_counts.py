"""Counts of a day grow with what they count, on both databases, and outlive the jobs."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import select, text
from starlette.testclient import TestClient

from files.samples import sent
from service import made
from service.running import order
from verix_anon.files.folder_writer import write_submission
from verix_anon.protocol.providers import File
from verix_anon.service import daily_counts, jobs, leases
from verix_anon.service.api.app import make_app
from verix_anon.service.blobs import Blobs
from verix_anon.service.daily_counts import Total, count, totals
from verix_anon.service.database import DailyRow, Database, Reason
from verix_anon.service.leases import LostError
from verix_anon.service.server import make_context
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.supervisor import sweep
from verix_anon.service.tenants import TokenRole, create_token

DELIVERY = (File(name="delivery.json", size=40, sha256="0" * 64),)


def numbers(database: Database) -> dict[str, int]:
    return {event: total.number for event, total in totals(database, 1).items()}


def taken(database: Database) -> leases.LeasedJob:
    made.queued(database)
    held = leases.claim(database, "one", lease_seconds=30)
    assert held is not None
    return held


def test_a_job_is_counted_on_its_way(database: Database) -> None:
    made.tenant(database)
    held = taken(database)
    with database.write() as session:
        session.execute(text("UPDATE jobs SET started = started - 5"))
    leases.finish(database, held, root="0" * 64, delivery=DELIVERY)
    found = totals(database, 1)
    assert found["created"] == Total(1, 3, 0.0)
    assert found["received"] == Total(2, 3, 0.0)
    assert found["delivered"][:2] == (1, 40)
    assert 5 <= found["delivered"].seconds < 60
    assert jobs.delete(database, made.TENANT, held.job_id)
    assert numbers(database) == {"created": 1, "received": 2, "delivered": 1, "deleted": 1}


def test_what_happens_once_is_counted_once(database: Database) -> None:
    made.tenant(database)
    job = made.created(database, made.new(key="k"))
    jobs.create(database, made.new(key="k"), engine="verix-local", most=9, retention_seconds=9)
    for file in (job.files[0], *job.files):
        jobs.complete_file(database, job.id, file.name)
    held = leases.claim(database, "one", lease_seconds=30)
    assert held is not None
    leases.fail(database, held, Reason(code="internal", detail=""))
    with pytest.raises(LostError):
        leases.fail(database, held, Reason(code="internal", detail=""))
    for _ in range(2):
        jobs.delete(database, made.TENANT, job.id)
    expected = {"created": 1, "received": 2, "failed: internal": 1, "deleted": 1}
    assert numbers(database) == expected


def test_a_job_that_kills_its_workers_is_counted_when_it_fails(database: Database) -> None:
    made.tenant(database)
    made.queued(database)
    for _ in range(leases.MAX_LOST):
        assert "failed: worker-killed" not in numbers(database)
        assert leases.claim(database, "one", lease_seconds=30)
        leases.lose(database, "one")
    assert numbers(database)["failed: worker-killed"] == 1


def test_a_change_that_is_undone_is_not_counted(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("half way")

    made.tenant(database)
    monkeypatch.setattr(jobs, "_new_row", fail)
    with pytest.raises(RuntimeError, match="half way"):
        made.created(database)
    assert numbers(database) == {}


def test_swept_jobs_are_counted_and_old_counts_forgotten(
    database: Database, tmp_path: Path
) -> None:
    made.tenant(database)
    for _ in range(2):
        made.created(database, retention=-1.0)
    with database.write() as session:
        count(session, ["clinic", "ward"], "created")
        changed = f"UPDATE daily SET day = day - {daily_counts.KEPT_DAYS + 1} WHERE tenant = 'ward'"
        session.execute(text(changed))
    sweep(ServiceSettings(folder=tmp_path), database, Blobs(str(tmp_path / "blobs")))
    assert numbers(database) == {"created": 3, "expired": 2}
    with database.read() as session:
        assert "ward" not in session.scalars(select(DailyRow.tenant)).all()


def test_counts_made_at_once_are_all_there(database: Database) -> None:
    def one(_: int) -> None:
        with database.write() as session:
            count(session, ["a", "b"], "created", n_bytes=2)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(20)))
    assert totals(database, 1) == {"created": Total(40, 80, 0.0)}
    assert totals(database, 1, DailyRow.tenant)["a"].number == 20


def test_a_week_has_seven_days(database: Database) -> None:
    for days in range(8):
        with database.write() as session:
            count(session, "clinic", f"failed: {days}")
            moved = f"UPDATE daily SET day = day - {days} WHERE event = 'failed: {days}'"
            session.execute(text(moved))
    assert list(totals(database, 1)) == ["failed: 0"]
    assert len(totals(database, 7)) == 7
    assert totals(database, 7, DailyRow.tenant, only="failed")["clinic"].number == 7
    assert totals(database, 7, only="delivered") == {}


def test_the_page_tells_what_happened_after_the_jobs_are_gone(
    database_url: str, database: Database, tmp_path: Path
) -> None:
    write_submission(sent(), tmp_path / "submission")
    context = make_context(ServiceSettings(folder=tmp_path / "folder", database=database_url))
    client = TestClient(make_app(context))
    tenant = create_token(database, made.TENANT, TokenRole.TENANT)
    client.headers["Authorization"] = f"Bearer {tenant}"
    asked = order(tmp_path / "submission")
    job = client.post("/v1/jobs", json=asked).json()["id"]
    assert client.delete(f"/v1/jobs/{job}").status_code == 204
    assert client.post("/v1/jobs", json=asked | {"rows": 10**9}).status_code == 413
    leases.finish(database, taken(database), root="0" * 64, delivery=DELIVERY)
    client.headers["Authorization"] = f"Bearer {create_token(database, None, TokenRole.OPERATOR)}"
    page = client.get("/operator").text
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', page)
    found = {name: re.findall(r"<td[^>]*>(.*?)</td>", cells) for name, cells in rows}
    assert found["Jobs created"] == ["2", "2"]
    assert found["Jobs deleted by their owners"] == ["1", "1"]
    assert found["Jobs refused: too-many-rows"] == ["1", "1"]
    assert found["Bytes received"] == ["3 B", "3 B"]
    assert found["Bytes delivered"] == ["40 B", "40 B"]
    assert found["Mean time of work"][0].endswith(" s")
    assert found[made.TENANT] == ["1", "40 B", "1", "0", "1"]
    assert re.search(r"<dd>0 on 0 servers</dd>", page)
    assert re.search(r"free, including the reserve of .*B", page)
    assert re.search(r"Python 3\.\S+, (SQLite 3|PostgreSQL \d+)\.", page)
    figures = client.get("/metrics").text
    assert 'verix_events_today{event="refused: too-many-rows"} 1.0' in figures
    assert 'verix_disk_bytes{kind="reserve"}' in figures
    context.database.close()
