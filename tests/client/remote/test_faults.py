"""What a client meets on the way to a service that is honest."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from client.remote import clocks
from client.remote.journeys import Client, break_off, busy, cut_after
from client.remote.scripted import LIMITS, TOKEN, Handler, Scripted
from verix_anon import RemoteOptions, RemoteProvider
from verix_anon.files.folder_writer import write_receipt
from verix_anon.files.keys import new_key, write_key
from verix_anon.files.trust import read_public_key


def test_nothing_happens(client: Client, service: Scripted, clock: clocks.Clock) -> None:
    service.states = ["queued", "running"]
    client.run()
    assert client.is_whole()
    assert service.count("delete") == 1
    assert service.count("patch") > len(service.uploads)  # request_bytes bounds a piece
    assert clock.waits == sorted(clock.waits)
    assert (client.out.stat().st_mode & 0o777, client.out.parent.stat().st_nlink) == (0o700, 3)


@pytest.mark.parametrize("page", [1, 3])
def test_the_files_of_a_delivery_come_in_pages(
    client: Client, service: Scripted, page: int
) -> None:
    service.page = page
    client.run()
    assert client.is_whole()


def test_a_job_is_kept_if_asked(client: Client, service: Scripted) -> None:
    client.run(keep=True)
    assert service.count("delete") == 0


@pytest.mark.parametrize("n_bytes", [0, 1, 1000])
def test_an_upload_goes_on_where_it_was_cut(
    client: Client, service: Scripted, n_bytes: int
) -> None:
    service.faults["patch"] = [None, None, cut_after(n_bytes), None, cut_after(n_bytes)]
    client.run()
    assert client.is_whole()
    sizes = sum(map(len, service.uploads.values()))
    sent = [int(h["Content-Length"]) for kind, _, h in service.seen if kind == "patch"]
    assert sum(sent) - sizes <= 2 * 4096  # no more was sent again than was cut off


@pytest.mark.parametrize("n_bytes", [0, 1, 5000])
def test_a_download_goes_on_where_it_was_cut(
    client: Client, service: Scripted, n_bytes: int
) -> None:
    service.faults["delivery"] = [None, None, None, break_off(n_bytes)]
    client.run()
    assert client.is_whole()
    ranges = [h["Range"] for kind, _, h in service.seen if kind == "delivery" and "Range" in h]
    assert ranges == ([f"bytes={n_bytes}-"] if n_bytes else [])


def test_a_download_that_must_begin_again_does(client: Client, service: Scripted) -> None:
    def whole(handler: Handler) -> None:
        handler.answer(200, handler.script.delivery[handler.file()])

    service.faults["delivery"] = [None, None, None, break_off(5000), whole]
    client.run()
    assert client.is_whole()


@pytest.mark.parametrize("kind", ["offer", "post", "head", "patch", "job", "delivery", "delete"])
@pytest.mark.parametrize("status", [429, 503, 502, 408, 507])
def test_what_is_busy_is_asked_again(
    client: Client, service: Scripted, clock: clocks.Clock, kind: str, status: int
) -> None:
    service.faults[kind] = [busy(status, "rate-limited", Retry_After="7"), busy(status, "again")]
    client.run()
    assert client.is_whole()
    waits = [wait for wait in clock.waits if wait > 5]
    assert len(waits) == 1
    assert 7 <= waits[0] <= 8.75


@pytest.mark.parametrize("kind", ["offer", "post", "head", "patch", "job", "delivery", "delete"])
def test_a_connection_that_ends_is_made_again(client: Client, service: Scripted, kind: str) -> None:
    service.faults[kind] = [Handler.cut, Handler.cut]
    client.run()
    assert client.is_whole()
    assert len(service.jobs) == 1


def test_waits_grow_and_differ(client: Client, service: Scripted, clock: clocks.Clock) -> None:
    service.faults["post"] = [Handler.cut] * 6
    client.run()
    grown = clock.waits[:6]
    assert all(0.125 * 2**i <= wait <= 0.25 * 2**i for i, wait in enumerate(grown))
    again = clocks.Clock()
    assert again.waits == []
    assert len({round(wait / 2**i, 6) for i, wait in enumerate(grown)}) == 6


def test_patience_ends(client: Client, service: Scripted, clock: clocks.Clock) -> None:
    service.faults["patch"] = [busy(503, "unavailable")] * 1000
    client.fails(r"does not serve \(unavailable: later\)", patience=60)
    assert 60 < clock.time < 130


def test_a_service_that_says_when_to_come_again_is_waited_for(
    client: Client, service: Scripted, clock: clocks.Clock
) -> None:
    service.faults["offer"] = [busy(503, "unavailable", Retry_After="5")] * 20
    client.run()
    assert client.is_whole()
    assert clock.time > 100
    shutil.rmtree(client.out)
    service.faults["offer"] = [busy(502, "")] * 1000
    client.fails("does not serve")
    assert clock.time < 200


def test_a_wrong_address_is_said_soon(client: Client, clock: clocks.Clock) -> None:
    client.service.url = "http://127.0.0.1:1"
    client.fails("does not serve")
    assert clock.time < 60


def test_a_retry_that_is_never_is_bounded(
    client: Client, service: Scripted, clock: clocks.Clock
) -> None:
    service.faults["post"] = [busy(429, "too-many-jobs", Retry_After="999999999")]
    client.run()
    assert 300 <= max(clock.waits) <= 375


def test_a_failed_job_of_an_earlier_run_is_made_anew(client: Client, service: Scripted) -> None:
    failed = {"code": "worker-killed", "detail": "three times"}

    def fail(handler: Handler) -> None:
        handler.job().update(state="failed", reason=failed)
        handler.serve_job()

    service.faults["job"] = [fail]
    client.fails("failed at the service: worker-killed: three times")
    client.run()
    assert len(service.jobs) == 2


def test_a_job_that_was_half_deleted_is_made_again(client: Client, service: Scripted) -> None:
    """Its row says that it is done, and its files are gone."""

    def gone(handler: Handler) -> None:
        handler.problem(404, "not-found", "there is no such file")

    service.faults["delivery"] = [None, gone]
    client.run()
    assert client.is_whole()
    assert (len(service.jobs), service.count("delete")) == (2, 2)
    shutil.rmtree(client.out)
    service.faults["delivery"] = [gone] * 3
    client.fails("not-found")


def test_a_job_that_is_deleted_while_it_is_waited_for_is_made_again(
    client: Client, service: Scripted
) -> None:
    """A deletion of an earlier run goes on at the service although its client gave it up."""

    def delete(handler: Handler) -> None:
        service.keys.clear()
        service.uploads.clear()
        handler.problem(404, "not-found", "there is no such job")

    service.states = ["queued", "running"]
    service.faults["job"] = [None, delete]
    service.faults["head"] = [None, delete]
    client.run()
    assert client.is_whole()
    assert len(service.jobs) == 3


@pytest.mark.parametrize("state", ["failed", "done"])
def test_a_job_in_the_way_is_deleted_with_patience(
    client: Client, service: Scripted, clock: clocks.Clock, state: str
) -> None:
    """Else the same job would be found again, and its old failure told."""

    def fail(handler: Handler) -> None:
        handler.job().update(state="failed", reason={"code": "internal", "detail": "once"})
        handler.serve_job()

    def gone(handler: Handler) -> None:
        handler.problem(404, "not-found", "there is no such file")

    if state == "failed":
        service.faults["job"] = [fail]
        client.fails("internal: once")
    else:
        service.faults["delivery"] = [gone]
    service.faults["delete"] = [busy(503, "unavailable", Retry_After="10")] * 10
    client.run()
    assert client.is_whole()
    assert len(service.jobs) == 2
    assert clock.time > 100


def test_a_file_that_was_not_kept_is_asked_for_again(client: Client, service: Scripted) -> None:
    """It came whole while another request was busy with it, and that one failed."""

    def uploading(handler: Handler) -> None:
        handler.json({**handler.job(), "state": "uploading"})

    service.faults["job"] = [uploading, uploading]
    client.run()
    assert client.is_whole()
    assert service.count("head") == 3 * len(service.uploads)
    shutil.rmtree(client.out)
    service.keys.clear()
    service.faults["job"] = [uploading] * 1000
    client.fails("does not store what it was sent", patience=60)


def test_a_job_that_takes_too_long_stays_there(client: Client, service: Scripted) -> None:
    service.states = ["running"] * 1000
    client.fails("is not done after 20 s; it stays", wait=20)
    assert service.count("delete") == 0
    service.states = []
    client.run()
    assert len(service.jobs) == 1


def test_a_wrong_token_is_refused_without_its_text(client: Client) -> None:
    other = "vrx_" + "x" * 43
    said = client.fails("refused: unauthorized", token=other)
    assert other not in said


def test_an_upload_taken_over_goes_on(client: Client, service: Scripted) -> None:
    service.faults["patch"] = [busy(409, "upload-taken-over"), busy(409, "offset-mismatch")]
    service.faults["post"] = [busy(409, "idempotency-key-in-flight")]
    client.run()
    assert client.is_whole()


@pytest.mark.parametrize(
    ("limit", "match"),
    [
        ({"rows": 299}, "at most 299 rows, and the submission has 300"),
        ({"columns": 3}, "at most 3 columns"),
        ({"upload_bytes": 100}, "at most 100 bytes, and"),
        ({"file_bytes": 100}, "at most 100 bytes of records.parquet"),
    ],
)
def test_what_would_be_refused_is_not_sent(
    client: Client, service: Scripted, limit: dict[str, int], match: str
) -> None:
    service.offer = {"limits": {**LIMITS, **limit}}
    client.fails(match + ".*nothing was uploaded")
    assert [kind for kind, _, _ in service.seen] == ["offer"]


def test_a_rule_or_key_that_is_not_there(client: Client, service: Scripted, tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_key(new_key(), tmp_path / name)
    files = [tmp_path / "one.pub", tmp_path / "other.pub"]
    key = read_public_key(files[1])
    service.offer = {"keys": [{"keyid": key.keyid, "public": key.pem}]}
    client.fails("none of the keys that are pinned", provider_keys=files[:1])
    service.offer["rules"] = ["another"]
    client.fails("does not know the rule", provider_keys=files)
    del service.offer["rules"]
    client.fails("there is no receipt.*the job stays", provider_keys=files)
    assert service.count("delete") == 0


@pytest.fixture
def signed(service: Scripted, remote_folders: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Have the service deliver a receipt that a key signed; all keys are shown by the service."""
    keys = {name: new_key() for name in ("ours", "other")}
    for name, key in keys.items():
        write_key(key, tmp_path / name)
    shown = [{"keyid": key.public.keyid, "public": key.public.pem} for key in keys.values()]
    service.offer = {"keys": shown}

    def sign(by: str) -> Path:
        folder = tmp_path / f"signed-{by}"
        shutil.copytree(remote_folders / "delivery", folder)
        moment = datetime.now(UTC)
        write_receipt(folder, keys[by], moment, moment)
        service.delivery["receipt.dsse.json"] = (folder / "receipt.dsse.json").read_bytes()
        return tmp_path / "ours.pub"

    return sign


def test_a_receipt_of_the_pinned_key_is_checked_before_the_job_is_deleted(
    client: Client, service: Scripted, signed: Callable[[str], Path]
) -> None:
    key = signed("ours")
    client.run(provider_keys=[key])
    assert service.count("delete") == 1


@pytest.mark.parametrize("is_signed", [True, False])
def test_a_receipt_that_no_pinned_key_signed_is_refused(
    client: Client, service: Scripted, signed: Callable[[str], Path], is_signed: bool
) -> None:
    key = signed("other")
    if not is_signed:
        service.delivery["receipt.dsse.json"] = b"{}"
    client.fails("signed this delivery.*the job stays", provider_keys=[key])
    assert service.count("delete") == 0


def test_a_receipt_for_other_files_is_refused(
    client: Client, service: Scripted, signed: Callable[[str], Path]
) -> None:
    key = signed("ours")
    service.delivery["delivery.json"] += b" "
    client.fails("other files.*the job stays", provider_keys=[key])
    assert service.count("delete") == 0


def test_a_delivery_in_memory_has_its_receipt(
    service: Scripted, remote_folders: Path, signed: Callable[[str], Path], clock: object
) -> None:
    folder = remote_folders / "submission"
    provider = RemoteProvider(service.url, TOKEN)
    assert provider.anonymize(folder).receipt is None
    options = RemoteOptions(provider_keys=[signed("ours")])
    found = RemoteProvider(service.url, TOKEN, options=options).anonymize(folder)
    assert found.receipt == service.delivery["receipt.dsse.json"]
