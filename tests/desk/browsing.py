"""A browser of the tests: it keeps cookies, sends what a browser does, and fills in forms."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx2
from starlette.testclient import TestClient

from verix_anon.desk.rendering import Desk
from verix_anon.desk.server import make_app
from verix_anon.desk.sessions import Sessions

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
        answer = self.get(f"/enter?token={self.given.sessions.token}")
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
        """Post a form of the desk's own, every line break in it as the HTML standard has it."""
        sent = {
            name: crlf(value) if isinstance(value, str) else [crlf(each) for each in value]
            for name, value in fields.items()
        }
        body = urlencode({"csrf": self.csrf, **sent}, doseq=True)
        return self.post(
            path, content=body, headers={"Origin": ORIGIN, "Content-Type": FORM, **headers}
        )


def crlf(value: str) -> str:
    return re.sub(r"\r\n?|\n", "\r\n", value)


class Shown(HTMLParser):
    """The elements of a page, as a browser would make them of it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.areas: dict[str, str] = {}
        """The texts of several lines, by name."""
        self._area: str | None = None
        # A browser reads every line break of a page so.
        self.feed(re.sub(r"\r\n?", "\n", html))
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "textarea":
            self._area = dict(attrs)["name"]
            self.areas[self._area] = ""

    def handle_endtag(self, tag: str) -> None:
        self._area = None

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._area is not None:
            self.areas[self._area] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def fields(html: str) -> dict[str, str | list[str]]:
    """What a browser would send of the page's forms, if nothing is changed."""
    found: dict[str, str | list[str]] = {}
    names = []
    name = ""
    shown = Shown(html.split("<main", 1)[1])
    for tag, attributes in shown.tags:
        if tag == "select":
            name = attributes.get("name") or ""
        elif tag == "option" and name and (name not in found or "selected" in attributes):
            found[name] = str(attributes.get("value", ""))
        elif tag == "textarea":
            # What ends the line of the tag is no part of the text.
            found[str(attributes["name"])] = shown.areas[str(attributes["name"])].removeprefix("\n")
        elif tag == "input" and attributes.get("name") == "column":
            names.append(str(attributes["value"]))
        elif tag == "input" and attributes.get("type") == "checkbox":
            if "checked" in attributes:
                found[str(attributes["name"])] = str(attributes["value"])
        elif tag == "input" and attributes.get("name") not in (None, "csrf"):
            value = str(attributes.get("value", ""))
            is_hidden = attributes.get("type") == "hidden"
            found[str(attributes["name"])] = value if is_hidden else re.sub("[\r\n]", "", value)
    return {**found, "column": names}


def wait_for(is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    until = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.02)
