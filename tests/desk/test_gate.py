"""Nobody is let in but the browser that was given the token, and nothing from another page."""

import asyncio
import re
from pathlib import Path

import pytest
from starlette.routing import BaseRoute, Route
from starlette.types import Message

from desk.browsing import FORM, ORIGIN, PORT, Browser, Given
from verix_anon.desk import gate
from verix_anon.desk.gate import HEADERS
from verix_anon.desk.server import make_routes

OTHER_HOSTS = (
    "evil.example",
    f"evil.example:{PORT}",
    f"127.0.0.1.evil.example:{PORT}",
    f"127.0.0.1:{PORT + 1}",
    "127.0.0.1",
    f"LOCALHOST.:{PORT}",
    f"[::1]:{PORT}",
    f"0.0.0.0:{PORT}",
    f"127.1:{PORT}",
    "",
)


def routes(given: Given) -> list[tuple[str, str]]:
    """Every path of the desk with each of its methods, its places filled in."""
    found = []
    for route in flat(make_routes(given.desk).routes):
        path = route.path.replace("{job}", "job").replace("{name}", "x").replace("{language}", "de")
        assert "{" not in path, "say above what stands there"
        found += [(method, path) for method in route.methods or ()]
    return found


def flat(given: list[BaseRoute]) -> list[Route]:
    """Routes, and those of included routers."""
    found = []
    for one in given:
        if isinstance(one, Route):
            found.append(one)
        else:
            # FastAPI keeps routers that were included as they are.
            found += flat(one.original_router.routes)  # type: ignore[attr-defined]
    return found


def test_every_route_is_behind_the_gate(given: Given) -> None:
    found = routes(given)
    assert len(found) > 5
    (given.desk.folder / "job").mkdir()
    stranger, guest = Browser(given), Browser(given).entered()
    for method, path in found:
        answer = stranger.request(method, path)
        assert answer.status_code == 401, path
        assert str(given.desk.folder) not in answer.text
        for host in OTHER_HOSTS:
            answer = guest.request(method, path, headers={"Host": host})
            assert answer.status_code == 421, (path, host)
        if method not in ("GET", "HEAD"):
            for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": ORIGIN}):
                answer = guest.request(method, path, headers=headers)
                assert answer.status_code == 403, (path, headers)


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/static/desk.css", "/static/design.css", "/enter", "/entered"]
)
def test_every_answer_has_the_headers(browser: Browser, path: str) -> None:
    for answer in (browser.get(path), browser.get(path, headers={"Host": "evil.example"})):
        for name, value in HEADERS.items():
            assert answer.headers.get_list(name) == [value]


def test_the_policy_allows_nothing_from_elsewhere_and_nothing_inline() -> None:
    policy = dict(
        part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";")
    )
    assert policy.pop("default-src") == "'none'"
    assert policy.pop("base-uri") == policy.pop("frame-ancestors") == "'none'"
    assert set(policy.values()) == {"'self'"}


def test_a_page_for_strangers_has_its_style(given: Given) -> None:
    stranger = Browser(given)
    page = stranger.get("/")
    assert page.status_code == 401
    (sheet,) = re.findall(r'rel="stylesheet" href="([^"]+)"', page.text)
    answer = stranger.get(sheet)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert "color-scheme: light dark" in answer.text


def test_a_token_is_exchanged_once_for_a_cookie_of_this_port(given: Given) -> None:
    token = given.sessions.token
    browser = Browser(given)
    assert browser.get("/").status_code == 401
    answer = browser.get(f"/enter?token={token}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/entered")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"verix-desk-{PORT}=")
    assert token not in cookie
    assert {"httponly", "samesite=strict", "path=/"} <= {
        part.strip().lower() for part in cookie.split(";")
    }
    assert 'content="0;url=/"' in browser.get("/entered").text
    assert browser.get("/").status_code == 200
    other = Browser(given)
    assert other.get(f"/enter?token={token}").status_code == 403
    assert other.get("/").status_code == 401
    assert "verix-anon desk --url" in other.get("/").text


@pytest.mark.parametrize("query", ["", "token=", "token=x", "token=%ff%00", "other=x"])
def test_what_is_no_token_lets_nobody_in(given: Given, query: str) -> None:
    browser = Browser(given)
    answer = browser.get(f"/enter?{query}")
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_head_uses_no_token_up(given: Given) -> None:
    token = given.sessions.token
    browser = Browser(given)
    assert browser.head(f"/enter?token={token}").status_code == 401
    assert browser.get(f"/enter?token={token}").status_code == 303


@pytest.mark.parametrize("cookie", ["", "x", "x" * 10_000, "\u00ff"])
def test_what_is_no_session_is_not_known(given: Given, cookie: str) -> None:
    header = f"verix-desk-{PORT}={cookie}".encode("latin-1")
    answer = Browser(given).get("/", headers={b"Cookie": header})
    assert answer.status_code == 401


def test_a_cookie_of_another_port_does_not_count(given: Given, browser: Browser) -> None:
    session = browser.cookies[f"verix-desk-{PORT}"]
    answer = Browser(given).get("/", headers={"Cookie": f"verix-desk-{PORT + 1}={session}"})
    assert answer.status_code == 401


def test_a_form_needs_its_origin_and_the_words_of_its_session(
    given: Given, browser: Browser
) -> None:
    body = f"csrf={browser.csrf}&name=job"
    stranger = Browser(given).entered()

    def post(by: Browser, text: str, **headers: str) -> int:
        sent = {"Content-Type": FORM, "Origin": ORIGIN} | headers
        given_headers = [(name, value) for name, value in sent.items() if value]
        return by.post("/jobs", content=text, headers=given_headers).status_code

    for origin in (
        "",
        "null",
        "http://evil.example",
        f"http://localhost:{PORT}",
        "https://127.0.0.1",
    ):
        assert post(browser, body, Origin=origin) == 403
    for text in ("name=job", "csrf=&name=job", "csrf=x&name=job", "csrf=%ff&name=job"):
        assert post(browser, text) == 403
    assert post(stranger, body) == 403, "the word of another session"
    assert post(browser, body, **{"Content-Type": "text/plain"}) == 403
    assert post(browser, body, **{"Content-Type": "multipart/form-data; boundary=x"}) == 403
    assert post(browser, body, **{"Sec-Fetch-Site": "same-site"}) == 403
    for site in ("none", "same-site", "cross-site", "same-origin, same-origin"):
        assert post(browser, body, Origin="null", **{"Sec-Fetch-Site": site}) == 403
    assert not list(given.desk.folder.iterdir())
    assert post(browser, body) == 303
    # As a browser sends a form of a page that sends no referrer.
    other = body.replace("name=job", "name=other")
    assert post(browser, other, Origin="null", **{"Sec-Fetch-Site": "same-origin"}) == 303
    assert {path.name for path in given.desk.folder.iterdir()} == {"job", "other"}


def test_another_page_of_the_browser_cannot_load_ours(browser: Browser) -> None:
    """Other ports of this machine are the same site, which cookies do not tell apart."""
    for site in ("cross-site", "same-site"):
        for mode in ("no-cors", "cors"):
            headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
            assert browser.get("/", headers=headers).status_code == 403
    headers = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    assert browser.get("/", headers=headers).status_code == 200


def test_other_methods_are_not_taken(browser: Browser) -> None:
    for method in ("OPTIONS", "DELETE", "PATCH", "TRACE", "CONNECT"):
        assert browser.request(method, "/", headers={"Origin": ORIGIN}).status_code in (403, 405)


def test_two_hosts_are_none(browser: Browser) -> None:
    headers = [("Host", f"127.0.0.1:{PORT}"), ("Host", f"127.0.0.1:{PORT}")]
    assert browser.get("/", headers=headers).status_code == 421


def test_a_form_without_end_is_cut(browser: Browser) -> None:
    answer = browser.submit("/jobs", {"name": "x" * (9 << 20)})
    assert answer.status_code == 413


def test_there_is_one_link_at_a_time(given: Given) -> None:
    first = given.sessions.token
    assert given.sessions.exchange("x") is None
    assert given.sessions.token == first
    assert given.sessions.exchange(first) is not None
    second = given.sessions.token
    assert second != first
    assert given.sessions.exchange(first) is None
    assert given.sessions.exchange(second) is not None


def test_the_list_of_routes_is_that_of_the_folder(given: Given) -> None:
    """No page is in the folder and forgotten in the application."""
    from verix_anon.desk import server

    folder = Path(server.__file__).parent / "pages"
    names = {path.stem for path in folder.glob("*.py")} - {"__init__", "forms"}
    assert {module.__name__.rsplit(".", 1)[1] for module in server.PAGES} == names


def test_a_form_whose_end_never_came_is_none() -> None:
    said: list[Message] = [
        {"type": "http.request", "body": b"csrf=right&name=half-a-na", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return said.pop(0)

    assert asyncio.run(gate._body(receive)) is None
