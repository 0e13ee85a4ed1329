"""The gate that every request passes, whatever its route; nothing else listens.

It checks in this order: The Host is this machine's, which excludes a name that was rebound to
127.0.0.1. The session's cookie was made by this process. The request does not come from a page
of another origin. A request that changes something has our Origin and the session's own token.
"""

from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from verix_anon.desk.rendering import TEMPLATES, plain
from verix_anon.desk.sessions import Sessions

Form = Mapping[str, list[str]]
CSRF_FIELD, CSRF_HEADER = "csrf", "x-verix-csrf"
FORM_BYTES = 8 << 20
FORM_FIELDS = 200_000
FORM_TYPE = "application/x-www-form-urlencoded"
SAFE, CHANGING = frozenset({"GET", "HEAD"}), frozenset({"POST", "PUT"})
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self';"
    " img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
REPORT_HEADERS = {
    **HEADERS,
    # No script, no form, and an origin of its own: what is in it cannot reach the desk.
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline';"
    " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    # Browsers refuse a sandboxed page that wants to be alone with its origin.
    "Cross-Origin-Opener-Policy": "unsafe-none",
}
"""For a page with its own style, which is not a page of the desk."""


Passed = tuple[str, Form, Receive]
"""A request that may go on: its session, its form, and what is left of its body."""


class DeskGate:
    """Around the whole application."""

    def __init__(self, app: ASGIApp, *, sessions: Sessions, port: int) -> None:
        self.app, self.sessions = app, sessions
        self.hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self.cookie = f"verix-desk-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through, or answer it here."""
        if scope["type"] != "http":
            # The desk speaks nothing else, and has nothing to start or to end.
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                policy = scope.get("state", {}).get("policy", HEADERS)
                ours = {name.lower().encode(): value.encode() for name, value in policy.items()}
                kept = [(name, value) for name, value in message["headers"] if name not in ours]
                message["headers"] = [*kept, *ours.items()]
            await send(message)

        headers = Headers(scope=scope)
        found = self._ours(scope, headers) or await self._passed(scope, headers, receive)
        if isinstance(found, Response):
            await found(scope, receive, sent)
            return
        session, form, rest = found
        scope.setdefault("state", {}).update(form=form, csrf=self.sessions.csrf(session))
        await self.app(scope, rest, sent)

    def _ours(self, scope: Scope, headers: Headers) -> Response | None:
        """The answers that need no session."""
        if len(headers.getlist("host")) != 1 or headers["host"] not in self.hosts:
            return PlainTextResponse("This is not the desk's address.\n", 421)
        match scope["method"], scope["path"]:
            case "GET", "/enter":
                return self._enter(scope, headers)
            case "GET", "/entered":
                return HTMLResponse(plain(headers, "entered"))
            case "GET", "/static/design.css":
                style = TEMPLATES.get_template("design.css").render()
                return Response(style, media_type="text/css")
        return None

    def _enter(self, scope: Scope, headers: Headers) -> Response:
        """Exchange a token for a cookie, and lead away from the URL that holds it.

        A browser that was led here from elsewhere would not show a strict cookie at once: so
        there is a page between, which goes on from here.
        """
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        session = self.sessions.exchange(given[0])
        if session is None:
            return HTMLResponse(plain(headers, "used"), 403)
        answer = RedirectResponse("/entered", 303)
        answer.set_cookie(self.cookie, session, httponly=True, samesite="strict", path="/")
        return answer

    async def _passed(self, scope: Scope, headers: Headers, receive: Receive) -> Passed | Response:
        session = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")
        if not self.sessions.knows(session):
            return HTMLResponse(plain(headers, "unknown"), 401)
        is_moving = headers.get("sec-fetch-mode") == "navigate" and scope["method"] in SAFE
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not is_moving:
            return _refused()
        if scope["method"] in SAFE:
            return session, {}, receive
        if scope["method"] not in CHANGING:
            return PlainTextResponse("Not allowed.\n", 405)
        if not _is_own_origin(headers):
            return _refused()
        return await self._with_form(session, headers, receive)

    async def _with_form(
        self, session: str, headers: Headers, receive: Receive
    ) -> Passed | Response:
        """Read the form and check that it is the session's; other bodies send a header instead."""
        if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
            is_ours = self.sessions.is_csrf(session, headers.get(CSRF_HEADER, ""))
            return (session, {}, receive) if is_ours else _refused()
        body = await _body(receive)
        if body is None:
            return PlainTextResponse("The form is too large.\n", 413)
        try:
            text = body.decode("utf-8")
            form = parse_qs(text, keep_blank_values=True, max_num_fields=FORM_FIELDS)
        except ValueError:
            return PlainTextResponse("The form cannot be read.\n", 400)
        if not self.sessions.is_csrf(session, form.get(CSRF_FIELD, [""])[0]):
            return _refused()
        return session, form, _nothing


def _is_own_origin(headers: Headers) -> bool:
    """Whether a page of ours sent the request.

    A browser that is told to send no referrer sends the origin of a form as `null`. Then the header
    Sec-Fetch-Site counts: the browser sets it, and a page cannot.
    """
    if headers.getlist("origin") == ["null"]:
        return headers.getlist("sec-fetch-site") == ["same-origin"]
    return headers.getlist("origin") == [f"http://{headers['host']}"]


def _refused() -> Response:
    return PlainTextResponse("This request does not come from a page of the desk.\n", 403)


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _body(receive: Receive) -> bytes | None:
    """Return the whole body, or None if it is too large or its end never came."""
    found = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        found += message.get("body", b"")
        if len(found) > FORM_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(found)
