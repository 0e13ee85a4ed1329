"""A browser of the tests: it keeps cookies, sends what a browser does, and fills in forms."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx2
from starlette.testclient import TestClient

from verix_anon.desk.app import make_app
from verix_anon.desk.sessions import Sessions
from verix_anon.desk.show import Desk

PORT = 4711
ORIGIN = f"http://127.0.0.1:{PORT}"
FORM = "application/x-www-form-urlencoded"
SECONDS = 60.0


class Given(NamedTuple):
    """What a desk is made of."""

    desk: Desk
    sessions: Sessions


class Browser(TestClient):
    """One profile of a browser at one desk."""

    def __init__(self, given: Given, base_url: str = ORIGIN) -> None:
        super().__init__(
            make_app(given.desk, given.sessions, PORT),
            base_url=base_url,
            headers={"Accept-Language": "en"},
            follow_redirects=False,
        )
        self.given = given

    def entered(self) -> "Browser":
        """The same, let in."""
        answer = self.get(f"/enter?token={self.given.sessions.fresh_token()}")
        assert answer.status_code == 303, answer.text
        return self

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" content="([^"]+)"', self.get("/").text)
        assert found is not None
        return found.group(1)

    def submit(
        self, path: str, fields: Mapping[str, str | Sequence[str]], **headers: str
    ) -> httpx2.Response:
        """Post a form of the desk's own."""
        body = urlencode({"csrf": self.csrf, **fields}, doseq=True)
        return self.post(
            path, content=body, headers={"Origin": ORIGIN, "Content-Type": FORM, **headers}
        )


class Shown(HTMLParser):
    """The elements of a page, as a browser would make them of it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def wait_for(is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    until = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.02)
