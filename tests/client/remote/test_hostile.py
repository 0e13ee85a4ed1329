"""A service that means harm: nothing of what it says is believed, and nothing is left of it."""

import time
from contextlib import suppress
from typing import Any

import pytest

from client.remote.clocks import Clock
from client.remote.journeys import Client, break_off, busy, cut_after, stated
from client.remote.scripted import Fault, Handler, Scripted, listed, running


def test_other_bytes_than_announced_are_refused(client: Client, service: Scripted) -> None:
    service.announced = listed(service.delivery)
    data = service.delivery["records.parquet"]
    service.delivery["records.parquet"] = data[:-1] + bytes([data[-1] ^ 1])
    client.fails("records.parquet is not of the SHA-256")


def test_more_than_announced_is_not_taken(client: Client, service: Scripted) -> None:
    service.announced = listed(service.delivery)
    service.delivery["nodes.parquet"] += b"x" * 1000
    client.fails("more than the .* bytes of nodes.parquet")


def test_what_has_no_end_is_not_taken(client: Client, service: Scripted) -> None:
    def endless(handler: Handler) -> None:
        handler.answer(200, Transfer_Encoding="chunked")
        block = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        while True:
            handler.wfile.write(block)

    def run(handler: Handler) -> None:
        try:
            endless(handler)
        except OSError:
            handler.close_connection = True

    service.faults["delivery"] = [run]
    client.fails("more than the")
    service.faults["job"] = [run]
    client.fails("answer is larger than")
    service.faults["offer"] = [run]
    client.fails("answer is larger than")


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("../outside", 5),
        ("/etc/passwd", 5),
        ("records.parquet/../../x.parquet", 5),
        ("records.parquet/a/b.parquet", 5),
        ("records.parquet/_hidden.parquet", 5),
        ("records.parquet/" + "n" * 300 + ".parquet", 5),
        ("records.parquet/a\nb.parquet", 5),
        ("records.parquet/a\x1b[31m.parquet", 5),
        ("extra.bin", 5),
        ("delivery.json", 5),
        ("receipt.dsse.json", 1 << 30),
    ],
)
def test_only_a_deliverys_files_are_taken(
    client: Client, service: Scripted, name: str, size: int
) -> None:
    other = {"name": name, "size": size, "sha256": "0" * 64}
    service.announced = [*listed(service.delivery), other]
    client.fails("the service announces")
    if name.startswith("records.parquet/"):
        files = [file for file in listed(service.delivery) if file["name"] != "records.parquet"]
        service.jobs.clear()
        service.keys.clear()
        service.announced = [*files, other]
        client.fails("a part named")


@pytest.mark.parametrize(
    "name", ["delivery.json", "leaves.parquet", "nodes.parquet", "records.parquet"]
)
@pytest.mark.parametrize("size", [0, 1 << 40])
def test_sizes_are_bounded_before_anything_is_fetched(
    client: Client, service: Scripted, name: str, size: int
) -> None:
    service.announced = [
        {**file, "size": size} if file["name"] == name else file
        for file in listed(service.delivery)
    ]
    client.fails(f"announces .* bytes of {name}")
    assert service.count("delivery") == 0


@pytest.mark.parametrize("kind", ["offer", "post", "head", "patch", "job", "delivery"])
def test_no_redirect_gets_the_token(client: Client, service: Scripted, kind: str) -> None:
    with running(Scripted({})) as elsewhere:

        def redirect(handler: Handler) -> None:
            handler.drain()
            handler.answer(307, Location=elsewhere.url + "/v1")

        service.faults[kind] = [redirect]
        client.fails("redirects")
        assert elsewhere.seen == []


def test_a_wrong_address_is_told_as_one(client: Client, service: Scripted) -> None:
    service.faults["offer"] = [lambda handler: handler.answer(404)]
    client.fails(f"there is no verix-anon service at {service.url}; .* without /v1")


@pytest.mark.parametrize(
    "body",
    [
        b'{"code":"' + b"c" * 100_000 + b'","detail":"d"}',
        b'{"code":"a\\u001b[2Jb","detail":"\\n\\r\\u202e' + b"d" * 10_000 + b'"}',
        b'{"code":7,"detail":[]}',
        b"[" * 60_000,
        b"\xff\xfe",
        b"",
    ],
)
def test_a_hostile_problem_is_one_short_line(
    client: Client, service: Scripted, body: bytes
) -> None:
    def refuse(handler: Handler) -> None:
        handler.drain()
        handler.answer(400, body, Content_Type="application/problem+json")

    service.faults["post"] = [refuse]
    client.fails("the service refused|answer is larger")


@pytest.mark.parametrize(
    "change",
    [
        {"format": "verix/service/9"},
        {"limits": {}},
        {"limits": None},
        {"rules": "all"},
        {"keys": [1]},
        {"version": 3},
    ],
)
def test_an_offer_that_is_none(client: Client, service: Scripted, change: dict[str, Any]) -> None:
    service.offer = change
    client.fails("the service's offer")


@pytest.mark.parametrize(
    "change",
    [
        {"id": "../../x"},
        {"state": "well"},
        {"progress": 3},
        {"progress": {"done": -1, "total": 2}},
        {"reason": "x"},
        {"delivery": {}},
        {"delivery": [{"name": "x"}]},
    ],
)
def test_a_job_that_is_none(client: Client, service: Scripted, change: dict[str, Any]) -> None:
    def lie(handler: Handler) -> None:
        handler.json({**handler.job(), **change})

    service.faults["job"] = [lie]
    client.fails("the service's job")


@pytest.mark.parametrize(
    "lie", [stated(10**9), stated(0, 10**6), stated(10**15, 10**15)], ids=["much", "length", "both"]
)
def test_offsets_that_cannot_be(client: Client, service: Scripted, lie: Fault) -> None:
    service.faults["head"] = [lie]
    client.fails("counts wrongly")


@pytest.mark.parametrize("text", ["", "-1", "x", "1e3", "9" * 40])
def test_offsets_that_are_none(client: Client, service: Scripted, text: str) -> None:
    def odd(handler: Handler) -> None:
        handler.answer(200, Upload_Offset=text, Upload_Length="1")

    service.faults["head"] = [odd]
    client.fails("has no Upload-Offset|counts wrongly")


@pytest.mark.parametrize("offset", [0, 10**6])
def test_an_upload_that_does_not_count_what_was_sent(
    client: Client, service: Scripted, offset: int
) -> None:
    service.faults["patch"] = [stated(offset)]
    client.fails("counts wrongly")


def test_a_service_that_forgets_is_given_up(client: Client, service: Scripted) -> None:
    def forget(handler: Handler) -> None:
        handler.script.uploads[handler.file()].clear()
        handler.cut()

    service.faults["patch"] = [None, None, *([None, forget] * 50)]
    client.fails("lost again and again")


def test_a_digest_that_never_fits_is_given_up(client: Client, service: Scripted) -> None:
    service.faults["patch"] = [busy(422, "digest-mismatch")] * 50
    client.fails("changed while it was sent, or on the way")
    assert service.count("patch") < 10


def test_another_part_than_was_asked_for_is_refused(client: Client, service: Scripted) -> None:
    def other(handler: Handler) -> None:
        data = handler.script.delivery[handler.file()]
        span = f"bytes 0-{len(data) - 1}/{len(data)}"
        handler.answer(206, data[5000:], Content_Range=span)

    service.faults["delivery"] = [None, None, None, break_off(5000), other]
    client.fails("sends another part of records.parquet")


def test_a_service_that_begins_again_and_again_is_given_up(
    client: Client, service: Scripted
) -> None:
    service.faults["delivery"] = [None, None, None, *([break_off(5000)] * 100)]
    client.fails("begins records.parquet again and again")


@pytest.mark.parametrize("piece", [b"HTTP/1.1 103 Early Hints\r\n\r\n", b"X-More: 1\r\n", b"x"])
def test_headers_without_end_are_given_up(
    client: Client, service: Scripted, clock: Clock, piece: bytes
) -> None:
    """Each piece comes a second after the last, so that no single read ever waits for long."""

    def trickle(handler: Handler) -> None:
        with suppress(OSError):
            if not piece.startswith(b"HTTP"):
                handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            for _ in range(1000):
                clock.time += 1.0
                handler.wfile.write(piece)
                handler.wfile.flush()
                time.sleep(0.002)
        handler.cut()

    service.faults["offer"] = [trickle] * 50
    client.fails("does not serve")
    assert clock.time < 5 * 60


def test_a_service_that_takes_a_byte_of_each_piece_is_given_up(
    client: Client, service: Scripted
) -> None:
    def take_one(handler: Handler) -> None:
        kept = handler.script.uploads[handler.file()]
        kept += handler.rfile.read(int(handler.headers["Content-Length"]))[:1]
        handler.answer(204, Upload_Offset=str(len(kept)))

    service.faults["patch"] = [take_one] * 100_000
    client.fails("takes only parts of")
    assert service.count("patch") < 20


def test_a_byte_of_each_piece_that_is_cut_off_is_given_up(
    client: Client, service: Scripted
) -> None:
    service.faults["patch"] = [cut_after(1)] * 100_000
    client.fails("does not serve")
    assert service.count("patch") < 100
